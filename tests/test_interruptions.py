"""Ctrl-C and SIGTERM in every long command: status 130, no traceback, nothing half-written left behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from lipcert.models import ModelCard, save
from lipcert.recipes import execute, read_recipe
from lipcert.runs import Run

SMALL = ["train.epochs=1", "data.val=100", "model.widths=[4]"]

# Calls the command line with one function replaced: it says that it was reached, and waits.
WAITS = """
import importlib, sys, time
from pathlib import Path
where, marker, *arguments = sys.argv[1:]
module, name = where.split(":")
def wait(*given, **named):
    Path(marker).touch()
    time.sleep(300)
setattr(importlib.import_module(module), name, wait)
sys.argv = ["lipcert", *arguments]
from lipcert.cli import main
main()
"""


@dataclass(frozen=True)
class Long:
    """A command, and the function in which it is interrupted."""

    arguments: str
    where: str

    @property
    def name(self) -> str:
        words = self.arguments.split()
        return "-".join(words[:2]) if words[0] == "data" else words[0]


# os.fsync is called when a temporary file is written and not yet in its place.
IN_A_FILE = "os:fsync"
COMMANDS = [
    Long("certify run", "lipcert.commands.work.certify_model:certify_data"),
    Long("data fetch cifar10 --root data", "requests:get"),
    Long("train moons-cll --budget smoke", IN_A_FILE),
    Long("train moons-cll --budget smoke --stack seed=1..2", IN_A_FILE),
    Long("sweep moons-cll --budget smoke --over seed=1,2", IN_A_FILE),
    Long("reproduce fig-calibration", IN_A_FILE),
    Long("tightness run --budget smoke", IN_A_FILE),
    Long("attack run --split val --budget smoke", "lipcert.commands.work.attack_model:attack"),
    Long("verify run", "lipcert.commands.work.certify_model:verify"),
    Long("export net.safetensors net.onnx", IN_A_FILE),
    Long("predict net.safetensors photo.png --csv found.csv", IN_A_FILE),
    Long("inspect run", "lipcert.commands.work.inspection:upper"),
    Long("report run", IN_A_FILE),
]
ENDINGS = [signal.SIGINT, signal.SIGTERM]

# One of each ending in the default suite: a process takes seconds to begin.
FAST = {("certify", signal.SIGINT), ("data-fetch", signal.SIGTERM)}


def cases() -> list[object]:
    return [
        pytest.param(
            command,
            ending,
            id=f"{command.name}{'-stack' if '--stack' in command.arguments else ''}-{ending.name}",
            marks=[] if (command.name, ending) in FAST else [pytest.mark.slow],
        )
        for command in COMMANDS
        for ending in ENDINGS
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a model for images and an image."""
    root = tmp_path_factory.mktemp("world")
    execute(read_recipe("moons-cll", "smoke", SMALL), root / "run")
    card = ModelCard("4c3f", 2, (3, 8, 8), {"width": 0.125})
    save(card.build(), card, root / "net.safetensors")
    Image.new("RGB", (8, 8)).save(root / "photo.png")
    return root


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def interrupted(process: subprocess.Popen[str], ending: signal.Signals) -> str:
    """Send the signal; what the process says at its end."""
    process.send_signal(ending)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    *before, line = said.strip().splitlines()
    assert all(re.match(r"epoch \d+ of|[\d,]+ training(s| samples) ", other) for other in before), said
    return line


@pytest.mark.parametrize(("command", "ending"), cases())
def test_it_ends_with_130_and_leaves_nothing_half_written(
    command: Long, ending: signal.Signals, world: Path, tmp_path: Path
) -> None:
    here, marker = tmp_path / "here", tmp_path / "marker"
    shutil.copytree(world, here)
    before = files_in(here)
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, command.where, str(marker), *command.arguments.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )
    (tmp_path / "temporary").mkdir()
    wait_for(marker.exists, process)
    said = interrupted(process, ending)
    assert said.strip() == "lipcert: interrupted"
    assert files_in(here) == before
    assert files_in(tmp_path / "temporary") == set()


TRAINING = ["moons-cll", "--budget", "smoke", "--set", "train.epochs=5000", "--set", "data.val=200"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize(
    ("command", "runs", "remedy"),
    [
        (["train", *TRAINING, "--output", "out"], ["out"], "continue with --resume"),
        (
            ["train", *TRAINING, "--stack", "seed=1..2", "--output", "out"],
            ["out/moons-cll-seed1", "out/moons-cll-seed2"],
            "continue with --resume",
        ),
        (
            ["sweep", *TRAINING, "--over", "train.batch_size=100,50", "--output", "out"],
            ["out/train.batch_size=100", "out/train.batch_size=50"],
            "the same command goes on",
        ),
        (
            ["reproduce", "moons-demo", *TRAINING[1:], "--output", "out"],
            ["out/moons-cll-seed1", "out/moons-gloro-seed1"],
            "the same command goes on",
        ),
    ],
    ids=["train", "stack", "sweep", "reproduce"],
)
def test_what_trains_saves_its_state(
    command: list[str], runs: list[str], remedy: str, ending: signal.Signals, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lipcert", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    found = [Run(tmp_path / name) for name in runs]
    wait_for(lambda: all(run.last_metrics() for run in found), process)
    said = interrupted(process, ending)
    assert remedy in said
    assert all(run.checkpoint.is_file() and not run.model.exists() for run in found)
    assert not [name for name in files_in(tmp_path) if name.endswith((".part", ".lock"))]
