"""Crews: the processors of a machine are shared among its processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert.recipes import read_recipe
from lipcert.sweeps import LocalCrew, Trial, crew


@pytest.mark.parametrize(("size", "threads"), [(1, 8), (2, 4), (3, 2), (16, 1)])
def test_processes_share_the_threads_of_the_machine(
    size: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr("os.cpu_count", lambda: 64)  # these may be used
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(crew, "_Worker", lambda job, threads: begun.append(threads))
    trial = Trial(tmp_path, read_recipe("moons-cll", "smoke"))
    LocalCrew(size).start([(trial,)] * 20)
    assert begun == [threads] * size
