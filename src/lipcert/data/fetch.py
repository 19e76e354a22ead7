"""Downloads from the official addresses, checked and unpacked atomically."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pooch
import requests
from rich.console import Console
from rich.progress import Progress

from lipcert.data.archives import Archive, archives
from lipcert.data.places import default_root
from lipcert.errors import InputError, LipcertError
from lipcert.suggestions import expected_one_of


def fetch(name: str, root: str | Path | None = None) -> Path:
    """Download a data set into the root, unless it is there, and return its folder."""
    known = archives()
    if name not in known:
        raise InputError(f"{name}: no download known; {expected_one_of(known, name)}")
    archive, place = known[name], Path(root) if root is not None else default_root()
    folder = place / archive.folder
    if folder.is_dir():
        return folder
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=".fetch-") as temporary:
        file = _download(archive, Path(temporary), place)
        unpacked = Path(temporary) / "unpacked"
        _unpack(file, unpacked)
        found = unpacked / archive.folder
        if not found.is_dir():
            raise LipcertError(f"{archive.url}: the archive has no {archive.folder}")
        found.replace(folder)
    return folder


def _download(archive: Archive, temporary: Path, place: Path) -> Path:
    pooch.get_logger().setLevel("WARNING")
    try:
        path = pooch.retrieve(
            archive.url,
            known_hash=f"md5:{archive.md5}",
            path=temporary,
            fname=archive.url.rpartition("/")[2],
            downloader=_with_progress,
        )
    except (requests.RequestException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:150]
        raise LipcertError(
            f"{archive.url} cannot be downloaded ({type(error).__name__}: {reason}); "
            f"or download and unpack it by hand so that {place / archive.folder} exists"
        ) from None
    return Path(path)


def _with_progress(url: str, output: str, manager: Any) -> None:
    """Download for pooch, with a progress bar in our style."""
    console = Console(stderr=True)
    with (
        requests.get(url, stream=True, timeout=30) as response,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
        Path(output).open("wb") as file,
    ):
        response.raise_for_status()
        length = int(response.headers.get("content-length", 0)) or None
        task = progress.add_task(url.rpartition("/")[2], total=length)
        for block in response.iter_content(1 << 20):
            file.write(block)
            progress.advance(task, len(block))


def _unpack(file: Path, target: Path) -> None:
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                archive.extractall(target)
        else:
            # Python 3.11.4 added the filter; before, only the checksum protects against a bad archive.
            safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            shutil.unpack_archive(file, target, **safely)
    except (OSError, zipfile.BadZipFile, EOFError, shutil.ReadError) as error:
        raise LipcertError(f"{file.name}: cannot be unpacked ({error})") from None
