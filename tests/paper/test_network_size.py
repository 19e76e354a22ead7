"""The size of trained networks in words: fractions of the width, and how many layers of how many."""

from __future__ import annotations

import pytest

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.network_size import network_size, network_sizes
from lipcert.recipes import read_recipe


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("cifar10-4c3f-cll", "width 1"),
        ("tiny-lipconv20-soc", "width 0.125, 10 of 20 layers"),
        (
            "cifar10-cpl-xl",
            "width 0.133, 4 of 70 convolutions, 2 of 15 dense layers, 256 of 4096 inner features",
        ),
        (
            "cifar10-sll-xl",
            "width 0.133, 4 of 70 convolutions, 2 of 15 dense layers, 256 of 2048 inner features",
        ),
        ("cifar10-sandwich", "width 0.125"),
        ("moons-cll", "width 1"),
    ],
)
def test_a_cpu_budget_says_what_it_leaves_of_the_network(name: str, size: str) -> None:
    assert network_size(read_recipe(name, "cpu"), read_recipe(name)) == size


def test_several_sizes_are_told_apart_by_the_names_of_models() -> None:
    pairs = [
        (read_recipe(name, "cpu"), read_recipe(name)) for name in ("cifar10-4c3f-cll", "cifar10-sandwich")
    ]
    assert network_sizes(pairs) == "4c3f width 1; sandwich width 0.125"


def test_the_cpu_budget_of_soc_is_an_eighth_and_five_layers() -> None:
    assert REPRODUCTIONS.create("table-soc-gamma").networks("cpu") == "width 0.125, 5 of 20 layers"
