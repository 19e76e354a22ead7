"""Freed memory stays with the process."""

from __future__ import annotations

import ctypes
import platform
import resource

import pytest
import torch

from lipcert.commands.support.allocator import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_blocks_used_again_cost_no_new_pages() -> None:
    assert keep_freed_memory()
    assert sorted(new_pages(blocks=8, megabytes=16) for _ in range(9))[4] < 1000


def new_pages(blocks: int, megabytes: int) -> int:
    """What it costs to have these blocks at once: of 4096 bytes if all are new."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(megabytes * 2**18) for _ in range(blocks)]
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
