"""The laws of every data set."""

from __future__ import annotations

from collections.abc import Callable

import torch

from lipcert.data import DATASETS, Dataset, load
from lipcert.data.base import SPLITS, Split
from lipcert.laws.law import expect, laws_of_registry

Loader = Callable[[Split], Dataset]


def _loader(name: str) -> Loader:
    """Return a function that loads a split of the example."""
    arguments = {key: value for key, value in DATASETS[name].example.items() if key != "split"}
    return lambda split: load(name, split=split, **arguments)


DATA_LAWS = laws_of_registry("data", DATASETS, _loader)


def _splits(loader: Loader) -> dict[str, Dataset]:
    return {split: loader(split) for split in SPLITS}


@DATA_LAWS.add()
def splits_have_samples_labels_and_all_classes(loader: Loader) -> None:
    """Check that labels are 0..N−1 and samples have one shape."""
    shapes = set()
    for split, data in _splits(loader).items():
        expect(isinstance(data, Dataset), f"{split}: expected a Dataset, found {type(data).__name__}")
        equal = len(data.x) == len(data.y) == len(data) > 0
        expect(equal, f"{split}: expected as many labels as samples, found {len(data.y)} for {len(data.x)}")
        found, expected = set(data.y.tolist()), set(range(len(data.classes)))
        outside = f"found labels {_some(found - expected)} of no class" if found - expected else ""
        expect(not outside, f"{split}: expected labels 0..{len(expected) - 1}, {outside}")
        expect(found == expected, f"{split}: no sample has label {_some(expected - found)}")
        shapes.add(data.input_shape)
    expect(len(shapes) == 1, f"expected samples of one shape in all splits, found {_some(shapes)}")


def _some(values: set[int] | set[tuple[int, ...]]) -> str:
    return ", ".join(str(value) for value in sorted(values)[:3])


@DATA_LAWS.add()
def loading_twice_gives_the_same(loader: Loader) -> None:
    """Load it twice, as a run does that is resumed or certified later."""
    for split in SPLITS:
        a, b = loader(split), loader(split)
        same = torch.equal(a.x, b.x) and torch.equal(a.y, b.y)
        expect(same, f"{split}: two calls load different samples; draw them with a generator of a fixed seed")


@DATA_LAWS.add()
def no_sample_is_in_two_splits(loader: Loader) -> None:
    """Compare the splits: accuracies must not count samples that training has seen."""
    parts = [set(map(bytes, data.x.flatten(1).numpy())) for data in _splits(loader).values()]
    twice = sum(len(part) for part in parts) - len(set.union(*parts))
    expect(twice == 0, f"{twice} samples are in more than one split")
