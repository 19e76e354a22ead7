"""A published data set is registered, completed in the shell, and found in every folder of its archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert import InputError
from lipcert.data import DATASETS, load
from lipcert.data.archives import archives


def test_what_can_be_downloaded_can_be_loaded() -> None:
    assert set(archives()) <= set(DATASETS)
    assert archives()["cifar10"].folder == "cifar-10-batches-bin"


@pytest.mark.parametrize("name", sorted(archives()))
def test_a_loader_looks_into_the_folders_of_its_archive(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no {' or '.join(archives()[name].folders)} in"):
        load(name, root=str(tmp_path))
