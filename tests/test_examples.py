"""Every script in examples/ runs and says what it should; a new one is tested because it is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lipcert

SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

# What the output of a script must match, line after line.
SAID = {
    "before_after": [
        r"cross-entropy +\d+\.\d+ +0\.\d+ +9\d\.\d",
        r"CLL +\d+\.\d+ +0\.[3-9]\d+ +[89]\d\.\d +[89]\d\.\d",
    ],
    "check_certificate": [r"ok +the weights", r"ok +k_f: 52\.\d+ ≤ 52\.\d+", r"ok +the largest K_ij"],
    "compare_losses": [
        r"CLL, slack 0.01 .*certified +9\d\.\d %",
        r"GloRo",
        r"cross-entropy .*certified +0\.0 %",
    ],
    "fabric_loop": [r"certified at 0\.1: (0\.9|1\.0)"],
    "hugging_face_trainer": [r"certified at 0\.1: (0\.9|1\.0)"],
    "lightning_module": [r"certified at 0\.1: (0\.9|1\.0)"],
    "onnx_only": [r"class (upper|lower), certified for every change of L2 norm below \d+\.\d+"] * 4,
    "own_model": [
        r"first +Conv2d +at most \d",
        r"inner +Conv2d",
        r"radii \['0\.0\d+'",
        r"refused: .*LayerNorm",
    ],
    "plain_loop": [r"certified at 0: (0\.9|1\.0)", r"certified at 0\.1: (0\.9|1\.0)"],
    "sklearn_pipeline": [r"test accuracy (0\.9|1\.0)", r"raw row \[0\.\d+\]", r"move alone \["],
    "tabular": [r"accuracy 0\.9\d+", r"certified at +0\.1: 0\.9\d+", r"median radius \d"],
    "train_moons": [r"certified at 0\.00: (100\.0|9\d\.\d) %", r"certified at 0\.15: 9\d\.\d %"],
}

# A whole program, whose own test counts its lines.
LONG = {"check_certificate"}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(script: Path, tmp_path: Path) -> None:
    arguments = []
    if script.stem == "onnx_only":
        from lipcert.commands.work.export_model import export_model

        export_model("moons-cll", tmp_path / "moons.onnx", False, "auto")
        arguments = ["moons.onnx"]
    if script.stem == "check_certificate":
        arguments = [str(Path(lipcert.__file__).parent / "models" / "weights" / "moons-cll")]
    done = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "an example says what it found"
    assert re.search(".*".join(SAID.get(script.stem, [])), done.stdout, re.DOTALL), done.stdout


def test_examples_are_short_and_all_there() -> None:
    assert {script.stem for script in SCRIPTS} >= SAID.keys()
    short = (script for script in SCRIPTS if script.stem not in LONG)
    assert all(len(script.read_text().splitlines()) <= 50 for script in short)
    assert all(f"python examples/{script.name}" in script.read_text() for script in SCRIPTS)
