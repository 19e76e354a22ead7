"""Run a self-test: every probe in two precisions against the CPU in float64, then the larger works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import torch
from torch import Tensor

from lipcert.bounds.arguments import device_named
from lipcert.environment import environment
from lipcert.progress import tracked
from lipcert.selftest.deviation import deviation
from lipcert.selftest.device_checks import Check, Numbers, SelfTest
from lipcert.selftest.probes import Probe, probes
from lipcert.selftest.works import works

# How far results may lie from those of the CPU in float64, relative to their norm. TF32 has three digits.
ALLOWED = {torch.float32: 2e-3, torch.float64: 1e-9}

# Gradients of a norm follow its singular vector, which float32 knows less well where the next one is near.
_ALLOWED_MODELS = {torch.float32: 2e-2, torch.float64: 1e-6}
_NAMES: dict[torch.dtype, Numbers] = {torch.float32: "float32", torch.float64: "float64"}
_CPU = torch.device("cpu")


def run_self_test(device: str = "cpu") -> SelfTest:
    """Compare a device with the CPU; nothing is written, and no check stops another."""
    where = device_named(device, "--device")
    checks: list[Check] = []
    for probe in tracked(list(probes()), "comparing with the CPU"):
        checks += _compared(probe, where)
    for work in tracked(list(works(where)), "training and certifying"):
        checks.append(_timed(work.kind, work.name, work.precision, work.allowed, work.measure))
    return SelfTest(device=str(where), environment=environment(), checks=tuple(checks))


def _compared(probe: Probe, device: torch.device) -> Iterator[Check]:
    """Yield one check per precision."""
    reference = cache(partial(probe, _CPU, torch.float64))
    for dtype in ALLOWED:
        if dtype == torch.float64 and device.type == "mps":
            note = "mps has no float64"
            yield Check(
                kind=probe.kind, name=probe.name, precision=_NAMES[dtype], outcome="skipped", note=note
            )
            continue
        measure = partial(_difference, probe, device, dtype, reference)
        yield _timed(probe.kind, probe.name, _NAMES[dtype], _allowed(probe.kind, dtype), measure)


def _allowed(kind: str, dtype: torch.dtype) -> float:
    if kind == "augmentation":  # its pixels are float32 always
        return ALLOWED[torch.float32]
    return (_ALLOWED_MODELS if kind == "model" else ALLOWED)[dtype]


def _difference(
    probe: Probe, device: torch.device, dtype: torch.dtype, reference: Callable[[], Sequence[Tensor]]
) -> float:
    return deviation(probe(device, dtype), reference())


def _timed(kind: str, name: str, precision: Numbers, allowed: float, measure: Callable[[], float]) -> Check:
    """Return the check of a measured deviation; an exception is a failure with its reason."""
    start = time.perf_counter()
    found, note = float("inf"), ""
    try:
        found = measure()
    except Exception as error:  # whatever a device raises belongs into the report
        note = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
    return Check(
        kind=kind,
        name=name,
        precision=precision,
        outcome="passed" if found <= allowed else "failed",
        deviation=None if note else found,
        allowed=allowed,
        note=note,
        seconds=round(time.perf_counter() - start, 3),
    )
