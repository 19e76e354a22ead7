"""An ASCII locale, as in many containers and cron jobs: files stay UTF-8, and what is printed is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lipcert.data.examples import write_folder
from lipcert.runs import Run

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def lipcert(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lipcert.cli", *arguments],
        cwd=place,
        env={**os.environ, **ASCII},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_names_outside_ascii_are_trained_and_reported(tmp_path: Path) -> None:
    write_folder(tmp_path / "photos")
    (tmp_path / "photos" / "cats").rename(tmp_path / "photos" / "café")
    recipe = "extends: folder\nname: prüfung\nclaim: 5 × 5\ndata: {root: photos}\n"
    (tmp_path / "my.yaml").write_text(recipe, encoding="utf-8")
    settings = ["--set", "train.epochs=1", "--set", "train.batch_size=8"]
    lipcert(tmp_path, "train", "my.yaml", *settings, "--output", "run")
    assert Run(tmp_path / "run").statement().model.classes == ["café", "dogs"]
    table = (tmp_path / "run" / "figures" / "classes.csv").read_text(encoding="utf-8")
    assert "café" in table
    assert "caf" in lipcert(tmp_path, "predict", "run", "photos")
