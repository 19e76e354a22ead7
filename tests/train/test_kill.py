"""A real process killed with SIGKILL, twenty times and more, ends in the same weights."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RECIPE = [
    "moons-cll",
    "--set",
    "train.epochs=60",
    "--set",
    "train.checkpoint_every=1",
    "--set",
    "data.val=200",
]

# Kills itself inside the n-th atomic write: before the bytes are flushed, or after and before the rename.
KILL_IN_WRITE = """
import os, signal, sys
import lipcert.atomic as atomic
place, count = sys.argv[1], int(sys.argv[2])
real = atomic.os.fsync
class Os:
    def __getattr__(self, name): return getattr(os, name)
    calls = 0
    def fsync(self, number):
        Os.calls += 1
        if Os.calls == count and place == "before": os.kill(os.getpid(), signal.SIGKILL)
        real(number)
        if Os.calls == count and place == "after": os.kill(os.getpid(), signal.SIGKILL)
atomic.os = Os()
sys.argv = ["lipcert", *sys.argv[3:]]
from lipcert.cli import main
main()
"""


def arguments(output: Path) -> list[str]:
    return ["train", *RECIPE, "--output", str(output), "--resume"]


def metrics_size(output: Path) -> int:
    path = output / "metrics.jsonl"
    return path.stat().st_size if path.exists() else 0


def kill_at_random(output: Path, chance: random.Random) -> int:
    """Start, wait until it trains, kill at a random moment; the exit status."""
    before = metrics_size(output)
    process = subprocess.Popen(
        [sys.executable, "-m", "lipcert.cli", *arguments(output)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    # One in five dies before it trains at all.
    if chance.random() > 0.2:
        while metrics_size(output) <= before and process.poll() is None:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.25)
    else:
        time.sleep(chance.random() * 3)
    process.kill()
    process.communicate()
    return process.returncode


def kill_in_write(output: Path, place: str, count: int) -> int:
    command = [sys.executable, "-c", KILL_IN_WRITE, place, str(count), *arguments(output)]
    return subprocess.run(command, capture_output=True).returncode


many = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a process that nobody kills."""
    return finished(tmp_path_factory.mktemp("kill") / "whole")


def finished(path: Path) -> Path:
    command = [sys.executable, "-m", "lipcert.cli", *arguments(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize(
    ("half", "times"),
    [(2, 1), pytest.param(2, 2, marks=many), pytest.param(0, 4, marks=many), pytest.param(1, 4, marks=many)],
)
def test_killed_again_and_again_it_ends_as_if_nothing_had_been(
    half: int, times: int, whole: Path, tmp_path: Path
) -> None:
    chance = random.Random(half)
    output = tmp_path / "killed"
    killed = 0
    for _ in range(2 * times):
        killed += kill_at_random(output, chance) == -signal.SIGKILL
    for i in range(times):
        killed += kill_in_write(output, "before" if i % 2 else "after", 1 + i) == -signal.SIGKILL
    assert killed >= 5 * times // 2
    assert not (output / "model.safetensors").exists()
    finished(output)
    assert (output / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    counts = [len((p / "metrics.jsonl").read_text().splitlines()) for p in (output, whole)]
    assert counts == [60, 60]


def test_ctrl_c_saves_and_exits_130(tmp_path: Path) -> None:
    output = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "lipcert.cli", *arguments(output)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while metrics_size(output) == 0:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the state is saved, continue with --resume" in said
    assert "Traceback" not in said
    assert (output / "checkpoints" / "last.ckpt").exists()
    assert not (output / "model.safetensors").exists()
