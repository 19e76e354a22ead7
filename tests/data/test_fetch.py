"""Downloads, from a real server on this machine: checked, unpacked, whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lipcert import InputError, LipcertError
from lipcert.data import fetch as fetch_module
from lipcert.data import load
from lipcert.data.archives import Archive
from lipcert.data.examples import write_cifar10, write_tiny_imagenet
from lipcert.data.fetch import fetch


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A server with both kinds of archives, which lipcert takes for the official one."""
    place = tmp_path / "site"
    place.mkdir()
    write_cifar10(tmp_path / "a")
    write_tiny_imagenet(tmp_path / "b")
    shutil.make_archive(str(place / "cifar"), "gztar", tmp_path / "a")
    shutil.make_archive(str(place / "tiny"), "zip", tmp_path / "b")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    archives = {
        name: Archive(f"{address}/{file}", hashlib.md5((place / file).read_bytes()).hexdigest(), (folder,))
        for name, file, folder in [
            ("cifar10", "cifar.tar.gz", "cifar-10-batches-bin"),
            ("tiny-imagenet", "tiny.zip", "tiny-imagenet-200"),
        ]
    }
    monkeypatch.setattr(fetch_module, "archives", lambda: archives)
    yield place
    server.shutdown()


@pytest.mark.parametrize("name", ["cifar10", "tiny-imagenet"])
def test_what_is_fetched_can_be_loaded(name: str, site: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    folder = fetch(name, root)
    assert len(load(name, root=str(root), val=0.25)) > 0
    assert [p.name for p in root.iterdir()] == [folder.name]
    for file in site.iterdir():
        file.unlink()
    assert fetch(name, root) == folder  # what is there is not asked for again


def test_another_file_under_the_address_is_refused(site: Path, tmp_path: Path) -> None:
    (site / "cifar.tar.gz").write_bytes(b"something else")
    with pytest.raises(LipcertError, match="hash"):
        fetch("cifar10", tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_without_a_network_one_line_says_where_the_files_go(site: Path, tmp_path: Path) -> None:
    (site / "cifar.tar.gz").unlink()
    with pytest.raises(LipcertError, match=r"by hand so that .*cifar-10-batches-bin exists") as error:
        fetch("cifar10", tmp_path / "root")
    assert "\n" not in str(error.value)


def test_what_is_not_published_is_named() -> None:
    with pytest.raises(InputError, match="expected one of cifar10"):
        fetch("moons")
