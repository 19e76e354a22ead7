"""The result of a search for the tightness of a proved constant: tightness.json."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from lipcert.atomic import write_json
from lipcert.environment import Environment
from lipcert.strict_files import Strict, read_json, validated
from lipcert.types import BudgetName

# Pairs that are searched together.
PAIRS_AT_ONCE = 64

_WHAT = "what `lipcert tightness` writes"


class Pair(Strict):
    """Two inputs between which f_j − f_i changes most."""

    x1: JsonValue
    x2: JsonValue
    i: int
    j: int


class Tightness(Strict):
    """A search and what it has found so far: a witnessed `lower` and the proved `upper` bound of K_f."""

    budget: BudgetName
    pairs: int
    steps: int
    lr: float
    seed: int
    model_sha256: str
    batches: int  # finished
    lower: float
    upper: float
    tightness: float
    environment: Environment
    witness: Pair | None = None

    @property
    def searched(self) -> int:
        """Return the number of pairs whose search is finished."""
        return min(self.pairs, self.batches * PAIRS_AT_ONCE)

    def is_of(self, other: Tightness) -> bool:
        """Return whether both are the same search of the same weights."""
        asked = {"budget", "pairs", "steps", "lr", "seed", "model_sha256"}
        return self.model_dump(include=asked) == other.model_dump(include=asked)


def read_tightness(path: Path) -> Tightness | None:
    """Return what was found, None if there is no file."""
    return validated(path, read_json(path, _WHAT), Tightness, _WHAT) if path.is_file() else None


def write_tightness(path: Path, found: Tightness) -> None:
    """Write what was found, all or nothing."""
    absent = {"witness"} if found.witness is None else set()
    write_json(path, found.model_dump(mode="json", exclude=absent))
