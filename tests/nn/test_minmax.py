"""MinMax writes into place; where that is not understood it must still do the same."""

from __future__ import annotations

import io

import pytest
import torch
from torch.autograd import forward_ad

from lipcert.nn import MinMax

X = torch.randn(5, 6, 2, dtype=torch.float64)


@pytest.fixture(params=[False, True], ids=["pairs", "halves"])
def layer(request: pytest.FixtureRequest) -> MinMax:
    return MinMax(halves=request.param)


def test_gradients_of_gradients(layer: MinMax) -> None:
    x = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(layer, x)
    assert torch.autograd.gradgradcheck(layer, x)


def test_batched_and_forward_derivatives(layer: MinMax) -> None:
    x, tangent = X[:1].clone(), torch.randn_like(X[:1])
    jacobian = torch.autograd.functional.jacobian(layer, x)
    torch.testing.assert_close(torch.autograd.functional.jacobian(layer, x, vectorize=True), jacobian)
    expected = torch.einsum("abcdef,def->abc", jacobian, tangent)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.func.jvp(layer, (x,), (tangent,))[1], expected)
    torch.testing.assert_close(torch.vmap(layer)(X[None])[0], layer(X))


def test_traced_it_can_be_saved(layer: MinMax) -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(layer, X), file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(X), layer(X))


def test_any_layout_and_precision(layer: MinMax) -> None:
    image = torch.randn(2, 4, 3, 3)
    last = image.to(memory_format=torch.channels_last)
    assert torch.equal(layer(last), layer(image))
    assert torch.equal(layer(image.bfloat16()), layer(image.bfloat16().float()).bfloat16())
    assert layer(image[:0]).shape == (0, 4, 3, 3)
    with torch.inference_mode():
        assert torch.equal(layer(image), layer(image.clone()))
