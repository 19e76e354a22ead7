"""Compare the model itself with the program that was traced from it: both must compute the same.

A proof is about the traced steps, but the model is what runs. So the model is called, as its owner would call
it: on random batches when a proof is made, and on part of every batch that is certified. Its outputs must lie
within the rounding error that theorems 3 and 5 (docs/proofs.md) allow around those of the steps. The model is
called in its own precision, and as the private float64 copy, where a difference of 1e-10 shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lipcert.bounds.contract import sample_norm
from lipcert.bounds.evaluation import DOUBLE, LONGEST, SINGLE, Evaluation, evaluate, plain, values_of
from lipcert.bounds.fidelity.calling import (
    MODES,
    Mode,
    UncallableError,
    called,
    described,
    distance,
    relative,
    within,
)
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.fidelity.guards import without_randomness
from lipcert.bounds.fidelity.kernels import sums_products
from lipcert.bounds.fidelity.operations import first_difference, operations, weights_of, without_numbers
from lipcert.bounds.fidelity.snapshot import Snapshot, refuse_other_numbers
from lipcert.bounds.growth import growths
from lipcert.bounds.precision import full_products
from lipcert.bounds.proof import Bound, LayerBound
from lipcert.bounds.provers.factorisation import nu
from lipcert.bounds.provers.rounding import SAFETY, sqrt_up
from lipcert.bounds.provers.summing import summing
from lipcert.bounds.tracing.program import Program
from lipcert.errors import DisagreementError, StaleBoundError, UnknownBoundError

# Sizes of the random batches at a proof: one sample, several, and enough that torch changes kernels.
_SIZES = (1, 3, 17)

# One sample in so many is compared when a batch is certified, with rounding and without.
_ONE_IN, _ONE_IN_QUICKLY = 128, 512

# Two computations of one number differ by twice their errors, at inputs that differ as much.
_BOTH = 4.0

# Factor for errors where float32 products have fewer bits (TF32, bfloat16) or are no sums (Winograd).
_COARSE = 2.0**16

# Relative differences in float32 and float64 that are tolerated although no rule predicts them.
_LEAST, _LEAST_DOUBLE = 1e-5, 1e-13


class Replay:
    """The comparison of a model with its program; a difference raises `DisagreementError`."""

    def __init__(self, followed: Followed, bound: Bound) -> None:
        self._followed, self._model, self._copy = followed, followed.model, followed.copy
        self._program = followed.program
        self._bound = _with_head(bound, self._program)
        self.where = followed.where
        with summing(self.where):
            self.growths = growths(self._program, self._bound, self.where)
        example = followed.example()
        self._dtype, self._device = example.dtype, example.device
        self._is_sized = any(hasattr(module, "weights_on") for module in self._model.modules())
        long = any(s.rule.products(s.module) > LONGEST for s in self._program.steps)
        self._is_bounded = self._dtype == torch.float64 or (self._dtype == torch.float32 and not long)
        self._probe, self._known = self._own(next(self._batches())), torch.zeros(0)

    def rehearse(self) -> Snapshot:
        """Compare on random batches, more than once; return a snapshot of the model between two calls."""
        for model, x in ((self._model, self._probe), (self._copy, self._wide(self._probe))):
            called(model, x.clone())  # layers settle their kept weights
        before = Snapshot(self._model)
        refuse_other_numbers(self._model, self._copy)
        batches = [self._own(x) for x in self._batches()]
        for x, modes in zip(batches, ((torch.no_grad,), MODES, (torch.no_grad,)), strict=True):
            self._compare(x, modes)
        self._known = self._reference(self._probe, False).features
        self._compare_alone(batches[1])
        self._compare_with_cpu(batches)
        self._compare_operations(batches[1])
        changed = before.change_in(self._model)
        if changed is not None:
            raise UnknownBoundError(f"{changed}: calling the model changes it, so it is not a fixed function")
        return before

    def _batches(self) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(0)
        for i, size in enumerate(_SIZES):
            x = torch.randn(size, *self._followed.input_shape, generator=generator, dtype=torch.float64)
            yield x.sigmoid() if i == 0 else x

    def _compare_alone(self, x: Tensor) -> None:
        """Raise unless the layers treat a sample alone and in a batch in the same way."""
        together = self._reference(x, False)
        alone = torch.cat([self._reference(sample, False).features for sample in torch.split(x, 1)])
        if not within(alone, together.features, self._double_tolerance(together)):
            raise UnknownBoundError("model: its output for a sample depends on the others of its batch")

    @torch.no_grad()
    def _compare_with_cpu(self, batches: Sequence[Tensor]) -> None:
        """Raise unless the device of the layers computes what the CPU does."""
        if self.where.type == "cpu":
            return
        there = self._followed.on_cpu()
        for x in batches:
            here = self._reference(x, False)
            expected = plain(there, x.detach().to("cpu", torch.float64))
            if not within(here.features, expected, self._double_tolerance(here)):
                raise DisagreementError(
                    f"device: {self.where} computes other float64 numbers than the CPU, beyond rounding "
                    "errors; certify on the CPU, and run lipcert doctor --selftest for a report"
                )

    @torch.no_grad()
    def _compare_operations(self, x: Tensor) -> None:
        """Raise unless the model executes exactly the operations of its traced layers."""
        every = replace(self._program, steps=self._program.traced)
        expected = operations(partial(values_of, every, self._wide(x)), weights_of(self._copy))
        executed = operations(partial(self._copy, self._wide(x)), weights_of(self._copy))
        other = first_difference(executed, expected)
        if not any(parametrize.is_parametrized(module) for module in self._model.modules()):
            executed = operations(partial(self._model, x.clone()), weights_of(self._model))
            other = other or first_difference(without_numbers(executed), without_numbers(expected))
        # Otherwise the model computes weights that the copy stores.
        if other is not None:
            raise DisagreementError(f"model: forward {other}; call layers as they are, on all inputs alike")

    def compare(self, x: Tensor, least: float = _LEAST) -> None:
        """Raise unless the model and its float64 copy compute what its steps do, on some samples.

        In its own precision a relative difference of `least` is tolerated, whatever the rules allow.
        """
        reference = self._compare(self._probed(x), (torch.no_grad,), least)
        self._recognise(reference.features, self._double_tolerance(reference))

    def _compare(self, own: Tensor, modes: Sequence[Mode], least: float = _LEAST) -> Evaluation:
        same = self._wide(own)
        reference = self._reference(same, self._dtype == torch.float32 and self._is_bounded)
        for mode in modes:
            if self._dtype in (torch.float32, torch.float64):
                self._agree(self._model, own, reference, self._own_tolerance(reference, least), mode)
            with summing(self.where):
                self._agree(self._copy, same, reference, self._double_tolerance(reference), mode)
        return reference

    def outputs(self, x: Tensor) -> Tensor:
        """Return the model's outputs for inputs in its own precision, which the model may overwrite."""
        return self._outputs(self._model, x, torch.no_grad)

    @torch.no_grad()
    def compare_outputs(self, x: Tensor, outputs: Tensor) -> None:
        """Raise unless a part of the given outputs, in the model's own precision, agrees with its steps."""
        given = _part(outputs, _ONE_IN_QUICKLY)
        features, tolerance = self._own_reference(self._probed(x, _ONE_IN_QUICKLY))
        self._recognise(features, tolerance)
        if not within(given, features[1:], tolerance[1:]):
            self.compare(x)  # this error names the place
            self._raise("model", given, features[1:], tolerance[1:])

    def change_since(self, before: Snapshot) -> str | None:
        """Name what changed in the model since a snapshot; None if nothing changed."""
        if self._is_sized:  # it may hold weights for another image size
            called(self._model, self._probe.clone())
        return before.change_in(self._model)

    def _probed(self, x: Tensor, one_in: int = _ONE_IN) -> Tensor:
        """Return part of a batch, after a sample whose outputs are known since the proof."""
        return torch.cat([self._probe, self._own(_part(x, one_in))])

    def _recognise(self, features: Tensor, tolerance: Tensor) -> None:
        """Raise if the first sample's outputs differ from those at the proof: torch itself changed."""
        if not within(features[:1], self._known, tolerance[:1]):
            raise StaleBoundError(
                "torch computes other values than at the proof: was one of its functions replaced?"
            )

    def _own(self, x: Tensor) -> Tensor:
        return x.detach().to(self._device, self._dtype)

    def _wide(self, x: Tensor) -> Tensor:
        return x.detach().to(self.where, torch.float64)

    @torch.no_grad()
    def _reference(self, x: Tensor, float32: bool) -> Evaluation:
        """Return the steps' outputs in float64, and their possible error."""
        x = self._wide(x)
        with summing(self.where):
            try:
                return evaluate(self._program, self._bound, x, float32, growths=self.growths)
            except NotImplementedError:  # a rule without bounds of rounding errors
                features = plain(self._program, x)
                return Evaluation(features, features.new_full((len(features),), torch.nan))

    def _own_reference(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the steps' outputs in the model's precision, and how far the model's may lie from them."""
        own = SINGLE if self._dtype == torch.float32 else DOUBLE
        try:
            last = evaluate(self._own_program, self._bound, x, False, own, self.growths)
        except NotImplementedError:
            features = plain(self._own_program, x)
            return features, relative(features, self._dtype)
        if not self._is_bounded:
            return last.features, relative(last.features, self._dtype)
        rounding = _BOTH * self._coarseness() * last.error
        return last.features, torch.maximum(rounding, _LEAST * sample_norm(last.features))

    @cached_property
    def _own_program(self) -> Program:
        return self._followed.own_program()

    def _double_tolerance(self, reference: Evaluation) -> Tensor:
        unknown = reference.error.isnan()
        rounding = torch.maximum(_BOTH * reference.error, _LEAST_DOUBLE * sample_norm(reference.features))
        return torch.where(unknown, relative(reference.features, torch.float64), rounding)

    def _own_tolerance(self, reference: Evaluation, least: float) -> Tensor:
        if self._dtype == torch.float64:
            return self._double_tolerance(reference)
        if reference.deployed is None:
            return relative(reference.features, self._dtype)
        rounding = self._coarseness() * (reference.error + reference.deployed.a)
        rounding = torch.maximum(rounding, least * sample_norm(reference.features))
        # Where a sum may overflow float32, the model in float32 shows nothing.
        return torch.where(reference.deployed.limit >= 0, rounding, torch.inf)

    def _coarseness(self) -> float:
        full = sums_products(self._device) and full_products(self._device.type == "cuda")
        return 1.0 if full else _COARSE

    def _agree(
        self, model: nn.Module, x: Tensor, reference: Evaluation, tolerance: Tensor, mode: Mode
    ) -> None:
        try:
            outputs = self._outputs(model, x.clone(), mode)  # forward may work in place
        except UncallableError:
            if mode is torch.inference_mode:  # some models cannot run in this mode, which is no disagreement
                return
            raise
        if not within(outputs, reference.features, tolerance):
            self._raise(self._place(model, x), outputs, reference.features, tolerance)

    def _outputs(self, model: nn.Module, x: Tensor, mode: Mode) -> Tensor:
        """Return the model's outputs, called as its owner would call it."""
        outputs = without_randomness("its forward", lambda: called(model, x, mode))
        shapes = {step.name: step.shape for step in self._program.steps}
        expected = (len(x), *shapes.get(self._program.result, self._followed.input_shape))
        if not isinstance(outputs, Tensor) or tuple(outputs.shape) != expected:
            raise DisagreementError(
                f"the model returns {described(outputs)} for {len(x)} samples, its traced layers a tensor "
                f"of {expected}"
            )
        return outputs

    def _raise(self, place: str, outputs: Tensor, reference: Tensor, tolerance: Tensor) -> None:
        apart = distance(outputs, reference)
        worst = int((apart / tolerance.cpu()).nan_to_num(torch.inf, torch.inf).argmax())
        raise DisagreementError(
            f"{place}: the model computes other values than its traced layers (outputs differ by "
            f"{apart[worst]:.3g}, rounding explains {tolerance[worst]:.3g}); call layers as they are, with "
            "the weights they hold"
        )

    def _place(self, model: nn.Module, x: Tensor) -> str:
        """Name the first module whose output differs from that of its step; else the model."""
        seen: dict[nn.Module, list[Any]] = {}
        names = dict(model.named_modules(remove_duplicate=False))
        with contextlib.ExitStack() as hooks:
            for module in set(names.values()):
                note = lambda it, _, output: seen.setdefault(it, []).append(output)  # noqa: E731
                hooks.enter_context(module.register_forward_hook(note))
            called(model, x.clone())
        values = values_of(self._program, self._wide(x))
        for step in self._program.steps:
            made = seen.get(names[step.path], []) if step.path in names else []
            if made and not _is_about(made.pop(0), values[step.name], x.dtype):
                return step.path
        return "model"


def _part(x: Tensor, one_in: int) -> Tensor:
    """Return one sample in so many, at least one, evenly spread."""
    count = max(1, len(x) // one_in)
    return x[torch.linspace(0, len(x) - 1, count, device=x.device).round().long()]


def _is_about(output: object, value: Tensor, dtype: torch.dtype) -> bool:
    """Return whether an output roughly equals a value: enough to find a place, not to trust it."""
    if not isinstance(output, Tensor) or output.shape != value.shape:
        return False
    return within(output, value, relative(value, dtype))


def _with_head(bound: Bound, program: Program) -> Bound:
    """Return a bound of every step; a head that was left out of the proof gets a simple one."""
    heads = [
        LayerBound(s.name, s.path, type(s.module).__name__, s.shape, _simple_upper(s.module), "absolute", 0.0)
        for s in program.steps[len(bound.layers) :]
    ]
    return replace(bound, layers=(*bound.layers, *heads))


def _simple_upper(head: Any) -> float:
    return sqrt_up(SAFETY * nu(head.weight.detach().double()))
