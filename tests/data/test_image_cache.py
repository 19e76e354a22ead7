"""The cache of many images: it goes on where a process was stopped, and maps files larger than the memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import platformdirs
import pytest
import torch
from PIL import Image

from lipcert.data import image_cache, load
from lipcert.data.image_cache import decoded
from lipcert.data.image_files import Form, read_image
from lipcert.errors import LipcertError
from lipcert.models.memory import available_memory


def written(folder: Path, count: int, side: int = 8) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i:03}.png" for i in range(count)]
    for i, path in enumerate(paths):
        Image.fromarray(np.full((side, side, 3), i % 256, np.uint8)).save(path)
    return paths


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def caches() -> Path:
    return platformdirs.user_cache_path("lipcert") / "images"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_process_is_continued(
    stop: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, read = written(tmp_path / "images", 50), []
    monkeypatch.setattr(image_cache, "_KEPT", 1000)  # an image has 192 bytes

    def until(path: Path, form: Form) -> np.ndarray:
        read.append(path)
        if path == paths[30]:
            raise stop
        return read_image(path, form)

    monkeypatch.setattr(image_cache, "read_image", until)
    with pytest.raises(stop):
        decoded(paths, Form())
    read.clear()
    monkeypatch.setattr(
        image_cache, "read_image", lambda path, form: (read.append(path), read_image(path, form))[1]
    )
    assert decoded(paths, Form())[:, 0, 0, 0].tolist() == list(range(50))
    assert paths[1] not in read
    assert 20 <= len(set(read)) < 30  # and the first, which has the shape
    assert not [path for path in caches().iterdir() if path.suffix != ".npy"]


@pytest.mark.parametrize("left", [b"", b"no array", b"x" * 5000, "other"])
def test_what_an_interrupted_process_cannot_have_left_is_decoded_anew(
    left: bytes | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_cache, "_KEPT", 100)
    paths = written(tmp_path / "images", 10)
    decoded(paths, Form())
    (cache,) = caches().iterdir()
    content = cache.read_bytes()
    if isinstance(left, str):
        np.save(cache, np.zeros((11, 3, 8, 8), np.uint8))
        left = cache.read_bytes()
    cache.unlink()
    cache.with_suffix(".part").write_bytes(left)
    decoded(paths, Form())
    assert cache.read_bytes() == content


@pytest.mark.slow  # three processes import torch
def test_a_killed_process_is_continued_by_two_and_one_of_them_decodes(tmp_path: Path) -> None:
    paths = written(tmp_path / "images", 40)
    code = """
import os, sys, time
from pathlib import Path
from lipcert.data import image_cache
from lipcert.data.image_files import Form, read_image
image_cache._KEPT = 1000
def slow(path, form):
    print(path.name, flush=True)
    if path.name == "035.png" and "STAY" in os.environ:
        time.sleep(600)  # until it is killed
    return read_image(path, form)
image_cache.read_image = slow
found = image_cache.decoded(sorted(Path(sys.argv[1]).iterdir()), Form())
assert found[:, 0, 0, 0].tolist() == list(range(40))
"""
    command = [sys.executable, "-c", code, str(paths[0].parent)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, "STAY": "1"})
    cache = tmp_path / "cache" / "lipcert" / "images"
    while not any(part.stat().st_size > 1000 for part in cache.glob("*.part")):  # the length that is kept
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.communicate()
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    said = [other.communicate()[0].split() for other in others]
    assert [other.returncode for other in others] == [0, 0]
    assert min(map(len, said)) == 0
    assert 0 < len(set(max(said, key=len))) < 40
    assert len(list(cache.iterdir())) == 1


def test_threads_of_one_process_share_a_cache(tmp_path: Path) -> None:
    paths, found = written(tmp_path / "images", 20), []
    threads = [threading.Thread(target=lambda: found.append(decoded(paths, Form()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[0], other) for other in found[1:])
    assert len(found) == 3


def test_a_cache_larger_than_the_memory_is_mapped(tmp_path: Path) -> None:
    """Linux refuses to map such a file for copies of its pages, unless it is told that there will be few."""
    available = available_memory()
    if available is None:
        pytest.skip("how much memory there is cannot be seen here")
    count = 4 * available // (3 * 64 * 64)
    path = tmp_path / "large.npy"
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (count, 3, 64, 64)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + count * 3 * 64 * 64)  # a hole, which takes no space
    images = image_cache._mapped(path, count)
    assert images is not None
    assert images[-1].sum() == 0
    images[0] = 7  # a private copy of this page
    assert image_cache._mapped(path, count)[0].sum() == 0  # type: ignore[index]


def test_a_disk_without_room_is_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(LipcertError, match=r"10 images of 3×8×8 needs 1\.9 kB, and 1\.0 kB are free"):
        decoded(written(tmp_path / "images", 10), Form())
    assert list(caches().iterdir()) == []


def test_many_images_are_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = written(tmp_path / "images", 10)
    decoded(paths[:9], Form())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(image_cache, "_MANY", 10)
    decoded(paths, Form())
    assert "decoding 10 images of 3×8×8 once into" in capsys.readouterr().err


def test_a_link_is_followed(tmp_path: Path) -> None:
    first, second = written(tmp_path / "images", 2)
    link = tmp_path / "link.png"
    link.symlink_to(first)
    assert (decoded([link], Form()) == 0).all()
    link.unlink()
    link.symlink_to(second)
    assert (decoded([link], Form()) == 1).all()


def test_a_crop_is_the_middle(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / "images" / name, 10)
    stripes = np.repeat(np.arange(0, 30, dtype=np.uint8)[None, :, None], 3, axis=2).repeat(10, axis=0)
    Image.fromarray(stripes).save(tmp_path / "images" / "a" / "000.png")  # 30×10
    arguments = {"root": str(tmp_path / "images"), "size": 10, "val": 0.1, "test": 0.1}
    everything = [load("folder", split=s, crop=True, **arguments).x for s in ("train", "val", "test")]  # type: ignore[arg-type]
    middle = torch.arange(10, 20, dtype=torch.uint8).expand(3, 10, 10)
    assert sum(int((image == middle).all()) for x in everything for image in x) == 1
    stretched = load("folder", split="train", **arguments).x
    assert not any(bool((image == middle).all()) for image in stretched)
