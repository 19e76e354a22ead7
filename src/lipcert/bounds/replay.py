"""The model itself against the program that was traced from it: both must compute the same.

A proof is about the traced steps. What runs is the model. So the model is called, as its owner would call it:
on random batches when a proof is made, and on part of every batch that is certified. Its outputs must lie
within the rounding error that theorems 3 and 5 (docs/proofs.md) allow around those of the steps. It is called
as it is, in its own precision, and as the private float64 copy, where a difference of 1e-10 shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.cholesky import nu
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.evaluation import DOUBLE, LONGEST, SINGLE, Evaluation, evaluations, plain, values_of
from lipcert.bounds.graph import Program, checked_shape, trace
from lipcert.bounds.growth import growths
from lipcert.bounds.guards import without_randomness
from lipcert.bounds.kernels import sums_products
from lipcert.bounds.proof import Bound, LayerBound
from lipcert.bounds.rounding import SAFETY, sqrt_up
from lipcert.bounds.snapshot import Snapshot, frozen_copy, settled_copy
from lipcert.errors import DisagreementError, LipcertError, UnknownBoundError, reason
from lipcert.precision import full_products
from lipcert.types import Shape

# Sizes of the random batches at a proof: one sample, several, and more than torch takes other kernels for.
_SIZES = (1, 3, 17)

# Ways in which torch may keep track of gradients, none of which may change what a model computes.
Mode = Callable[[], contextlib.AbstractContextManager[Any]]
_MODES: tuple[Mode, ...] = (torch.no_grad, torch.enable_grad, torch.inference_mode)

# Samples of a batch of which one is compared when it is certified.
_ONE_IN = 128

# Two computations of one number differ by twice their errors, taken at inputs that differ as much themselves.
_BOTH = 4.0

# How much errors grow where float32 products have fewer bits (TF32, bfloat16) or are no sums (Winograd).
_COARSE = 2.0**16

# A relative difference in float32 that rules may have forgotten: it is no other function.
_LEAST = 1e-5

# Relative differences that are put up with where a rule bounds no rounding: of float64, and of float32.
_UNBOUNDED = (1e-9, 1e-2)


@dataclass(frozen=True)
class Followed:
    """A model, its private float64 copy, and the program that was traced from the copy."""

    model: nn.Module
    copy: nn.Module
    program: Program
    input_shape: Shape

    @classmethod
    def of(cls, model: nn.Module, input_shape: Sequence[int]) -> Followed:
        """Copy and trace a model; layers of the copy do not work in place, for their inputs are needed."""
        shape = checked_shape(input_shape)
        copied = frozen_copy(model)
        return cls(model, copied, _kept_inputs(trace(copied, shape)), shape)


def _kept_inputs(program: Program) -> Program:
    for step in program.steps:
        if isinstance(getattr(step.module, "inplace", None), bool):
            setattr(step.module, "inplace", False)  # noqa: B010
    return program


class Replay:
    """Compares a model with its program. Made when its bound is proved; raises `DisagreementError`."""

    def __init__(self, followed: Followed, bound: Bound) -> None:
        self._model, self._copy, self._program = followed.model, followed.copy, followed.program
        self._shape = followed.input_shape
        self._bound = _with_head(bound, self._program)
        self.growths = growths(self._program, self._bound)
        tensors = [*followed.model.parameters(), *followed.model.buffers()]
        example = next((t for t in tensors if t.is_floating_point()), torch.zeros(()))
        self._dtype, self._device = example.dtype, example.device
        self._is_sized = any(hasattr(module, "weights_on") for module in followed.model.modules())
        long = any(s.rule.products(s.module) > LONGEST for s in self._program.steps)
        self._is_bounded = self._dtype == torch.float64 or (self._dtype == torch.float32 and not long)

    def rehearse(self) -> Snapshot:
        """Compare on random batches, more than once; return the model as it was between two calls."""
        batches = list(self._batches())
        self.outputs(self._own(batches[0]))  # layers settle what they keep
        before = Snapshot(self._model)
        for x in batches:
            self.compare(x, _MODES)
        self._compare_alone(batches[1])
        changed = before.change_in(self._model)
        if changed is not None:
            raise UnknownBoundError(f"{changed}: calling the model changes it, so it is not one function")
        return before

    def _batches(self) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(0)
        for i, size in enumerate(_SIZES):
            x = torch.randn(size, *self._shape, generator=generator, dtype=torch.float64)
            yield (x.sigmoid() if i == 0 else x).float().double()

    @torch.no_grad()
    def _compare_alone(self, x: Tensor) -> None:
        """Raise unless the layers do the same to a sample alone and among others."""
        together = self._reference(x, False)
        alone = torch.cat([self._reference(sample, False).features for sample in torch.split(x, 1)])
        if not bool(_within(alone, together.features, self._double_tolerance(together)).all()):
            raise UnknownBoundError("model: what it computes for a sample depends on the others of its batch")

    def compare(self, x: Tensor, modes: Sequence[Mode] = (torch.no_grad,), least: float = _LEAST) -> None:
        """Raise unless the model, as it is and as its float64 copy, does what its steps do on a batch.

        In its own precision a relative difference of `least` is put up with, whatever the rules allow.
        """
        own = self._own(x)
        same = own.to("cpu", torch.float64)
        with torch.no_grad():
            reference = self._reference(same, self._dtype == torch.float32 and self._is_bounded)
        for mode in modes:
            if self._dtype in (torch.float32, torch.float64):
                self._agree(self._model, own, reference, self._own_tolerance(reference, least), mode)
            self._agree(self._copy, same, reference, self._double_tolerance(reference), mode)

    def outputs(self, x: Tensor) -> Tensor:
        """Return what the model returns for inputs in its own precision, called as its owner would.

        A model that works in place may overwrite them.
        """
        return self._outputs(self._model, x, torch.no_grad)

    def change_since(self, before: Snapshot) -> str | None:
        """Name what changed in the model since a snapshot; None if nothing did."""
        if self._is_sized:  # weights for another size of images may lie there
            _called(self._model, self._own(torch.zeros(1, *self._shape)), torch.no_grad)
        return before.change_in(self._model)

    def part(self, x: Tensor) -> Tensor:
        """Some samples of a batch, evenly spread."""
        count = max(1, len(x) // _ONE_IN)
        return x[torch.linspace(0, len(x) - 1, count, device=x.device).round().long()]

    @torch.no_grad()
    def compare_outputs(self, x: Tensor, outputs: Tensor) -> None:
        """Raise unless outputs that the model gave in its own precision are those of its steps, in part."""
        some, given = self.part(self._own(x)), self.part(outputs)
        features, tolerance = self._own_reference(some)
        if not bool(_within(given, features, tolerance).all()):
            self.compare(some)  # names the place
            self._raise("model", given, features, tolerance)

    def _own_reference(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the steps' outputs in the model's precision, and how far the model's may lie from them."""
        own = SINGLE if self._dtype == torch.float32 else DOUBLE
        try:
            last = self._last(evaluations(self._own_program, self._bound, x, False, own, self.growths))
        except NotImplementedError:
            features = plain(self._own_program, x)
            return features, _relative(features, 1)
        if not self._is_bounded:
            return last.features, _relative(last.features, 1)
        rounding = _BOTH * self._coarseness() * last.error
        return last.features, torch.maximum(rounding, _LEAST * sample_norm(last.features))

    @cached_property
    def _own_program(self) -> Program:
        """The program once more, in the precision and the place of the model."""
        return _kept_inputs(trace(settled_copy(self._model), self._shape))

    def _own(self, x: Tensor) -> Tensor:
        return x.detach().to(self._device, self._dtype)

    def _reference(self, x: Tensor, float32: bool) -> Evaluation:
        try:
            return self._last(evaluations(self._program, self._bound, x, float32, growths=self.growths))
        except NotImplementedError:  # a rule without rounding bounds
            features = plain(self._program, x)
            return Evaluation(features, features.new_full((len(features),), torch.nan))

    def _last(self, found: Iterator[tuple[str, Evaluation]]) -> Evaluation:
        values = dict(found)
        return values[self._program.result]

    def _double_tolerance(self, reference: Evaluation) -> Tensor:
        unknown = reference.error.isnan()
        return torch.where(unknown, _relative(reference.features, 0), _BOTH * reference.error)

    def _own_tolerance(self, reference: Evaluation, least: float) -> Tensor:
        if self._dtype == torch.float64:
            return self._double_tolerance(reference)
        if reference.deployed is None:
            return _relative(reference.features, 1)
        rounding = self._coarseness() * (reference.error + reference.deployed.a)
        rounding = torch.maximum(rounding, least * sample_norm(reference.features))
        # Where a sum may exceed what float32 can hold, the model in float32 says nothing.
        return torch.where(reference.deployed.limit >= 0, rounding, torch.inf)

    def _coarseness(self) -> float:
        full = sums_products(self._device) and full_products(self._device.type == "cuda")
        return 1.0 if full else _COARSE

    def _agree(
        self, model: nn.Module, x: Tensor, reference: Evaluation, tolerance: Tensor, mode: Mode
    ) -> None:
        try:
            outputs = self._outputs(model, x.clone(), mode)  # forward may work in place
        except _UncallableError:
            if mode is torch.inference_mode:  # some models cannot run in it, and so say nothing wrong there
                return
            raise
        if not bool(_within(outputs, reference.features, tolerance).all()):
            self._raise(self._place(model, x), outputs, reference.features, tolerance)

    def _outputs(self, model: nn.Module, x: Tensor, mode: Mode) -> Tensor:
        """What the model returns, called as its owner would."""
        outputs = without_randomness("its forward", lambda: _called(model, x, mode))
        shape = next((s.shape for s in self._program.steps if s.name == self._program.result), self._shape)
        if not isinstance(outputs, Tensor) or tuple(outputs.shape) != (len(x), *shape):
            raise DisagreementError(
                f"the model returns {_described(outputs)} for {len(x)} samples, its traced layers a tensor "
                f"of {(len(x), *shape)}"
            )
        return outputs

    def _raise(self, place: str, outputs: Tensor, reference: Tensor, tolerance: Tensor) -> None:
        apart = _distance(outputs, reference)
        worst = int((apart / tolerance).nan_to_num(torch.inf, torch.inf).argmax())
        raise DisagreementError(
            f"{place}: the model computes something else than the layers that were traced (outputs differ by "
            f"{apart[worst]:.3g}, rounding explains {tolerance[worst]:.3g}); call layers as they are, with "
            "the weights they hold"
        )

    def _place(self, model: nn.Module, x: Tensor) -> str:
        """Name the first module whose output is not that of its step; the model where there is none."""
        seen: dict[nn.Module, list[Tensor]] = {}

        def note(module: nn.Module, _: Any, output: Any) -> None:
            seen.setdefault(module, []).append(output)

        names = dict(model.named_modules(remove_duplicate=False))
        with contextlib.ExitStack() as hooks:
            for module in set(names.values()):
                hooks.enter_context(module.register_forward_hook(note))
            _called(model, x.clone(), torch.no_grad)
        kind = 0 if x.dtype == torch.float64 else 1
        values = dict(values_of(self._program, x.detach().to("cpu", torch.float64)))
        for step in self._program.steps:
            made = seen.get(names[step.path], []) if step.path in names else []
            if made and not _close(made.pop(0), values[step.name], kind):
                return step.path
        return "model"


