"""Every guard refuses with its own reason, and switched off it is missed: a law fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn

import lipcert
from lipcert.bounds import upper
from lipcert.bounds.contract import RULES, Rule
from lipcert.bounds.fidelity import guards, replay, snapshot
from lipcert.bounds.fidelity.replay import Replay
from lipcert.bounds.fidelity.snapshot import Snapshot
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.rules.convolution import ConvRule
from lipcert.bounds.tracing import program as graph
from lipcert.bounds.tracing.overwriting import SeesWrites
from lipcert.errors import LipcertError, UnknownBoundError
from tests.laws.changes import CHANGES
from tests.laws.corpus import FORWARDS
from tests.laws.test_forwards import check_bound, check_change, check_forward, inputs


def nothing(*_: object) -> None:
    return None


@dataclass(frozen=True)
class Guard:
    """A forward that a guard refuses (after a change, if any), its reason, and how it is switched off."""

    forward: str
    reason: str
    off: tuple[tuple[Any, str, Any], ...]
    change: str | None = None


def seeing_nothing(what: str, call: Callable[[], Any]) -> Any:
    return call()


RANDOM = ((graph, "without_randomness", seeing_nothing), (replay, "without_randomness", seeing_nothing))

GUARDS = {
    "outputs": Guard(
        "dilation-of-a-convolution-set-for-the-call", "other values", ((Replay, "_agree", nothing),)
    ),
    "operations": Guard(
        "a-branch-near-ties-by-type", "forward runs", ((Replay, "_compare_operations", nothing),)
    ),
    "samples alone": Guard(
        "layer-zero-pad-that-shifts-samples",
        "the others of its batch",
        ((Replay, "_compare_alone", nothing),),
    ),
    "modes of torch": Guard(
        "a-branch-inference-mode", "other values", ((replay, "MODES", (torch.no_grad,)),)
    ),
    "state": Guard("last-features-kept", "calling the model changes it", ((Snapshot, "change_in", nothing),)),
    "torch's randomness": Guard("a-branch-on-torch-rand", "random numbers .torch", RANDOM),
    "Python's randomness": Guard("a-branch-on-random-random", "random numbers .random", RANDOM),
    "NumPy's randomness": Guard("a-branch-on-numpy-random", "random numbers .numpy", RANDOM),
    "attributes of values": Guard(
        "data-replaced-on-a-value",
        "sets the attribute data",
        ((SeesWrites, "__setattr__", object.__setattr__),),
    ),
    "precision": Guard(
        "autocast-as-a-context", "precision of torch", ((graph, "precision_settings", lambda: ()),)
    ),
    "calls": Guard("another-call", "defines its own __call__", ((guards, "_CALLS", ()),)),
    "hidden methods": Guard(
        "a-layer-with-its-own-conv-forward", "hides that", ((guards, "refuse_hidden_methods", nothing),)
    ),
    "hooks": Guard("an-old-spectral-norm", "forward hooks", ((guards, "refuse_hooks", nothing),)),
    "shared copies": Guard(
        "an-inner-model-that-is-never-copied", "shares this", ((snapshot, "_refuse_shared", nothing),)
    ),
    "unusual tensors": Guard(
        "linear-with-a-sparse-weight", "dense tensor", ((snapshot, "refuse_unusual_tensors", nothing),)
    ),
    "changes": Guard(
        "huge-weights", "changed after the proof", ((Snapshot, "change_in", nothing),), "a-bias-shifted"
    ),
    "torch replaced": Guard(
        "no-bias", "one of its functions", ((Replay, "_recognise", nothing),), "the-function-linear"
    ),
    "active modes": Guard(
        "a-partial-function", "is active", ((guards, "refuse_modes", nothing),), "a-function-mode"
    ),
    "outputs of a batch": Guard(
        "a-branch-on-an-environment-variable",
        "other values",
        ((Replay, "compare", nothing),),
        "an-environment-variable",
    ),
}

# Switched off, these let a wrong certificate through; the others are backed by a second guard.
DECISIVE = [
    *("outputs", "operations", "samples alone", "modes of torch", "hidden methods", "precision"),
    *("changes", "torch replaced", "outputs of a batch"),
]
every_guard = pytest.mark.parametrize("name", GUARDS)


@contextmanager
def switched_off(guard: Guard) -> Iterator[None]:
    with ExitStack() as patches:
        for place, attribute, value in guard.off:
            patches.enter_context(patch.object(place, attribute, value))
        yield


def refusal(guard: Guard) -> str:
    """The reason why the forward is refused; empty if it is not."""
    entry = FORWARDS[guard.forward]
    model = entry.model()
    try:
        certify = lipcert.certifier(model, entry.shape)
        with CHANGES[guard.change](model) if guard.change else ExitStack():
            if guard.change:
                certify(inputs(entry, model, 12))
    except LipcertError as error:
        return str(error)
    return ""


@every_guard
def test_a_guard_gives_its_reason(name: str) -> None:
    assert re.search(GUARDS[name].reason, refusal(GUARDS[name]))


@every_guard
def test_a_guard_that_is_switched_off_is_missed(name: str) -> None:
    with switched_off(GUARDS[name]):
        try:
            reason = refusal(GUARDS[name])
        except BaseException as error:  # a raw error, or that of a model which must not run
            reason = repr(error)
    assert not re.search(GUARDS[name].reason, reason)


@pytest.mark.parametrize("name", DECISIVE)
def test_without_a_guard_a_wrong_certificate_is_issued(name: str) -> None:
    guard = GUARDS[name]
    law = partial(check_change, change=guard.change) if guard.change else check_forward
    with switched_off(guard), pytest.raises(BaseException):  # noqa: B017  RanError is no Exception
        law(guard.forward)


def test_without_any_replay_another_slope_is_certified() -> None:
    check_forward("negative_slope-of-act-set-for-the-call")
    with patch.object(Replay, "_agree", nothing), patch.object(Replay, "_compare_operations", nothing):
        with pytest.raises(AssertionError, match="contradicted"):
            check_forward("negative_slope-of-act-set-for-the-call")
        with pytest.raises(AssertionError, match="was proved"):
            check_bound("negative_slope-of-act-set-for-the-call")


def test_a_geometry_that_is_not_what_runs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are compared with a run on the meta device, so a rule that reads a wrong setting is noticed."""
    real = Geometry.of

    def stale(module: Any, shape: Any) -> Geometry:
        return replace(real(module, shape), padding=((0, 0), (0, 0)))

    model = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1))
    monkeypatch.setattr(Geometry, "of", stale)
    with pytest.raises(UnknownBoundError, match="its settings give"):
        upper(model, (2, 6, 6))
    monkeypatch.setattr(ConvRule, "output_shape", Rule.output_shape)
    assert upper(model, (2, 6, 6)).value > 0  # not noticed without the guard


def test_a_forward_replaced_after_its_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    real = nn.Linear.forward
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: 20 * real(self, x))
    with pytest.raises(UnknownBoundError, match="replaced after its rule"):
        upper(model, (3,))
    monkeypatch.setitem(RULES, nn.Linear, replace(RULES[nn.Linear], forward=None))
    assert upper(model, (3,)).value > 0  # not noticed without the guard
