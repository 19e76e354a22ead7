"""Elementwise activations: the constant is the largest slope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lipcert.bounds.contract import Channelwise, register, sample_norm, settings_roundoff
from lipcert.bounds.provers.rounding import SCALAR, U
from lipcert.errors import UnknownBoundError
from lipcert.types import Shape


class Smooth(Channelwise):
    """The constant is the largest slope; values are rounded by a few units in the last place per entry."""

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


class HardtanhRule(Channelwise):
    """The slopes are 0 and 1; limits that float32 rounds are other limits in a float32 module."""

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Return 0 where float32 represents the limits, else a unit of the larger one per entry."""
        return settings_roundoff(output, float(module.min_val), float(module.max_val))


class SoftplusRule(Smooth):
    r"""The slope of $\log(1 + e^{\beta x})/\beta$ is a sigmoid, below 1.

    torch returns x itself where βx exceeds the threshold T. That is not the formula, but less by up to
    $\log(1 + e^{-T})/\beta$, and the function that runs jumps by as much (`jump`).
    """

    def constant(self, module: Any, shape: Shape | None) -> float:
        """Return 1, for settings with which the jump is small and no exponential overflows in float32."""
        low, high = SOFTPLUS_THRESHOLDS
        if not low <= module.threshold <= high:
            raise UnknownBoundError(
                f"Softplus jumps at its threshold: expected one between {low:g} and {high:g}, where that is "
                f"small and nothing overflows, got {module.threshold}"
            )
        if not SOFTPLUS_BETAS[0] <= module.beta <= SOFTPLUS_BETAS[1]:
            raise UnknownBoundError(f"Softplus: expected beta between 1e-6 and 1e6, got {module.beta}")
        return 1.0

    def jump(self, module: Any) -> float:
        """Return e^−T/β, with room for a threshold that is rounded to float32."""
        return 1.001 * math.exp(-module.threshold) / float(module.beta)

    def float32_underflow(self, module: Any) -> float:
        """Return the loss of an exponential, which is divided by β."""
        return super().float32_underflow(module) * max(1.0, 1.001 / float(module.beta))


# max of d/dx x·sigmoid(x), at x = 2.3993572805…
SILU_SLOPE = 1.0998393202

# max of d/dx x·tanh(log(1 + e^x)), at x = 1.4905711794…
MISH_SLOPE = 1.0884981613

# Below the default of torch the jump of Softplus is more than rounding; e^88 overflows in float32.
SOFTPLUS_THRESHOLDS = (20.0, 80.0)
SOFTPLUS_BETAS = (1e-6, 1e6)

register(Channelwise(1.0), nn.ReLU, examples=[lambda: (nn.ReLU(), (6,))])
register(
    HardtanhRule(),
    nn.ReLU6,
    nn.Hardtanh,
    examples=[
        lambda: (nn.ReLU6(), (6,)),
        lambda: (nn.Hardtanh(), (6,)),
        lambda: (nn.Hardtanh(-0.1, 0.7), (6,)),
    ],
)
register(Smooth(MISH_SLOPE), nn.Mish, examples=[lambda: (nn.Mish(), (6,))])
# (2x + 3)/6 between −3 and 3, at most 3/2.
register(Smooth(1.5), nn.Hardswish, examples=[lambda: (nn.Hardswish(), (6,))])
register(
    SoftplusRule(),
    nn.Softplus,
    examples=[
        lambda: (nn.Softplus(), (6,)),
        lambda: (nn.Softplus(beta=20.0), (6,)),
        lambda: (nn.Softplus(beta=0.3, threshold=33.3), (6,)),
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
