"""The heads themselves: their equations, what they refuse, and the constants of the paper's rows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from lipcert import InputError, StaleBoundError, certifier
from lipcert.certificates.certifier import Certifier
from lipcert.data import Dataset
from lipcert.models import ModelCard, create
from lipcert.models.heads import make_head
from lipcert.models.model_files import save, start_from
from lipcert.nn import FixedLinear
from lipcert.recipes import packaged_recipes, read_recipe
from lipcert.recipes.schema import Recipe

WITHOUT_WEIGHTS = ("truncate", "pooled")
ORTHONORMAL = (*WITHOUT_WEIGHTS, "orthogonal")


def test_truncate_takes_the_first_features_to_the_bit() -> None:
    x = torch.randn(50, 9)
    assert torch.equal(make_head("truncate", 9, 4)(x), x[:, :4])


@pytest.mark.parametrize(("features", "classes"), [(12, 3), (14, 3), (9, 1), (5, 5), (11, 2)])
def test_pooled_is_the_root_of_k_times_the_mean_of_k_features(features: int, classes: int) -> None:
    x, k = torch.randn(50, features), features // classes
    groups = x[:, : k * classes].unflatten(1, (classes, k))
    expected = math.sqrt(k) * groups.mean(dim=2)
    torch.testing.assert_close(make_head("pooled", features, classes)(x), expected)


@pytest.mark.parametrize("classes", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("name", ORTHONORMAL)
def test_rows_are_orthonormal(name: str, classes: int) -> None:
    rows = make_head(name, 10, classes).eval().weight
    torch.testing.assert_close(rows @ rows.T, torch.eye(classes), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ORTHONORMAL)
def test_all_pairs_of_logits_have_the_same_constant(name: str) -> None:
    model = nn.Sequential(nn.Linear(6, 7), make_head(name, 7, 5)).eval()
    proved = certifier(model, (6,)).proved
    off = ~torch.eye(5, dtype=torch.bool)
    expected = torch.full((20,), math.sqrt(2) * proved.bound.value, dtype=torch.float64)
    torch.testing.assert_close(proved.pairs[off], expected, rtol=1e-6, atol=0)
    if name == "truncate":  # no number of it is rounded
        torch.testing.assert_close(proved.pairs[off], expected, rtol=1e-14, atol=0)
        assert (proved.pairs[off] >= expected).all()


@pytest.mark.parametrize("name", ORTHONORMAL)
def test_one_logit_has_the_constant_of_the_features(name: str) -> None:
    model = nn.Sequential(nn.Linear(6, 7), make_head(name, 7, 1)).eval()
    prover = certifier(model, (6,))
    assert prover.k_f == pytest.approx(prover.proved.bound.value, rel=1e-6)


@pytest.mark.parametrize("name", ORTHONORMAL)
def test_fewer_features_than_classes_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"head: {name} needs .* 4 features for 5 classes"):
        make_head(name, 4, 5)
    with pytest.raises(InputError, match="per class"):
        create("soc-mlp", num_classes=5, input_shape=(2,), widths=[8, 4], head=name)


@pytest.mark.parametrize("kind", ["lnn", "", None, 3, ["lln"]])
def test_an_unknown_head_is_refused_with_the_known_ones(kind: object) -> None:
    with pytest.raises(
        InputError, match="head: expected one of bjorck, linear, lln, orthogonal, pooled, truncate"
    ):
        make_head(kind, 8, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0), (1, 2, 3)])
def test_fixed_rows_are_a_matrix(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="rows: expected a matrix"):
        FixedLinear(torch.zeros(shape))


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_heads_without_weights_add_nothing_to_a_file_nor_to_an_optimiser(name: str) -> None:
    head = make_head(name, 8, 3)
    assert not head.state_dict()
    assert not list(head.parameters())
    assert head.double().weight.dtype == torch.float64


def test_fixed_rows_that_are_changed_after_the_proof_are_noticed() -> None:
    model = nn.Sequential(nn.Linear(3, 4), make_head("truncate", 4, 2)).eval()
    prover = certifier(model, (3,))
    model[-1].weight.mul_(2)
    with pytest.raises(StaleBoundError, match="weight"):
        prover(torch.zeros(1, 3))
    assert certifier(model, (3,)).k_f == pytest.approx(2 * prover.k_f)


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_a_training_may_start_from_a_model_with_another_head(name: str, tmp_path: Path) -> None:
    def model(head: str, classes: int, widths: tuple[int, ...] = (4, 8)) -> nn.Sequential:
        made = create("soc-mlp", num_classes=classes, input_shape=(2,), widths=widths, head=head)
        assert isinstance(made, nn.Sequential)
        return made

    def card(head: str, classes: int, widths: tuple[int, ...] = (4, 8)) -> ModelCard:
        return ModelCard("soc-mlp", classes, (2,), {"widths": list(widths), "head": head})

    for new, old, described in [
        (model(name, 3), model("linear", 2), card(name, 3)),
        (model("lln", 2), model(name, 5), card("lln", 2)),
        (model(name, 4), model(name, 2), card(name, 4)),
    ]:
        start_from(new, old, "a run", described)
        features, expected = new.eval()[:-1], old.eval()[:-1]
        x = torch.randn(5, 2)
        assert torch.equal(features(x), expected(x))
    other, run = model(name, 3, (4, 6)), tmp_path / "a-run.safetensors"
    save(other, card(name, 3, (4, 6)), run)
    with pytest.raises(InputError, match="do not fit this model"):  # features, not a head, that differ
        start_from(model(name, 3), other, str(run), card(name, 3))


def small(recipe: Recipe) -> Certifier:
    """The network of a recipe at its smoke budget, with other weights than the first, proved."""
    images = Dataset(torch.zeros(1, 3, 32, 32), torch.zeros(1, dtype=torch.int64), tuple("abcdefghij"))
    card: ModelCard = recipe.make_card(images)
    model = recipe.make_model(card)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.02 * torch.randn_like(p))
    return Certifier(model.eval(), card.input_shape, "fast")


@pytest.mark.parametrize("name", ["cifar10-cpl-xl", "cifar10-sll-xl"])
def test_k_f_of_cpl_and_sll_on_cifar10_is_the_root_of_two(name: str) -> None:
    assert small(read_recipe(name, budget="smoke")).k_f == pytest.approx(math.sqrt(2), rel=1e-6)


def test_k_f_of_soc_on_cifar10_is_the_root_of_two_over_the_deviation_of_the_pixels() -> None:
    recipe = read_recipe("cifar10-lipconv20-soc", budget="smoke")
    _, deviation = recipe.model.arguments["normalise"]
    assert deviation == 0.2507
    assert small(recipe).k_f == pytest.approx(math.sqrt(2) / deviation, rel=1e-6)


# The heads of the paper's rows with layers of constant 1: CLL takes the free one everywhere.
PAPER = {
    "cifar10-cpl-xl": "truncate",
    "cifar10-sll-xl": "pooled",
    "cifar10-lipconv20-soc": "orthogonal",
    "cifar100-cpl-xl": "lln",
    "cifar100-sll-xl": "lln",
    "cifar100-lipconv20-soc": "lln",
    "tiny-lipconv10-soc": "lln",
    "tiny-lipconv20-soc": "lln",
    "tiny-sll-xl": "lln",
    "tiny-sandwich": "lln",
}


@pytest.mark.parametrize("name", [*PAPER, *(name for name in packaged_recipes() if "-cll" in name)])
@pytest.mark.parametrize("budget", ["full", "cpu", "smoke"])
def test_the_papers_rows_have_their_heads(name: str, budget: str) -> None:
    head = read_recipe(name, budget=budget).model.arguments.get("head", "linear")
    assert head == PAPER.get(name, "linear")
