"""The figure of the calibrated logistic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lipcert.report.calibration_figure import calibration_figure, probability


@pytest.mark.parametrize("slack", [1e-6, 0.05, 0.4])
@pytest.mark.parametrize("offset", [0.0, 0.2])
def test_across_the_margin_the_probability_rises_from_p_to_one_minus_p(slack: float, offset: float) -> None:
    places = np.array([offset - 0.2, offset, offset + 0.2])
    assert probability(places, eps=0.2, slack=slack, offset=offset) == pytest.approx(
        [slack, 0.5, 1 - slack], rel=1e-9
    )


def test_it_is_written_for_screens_pages_and_print(tmp_path: Path) -> None:
    written = calibration_figure(tmp_path / "figure")
    assert [path.suffix for path in written] == [".png", ".svg", ".pdf"]
    assert all(path.stat().st_size > 1000 for path in written)
