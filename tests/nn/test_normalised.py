"""Normalised inputs: the bound is that of both steps together, and of nothing but a plain convolution."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lipcert import InputError, UnknownBoundError, upper
from lipcert.certificates.certifier import Certifier
from lipcert.nn import Normalised, Standardise
from tests.bounds.provers.test_convolution_norm import dense

MEAN, STD = (0.5, 0.4, 0.3), (0.25, 0.5, 0.1)


class Loud(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return 10 * super().forward(x)


def test_the_bound_is_that_of_the_product() -> None:
    layer = nn.Conv2d(3, 4, 3, padding=1, bias=False).double()
    model = Normalised(layer, (0.0, 0.0, 0.0), STD).double()
    truth = float(torch.linalg.matrix_norm(dense(model, (3, 5, 5)), 2))
    bound = upper(nn.Sequential(model), (3, 5, 5), effort="exact").value
    assert truth * (1 - 1e-13) <= bound <= truth * (1 + 1e-9)
    apart = upper(layer, (3, 5, 5), effort="exact").value / min(STD)
    assert bound < 0.99 * apart


def test_a_convolution_of_ones_own_is_refused() -> None:
    with pytest.raises(UnknownBoundError, match="Loud"):
        Normalised(Loud(3, 4, 3), MEAN, STD)
    model = Normalised(nn.Conv2d(3, 4, 3), MEAN, STD)
    model.layer = Loud(3, 4, 3)
    with pytest.raises(UnknownBoundError, match="Loud"):
        upper(model, (3, 5, 5))


def test_a_weight_that_may_still_change_is_refused() -> None:
    layer = torch.nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 4, 3))
    model = Normalised(layer, MEAN, STD)
    with pytest.raises(InputError, match="eval"):
        upper(model, (3, 5, 5))
    assert upper(model.eval(), (3, 5, 5)).value > 0


@pytest.mark.parametrize(
    ("mean", "std"), [((0.5,), (1.0,)), (MEAN, (1.0, 0.0, 1.0)), (MEAN, (1.0, -1.0, 1.0))]
)
def test_statistics_that_cannot_be_are_named(mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="std"):
        Normalised(nn.Conv2d(3, 4, 3), mean, std)


def test_a_damaged_std_is_refused() -> None:
    model = Normalised(nn.Conv2d(3, 4, 3), MEAN, STD)
    model.std[1] = -0.5
    with pytest.raises(InputError, match="std"):
        upper(model, (3, 5, 5))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Standardise((0.0, 0.0, 0.0), 1.0), (1, 1, 1)),
        (Standardise((0.0, 0.0, 0.0), 1.0), (3, 1)),
        (Standardise((0.0,), 1.0), (4,)),
        (Normalised(nn.Conv2d(3, 3, 1), MEAN, STD), (1, 1, 1)),
    ],
)
def test_a_channel_that_would_be_repeated_is_refused(layer: nn.Module, shape: tuple[int, ...]) -> None:
    """Three copies of a channel are √3 times as far apart, which no constant counts."""
    with pytest.raises((InputError, UnknownBoundError), match="channels"):
        Certifier(nn.Sequential(layer, nn.Flatten(), nn.Linear(3, 2)), shape)


def test_one_mean_stands_for_all_channels() -> None:
    x = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(Standardise((0.5,), 2.0)(x), (x - 0.5) / 2)
