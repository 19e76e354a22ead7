"""A disk without room: the file is named, the status is 1, nothing half-written stays, and later it works."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import load_file

from lipcert.data.examples import write_folder
from lipcert.models import ModelCard, save
from lipcert.recipes import execute, read_recipe

Cli = Callable[..., tuple[int, str, str]]

SMALL = ("train.epochs=3", "data.val=100", "model.widths=[4]")
TRAIN = ["train", "moons-cll", "--budget", "smoke", *(word for s in SMALL for word in ("--set", s))]


@contextmanager
def files_of_at_most(length: int) -> Iterator[None]:
    """Let writes fail beyond this length (EFBIG); Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    execute(read_recipe("moons-cll", "smoke", SMALL), root / "run")
    card = ModelCard("4c3f", 2, (3, 8, 8), {"width": 0.125})
    save(card.build(), card, root / "net.safetensors")
    write_folder(root / "photos")
    return root


def unfinished(folder: Path) -> list[Path]:
    """Return what only an interrupted write leaves."""
    return [path for path in folder.rglob("*") if path.name.endswith((".part", ".lock"))]


def check_line(status: int, said: str, named: str) -> None:
    assert status == 1, said
    *before, line = said.splitlines()
    assert all(re.match(r"epoch \d+ of|[\d,]+ training samples", other) for other in before), said
    assert re.search(
        rf"{named}: cannot be written \((File too large|No space left on device)\); make room", line
    )


@pytest.mark.parametrize(
    ("command", "length", "named"),
    [
        ("certify run --split val --output c.json", 100, "c.json"),
        ("tightness run --budget smoke", 100, "run/tightness.json"),
        ("predict net.safetensors photos --csv found.csv", 100, "found.csv"),
        ("reproduce fig-calibration --output figure", 3000, r"figure/fig-calibration\.png"),
        ("report run", 200_000, r"report\.html"),
        ("sweep moons-cll --budget smoke --over seed=1", 20, r"runs/moons-cll-sweep/sweep\.json"),
        pytest.param("export net.safetensors net.onnx", 3000, r"net\.onnx", marks=pytest.mark.slow),
        pytest.param("attack run --split val --budget smoke", 100, r"attack\.json", marks=pytest.mark.slow),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_the_file_is_named_and_the_command_works_again(
    command: str, length: int, named: str, world: Path, cli: Cli, tmp_path: Path
) -> None:
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    with files_of_at_most(length):
        status, _, said = cli(*command.split())
    check_line(status, said, named)
    assert not unfinished(tmp_path)
    assert not list(tmp_path.glob(named))
    if not command.startswith("sweep"):  # which would start processes
        status, _, said = cli(*command.split())
        assert status == 0, said
        assert said == ""


@pytest.mark.parametrize(
    ("length", "named"),
    [
        (100, r"run/recipe\.yaml"),
        (2000, r"run/checkpoints/last\.ckpt"),
    ],
)
def test_a_training_goes_on_when_there_is_room(
    length: int, named: str, world: Path, cli: Cli, tmp_path: Path
) -> None:
    command = [*TRAIN, "--output", "run"]
    with files_of_at_most(length):
        status, _, said = cli(*command)
    check_line(status, said, named)
    assert not unfinished(tmp_path)
    status, _, said = cli(*command, "--resume")
    assert status == 0, said
    one, other = (load_file(place / "run" / "model.safetensors") for place in (tmp_path, world))
    assert all(one[name].equal(other[name]) for name in one)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_metrics_that_find_no_room_are_named(cli: Cli, tmp_path: Path) -> None:
    command = [*TRAIN, "--set", "train.epochs=30", "--set", "train.checkpoint_every=30", "--output", "run"]
    with files_of_at_most(1500):
        status, _, said = cli(*command)
    check_line(status, said, r"run/(metrics\.jsonl|tensorboard/events\S+)")
    assert not unfinished(tmp_path)
    assert cli(*command, "--resume")[0] == 0
    assert len((tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 30


def test_the_cache_of_images_is_a_disk_as_well(world: Path, cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for i in range(2):  # images that no other test has in the cache
        Image.new("RGB", (8, 8), (i, 7, 7)).save(world / "photos" / "cats" / f"new{i}.png")
    few = ["--set", "train.epochs=1", "--set", "model.width=0.125", "--set", "certify.tightness=null"]
    command = ["train", "folder", "--budget", "smoke", "--set", f"data.root={world / 'photos'}", *few]
    with files_of_at_most(500):
        status, _, said = cli(*command)
    assert status == 1, said
    assert "the cache of images cannot be written (File too large); free some space" in said
    assert said.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert cli(*command)[0] == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a file system")
    done = subprocess.run(mount, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        pytest.skip(f"tmpfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is of Linux")
def test_a_file_system_that_is_full(small_disk: Path, cli: Cli) -> None:
    command = [*TRAIN, "--set", "model.widths=[40, 40]", "--output", str(small_disk / "run")]
    status, _, said = cli(*command)
    check_line(status, said, r"small/run/\S+")
    assert "No space left on device" in said
    assert not unfinished(small_disk)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    status, _, said = cli(*command, "--resume")
    assert status == 0, said
