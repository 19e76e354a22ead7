"""Layers whose weights are made from their parameters so that the layer is 1-Lipschitz by construction.

In training the weights are made anew at every call. In evaluation mode they are made once, in float64,
rounded to the parameters' precision and kept: what is executed is what is proved, and no batch pays for it.
They carry no gradient then.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from lipcert.bounds import Rule

L = TypeVar("L", nn.Linear, nn.Conv2d)


class Derived(nn.Module):
    """A layer that executes `weights()`, made by `derive` from the tensors named in `sources`."""

    sources: ClassVar[tuple[str, ...]]
    settles_in_evaluation = True  # so that nothing is proved of weights that the next call may replace

    def __init__(self) -> None:
        super().__init__()
        self._kept: _Kept | None = None

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """The weights, of the precision of the sources."""
        raise NotImplementedError

    def weights(self) -> tuple[Tensor, ...]:
        """What the layer executes."""
        sources = [getattr(self, name) for name in self.sources]
        if self.training:
            return self.derive(*sources)
        if self._kept is None or not self._kept.made_from(sources):
            self._kept = _Kept(sources, self._in_double(sources))
        return self._kept.weights

    @torch.no_grad()
    def _in_double(self, sources: list[Tensor]) -> tuple[Tensor, ...]:
        like = sources[0]
        where = "meta" if like.is_meta else "cpu"  # some devices have no float64
        exact = self.derive(*(source.detach().to(where, torch.float64) for source in sources))
        kinds = [like.dtype.to_complex() if weight.is_complex() else like.dtype for weight in exact]
        return tuple(w.detach().to(like.device, kind) for w, kind in zip(exact, kinds, strict=True))

    def train(self, mode: bool = True) -> Self:
        """Training forgets the kept weights: not every optimiser leaves a trace that it wrote to a source."""
        if mode:
            self._kept = None
        return super().train(mode)

    def plain(self) -> nn.Module:
        """Ordinary torch layers that compute the same, where there are some: else the layer itself."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes its own weights."""
        return {**self.__dict__, "_kept": None}


class _Kept:
    """Weights, and what they were made from."""

    def __init__(self, sources: list[Tensor], weights: tuple[Tensor, ...]) -> None:
        # Held, so that no other tensor can come to lie at their addresses.
        self._sources = [source.detach() for source in sources]
        self._versions = [source._version for source in sources]
        self.weights = weights

    def made_from(self, sources: list[Tensor]) -> bool:
        """Whether nothing was replaced or written to since."""
        return all(
            new.data_ptr() == old.data_ptr()
            and (new.dtype, new.device) == (old.dtype, old.device)
            and new._version == version
            for new, old, version in zip(sources, self._sources, self._versions, strict=True)
        )


class Built(Rule[Any]):
    """Mixed into the rule of a layer built to have the constant 1.

    Training relies on the construction; a proof is about the weights the layer executes.
    """

    has_vector = False
    built = True

    def estimate(self, module: nn.Module, vector: Tensor | None) -> Tensor:
        """1."""
        return next(module.parameters()).new_ones(())


def linear_with(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """nn.Linear with these numbers."""
    outputs, inputs = weight.shape
    return filled(nn.Linear(inputs, outputs, bias is not None), weight, bias)


def convolution_with(weight: Tensor, bias: Tensor | None) -> nn.Conv2d:
    """nn.Conv2d with these kernels, padded so that an odd one keeps the size."""
    outputs, inputs, k, _ = weight.shape
    return filled(nn.Conv2d(inputs, outputs, k, padding=k // 2, bias=bias is not None), weight, bias)


@torch.no_grad()
def filled(layer: L, weight: Tensor, bias: Tensor | None) -> L:
    """A layer with these numbers in it, where they are."""
    layer = layer.to(weight)
    layer.weight.copy_(weight)
    if layer.bias is not None and bias is not None:
        layer.bias.copy_(bias)
    return layer
