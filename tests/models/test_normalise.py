"""Networks that normalise their inputs: the same function of shifted inputs, with the same constant."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lipcert import InputError, upper
from lipcert.bounds.tracing.program import trace
from lipcert.models import create
from lipcert.nn import PadChannels, Standardise

MEANS = (0.4914, 0.4822, 0.4465)
SIZES: dict[str, dict[str, Any]] = {
    "cpl": {"width": 6, "convolutions": 1, "dense": 1, "inner": 6},
    "sll": {"width": 6, "convolutions": 1, "dense": 1, "inner": 6},
    "sandwich": {"stages": 2, "width": 0.0625},
}
each_network = pytest.mark.parametrize("name", list(SIZES))


def network(name: str, channels: int = 3, **changes: Any) -> torch.nn.Sequential:
    torch.manual_seed(0)
    model = create(name, num_classes=4, input_shape=(channels, 8, 8), **SIZES[name], **changes)
    assert isinstance(model, torch.nn.Sequential)
    return model.double().eval()


@each_network
def test_means_are_subtracted_first_and_leave_the_constant(name: str) -> None:
    plain, shifted = network(name), network(name, normalise=(MEANS, 1.0))
    x = torch.rand(5, 3, 8, 8, dtype=torch.float64)
    means = torch.tensor(MEANS).double().view(3, 1, 1)
    torch.testing.assert_close(shifted(x), plain(x - means))
    assert isinstance(shifted[0], Standardise)
    # But for a float32 std, which may be rounded: 1 + 2^-23.
    assert upper(shifted, (3, 8, 8)).value == pytest.approx(upper(plain, (3, 8, 8)).value, rel=2e-7)


@each_network
def test_a_std_divides_and_multiplies_the_constant(name: str) -> None:
    plain, scaled = network(name), network(name, normalise=(MEANS, 0.25))
    x = torch.rand(5, 3, 8, 8, dtype=torch.float64)
    means = torch.tensor(MEANS).double().view(3, 1, 1)
    torch.testing.assert_close(scaled(x), plain((x - means) / 0.25))
    assert upper(scaled, (3, 8, 8)).value == pytest.approx(4 * upper(plain, (3, 8, 8)).value, rel=1e-6)


@pytest.mark.parametrize("name", ["cpl", "sll"])
def test_the_channels_that_are_added_stay_zero(name: str) -> None:
    model = network(name, normalise=(MEANS, 1.0))
    assert isinstance(model[1], PadChannels)
    assert model[:2](torch.rand(2, 3, 8, 8))[:, 3:].abs().max() == 0


@each_network
def test_several_means_of_one_channel_are_refused(name: str) -> None:
    """A single channel would be repeated, which no constant counts."""
    with pytest.raises(InputError, match="3 channels"):
        trace(network(name, channels=1, normalise=(MEANS, 1.0)), (1, 8, 8))
    trace(network(name, channels=1, normalise=((0.5,), 1.0)), (1, 8, 8))
