r"""Shift inputs and divide them by one number, whose inverse is the constant: the bound is exact.

$$ y = \frac{x - \mu}{s}, \qquad K = 1/s $$

For one number per channel use `Normalised`, which folds them into the convolution that follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.provers.rounding import SCALAR, TINY, U, up
from lipcert.errors import InputError
from lipcert.types import Shape


class Standardise(nn.Module):
    """Subtract one mean per channel and divide by a single std."""

    mean: Tensor

    def __init__(self, mean: Sequence[float], std: float) -> None:
        super().__init__()
        if not 0 < std < math.inf or not all(math.isfinite(m) for m in mean):
            raise InputError(f"mean, std: expected numbers, std > 0, got {list(mean)} and {std}")
        self.std = float(std)
        self.register_buffer("mean", torch.tensor([float(m) for m in mean]).view(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return (x − mean)/std."""
        require_channels_of(self.mean, x, alone=True)
        return (x - self.mean) / self.std

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"mean={self.mean.flatten().tolist()}, std={self.std}"


def require_channels_of(mean: Tensor, x: Tensor, alone: bool = False) -> None:
    """Raise where subtracting would repeat the one channel of `x`, or the batch: that stretches distances.

    A single mean may serve all channels where nothing else depends on their number.
    """
    expected = mean.shape[0]
    if x.ndim < 3 or (x.shape[-3] != expected and not (alone and expected == 1)):
        raise InputError(f"x: expected images of {expected} channels, got shape {tuple(x.shape)}")


@rule(
    Standardise,
    examples=[
        lambda: (Standardise((0.5, 0.25), 0.25), (2, 3, 3)),
        lambda: (Standardise((0.0,), 3.0), (1, 2, 2)),
    ],
)
class StandardiseRule(Constant):
    """The constant is 1/std."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return 1/std, rounded up."""
        return up(1 / float(module.std)) * SCALAR

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error of a difference and a quotient, and of the std of a float32 module."""
        size = (inputs[0].abs() + module.mean.abs()) / module.std
        return 8 * U * sample_norm(size) + output[0].numel() * TINY

    def roundoff_gain(self, module: Any) -> float:
        """Return at least 8/std."""
        return 9 / float(module.std)
