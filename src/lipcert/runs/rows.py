"""A finished run as one row of numbers, for tables, results and documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lipcert.certificates.statement import SplitAccuracies
from lipcert.data.base import Split
from lipcert.environment import Environment
from lipcert.runs.run import Run
from lipcert.tables.kinds import Interval


@dataclass(frozen=True)
class SplitRow:
    """The accuracies of one split, as fractions."""

    samples: int
    clean: float
    certified: Mapping[float, float]  # by radius, in the order of the recipe
    interval: Interval  # belongs to the first certified accuracy

    @property
    def radius(self) -> float:
        """Return the first radius."""
        return next(iter(self.certified))

    @property
    def cra(self) -> float:
        """Return the certified accuracy at the first radius."""
        return self.certified[self.radius]

    @classmethod
    def of(cls, split: SplitAccuracies) -> SplitRow:
        """Take the numbers of a certificate."""
        certified = {row.radius: row.value for row in split.certified}
        return cls(split.samples, split.clean.value, certified, Interval(*split.certified[0].interval))


@dataclass(frozen=True)
class RunRow:
    """Everything a finished run found."""

    recipe: str
    seed: int
    loss: str
    slack: float | None
    loss_eps: float | None  # at the end of training
    k_f: float
    k_hf: float
    tightness: float | None  # None: not measured
    seconds: float | None  # how long the training took
    environment: Environment
    splits: Mapping[Split, SplitRow]

    @property
    def eps(self) -> float:
        """Return the first radius at which it was certified."""
        return next(iter(self.splits.values())).radius


def row_of(run: Run) -> RunRow:
    """Read the findings of a finished run."""
    found, tightness = run.statement(), run.tightness()
    return RunRow(
        recipe=found.recipe,
        seed=found.seed,
        loss=found.loss.name,
        slack=found.loss.slack,
        loss_eps=found.loss.eps,
        k_f=found.k_f,
        k_hf=found.k_hf,
        tightness=None if tightness is None else tightness.tightness,
        seconds=found.seconds,
        environment=found.environment,
        splits={name: SplitRow.of(split) for name, split in found.splits.items()},
    )
