"""Data of one's own as the command line names it: whole, or by the parts that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lipcert.data import Dataset, load
from lipcert.data.base import Split
from lipcert.data.examples import write_folder
from lipcert.data.on_disk import own_data
from lipcert.errors import InputError


def loaded(found: dict[str, Any], split: Split = "test") -> Dataset:
    return load(found["name"], split=split, **{k: v for k, v in found.items() if k != "name"})


def test_a_registered_name_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("moons").mkdir()
    assert own_data("moons", "val") == {"name": "moons"}


def test_arrays_without_parts_are_the_test_split_whole(tmp_path: Path) -> None:
    x, y = np.arange(14.0).reshape(7, 2), np.arange(7) % 2
    np.savez(tmp_path / "a.npz", x=x, y=y)
    data = loaded(own_data(str(tmp_path / "a.npz"), "test"))
    assert data.x.tolist() == x.tolist()
    assert data.y.tolist() == y.tolist()
    with pytest.raises(InputError, match="has no parts, so all of it is the test split; got 'val'"):
        own_data(str(tmp_path / "a.npz"), "val")


def test_parts_are_taken_whole(tmp_path: Path) -> None:
    y = np.arange(6) % 2
    np.savez(tmp_path / "a.npz", x_train=np.zeros((6, 2)), y_train=y, x_test=np.ones((6, 2)), y_test=y)
    for split, value in (("train", 0), ("test", 1)):
        found = loaded(own_data(str(tmp_path / "a.npz"), split), split)  # type: ignore[arg-type]
        assert found.x.shape == (6, 2)
        assert bool((found.x == value).all())
    with pytest.raises(InputError, match="has the parts test, train, got 'val'"):
        own_data(str(tmp_path / "a.npz"), "val")


def test_the_images_of_a_folder_become_inputs(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "photos")["root"]
    count = sum(path.is_file() for path in Path(root).rglob("*"))
    assert loaded(own_data(root, "test", (3, 6, 6))).x.shape == (count, 3, 6, 6)
    with pytest.raises(InputError, match="needs one, such as 3,224,224"):
        own_data(root, "test")
    with pytest.raises(InputError, match="expected 3,H,H or 1,H,H"):
        own_data(root, "test", (3, 6, 7))


def test_what_is_nothing_of_this_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected one of arrays, .* or an \.npz file, found none"):
        own_data(str(tmp_path / "gone"), "test")
    (tmp_path / "b.npz").write_text("a poem")
    with pytest.raises(InputError, match="found something else or a part of one"):
        loaded(own_data(str(tmp_path / "b.npz"), "test"))
