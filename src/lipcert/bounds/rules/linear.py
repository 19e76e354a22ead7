"""Dense layers and convolutions: the spectral norm of their matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.cholesky import spectral_norm_upper
from lipcert.bounds.contract import Proof, rule, sample_norm
from lipcert.bounds.power_iteration import LinearMap, unit
from lipcert.bounds.rounding import SAFETY, TINY, gamma
from lipcert.types import Shape

# Sides up to which WᵀW is quicker to make than to avoid, and products between two normalisations:
# a normalised Gram matrix shrinks the vector by at most 1/side each time.
_SMALL = 128
_BURST = 5


@rule(
    nn.Linear,
    examples=[
        lambda: (nn.Linear(5, 3), (5,)),
        lambda: (nn.Linear(3, 8, bias=False), (3,)),
        lambda: (nn.Linear(1, 1), (1,)),
        lambda: (nn.Linear(4, 6), (2, 3, 4)),
    ],
)
class LinearRule(LinearMap[nn.Linear]):
    """x ↦ Wx + b, on the last dimension: ‖W‖₂, whatever the leading ones."""

    def apply(self, module: nn.Linear, v: Tensor) -> Tensor:
        """W v."""
        return F.linear(v, module.weight)

    def adjoint(self, module: nn.Linear, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u."""
        return F.linear(u, module.weight.T)

    def iterate(self, module: nn.Linear, vector: Tensor, times: int) -> Tensor:
        """On WᵀW itself where the matrix is small: fewer and larger kernels."""
        weight = module.weight
        if vector.ndim > 1 or max(weight.shape) > _SMALL:
            return super().iterate(module, vector, times)
        gram = weight.T @ weight
        gram = gram / torch.linalg.vector_norm(gram).clamp_min(torch.finfo(gram.dtype).tiny)
        for _ in range(0, times, _BURST):
            image = vector
            for _ in range(min(_BURST, times)):
                image = gram @ image
            vector = unit(image, otherwise=vector)
        return vector

    def upper(self, module: nn.Linear, shape: Shape, effort: str) -> Proof:
        """The exact prover, whatever the effort: it is quick for matrices that are stored."""
        return Proof(spectral_norm_upper(module.weight), "cholesky")

    def roundoff(self, module: nn.Linear, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """γ_{m+1} ‖|W||x| + |b|‖₂, in any order of summation, FMA or not."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        absolute = F.linear(x.abs(), module.weight.abs(), bias)
        return dot_roundoff(absolute, module.in_features)


def dot_roundoff(absolute: Tensor, terms: int) -> Tensor:
    """Error of outputs that sum `terms` products and a bias, from Σ|products| + |bias|: (B,)."""
    underflow = float(absolute[0].numel()) * (terms + 1) * TINY
    return (sample_norm(absolute) * gamma(terms + 1) + underflow) * SAFETY


@rule(
    nn.Conv2d,
    examples=[
        lambda: (nn.Conv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (nn.Conv2d(2, 6, 4, stride=2, padding=1), (2, 8, 7)),
        lambda: (nn.Conv2d(2, 2, 3, stride=2, padding=1), (2, 6, 6)),
        lambda: (nn.Conv2d(4, 6, (3, 2), stride=(1, 3), dilation=(2, 1), groups=2), (4, 7, 9)),
        lambda: (nn.Conv2d(2, 3, 4, padding="same", bias=False), (2, 5, 5)),
        lambda: (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (2, 5, 5)),
        lambda: (nn.Conv2d(2, 3, 3, padding=1, stride=2, padding_mode="reflect"), (2, 4, 4)),
    ],
)
class Conv2dRule(LinearMap[nn.Conv2d]):
    """Cross-correlation on the real input size, with its stride, padding, dilation and groups."""

    def apply(self, module: nn.Conv2d, v: Tensor) -> Tensor:
        """W v."""
        image: Tensor = module._conv_forward(v, module.weight, None)
        return image

    def adjoint(self, module: nn.Conv2d, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u, of exactly the input's size."""
        if module.padding_mode != "zeros" or isinstance(module.padding, str):
            # Padding that copies pixels, or differs left and right: let autograd transpose it.
            origin = u.new_zeros((u.shape[0], *shape))
            transposed: Tensor = torch.func.vjp(lambda v: self.apply(module, v), origin)[1](u)[0]
            return transposed
        return F.conv_transpose2d(
            u,
            module.weight,
            stride=module.stride,
            padding=module.padding,
            output_padding=_output_padding(module, shape),
            groups=module.groups,
            dilation=module.dilation,
        )

    def upper(self, module: nn.Conv2d, shape: Shape, effort: str) -> Proof:
        """Not proved yet."""
        raise NotImplementedError("no prover for convolutions yet: bounds.upper holds for dense networks")

    def roundoff(self, module: nn.Conv2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """As for a dense layer, with c_in·k² products an output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        absolute = module._conv_forward(x.abs(), module.weight.abs(), bias)
        return dot_roundoff(absolute, module.weight[0].numel())


@rule(
    nn.ConvTranspose2d,
    examples=[
        lambda: (nn.ConvTranspose2d(3, 4, 3, padding=1), (3, 5, 5)),
        lambda: (nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1, groups=2), (4, 4, 3)),
        lambda: (nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, dilation=(1, 2)), (2, 4, 4)),
    ],
)
class ConvTranspose2dRule(LinearMap[nn.ConvTranspose2d]):
    """The adjoint of a convolution: the norm of that convolution."""

    def apply(self, module: nn.ConvTranspose2d, v: Tensor) -> Tensor:
        """W v."""
        return _transposed(module, v, module.weight, None)

    def adjoint(self, module: nn.ConvTranspose2d, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u: the plain convolution; rows that only `output_padding` added are never reached."""
        back = F.conv2d(
            u,
            module.weight,
            stride=module.stride,
            padding=cast(tuple[int, int], module.padding),
            dilation=module.dilation,
            groups=module.groups,
        )
        return back[..., : shape[-2], : shape[-1]]

    def upper(self, module: nn.ConvTranspose2d, shape: Shape, effort: str) -> Proof:
        """Not proved yet."""
        raise NotImplementedError("no prover for convolutions yet: bounds.upper holds for dense networks")

    def roundoff(self, module: nn.ConvTranspose2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """At most c_in·k² products an output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        terms = module.weight.shape[0] // module.groups * module.weight[0, 0].numel()
        return dot_roundoff(_transposed(module, x.abs(), module.weight.abs(), bias), terms)


def _transposed(module: nn.ConvTranspose2d, v: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv_transpose2d(
        v,
        weight,
        bias,
        stride=module.stride,
        padding=cast(tuple[int, int], module.padding),
        output_padding=module.output_padding,
        groups=module.groups,
        dilation=module.dilation,
    )


def _output_padding(module: nn.Conv2d, shape: torch.Size) -> tuple[int, int]:
    """Rows and columns at the far edge that the stride skips: without them Wᵀ has the wrong size."""
    assert not isinstance(module.padding, str)
    axes = zip(shape[-2:], module.kernel_size, module.stride, module.padding, module.dilation, strict=True)
    down, right = ((n + 2 * p - d * (k - 1) - 1) % s for n, k, s, p, d in axes)
    return down, right
