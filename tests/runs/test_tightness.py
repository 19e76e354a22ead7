"""tightness.json is read as it was written, wherever lipcert is installed."""

from __future__ import annotations

from pathlib import Path

from lipcert.environment import Environment
from lipcert.runs.tightness import Tightness, read_tightness, write_tightness


def test_a_wheel_knows_no_commit(tmp_path: Path) -> None:
    made = Environment(lipcert="1", commit=None, python="3", torch="2", machine="")
    found = Tightness(
        budget="smoke",
        pairs=1,
        steps=1,
        lr=0.1,
        seed=0,
        model_sha256="",
        batches=1,
        lower=1.0,
        upper=2.0,
        tightness=0.5,
        environment=made,
    )
    write_tightness(tmp_path / "tightness.json", found)
    assert read_tightness(tmp_path / "tightness.json") == found
    assert "witness" not in (tmp_path / "tightness.json").read_text(encoding="utf-8")
