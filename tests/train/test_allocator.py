"""Freed memory stays with the process."""

from __future__ import annotations

import ctypes
import platform
import resource

import pytest
import torch

from lipcert.train.allocator import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_a_block_used_again_costs_no_new_pages() -> None:
    assert keep_freed_memory()
    assert sorted(new_pages() for _ in range(9))[4] < 1000


def new_pages() -> int:
    """Of a block of 16384, which is more than glibc keeps of its own accord."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
