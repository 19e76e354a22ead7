"""Files that several processes write at once: a reader finds a whole one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lipcert.atomic import write_atomically

WRITER = """
import sys
from pathlib import Path
from lipcert.atomic import write_atomically
path, letter = Path(sys.argv[1]), sys.argv[2].encode()
while True:
    write_atomically(path, letter * 500_000)
"""


def test_two_writers_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"a")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter]) for letter in "ab"]
    try:
        seen: set[bytes] = set()
        end = time.monotonic() + 20
        reads = 0
        while (reads < 300 or len(seen) < 2) and time.monotonic() < end:
            content = path.read_bytes()
            assert len(content) in (1, 500_000)
            assert content == content[:1] * len(content)
            seen.add(content[:1])
            reads += 1
            time.sleep(0.001)
        assert len(seen) == 2
        assert all(writer.poll() is None for writer in writers)  # nobody's temporary file was taken away
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
