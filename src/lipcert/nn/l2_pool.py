r"""L2-norm pooling returns the length of every window of a channel.

$$ y_c = \Big(\sum_{p \in \text{window}} x_{c,p}^2\Big)^{1/2} $$

A length is 1-Lipschitz, and windows that do not overlap share no entry, so the layer is 1-Lipschitz too.

Also in deel-torchlip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.provers.rounding import SAFETY, TINY32_ROOT, TINY_ROOT, gamma
from lipcert.errors import InputError


class L2NormPool2d(nn.Module):
    """Take the length of adjacent windows of side `kernel_size`, or of the whole image for None.

    Example:
        >>> L2NormPool2d()(torch.tensor([[[[3.0, 4.0]]]]))
        tensor([[[[5.]]]])
    """

    def __init__(self, kernel_size: int | None = None) -> None:
        super().__init__()
        if kernel_size is not None and kernel_size < 1:
            raise InputError(f"kernel_size: expected at least 1, got {kernel_size}")
        self.kernel_size = kernel_size

    def forward(self, x: Tensor) -> Tensor:
        """Return the lengths: (B, C, H/k, W/k)."""
        k = self.kernel_size
        if k is None:
            if x.shape[-2:].numel() > _LARGEST_IMAGE:
                raise InputError(f"L2NormPool2d: expected an image of at most {_LARGEST_IMAGE} pixels")
            whole: Tensor = torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True)
            return whole
        if x.shape[-1] % k or x.shape[-2] % k:
            size = tuple(x.shape[-2:])
            raise InputError(
                f"L2NormPool2d: expected sides divisible by {k}, got {size}: pad or crop the image"
            )
        rows, columns = x.shape[-2] // k, x.shape[-1] // k
        windows = x.reshape(*x.shape[:-2], rows, k, columns, k)
        lengths: Tensor = torch.linalg.vector_norm(windows, dim=(-3, -1))
        return lengths

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return "" if self.kernel_size is None else str(self.kernel_size)


# The most pixels of a window that is the whole image.
_LARGEST_IMAGE = 1 << 16


@rule(
    L2NormPool2d,
    examples=[lambda: (L2NormPool2d(), (3, 4, 5)), lambda: (L2NormPool2d(2), (2, 6, 4))],
)
class L2NormPoolRule(Constant):
    """The constant is 1."""

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the relative error of a sum of squares and its root, and squares that underflow."""
        return SAFETY * (
            gamma(self.products(module) + 8) * sample_norm(output) + inputs[0][0].numel() * TINY_ROOT
        )

    def roundoff_gain(self, module: Any) -> float:
        """Return the gain: the lengths grow as the input does."""
        return SAFETY * SAFETY * (self.products(module) + 9)

    def float32_underflow(self, module: Any) -> float:
        """Return what squares that are added before the root may lose."""
        return self.products(module) * TINY32_ROOT

    def products(self, module: Any) -> int:
        """Count the entries of a window."""
        return _LARGEST_IMAGE if module.kernel_size is None else int(module.kernel_size**2)
