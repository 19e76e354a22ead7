r"""Batch centering: the mean of every channel over batches is taken away, and a bias added.

Batch normalisation without the division, as deel-torchlip has it.

$$ y = x - \mu + b $$

In evaluation μ is the running mean of training, a fixed number per channel. That is a translation, whose
constant is 1. In training μ is the mean of the batch, so an output depends on the other samples. Such a
layer is no function of one input, and no certificate is given for it.

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.provers.rounding import SAFETY, U
from lipcert.errors import InputError
from lipcert.types import Shape


class BatchCentering(nn.Module):
    """Subtract the mean of every channel: of the batch in training, of past batches in evaluation.

    The running mean moves by `momentum` per batch, as in nn.BatchNorm2d.
    """

    running_mean: Tensor
    takes_statistics: ClassVar[bool] = True

    def __init__(self, channels: int, bias: bool = True, momentum: float = 0.1) -> None:
        super().__init__()
        if channels < 1 or not 0 < momentum <= 1:
            raise InputError(
                f"channels, momentum: expected at least 1 and a number in (0, 1], got {channels}, {momentum}"
            )
        self.momentum = momentum
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None
        self.register_buffer("running_mean", torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the centred batch."""
        if x.shape[1] != len(self.running_mean):
            raise InputError(f"BatchCentering: expected {len(self.running_mean)} channels, got {x.shape[1]}")
        mean = self._of_batch(x) if self.training else self.running_mean
        shift = -mean if self.bias is None else self.bias - mean
        return x + shift.view(-1, *[1] * (x.ndim - 2))

    def _of_batch(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=[0, *range(2, x.ndim)])
        with torch.no_grad():
            self.running_mean.lerp_(mean.detach().to(self.running_mean.dtype), self.momentum)
        return mean

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{len(self.running_mean)}, momentum={self.momentum:g}, bias={self.bias is not None}"


def _trained(layer: BatchCentering, shape: Shape) -> tuple[nn.Module, Shape]:
    with torch.no_grad():
        layer.running_mean.copy_(torch.linspace(-2, 3, len(layer.running_mean)))
        if layer.bias is not None:
            layer.bias.copy_(torch.linspace(1, -1, len(layer.running_mean)))
    return layer.eval(), shape


@rule(
    BatchCentering,
    examples=[
        lambda: _trained(BatchCentering(3), (3, 4, 2)),
        lambda: _trained(BatchCentering(5, bias=False), (5,)),
    ],
)
class BatchCenteringRule(Constant):
    """The constant is 1 in evaluation, a translation; in training there is no certificate."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return 1; a proof, which knows the shape, is refused in training mode."""
        if shape is not None and module.training:
            raise InputError("batch centering in training mode mixes samples: call model.eval() first")
        return 1.0

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of two sums, a few units each."""
        (x,) = inputs
        size = module.running_mean.abs() + (0.0 if module.bias is None else module.bias.abs())
        return 8 * U * SAFETY * sample_norm(x.abs() + size.view(-1, *[1] * (x.ndim - 2)))

    def roundoff_gain(self, module: Any) -> float:
        """Return the factor of |x| above."""
        return 9.0
