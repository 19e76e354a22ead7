"""The numbers printed in the paper, typed (published.yaml). Accuracies are percentages, as printed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class _Printed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PrintedRow(_Printed):
    """A row of a table; `cra` at 36/255, 72/255 and 108/255."""

    method: str
    model: str
    clean: float
    cra: tuple[float | None, float | None, float | None]
    epsilon: float | None = None
    slack: float | None = None
    printed_slack: float | None = None
    k_f: float | None = None
    k_hf: float | None = None
    tightness: float | None = None
    source: str = ""
    note: str = ""


class SeedStatistics(_Printed):
    """Mean and standard deviation of nine seeds."""

    clean: tuple[float, float]
    cra_36: tuple[float, float]
    cra_72: tuple[float, float]
    cra_108: tuple[float, float]
    k_f: tuple[float, float]
    tightness: tuple[float, float]


class EpsilonSweep(_Printed):
    """CRA at the ε of training, 4C3F on CIFAR-10."""

    epsilon: list[float]
    gloro: list[float]
    cll: list[float]


class GammaSweep(_Printed):
    """SOC over γ, LipConv-10 on Tiny-ImageNet."""

    gamma: list[float]
    clean: list[float]
    cra_36: list[float]


class EpsilonSlackMatrix(_Printed):
    """8C2F on Tiny-ImageNet: one list per slack, one number per ε."""

    epsilon: list[float]
    printed_slack: list[float]
    clean: list[list[float]]
    cra_36: list[list[float]]
    cra_108: list[list[float]]
    k_hf: list[list[float]]

    @property
    def slack(self) -> list[float]:
        """Return the p of Equation 5, half of the printed one."""
        return [printed / 2 for printed in self.printed_slack]


class PrintedFigures(BaseModel):
    """The figures whose numbers are used; others in the file are for readers."""

    epsilon_sweep_4c3f_cifar10: EpsilonSweep
    soc_gamma_tiny_imagenet_lipconv10: GammaSweep
    epsilon_slack_matrix_8c2f_tiny_imagenet: EpsilonSlackMatrix


class Published(_Printed):
    """Tables by data set, figures, and statistics over seeds by recipe."""

    tables: dict[str, list[PrintedRow]]
    figures: PrintedFigures
    seeds: dict[str, SeedStatistics]


@cache
def published() -> Published:
    """Read what the paper prints."""
    return Published.model_validate(
        yaml.safe_load((files("lipcert.report") / "published.yaml").read_text(encoding="utf-8"))
    )
