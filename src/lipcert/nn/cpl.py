r"""CPL: convex potential layers.

Meunier, Delattre, Araujo, Allauzen. A Dynamical System Perspective for Lipschitz Neural Networks. ICML 2022.

$$ y = x - h\, W^T \sigma(Wx + b), \qquad h = 2/\|W\|_2^2 $$

In training ‖W‖ is estimated from below, as in other implementations. In evaluation mode it is proved from
above, for images of every size: with a norm 5 % too low the layer would stretch distances by up to 1.2.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof, rule
from lipcert.bounds.krylov import LinearPart, first_vector
from lipcert.bounds.provers.convolution_norm import any_size_upper
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.rules.linear import dense_upper
from lipcert.nn.bases.potential import PotentialConv2d, PotentialLinear, PotentialRule
from lipcert.transforms import is_pretending

# Products with WWᵀ per training step, and before the first step.
_PRODUCTS, _FIRST_PRODUCTS = 2, 16

# The side of the image on which the norm of a convolution is estimated: in kernels, and its minimum.
_KERNELS, _SIDE = 2, 16

# Leave room for h to be rounded to float32.
_ROOM = 1 - 2.0**-22


class CPLLinear(PotentialLinear):
    """Step down a convex potential by 2/‖W‖²; the shape stays."""

    sources = ("weight",)
    vector: Tensor  # on the side of the inner units; updated as W changes

    def __init__(self, features: int, inner: int, activation: nn.Module | None = None) -> None:
        super().__init__(features, inner, activation)
        self.register_buffer("vector", _first(_dense, self, (inner,)))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W and h."""
        (weight,) = sources
        norm = proved_norm(weight) if self.proves_norms else _dense.estimate(self, self.vector)
        return weight, _steps(weight, norm)

    def follow(self) -> None:
        """Update the power iteration vector, as W changes from step to step."""
        # Replaced, not written in place: autograd may still hold the old one.
        self.vector = _dense.iterate(self, self.vector, _PRODUCTS)


class CPLConv2d(PotentialConv2d):
    """Step down a convex potential of convolutions by 2/‖W‖²; the shape stays."""

    sources = ("weight",)
    vector: Tensor

    def __init__(
        self,
        in_channels: int,
        inner: int,
        kernel_size: int | tuple[int, int] = 3,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__(in_channels, inner, kernel_size, activation)
        side = max(_SIDE, _KERNELS * self.kernel_size)
        self.register_buffer("vector", _first(_circular, self, (inner, side, side)))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W and h."""
        (weight,) = sources
        norm = proved_norm(weight) if self.proves_norms else _circular.estimate(self, self.vector)
        return weight, _steps(weight, norm)

    def follow(self) -> None:
        """Update the power iteration vector, as W changes from step to step."""
        # Replaced, not written in place: autograd may still hold the old one.
        self.vector = _circular.iterate(self, self.vector, _PRODUCTS)


def proved_norm(weight: Tensor) -> Tensor:
    """Bound ‖W‖ from above, for a matrix or for a convolution on images of every size."""
    if weight.is_meta and not is_pretending():
        return weight.new_empty(())
    if weight.ndim == 2:
        proof = dense_upper(weight)
    else:
        proof = remembered(weight, "any size", lambda: Proof(any_size_upper(weight), "fourier"))
    return weight.new_tensor(proof.value)


def _steps(weight: Tensor, norm: Tensor) -> Tensor:
    """Return h = 2/‖W‖², rounded down, once per row of W; 0 if W is 0."""
    square = norm * norm
    step = torch.where(square > 0, 2 * _ROOM / torch.where(square > 0, square, 1.0), 0.0)
    return step.expand(weight.shape[0])


class _Dense(LinearPart[CPLLinear]):
    """Wᵀ, for the vector lies on the side of the inner units."""

    def apply(self, module: CPLLinear, v: Tensor) -> Tensor:
        """Return Wᵀv."""
        return module.back(v, module.weight)

    def adjoint(self, module: CPLLinear, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wu."""
        return module.into(u, module.weight, None)


class _Circular(LinearPart[CPLConv2d]):
    """The same for a convolution on an image that wraps around: no border makes its norm smaller."""

    def apply(self, module: CPLConv2d, v: Tensor) -> Tensor:
        """Return Wᵀv."""
        return _wrapped(v, module.weight.flip(2, 3).transpose(0, 1))

    def adjoint(self, module: CPLConv2d, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wu."""
        return _wrapped(u, module.weight)


def _wrapped(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(F.pad(x, (weight.shape[-1] // 2,) * 4, mode="circular"), weight)


_dense, _circular = _Dense(), _Circular()


@torch.no_grad()
def _first(side: LinearPart[Any], module: Any, shape: tuple[int, ...]) -> Tensor:
    return side.iterate(module, first_vector(shape, 0, like=module.weight), _FIRST_PRODUCTS)


@rule(
    CPLLinear,
    examples=[
        lambda: (CPLLinear(6, 4), (6,)),
        lambda: (CPLLinear(3, 8, activation=nn.Tanh()), (3,)),
    ],
)
@rule(
    CPLConv2d,
    examples=[
        lambda: (CPLConv2d(3, 5), (3, 6, 5)),
        lambda: (CPLConv2d(4, 2, kernel_size=5), (4, 1, 1)),
        lambda: (CPLConv2d(2, 3, kernel_size=1), (2, 4, 4)),
    ],
)
class CPLRule(PotentialRule):
    """The constant is 1."""
