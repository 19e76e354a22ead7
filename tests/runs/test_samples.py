"""The samples of a run: what counts as robust."""

from __future__ import annotations

import torch

from lipcert.runs.samples import Samples


def test_a_wrong_prediction_is_robust_at_no_radius() -> None:
    label, prediction = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    found = Samples(label, prediction, radius=torch.tensor([0.5, 0.7, 0.25]), rival=1 - prediction)
    assert found.robust.tolist() == [0.5, 0.0, 0.25]
