"""The metrics of one epoch: a line of metrics.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields


@dataclass(frozen=True)
class Validation:
    """Hold what the validation split showed after an epoch; CRA and K_f are with estimated constants."""

    val_accuracy: float
    val_cra_estimate: float
    k_f_converged: float


@dataclass(frozen=True)
class Metrics:
    """Hold what is known after an epoch: means over the epoch, the estimated K_f, the seconds so far."""

    epoch: int
    step: int
    loss: float
    accuracy: float
    k_f: float
    seconds: float
    scheduled: Mapping[str, float] = field(default_factory=dict)  # by key, such as loss.eps
    validation: Validation | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """Return all metrics by name, as in the line."""
        own = {name: getattr(self, name) for name in _OWN}
        return {**own, **self.scheduled, **({} if self.validation is None else asdict(self.validation))}

    @property
    def line(self) -> str:
        """Return the line of the file, its end included."""
        return json.dumps(self.numbers) + "\n"

    @classmethod
    def of(cls, line: str) -> Metrics:
        """Read a line; raises `ValueError` if it is not one that `line` makes."""
        numbers = json.loads(line)
        try:
            own = {name: numbers.pop(name) for name in _OWN}
            measured = {name: numbers.pop(name) for name in _MEASURED if name in numbers}
            return cls(**own, scheduled=numbers, validation=Validation(**measured) if measured else None)
        except (AttributeError, KeyError, TypeError):
            raise ValueError("expected the metrics of an epoch") from None


_OWN = tuple(f.name for f in fields(Metrics) if f.name not in ("scheduled", "validation"))
_MEASURED = tuple(f.name for f in fields(Validation))
