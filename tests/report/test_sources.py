"""The sources of a report: what counts as robust."""

from __future__ import annotations

from pathlib import Path

import torch

from lipcert.report.sources import Finished
from lipcert.runs.directory import RunDirectory


def test_a_wrong_prediction_is_robust_at_no_radius() -> None:
    run = Finished(RunDirectory(Path("nowhere")), "run")
    vars(run)["samples"] = {
        "label": torch.tensor([0, 1, 1]),
        "prediction": torch.tensor([0, 0, 1]),
        "radius": torch.tensor([0.5, 0.7, 0.25]),
    }
    assert run.robust.tolist() == [0.5, 0.0, 0.25]
