"""MinMax writes into place; where that is not understood it must still do the same."""

from __future__ import annotations

import io
import math

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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_gradients_are_exchanged_to_the_last_bit(layer: MinMax, dtype: torch.dtype) -> None:
    """Also infinities, zeros of either sign and numbers that are none."""
    torch.manual_seed(0)
    x = torch.randn(4, 6, 3, 5).to(dtype).requires_grad_()
    gradient = torch.randn(4, 6, 3, 5).to(dtype)
    gradient[0, :, 0, 0] = torch.tensor([math.inf, -math.inf, 0.0, -0.0, math.nan, 1.0]).to(dtype)
    layer(x).backward(gradient)
    assert x.grad is not None
    first, second = ((0, 1, 2), (3, 4, 5)) if layer.halves else ((0, 2, 4), (1, 3, 5))
    for i, j in zip(first, second, strict=True):
        swapped = x[:, i] > x[:, j]
        for own, other in ((i, j), (j, i)):
            expected = torch.where(swapped, gradient[:, other], gradient[:, own])
            bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
            assert torch.equal(x.grad[:, own].contiguous().view(bits), expected.contiguous().view(bits))
