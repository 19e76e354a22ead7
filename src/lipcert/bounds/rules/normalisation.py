"""Batch norm in evaluation mode is affine; norms that divide by their own input have no constant."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Proof, Rule, refuse, rule, sample_norm
from lipcert.bounds.provers.rounding import TINY, U
from lipcert.errors import InputError, UnknownBoundError
from lipcert.types import Effort, Shape

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d


def _gain(module: BatchNorm, dtype: torch.dtype | None = None) -> Tensor:
    """Return |γ/√(var + eps)| of every channel."""
    if module.running_var is None:
        raise UnknownBoundError("batch norm without running statistics has no Lipschitz constant")
    gain = (module.running_var.to(dtype) + module.eps).rsqrt()
    return gain if module.weight is None else gain * module.weight.abs().to(dtype)


def _example(module: BatchNorm, shape: Shape) -> tuple[nn.Module, Shape]:
    with torch.no_grad():
        if module.affine:
            module.weight.copy_(torch.linspace(-1.5, 1, module.num_features))
        assert module.running_var is not None
        module.running_var.copy_(torch.linspace(0.5, 2, module.num_features))
    return module.eval(), shape


@rule(
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    examples=[
        lambda: _example(nn.BatchNorm1d(4), (4,)),
        lambda: _example(nn.BatchNorm1d(4, affine=False), (4, 3)),
        lambda: _example(nn.BatchNorm2d(3), (3, 4, 4)),
    ],
)
class BatchNormRule(Rule[BatchNorm]):
    """The constant is the largest gain of the running statistics."""

    def upper(self, module: BatchNorm, shape: Shape, effort: Effort) -> Proof:
        """Return max|γ/√(var + eps)| in float64, with room for eight rounding errors."""
        if module.training:
            raise InputError("batch norm in training mode mixes samples: call model.eval() first")
        gain = float(_gain(module, torch.float64).detach().max())
        return Proof(gain * (1 + 16 * U), "known")

    def estimate(self, module: BatchNorm, vector: Tensor | None) -> Tensor:
        """Return the largest gain, with a gradient."""
        return _gain(module).amax()

    def roundoff(self, module: BatchNorm, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of a difference, two products and a sum, a few units each."""
        (x,) = inputs
        channel = (-1, *[1] * (x.ndim - 2))
        assert module.running_mean is not None
        size = (x.abs() + module.running_mean.abs().view(channel)) * _gain(module).view(channel)
        if module.bias is not None:
            size = size + module.bias.abs().view(channel)
        return 32 * U * sample_norm(size + output.abs()) + output[0].numel() * TINY

    def roundoff_gain(self, module: BatchNorm) -> float:
        """Return at least 32·2·gain: both sizes grow with the input."""
        return 65 * float(_gain(module, torch.float64).detach().max())


refuse(
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
    nn.LocalResponseNorm,
    reason="divides by a statistic of its own input, so it is not globally Lipschitz "
    "(its slope is unbounded near a constant input); use BatchNorm or none",
)
refuse(
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.Transformer,
    reason="dot-product attention is not globally Lipschitz: its slope grows with the input",
)
