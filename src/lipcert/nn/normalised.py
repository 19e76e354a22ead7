r"""Normalise inputs on their way into the first convolution, with one bound of both together.

$$ y = W\,\frac{x - \mu}{s} + b, \qquad K = \|W \operatorname{diag}(1/s)\|_2 $$

The bound of x ↦ (x − mean)/std alone is 1/min(std). Its product with the bound of the convolution is
needlessly large. Here the factors 1/std are folded into the kernels before they are bounded: ‖W diag(1/std)‖.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lipcert.bounds import LinearMap, Proof, rule
from lipcert.bounds.contract import plain_type, sample_norm
from lipcert.bounds.fidelity.guards import refuse_unsettled
from lipcert.bounds.provers.convolution_norm import convolution_upper
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import SAFETY, U, sum_up
from lipcert.bounds.rules.convolution import ConvRule, most_copies, row_times_column
from lipcert.errors import InputError, UnknownBoundError
from lipcert.nn.standardise import require_channels_of
from lipcert.types import Effort, Shape


class Normalised(nn.Module):
    """Apply a convolution to (x − mean)/std, with one mean and std per channel; radii stay in pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, layer: nn.Conv2d, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        _require_plain(layer)
        if not len(mean) == len(std) == layer.in_channels:
            raise InputError(f"mean, std: expected {layer.in_channels} numbers each, one per channel")
        if not all(0 < s < math.inf for s in std) or not all(math.isfinite(m) for m in mean):
            raise InputError(f"std: expected numbers > 0, got {list(std)}")
        self.layer = layer
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to the normalised inputs."""
        require_channels_of(self.mean, x)
        out: Tensor = self.layer((x - self.mean) / self.std)
        return out


def _require_plain(layer: nn.Module) -> None:
    """Raise unless the layer is a plain convolution: a subclass may compute something else."""
    if plain_type(layer) is not nn.Conv2d:
        raise UnknownBoundError(f"Normalised: expected a plain nn.Conv2d, got {type(layer).__name__}")


def _copies(layer: nn.Conv2d) -> int:
    """Return in how many places the padding can copy one pixel."""
    return 1 if layer.padding_mode == "zeros" else math.prod(most_copies(layer))


def _example(layer: nn.Conv2d) -> nn.Module:
    return Normalised(layer, mean=(0.5, 0.4, 0.3), std=(0.25, 0.5, 0.1))


_conv = ConvRule()


@rule(
    Normalised,
    examples=[
        lambda: (_example(nn.Conv2d(3, 4, 3, padding=1)), (3, 5, 5)),
        lambda: (_example(nn.Conv2d(3, 6, 3, stride=2, groups=3, bias=False)), (3, 7, 6)),
        lambda: (_example(nn.Conv2d(3, 2, 1, padding=2, padding_mode="replicate")), (3, 1, 2)),
    ],
)
class NormalisedRule(LinearMap[Normalised]):
    """The constant is the norm of the convolution with its kernels divided by std."""

    def apply(self, module: Normalised, v: Tensor) -> Tensor:
        """Return W (v/std)."""
        return _conv.apply(module.layer, v / module.std)

    def adjoint(self, module: Normalised, u: Tensor, shape: torch.Size) -> Tensor:
        """Return (Wᵀ u)/std."""
        return _conv.adjoint(module.layer, u, shape) / module.std

    def upper(self, module: Normalised, shape: Shape, effort: Effort) -> Proof:
        """Bound the folded kernels, and the rounding error of their division: u‖|W|‖₂ at most."""
        layer = module.layer
        _require_plain(layer)
        refuse_unsettled("layer", layer)
        std = module.std.detach().double().flatten()
        if not bool((std > 0).all()):
            raise InputError("std: expected numbers > 0")
        # Channels of a group see only its own part of std.
        parts = std.view(layer.groups, -1).repeat_interleave(layer.out_channels // layer.groups, dim=0)
        folded = layer.weight.detach().double() / parts[:, :, None, None].to(layer.weight.device)
        proof = convolution_upper(folded, Geometry.of(layer, shape), effort)
        lost = 2 * U * math.sqrt(row_times_column(folded, layer.groups) * _copies(layer))
        return Proof(sum_up(proof.value, SAFETY * lost), proof.prover)

    def roundoff(self, module: Normalised, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound one difference and one quotient per input, carried through |W|, and the convolution."""
        (x,) = inputs
        layer = module.layer
        size = (x.abs() + module.mean.abs()) / module.std
        carried = layer._conv_forward(size, layer.weight.abs(), None)
        own = _conv.roundoff(layer, [(x - module.mean) / module.std], output)
        return SAFETY * (8 * U * sample_norm(carried) + own)

    def roundoff_gain(self, module: Normalised) -> float:
        """Return the gain: both parts grow with x/std."""
        layer = module.layer
        absolute = math.sqrt(row_times_column(layer.weight, layer.groups) * _copies(layer))
        return (_conv.roundoff_gain(module.layer) + 9 * absolute) / float(module.std.min())

    def products(self, module: Normalised) -> int:
        """Count the products of the convolution."""
        return _conv.products(module.layer) + 2