def _close(output: object, value: Tensor, kind: int) -> bool:
    """Whether an output is about a value: enough to find a place, not to trust it."""
    if not isinstance(output, Tensor) or output.shape != value.shape:
        return False
    return bool(_within(output, value, _relative(value, kind)).all())


class _UncallableError(UnknownBoundError):
    """The model cannot be called."""


def _called(model: nn.Module, x: Tensor, mode: Mode) -> Any:
    try:
        with mode():
            return model(x)
    except LipcertError:
        raise
    except Exception as error:
        raise _UncallableError(f"the model could be traced, but not called: {reason(error)}") from error


def _described(outputs: object) -> str:
    return f"a tensor of {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__


def _distance(outputs: Tensor, reference: Tensor) -> Tensor:
    apart: Tensor = torch.linalg.vector_norm(
        (outputs.detach().to("cpu", torch.float64) - reference.to("cpu", torch.float64)).flatten(1), dim=1
    )
    return apart


def _within(outputs: Tensor, reference: Tensor, tolerance: Tensor) -> Tensor:
    """Whether each sample's outputs lie within the tolerance; certificates say nothing of infinite ones."""
    apart, tolerance = _distance(outputs, reference), tolerance.cpu()
    finite = torch.isfinite(reference.flatten(1)).all(1).cpu()
    return (apart <= tolerance) | ~finite | tolerance.isposinf()


def _relative(values: Tensor, kind: int) -> Tensor:
    return _UNBOUNDED[kind] * (1 + sample_norm(values.double()))


def _with_head(bound: Bound, program: Program) -> Bound:
    """A bound of every step: a head that was left out of the proof gets a simple one."""
    missing = program.steps[len(bound.layers) :]
    heads = [
        LayerBound(s.name, s.path, type(s.module).__name__, s.shape, _simple_upper(s.module), "absolute", 0.0)
        for s in missing
    ]
    return replace(bound, layers=(*bound.layers, *heads))


def _simple_upper(head: Any) -> float:
    return sqrt_up(SAFETY * nu(head.weight.detach().double()))
