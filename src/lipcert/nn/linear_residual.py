r"""Linear residual convolutions (LiResNet): the identity is part of the kernel, and so of its norm.

Hu, Zou, Wang, Leino, Fredrikson. Unlocking Deterministic Robustness Certification on ImageNet. NeurIPS 2023.

$$ y = x + \frac{\gamma}{\sqrt{L}}\, W * x + b $$

L is the number of such layers in a network. The bound of a residual block would be 1 + ‖W‖. The bound here is
the exact norm, of one convolution whose kernel holds both. Only the loss keeps this norm small.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.errors import InputError
from lipcert.nn.bases.conv2d import DerivedConv2d, DerivedConvRule


class LinearResidualConv2d(DerivedConv2d):
    """Return x + γL^−½·conv(x) by one zero-padded kernel; `depth` is L, γ is learned."""

    sources = ("raw", "gain")

    def __init__(self, channels: int, kernel_size: int = 3, depth: int = 1, bias: bool = True) -> None:
        if kernel_size < 1 or kernel_size % 2 == 0 or depth < 1:
            raise InputError(
                f"kernel_size, depth: expected an odd number and one >= 1, got {kernel_size} and {depth}"
            )
        super().__init__(channels, channels, kernel_size, padding=kernel_size // 2, bias=bias)
        self.depth = depth
        nn.init.kaiming_normal_(self.raw, nonlinearity="linear")
        self.gain = nn.Parameter(torch.ones(()))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels."""
        raw, gain = sources
        kernels = gain * self.depth**-0.5 * raw
        centre = kernels.shape[-1] // 2
        identity = torch.zeros_like(kernels)
        identity[:, :, centre, centre] = torch.eye(len(raw), dtype=raw.dtype, device=raw.device)
        return (identity + kernels,)


@rule(
    LinearResidualConv2d,
    examples=[
        lambda: (LinearResidualConv2d(4), (4, 6, 5)),
        lambda: (LinearResidualConv2d(3, kernel_size=5, depth=12, bias=False), (3, 4, 4)),
        lambda: (LinearResidualConv2d(2, kernel_size=1), (2, 1, 1)),
    ],
)
class LinearResidualRule(DerivedConvRule):
    """The constant is the norm of the whole kernel."""
