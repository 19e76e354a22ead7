"""One process at a time trains in a run directory."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lipcert.errors import InputError
from lipcert.runs import Run
from lipcert.runs.run_lock import exclusive

HOLDER = """
import sys, time
from pathlib import Path
from lipcert.runs import Run
with Run(sys.argv[1]).opened({"seed": 1}, resume=True, overwrite=False):
    print("held", flush=True)
    time.sleep(600)
"""


def held_by_another(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_trains(tmp_path: Path) -> None:
    path = tmp_path / "run"
    other = held_by_another(path)
    try:
        who = rf"process {other.pid} on {re.escape(socket.gethostname())}, since \d{{4}}-\d\d-\d\d \d\d:"
        for overwrite in (False, True):
            with (
                pytest.raises(InputError, match=who),
                Run(path).opened({"seed": 1}, resume=not overwrite, overwrite=overwrite),
            ):
                pass
        assert Run(path).recipe.is_file()
    finally:
        other.kill()  # with SIGKILL: the kernel releases the lock
        other.wait()
    assert (path / ".lock").exists()
    with Run(path).opened({"seed": 1}, resume=True, overwrite=False):
        assert str(os.getpid()) in (path / ".lock").read_text(encoding="utf-8")
    assert sorted(p.name for p in path.iterdir()) == ["checkpoints", "recipe.yaml"]


def test_the_command_says_it_in_one_line(cli, tmp_path: Path) -> None:
    train = ["train", "moons-cll", "--budget", "smoke", "--set", "train.epochs=1", "--output", "run"]
    assert cli(*train)[0] == 0
    with exclusive(tmp_path / "run"):
        status, _, said = cli(*train, "--resume")
    assert status == 2
    assert said.count("\n") == 1
    assert f"another process trains here (process {os.getpid()} on" in said
    assert cli(*train, "--resume")[0] == 0


def test_a_start_that_is_refused_leaves_no_directory(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    with run.opened({"seed": 1}, resume=False, overwrite=False):
        pass
    with (
        pytest.raises(InputError, match="differs in seed"),
        run.opened({"seed": 2}, resume=True, overwrite=False),
    ):
        pass
    assert not (run.path / ".lock").exists()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        pytest.raises(InputError, match="cannot be written"),
        Run(tmp_path / "file" / "run").opened({}, resume=False, overwrite=False),
    ):
        pass


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    with run.opened({"seed": 1}, resume=False, overwrite=False):
        (run.checkpoint.parent / ".last.ckpt.0123.part").write_bytes(b"half")
        (run.path / ".recipe.yaml.4567.part").write_bytes(b"half")
    with run.opened({"seed": 1}, resume=True, overwrite=False):
        assert list(run.checkpoint.parent.iterdir()) == []
    run.recipe.unlink()
    with run.opened({"seed": 1}, resume=False, overwrite=False):  # what was killed so early is no run
        assert not list(run.path.glob("*.part"))


def test_many_in_turn_hold_it_one_at_a_time(tmp_path: Path) -> None:
    """The file is removed by each holder; one that opened the removed file tries again."""
    inside, most, taken = [0], [0], [0]

    def hold() -> None:
        for _ in range(200):
            try:
                with exclusive(tmp_path):
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    taken[0] += 1
                    inside[0] -= 1
            except InputError:
                continue

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert taken[0] >= 4
    assert list(tmp_path.iterdir()) == []
