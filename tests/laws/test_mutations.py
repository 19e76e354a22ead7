"""Unsound code planted on purpose: the laws catch it every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import lipcert.bounds.rules.linear as linear
from lipcert.bounds import Constant
from lipcert.bounds.contract import RULES, Registered
from lipcert.bounds.provers.convolutions.by_fourier import FourierProver
from lipcert.bounds.provers.convolutions.by_gram import GramProver
from lipcert.bounds.provers.convolutions.by_strips import StripProver
from lipcert.bounds.provers.geometry import Geometry
from lipcert.certificates import certifier, proved_model
from lipcert.laws.layer_laws import (
    LAYER_LAWS,
    no_pair_of_points_beats_the_proved_bound,
    the_bound_follows_the_weights_it_executes,
    the_fast_bound_is_above_the_exact_one,
)
from lipcert.laws.model_laws import ModelExample, no_attack_lands_inside_a_radius
from tests.bounds.test_bounded import test_the_adjoint_of_any_convolution_is_exact as adjoint_law
from tests.certificates.test_certificate import linear as linear_layer
from tests.certificates.test_certificate import (
    test_ties_and_numbers_that_are_not_finite_are_never_certified as tie_law,
)


def caught(laws: Sequence[Callable[[], object]]) -> int:
    """How many of the laws fail."""
    count = 0
    for law in laws:
        try:
            law()
        except (AssertionError, RuntimeError):
            count += 1
    return count


def layer_laws(kind: str) -> list[Callable[[], object]]:
    """What every law about bounds says of the examples of a layer."""
    makes = [make for name, make in LAYER_LAWS.examples().items() if name.startswith(f"{kind}-")]
    return [
        lambda law=law, make=make: law(make())  # type: ignore[misc]
        for law in (
            no_pair_of_points_beats_the_proved_bound,
            the_bound_follows_the_weights_it_executes,
            the_fast_bound_is_above_the_exact_one,
        )
        for make in makes
    ]


def test_nothing_planted_nothing_caught() -> None:
    attack = lambda: no_attack_lands_inside_a_radius(ModelExample("mlp"))  # noqa: E731
    tie = lambda: tie_law(linear_layer([[1.0], [1.0]]), 2.0)  # noqa: E731
    assert caught([attack, tie, adjoint_law, *layer_laws("Linear"), *layer_laws("Conv2d")]) == 0


def test_constants_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    real = proved_model._product_up
    monkeypatch.setattr(proved_model, "_product_up", lambda spread, k: real(spread, k) / 2)
    with pytest.raises(AssertionError):
        no_attack_lands_inside_a_radius(ModelExample("mlp"))


def test_two_power_iterations_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def low(matrix: Tensor) -> float:
        a = matrix.detach().double()
        v = torch.ones(a.shape[1], dtype=torch.float64)
        for _ in range(2):
            v = F.normalize(a.T @ (a @ v), dim=0)
        return float((a @ v).norm())

    monkeypatch.setattr(linear, "spectral_norm_upper", low)
    assert caught(layer_laws("Linear")) > 0


def test_rivals_masked_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def radius(margin: Tensor, constants: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
        quotient = torch.where(margin == 0, torch.inf, margin / constants)
        return quotient.min(dim=1)

    monkeypatch.setattr(certifier, "nearest_rival", radius)
    with pytest.raises(AssertionError):
        tie_law(linear_layer([[1.0], [-1.0]]), 0.0)


def test_output_padding_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def transpose(self: Geometry, y: Tensor, weight: Tensor) -> Tensor:
        whole = F.conv_transpose2d(y, weight, stride=self.stride, dilation=self.dilation, groups=self.groups)
        missing = [n - m for n, m in zip(self.padded, whole.shape[-2:], strict=True)]
        # The missing rows put in front: the right size, and the wrong operator.
        return self.unpad(F.pad(whole, (missing[1], 0, missing[0], 0)))

    monkeypatch.setattr(Geometry, "transpose", transpose)
    assert caught([adjoint_law]) == 1


@pytest.mark.parametrize("kind", [nn.Linear, nn.Conv2d])
def test_a_layer_counted_as_one(kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, kind, Registered(Constant(1.0), RULES[kind].examples))
    assert caught(layer_laws(kind.__name__)) > 0


def test_a_norm_taken_on_the_grid_of_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FourierProver.upper
    unpadded = ((0, 0), (0, 0))

    def on_the_image(self: FourierProver, weight: Tensor, g: Geometry) -> float:
        inside = all(n >= r for n, r in zip(g.size, g.reach, strict=True))
        return real(self, weight, replace(g, padding=unpadded) if inside else g)

    monkeypatch.setattr(GramProver, "is_affordable", lambda self, weight, g, effort: effort == "exact")
    monkeypatch.setattr(StripProver, "is_affordable", lambda *_: False)
    assert caught(layer_laws("Conv2d")) == 0
    monkeypatch.setattr(FourierProver, "upper", on_the_image)
    assert caught(layer_laws("Conv2d")) > 0
