"""What every registered data set obeys."""

from __future__ import annotations

import pytest
import torch

from lipcert.data import DATASETS, Dataset, load

every_data_set = pytest.mark.parametrize("name", list(DATASETS))


def splits(name: str) -> dict[str, Dataset]:
    arguments = {k: v for k, v in DATASETS[name].example.items() if k != "split"}
    return {s: load(name, split=s, **arguments) for s in ("train", "val", "test")}  # type: ignore[arg-type]


@every_data_set
def test_splits_have_samples_labels_and_all_classes(name: str) -> None:
    for data in splits(name).values():
        assert len(data.x) == len(data.y) == len(data) > 0
        assert set(data.y.tolist()) == set(range(len(data.classes)))
        assert data.input_shape == splits(name)["train"].input_shape


@every_data_set
def test_loading_twice_gives_the_same(name: str) -> None:
    for a, b in zip(splits(name).values(), splits(name).values(), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)


@every_data_set
def test_no_sample_is_in_two_splits(name: str) -> None:
    parts = [set(map(bytes, d.x.flatten(1).numpy())) for d in splits(name).values()]
    assert len(set.union(*parts)) == sum(len(part) for part in parts)
