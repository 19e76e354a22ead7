"""A finished run becomes a bundled model: 16-bit weights, proved and certified anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lipcert
from lipcert.runs import Run
from tools.package_model import package


@pytest.mark.slow
def test_a_run_is_packaged(tmp_path: Path, cli) -> None:
    run, home = Run(tmp_path / "run"), tmp_path / "bundled"
    assert cli("train", "moons-cll", "--budget", "smoke", "--output", str(run.path))[0] == 0
    package(run, home)
    made = Run(home)
    assert made.statement().seconds == run.statement().seconds
    assert made.tightness() is not None
    assert "bundled" in (home / "model-card.md").read_text(encoding="utf-8")
    weights = lipcert.load(home).state_dict().values()
    assert all(torch.equal(w.half().to(w.dtype), w) for w in weights)
    assert cli("verify", str(home))[0] == 0
