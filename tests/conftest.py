"""Every test starts from the same random state, on one thread (two workers share two cores)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from lipcert import extensions
from lipcert.bounds.contract import RULES
from lipcert.cli import main
from lipcert.commands.support.registries import KINDS

torch.set_num_threads(1)
os.environ.pop("COLUMNS", None)  # pytest-xdist sets 80: tables are as wide as in any pipe
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # shells have it ignored by what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the user's cache is read or written, by subprocesses neither."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _same_start() -> None:
    torch.manual_seed(0)


@pytest.fixture
def own_registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it."""
    for kind in KINDS.values():
        registry = kind.open()
        list(registry)  # discovers lipcert's own
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    rules = dict(RULES)
    monkeypatch.setattr(extensions, "_LOADED", {})
    monkeypatch.setattr(extensions, "_GIVEN", [])
    yield
    RULES.clear()
    RULES.update(rules)


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Exit status, stdout and stderr of a command, in this process and an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lipcert", *arguments])
        with pytest.raises(SystemExit) as status:
            main()
        said = capsys.readouterr()
        return int(status.value.code or 0), said.out, said.err

    return run
