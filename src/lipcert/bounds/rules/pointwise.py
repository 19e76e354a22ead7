"""Elementwise activations: the constant is the largest slope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lipcert.bounds.contract import Channelwise, register, sample_norm
from lipcert.bounds.provers.rounding import SCALAR, U
from lipcert.types import Shape


class Smooth(Channelwise):
    """An activation whose values are rounded, by a few units in the last place per entry."""

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Return 16u·max(1, slope)·‖1 + |x| + |y|‖: generous for any libm, exp(x) − 1 included."""
        size = 1 + inputs[0].abs() + output.abs()
        return 16 * U * max(1.0, self.constant(module, None)) * sample_norm(size)

    def roundoff_gain(self, module: nn.Module) -> float:
        """Return at least 16·max(1, slope)·(1 + slope)."""
        slope = self.constant(module, None)
        return 17 * max(1.0, slope) * (1 + slope)


def _steeper(slope: float) -> float:
    """Return max(1, |slope|), with room for rounding to float32; NaN stays NaN, which no proof accepts."""
    return 1.0 if abs(slope) <= 1 else abs(slope) * SCALAR


class LeakyReLURule(Smooth):
    """The slopes are 1 and `negative_slope`."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the larger slope."""
        return _steeper(module.negative_slope)


class PReLURule(Smooth):
    """The slopes are 1 and the learned slopes."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the largest slope."""
        return _steeper(float(module.weight.detach().abs().max()))

    def estimate(self, module: Any, vector: Tensor | None) -> Tensor:
        """Return the largest slope, with a gradient."""
        slope: Tensor = module.weight.abs().amax().clamp_min(1.0)
        return slope


class ELURule(Smooth):
    """The slopes are 1 and αe^x."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the larger slope."""
        return _steeper(module.alpha)


class GELURule(Smooth):
    """The slope Φ(x) + xφ(x) is largest at √2; the tanh form peaks a little higher."""

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return the largest slope, rounded up in the tenth digit."""
        return 1.1289041452 if module.approximate == "none" else 1.1289930687


# max of d/dx x·sigmoid(x), at x = 2.3993572805…
SILU_SLOPE = 1.0998393202

register(
    Channelwise(1.0),
    nn.ReLU,
    nn.ReLU6,
    nn.Hardtanh,
    examples=[
        lambda: (nn.ReLU(), (6,)),
        lambda: (nn.ReLU6(), (6,)),
        lambda: (nn.Hardtanh(), (6,)),
    ],
)
register(Smooth(1.0), nn.Tanh, examples=[lambda: (nn.Tanh(), (6,))])
register(Smooth(0.25), nn.Sigmoid, examples=[lambda: (nn.Sigmoid(), (6,))])
register(Smooth(SILU_SLOPE), nn.SiLU, examples=[lambda: (nn.SiLU(), (6,))])
register(
    GELURule(),
    nn.GELU,
    examples=[lambda: (nn.GELU(), (6,)), lambda: (nn.GELU(approximate="tanh"), (6,))],
)
register(ELURule(), nn.ELU, examples=[lambda: (nn.ELU(), (6,)), lambda: (nn.ELU(alpha=1.5), (6,))])
register(
    LeakyReLURule(),
    nn.LeakyReLU,
    examples=[lambda: (nn.LeakyReLU(0.2), (6,)), lambda: (nn.LeakyReLU(-1.5), (6,))],
)
register(PReLURule(), nn.PReLU, examples=[lambda: (nn.PReLU(6, init=-1.25), (6,))])
