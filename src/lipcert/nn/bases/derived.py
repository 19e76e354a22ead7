"""Layers that make their weights from their parameters so that they are 1-Lipschitz by construction.

In training the weights are made anew at every call. In evaluation mode they are made once, in float64,
rounded to the parameters' precision and kept: the executed weights are the proved ones, at no cost per batch.
Kept weights carry no gradient.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from lipcert.bounds import Rule
from lipcert.bounds.following import Follower, may_follow
from lipcert.bounds.precision import full_precision
from lipcert.transforms import outside_transforms

L = TypeVar("L", nn.Linear, nn.Conv2d, nn.ConvTranspose2d)
T = TypeVar("T")
P = ParamSpec("P")


def _not_compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Exclude a function that reads changing state from compilation, as torch.compiler.disable does, without
    importing the compiler where nothing is compiled."""
    disabled: list[Callable[P, T]] = []

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **kwargs)
        if not disabled:
            disabled.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return disabled[0](*args, **kwargs)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


class Derived(nn.Module):
    """A layer that executes `weights()`, made by `derive` from the tensors named in `sources`."""

    sources: ClassVar[tuple[str, ...]]
    settles_in_evaluation = True  # so that no proof is about weights that the next call may replace
    fleeting: ClassVar[tuple[str, ...]] = ("_kept",)  # attributes a forward pass may change

    def __init__(self) -> None:
        super().__init__()
        self._kept: _Kept | None = None
        self._is_estimating = False
        self._precision: torch.dtype | None = None
        self._fixed = 0

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the weights, in the precision of the sources."""
        raise NotImplementedError

    def weights(self) -> tuple[Tensor, ...]:
        """Return the weights that the layer executes."""
        if self._fixed:
            return tuple(self.get_buffer(f"fixed{i}") for i in range(self._fixed))
        if self.training:
            with full_precision(self._sources()[0].device.type):
                self._follow_weights()
                return self.derive(*self._sources())
        return self._settled()

    def _sources(self) -> list[Tensor]:
        return [getattr(self, name) for name in self.sources]

    @_not_compiled
    def _settled(self) -> tuple[Tensor, ...]:
        sources = self._sources()
        with outside_transforms(sources):
            if self._kept is None or not self._kept.state.is_of(sources):
                made = self._estimated(sources) if self._is_estimating else self._in_double(sources)
                self._kept = _Kept(_State(sources), made)
        return self._kept.weights

    @torch.no_grad()
    def _estimated(self, sources: list[Tensor]) -> tuple[Tensor, ...]:
        """Return the weights where the parameters are and in their precision, with estimated norms."""
        with full_precision(sources[0].device.type):
            return tuple(weight.detach() for weight in self.derive(*sources))

    @property
    def proves_norms(self) -> bool:
        """Return whether `derive` has to bound norms from above: not in training, nor for an estimate."""
        return not (self.training or self._is_estimating)

    @torch.no_grad()
    def _follow_weights(self) -> None:
        """Improve the vectors, unless `Bounded` has done so in this step."""
        if isinstance(self, Follower) and may_follow():
            with outside_transforms(self._sources()):
                self.follow()

    @torch.inference_mode(False)
    @torch.no_grad()
    def _in_double(self, sources: list[Tensor]) -> tuple[Tensor, ...]:
        like = sources[0]
        where = "meta" if like.is_meta else "cpu"  # some devices have no float64
        exact = self.derive(*(source.detach().to(where, torch.float64) for source in sources))
        return tuple(_rounded(w.detach().resolve_conj(), self._precision, like) for w in exact)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; training drops the kept weights, as writes through `.data` cannot be detected."""
        if mode:
            self.forget()
        return super().train(mode)

    def forget(self) -> None:
        """Make the weights anew at the next call."""
        self._kept = None

    def remember_precision(self) -> None:
        """Round the weights to the present precision even if the layer is cast to a finer one."""
        self._precision = self._sources()[0].dtype

    def fix(self) -> None:
        """Keep the weights of evaluation as buffers, complex ones as pairs, for programs that trace them."""
        for i, weight in enumerate(weights := self._settled()):
            real = torch.view_as_real(weight) if weight.is_complex() else weight
            self.register_buffer(f"fixed{i}", real.clone(), persistent=False)
        self._fixed = len(weights)

    @property
    def is_fixed(self) -> bool:
        """Return whether the weights are buffers."""
        return self._fixed > 0

    def plain(self) -> nn.Module:
        """Return ordinary torch layers that compute the same, or the layer itself where there are none."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the kept weights: a copy makes its own."""
        return {**self.__dict__, "_kept": None}


@contextlib.contextmanager
def estimated_weights(model: nn.Module) -> Iterator[None]:
    """Evaluate with weights whose norms are estimated inside this context, as in training, not proved.

    Good for numbers that are called estimates, as those of a validation. A certifier refuses such a model.
    """
    layers = [module for module in model.modules() if isinstance(module, Derived)]
    for layer in layers:
        layer.forget()
        layer._is_estimating = True
    try:
        yield
    finally:
        for layer in layers:
            layer._is_estimating = False
            layer.forget()


def _rounded(weight: Tensor, precision: torch.dtype | None, like: Tensor) -> Tensor:
    """Return the weight like `like`, rounded to the precision on the way; complex stays complex."""
    for kind in (precision or like.dtype, like.dtype):
        weight = weight.to(kind.to_complex() if weight.is_complex() else kind)
    return weight.to(like.device)


class _State:
    """A copy of some tensors, to tell whether they have changed.

    Values are compared, as a fused optimiser writes to parameters without raising their versions.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._copies = [tensor.detach().clone() for tensor in tensors]

    def is_of(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the tensors hold the same values as when they were copied."""
        return all(
            (new.dtype, new.device, new.shape) == (old.dtype, old.device, old.shape)
            and (new.is_meta or torch.equal(new, old))
            for new, old in zip(tensors, self._copies, strict=True)
        )


@dataclass(frozen=True)
class _Kept:
    """Weights together with the state of the sources they were made from."""

    state: _State
    weights: tuple[Tensor, ...]


class Built(Rule[Any]):
    """A mixin for the rule of a layer built to have the constant 1.

    Training relies on the construction; a proof is about the executed weights.
    """

    has_vector = False

    def estimate(self, module: nn.Module, vector: Tensor | None) -> Tensor:
        """Return 1."""
        return next(module.parameters()).new_ones(())


def linear_with(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """Return an nn.Linear with this weight and bias."""
    outputs, inputs = weight.shape
    return filled(nn.Linear(inputs, outputs, bias is not None), weight, bias)


def convolution_with(weight: Tensor, bias: Tensor | None) -> nn.Conv2d:
    """Return an nn.Conv2d with these kernels, padded so that odd kernels keep the size."""
    outputs, inputs, k, _ = weight.shape
    return filled(nn.Conv2d(inputs, outputs, k, padding=k // 2, bias=bias is not None), weight, bias)


@torch.no_grad()
def filled(layer: L, weight: Tensor, bias: Tensor | None) -> L:
    """Copy weight and bias into a layer, on the device of the weight, and return the layer."""
    layer = layer.to(weight)
    layer.weight.copy_(weight)
    if layer.bias is not None and bias is not None:
        layer.bias.copy_(bias)
    return layer
