"""Convolutions as sums of products: torch's operators, within the bound for any order of summation."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.grad import conv2d_input

from lipcert.bounds.provers import summing as module
from lipcert.bounds.provers.rounding import SAFETY, gamma
from lipcert.bounds.provers.summing import SumsOfProducts, summing
from lipcert.errors import InputError

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
SETTINGS = st.fixed_dictionaries(
    {
        "stride": PAIRS,
        "padding": st.tuples(st.integers(0, 3), st.integers(0, 3)),
        "dilation": st.tuples(st.integers(1, 2), st.integers(1, 2)),
        "groups": st.integers(1, 2),
    }
)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def close(found: Tensor, expected: Tensor, absolute: Tensor, products: int) -> bool:
    """Return whether both lie within the rounding errors of a sum of that many products and a bias."""
    return bool(((found - expected).abs() <= 2 * SAFETY * gamma(products + 1) * absolute).all())


@settings(max_examples=60)
@given(SETTINGS, st.tuples(st.integers(1, 9), st.integers(1, 9)), PAIRS)
def test_it_is_the_convolution(
    given_: dict[str, object], size: tuple[int, int], kernel: tuple[int, int]
) -> None:
    torch.manual_seed(0)
    groups = int(str(given_["groups"]))
    x, weight, bias = noise(3, 2 * groups, *size), noise(3 * groups, 2, *kernel), noise(3 * groups)
    try:
        expected = F.conv2d(x, weight, bias, **given_)  # type: ignore[arg-type]
    except RuntimeError:  # the kernel does not fit
        assume(False)
    absolute = F.conv2d(x.abs(), weight.abs(), bias.abs(), **given_)  # type: ignore[arg-type]
    products = weight[0].numel()
    with SumsOfProducts():
        found = F.conv2d(x, weight, bias, **given_)  # type: ignore[arg-type]
        with torch.inference_mode():
            again = F.conv2d(x, weight, bias, **given_)  # type: ignore[arg-type]
    assert close(found, expected, absolute, products)
    assert torch.equal(again, found)

    u, back = noise(*expected.shape), 3 * weight[0, 0].numel()
    sizes = [u.abs(), weight.abs()]
    expected = conv2d_input(x.shape, weight, u, **given_)  # type: ignore[no-untyped-call]
    absolute = conv2d_input(x.shape, sizes[1], sizes[0], **given_)  # type: ignore[no-untyped-call]
    with SumsOfProducts():
        found = conv2d_input(x.shape, weight, u, **given_)  # type: ignore[no-untyped-call]
    assert close(found, expected, absolute, back)


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_a_transposed_convolution_with_output_padding(extra: int) -> None:
    y, weight = noise(2, 4, 5, 4), noise(4, 3, 3, 2)
    settings_ = {"stride": 3, "padding": 1, "output_padding": extra, "groups": 2, "dilation": (1, 2)}
    with SumsOfProducts():
        found = F.conv_transpose2d(y, weight, **settings_)  # type: ignore[arg-type]
    assert torch.allclose(found, F.conv_transpose2d(y, weight, **settings_), rtol=1e-13)  # type: ignore[arg-type]


def test_one_dimension() -> None:
    x, weight = noise(2, 4, 9), noise(6, 2, 3)
    with SumsOfProducts():
        found = F.conv1d(x, weight, None, 2, 1, 1, 2)
    assert torch.allclose(found, F.conv1d(x, weight, None, 2, 1, 1, 2), rtol=1e-13)


def test_large_batches_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = noise(7, 2, 6, 6), noise(3, 2, 3, 3)
    with SumsOfProducts():
        whole = F.conv2d(x, weight)
        monkeypatch.setattr(module, "_CHUNK", 2 * 2 * 9 * 16)
        assert torch.allclose(F.conv2d(x, weight), whole, rtol=1e-14)


def test_cancelling_products_err_by_no_more_than_the_bound() -> None:
    """In exact arithmetic: Winograd's sums of pixels would lose the small ones beside the large."""
    x, weight = noise(1, 2, 5, 5), noise(1, 2, 3, 3)
    x[..., ::2] *= 2.0**40
    with SumsOfProducts():
        found = F.conv2d(x, weight)
    for i in range(3):
        for j in range(3):
            pairs = list(
                zip(x[0, :, i : i + 3, j : j + 3].flatten().tolist(), weight.flatten().tolist(), strict=True)
            )
            exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            size = sum((abs(Fraction(a) * Fraction(b)) for a, b in pairs), Fraction(0))
            assert abs(Fraction(float(found[0, 0, i, j])) - exact) <= Fraction(gamma(18)) * size


def test_every_convolution_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    before = module._patched
    monkeypatch.setattr(module, "_patched", lambda *args: calls.append(1) or before(*args))  # type: ignore[func-returns-value]
    with SumsOfProducts():
        torch.nn.Conv2d(2, 3, 3, padding="same").double()(noise(1, 2, 4, 4))
        torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular").double()(noise(1, 2, 4, 4))
    assert len(calls) == 2


def test_other_convolutions_are_refused() -> None:
    with SumsOfProducts(), pytest.raises(InputError, match="do not cover kernels of shape"):
        F.conv3d(noise(1, 1, 3, 3, 3), noise(1, 1, 2, 2, 2))
    weight = noise(1, 1, 2, 2).requires_grad_()
    with SumsOfProducts():
        total = F.conv2d(noise(1, 1, 3, 3), weight).sum()
    with SumsOfProducts(), pytest.raises(InputError, match="gradients"):
        torch.ops.aten.convolution_backward(
            noise(1, 1, 2, 2),
            noise(1, 1, 3, 3),
            weight,
            None,
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            [True] * 3,
        )
    assert total.requires_grad


def test_the_cpu_keeps_its_own_convolutions() -> None:
    assert not isinstance(summing(torch.device("cpu")), SumsOfProducts)
    assert isinstance(summing(torch.device("cuda")), SumsOfProducts)
