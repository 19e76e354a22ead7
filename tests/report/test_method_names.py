"""Methods and models as people print them."""

from __future__ import annotations

import pytest

from lipcert.recipes import read_recipe
from lipcert.report.method_names import method_of, model_of


@pytest.mark.parametrize(
    ("recipe", "method", "model"),
    [
        ("cifar10-4c3f-cll", "CLL", "4C3F"),
        ("tiny-8c2f-local-lip-b", "Local-Lip-B", "8C2F"),
        ("cifar10-sandwich", "LBDN", "Sandwich"),
        ("cifar10-sll-xl", "SLL", "SLL-XL"),
        ("cifar10-lipconv20-soc", "SOC", "LipConv-20"),
        ("cifar10-grid", "CLL", "uniform, plain"),
    ],
)
def test_as_printed(recipe: str, method: str, model: str) -> None:
    found = read_recipe(recipe)
    assert (method_of(found), model_of(found)) == (method, model)


def test_newer_networks_keep_their_capitals() -> None:
    recipe = read_recipe(
        "cifar10-grid", None, ["model={name: bronet}", "loss={name: emma-annealing, eps: 0.4}"]
    )
    assert (method_of(recipe), model_of(recipe)) == ("EMMA+LA", "BRONet")
