"""Run the laws on everything that a file registers: one row per registered thing and law."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict

from lipcert import extensions
from lipcert.atomic import write_atomically
from lipcert.environment import Environment, environment
from lipcert.errors import InputError, LipcertError, reason
from lipcert.laws.law import BrokenLawError, Laws, Make, Registration
from lipcert.progress import tracked
from lipcert.registry import import_files
from lipcert.tables import Column, Table
from lipcert.tables.kinds import FINE_SECONDS, TEXT

# The first row of everything; without an example there is nothing to run a law on.
_MAKING = "its example can be made"


class LawCheck(BaseModel):
    """One law about one registered thing."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    name: str
    law: str
    outcome: Literal["passed", "failed", "skipped"]
    reason: str = ""
    seconds: float = 0.0


class LawReport(BaseModel):
    """All checks of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str
    environment: Environment
    checks: tuple[LawCheck, ...]

    @property
    def failed(self) -> list[LawCheck]:
        """Return the checks that did not pass."""
        return [check for check in self.checks if check.outcome == "failed"]

    def save(self, path: Path) -> None:
        """Write everything as JSON."""
        write_atomically(path, (self.model_dump_json(indent=2) + "\n").encode())

    def table(self) -> Table[LawCheck]:
        """Return one row per check."""
        columns: list[Column[LawCheck]] = [
            Column("kind", TEXT, lambda check: check.kind),
            Column("name", TEXT, lambda check: check.name),
            Column("law", TEXT, lambda check: check.law),
            Column("outcome", TEXT, lambda check: check.outcome),
            Column("reason", TEXT, lambda check: check.reason or None),
            Column("seconds", FINE_SECONDS, lambda check: check.seconds),
        ]
        return Table(columns, self.checks, title=self.source)


def all_laws() -> list[Laws[Any]]:
    """Return the laws of every kind; each file of this package may have some."""
    found = (value for module in import_files("lipcert.laws") for value in vars(module).values())
    return sorted({laws.kind: laws for laws in found if isinstance(laws, Laws)}.values(), key=_kind)


def _kind(laws: Laws[Any]) -> str:
    return laws.kind


def check_source(source: str) -> LawReport:
    """Load a file or a module and run the laws on what it registers; no check stops another."""
    kinds = all_laws()
    before = [one.source for laws in kinds for one in laws.registrations()]
    module = extensions.load(source).__name__
    found = [
        (laws, one)
        for laws in kinds
        for one in laws.registrations()
        if _is_new(one, before) or _is_of(one, module)
    ]
    if not found:
        names = ", ".join(laws.kind for laws in kinds)
        raise InputError(
            f"{source}: registers nothing; expected one of {names} (lipcert new writes such files)"
        )
    checks = [check for laws, one in found for check in _checks(laws, one)]
    return LawReport(source=source, environment=environment(), checks=tuple(checks))


def _is_new(one: Registration[Any], before: Iterable[object]) -> bool:
    return all(one.source is not source for source in before)


def _is_of(one: Registration[Any], module: str) -> bool:
    """Return whether the module, or one inside of it, registered this, perhaps before it was named here."""
    return any(f"{place}.".startswith(f"{module}.") for place in one.modules)


def _checks(laws: Laws[Any], one: Registration[Any]) -> Iterator[LawCheck]:
    """Yield the checks of every example."""
    try:
        examples = one.examples()
    except Exception as error:
        yield _row(laws, one.name, _MAKING, _said(error))
        return
    for name, make in examples.items():
        yield from _checks_of(laws, name, make)


def _checks_of(laws: Laws[Any], name: str, make: Make[Any]) -> Iterator[LawCheck]:
    """Yield the check of the example itself, then one per law, each from the same random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            thing = make()
        except (Exception, SystemExit) as error:
            yield _row(laws, name, _MAKING, _said(error))
            return
        yield _row(laws, name, _MAKING)
        for law in tracked(list(laws), f"checking {name}"):
            torch.manual_seed(0)
            start = time.perf_counter()
            broken = exempt = ""
            try:
                exempt = law.exempt(thing)
                law(thing)
            except (Exception, SystemExit) as error:
                broken = _said(error)
            yield _row(laws, name, law.sentence, broken, exempt, time.perf_counter() - start)


def _row(
    laws: Laws[Any], name: str, law: str, broken: str = "", exempt: str = "", seconds: float = 0.0
) -> LawCheck:
    return LawCheck(
        kind=laws.kind,
        name=name,
        law=law,
        outcome="failed" if broken else "skipped" if exempt else "passed",
        reason=broken or exempt,
        seconds=round(seconds, 3),
    )


def _said(error: BaseException) -> str:
    """Return what was wrong in one line; an error that nobody foresaw says its type first."""
    foreseen = isinstance(error, BrokenLawError | LipcertError)
    return reason(error) if foreseen else f"{type(error).__name__}: {reason(error)}"
