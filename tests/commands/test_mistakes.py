"""Every mistake of mistakes.py ends in one line that says what to do, and leaves nothing behind."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.mistaken_files import make_files
from tests.commands.mistakes import MISTAKES, Mistake
from tests.laws.test_commands import all_commands


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes")
    make_files(root)
    return root


@pytest.fixture(scope="module")
def before(world: Path) -> dict[str, tuple[int, int]]:
    return contents(world)


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the length and time of every file; of a folder, that it is there."""
    status = {path: path.lstat() for path in folder.rglob("*")}
    return {str(p): (0, 0) if p.is_dir() else (s.st_size, s.st_mtime_ns) for p, s in status.items()}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name.replace(" ", "-"))
def test_a_mistake_is_one_line_and_leaves_nothing(
    mistake: Mistake,
    world: Path,
    before: dict[str, tuple[int, int]],
    cli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(world)
    monkeypatch.delenv("LIPCERT_DATA", raising=False)
    if mistake.without:
        monkeypatch.setitem(sys.modules, mistake.without, None)
    status, out, err = cli(*mistake.words)
    assert status == mistake.status, err
    assert re.search(mistake.said, err), err
    err = re.sub(r"^[\d,]+ training samples of .*\n", "", err)  # said before a checkpoint is read
    assert err.startswith("lipcert: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert out == ""
    assert contents(world) == before


def test_there_are_many_of_every_command() -> None:
    assert len(MISTAKES) >= 120
    names = Counter(mistake.name for mistake in MISTAKES)
    assert max(names.values()) == 1
    commands = {mistake.words[0] for mistake in MISTAKES}
    assert commands >= {name.split()[0] for name in all_commands()}
