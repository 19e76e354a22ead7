"""Maps that only move entries: flatten, permute, constant padding, identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lipcert.bounds.contract import Constant, register, rule, settings_roundoff
from lipcert.errors import InputError
from lipcert.types import Shape


class Permute(nn.Module):
    """A module that reorders dimensions; the first stays the batch."""

    def __init__(self, *order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: Tensor) -> Tensor:
        """Return the permuted view."""
        return x.permute(self.order)


class Reshape(nn.Module):
    """A module that reshapes every sample."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the reshaped batch."""
        return x.reshape(x.shape[0], *self.shape)


register(
    Constant(1.0),
    Permute,
    Reshape,
    nn.Identity,
    nn.Flatten,
    nn.Unflatten,
    nn.ZeroPad2d,
    nn.PixelShuffle,
    nn.PixelUnshuffle,
    nn.ChannelShuffle,
    examples=[
        lambda: (Permute(0, 3, 1, 2), (2, 3, 4)),
        lambda: (Reshape(3, -1), (2, 6)),
        lambda: (nn.Identity(), (5,)),
        lambda: (nn.Flatten(), (2, 3, 3)),
        lambda: (nn.Unflatten(1, (2, 3)), (6,)),
        lambda: (nn.ZeroPad2d(1), (2, 3, 3)),
        lambda: (nn.PixelShuffle(2), (4, 3, 3)),
        lambda: (nn.PixelUnshuffle(2), (2, 4, 4)),
        lambda: (nn.ChannelShuffle(2), (4, 3, 3)),
    ],
)


@rule(
    nn.ConstantPad2d,
    examples=[
        lambda: (nn.ConstantPad2d(1, 2.5), (2, 3, 3)),
        lambda: (nn.ConstantPad2d(1, 0.1), (2, 3, 3)),
    ],
)
class ConstantPadRule(Constant):
    """The constant is 1; a number that float32 rounds is another number in a float32 module."""

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Return 0 where float32 represents the number, else a unit of it per entry."""
        return settings_roundoff(output, float(module.value))


@rule(
    nn.Dropout,
    nn.Dropout2d,
    examples=[lambda: (nn.Dropout().eval(), (5,)), lambda: (nn.Dropout2d().eval(), (2, 3, 3))],
)
class DropoutRule(Constant):
    """The constant is 1 in evaluation mode; random training passes have no certificate."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return 1; a proof, which knows the shape, is refused in training mode."""
        if shape is not None and module.training:
            raise InputError("Dropout in training mode is random: call model.eval() first")
        return 1.0
