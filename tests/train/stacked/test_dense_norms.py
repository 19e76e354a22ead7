"""The norms of many small matrices at once."""

from __future__ import annotations

import pytest
import torch

from lipcert.train.stacked.dense_norms import DenseNorms

SHAPES = [(3, 5), (7, 2), (1, 1), (6, 6)]


def problem(models: int, shapes=SHAPES):
    weights = [torch.randn(models, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    vectors = [torch.randn(models, n, dtype=torch.float64) for _, n in shapes]
    vectors = [v / v.norm(dim=1, keepdim=True) for v in vectors]
    return weights, DenseNorms(vectors, weights)


@pytest.mark.parametrize("models", [1, 4])
@pytest.mark.parametrize("shapes", [SHAPES, [(3, 5)]], ids=len)
def test_they_are_the_spectral_norms_with_their_gradients(models, shapes):
    weights, norms = problem(models, shapes)
    found = norms(weights, times=3000)
    expected = torch.stack([torch.linalg.matrix_norm(w, 2) for w in weights], dim=1)
    torch.testing.assert_close(found, expected)
    slope = torch.randn_like(found)
    ours = torch.autograd.grad(found, weights, slope)
    theirs = torch.autograd.grad(expected, weights, slope)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    product = norms.product(weights)
    torch.testing.assert_close(product, expected.prod(1))
    ours = torch.autograd.grad(product.square().sum(), weights)
    again = torch.stack([torch.linalg.matrix_norm(w, 2) for w in weights], dim=1)
    torch.testing.assert_close(ours, torch.autograd.grad(again.prod(1).square().sum(), weights))


def test_zero_and_huge_matrices_do_no_harm():
    weights, norms = problem(2)
    with torch.no_grad():
        weights[0][0].zero_()
        weights[1].mul_(1e150)
        weights[3].mul_(1e-150)
    found = norms(weights, times=20)
    assert torch.isfinite(found).all()
    assert found[0, 0] == 0
    for gradient in torch.autograd.grad(norms.product(weights).sum(), weights):
        assert torch.isfinite(gradient).all()
    with torch.no_grad():
        weights[0][0].fill_(1.0)
    assert norms(weights, times=50)[0, 0].item() == pytest.approx(15**0.5)


def test_vectors_go_in_and_out():
    weights, norms = problem(3)
    norms(weights, times=10)
    other = DenseNorms(norms.vectors(), weights)
    assert torch.equal(other(weights), norms(weights))
