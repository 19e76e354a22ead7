"""Figure 3 of the paper: the calibrated logistic. It is drawn from the formula; nothing is trained."""

from __future__ import annotations

from pathlib import Path

from lipcert.paper.definition import Reproduction, Trained, register
from lipcert.report.calibration_figure import calibration_figure


def _draw(trained: Trained, base: Path) -> list[Path]:
    return calibration_figure(base)


register(
    Reproduction(
        "fig-calibration",
        "Figure 3: the calibrated logistic without and with its margin offset, and the effect of slack",
        (),
        _draw,
    )
)
