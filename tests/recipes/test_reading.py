"""Recipes: every packaged one is valid, and every mistake is one line that names the key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from lipcert import InputError
from lipcert.certificates.loading import load
from lipcert.data.examples import write_cifar10
from lipcert.errors import TrainingError
from lipcert.losses import CLL
from lipcert.models import ModelCard
from lipcert.recipes import execute, packaged_recipes, read_recipe
from lipcert.recipes.execution import build
from lipcert.recipes.signatures import checked_arguments
from lipcert.registry import Entry
from lipcert.train.optimizers import OPTIMIZERS


@pytest.mark.parametrize("name", packaged_recipes())
def test_every_packaged_recipe_is_valid_at_every_budget(name: str) -> None:
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.claim
    assert read_recipe(name, budget="smoke").train.epochs < recipe.train.epochs
    assert read_recipe(name, budget="full") == recipe


def test_the_recipes_the_paper_needs_are_there() -> None:
    expected = {f"moons-{loss}{w}" for loss in ("cll", "gloro") for w in ("", "-0.2", "-0.4", "-0.5")}
    assert expected | {"moons-ce", "moons-soc"} <= set(packaged_recipes())
    for name, eps in (("moons-cll", 0.15), ("moons-gloro-0.2", 0.1), ("moons-cll-0.5", 0.25)):
        recipe = read_recipe(name)
        assert recipe.loss.arguments["eps"] == eps
        assert recipe.certify.radii == (eps,)


def test_another_loss_replaces_all_of_the_old_one() -> None:
    assert read_recipe("moons-gloro").loss.arguments == {"eps": 0.15}


def test_a_loss_may_extend_another_of_a_different_file() -> None:
    @dataclass(frozen=True)
    class Focused(CLL):
        focus: float = 0.0

    given = {"eps": "0.1", "slack": "0.2", "focus": "2"}
    found = checked_arguments(Focused, given, set(), "loss")
    assert found == {"eps": 0.1, "slack": 0.2, "focus": 2.0}

    class WithItsOwn(Focused):
        def __init__(self, eps: float, extra: int = 3) -> None:
            super().__init__(eps, slack=0.1, focus=float(extra))

    assert checked_arguments(WithItsOwn, {"eps": "0.1", "extra": "4"}, set(), "loss") == {
        "eps": 0.1,
        "extra": 4,
    }


def test_overrides_reach_any_depth() -> None:
    recipe = read_recipe(
        "moons-cll",
        overrides=[
            "seed=7",
            "train.epochs=12",
            "model.widths=[4, 6]",
            "schedule.loss.slack.gamma=3",
            "schedule.optimizer.lr=null",
        ],
    )
    assert recipe.seed == 7
    assert recipe.train.epochs == 12
    assert recipe.model.arguments["widths"] == [4, 6]
    assert recipe.schedule["loss.slack"].arguments["gamma"] == 3
    assert "optimizer.lr" not in recipe.schedule


def test_a_resolved_recipe_reads_back_as_itself(tmp_path: Path) -> None:
    recipe = read_recipe("moons-gloro-0.4", budget="smoke")
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False))
    assert read_recipe(str(path)) == recipe


def test_numbers_without_a_dot_are_numbers(tmp_path: Path) -> None:
    """YAML reads 1e-3 as a word; people mean a number."""
    path = tmp_path / "mine.yaml"
    path.write_text("extends: moons-cll\nloss: {slack: 1e-4}\noptimizer: {lr: 1e-2}\n")
    loss = read_recipe(str(path)).make_loss()
    assert isinstance(loss, CLL)
    assert loss.slack == 1e-4


def test_powers_of_ten_are_numbers() -> None:
    recipe = read_recipe("moons-cll", overrides=["loss.lam=1e-10", "optimizer.betas=[9E-1, 0.99]"])
    assert recipe.loss.arguments["lam"] == 1e-10
    assert recipe.optimizer.arguments["betas"] == [0.9, 0.99]


def test_a_budget_removes_keys_of_an_inherited_recipe() -> None:
    assert "loss.beta" in read_recipe("tiny-8c2f-cll").schedule
    assert "loss.beta" not in read_recipe("tiny-8c2f-cll", "cpu").schedule
    assert "loss.beta" not in read_recipe("tiny-8c2f-cll-1.0", "cpu").schedule
    assert read_recipe("tiny-8c2f-gloro-trades", "cpu").loss.arguments["mu"] == 0.5


@pytest.mark.parametrize("name", packaged_recipes())
def test_every_recipe_has_a_smoke_budget_and_images_one_for_a_cpu(name: str) -> None:
    read_recipe(name, "smoke")
    if not name.startswith("moons"):
        assert read_recipe(name, "cpu").train.epochs < read_recipe(name).train.epochs


def test_power_iterations_take_no_turns() -> None:
    assert read_recipe("moons-cll", overrides=["train.estimate=power"]).train.estimate == "power"
    with pytest.raises(InputError, match=r"train\.turns: expected 1 with estimate: power, got 2"):
        read_recipe("moons-cll", overrides=["train.estimate=power", "train.turns=2"])


def test_keys_that_came_later_are_written_only_where_they_are_set(tmp_path: Path) -> None:
    """A run of an earlier version has none of them, and is the same run."""
    plain = read_recipe("moons-cll").model_dump(mode="json")
    assert "estimate" not in plain["train"]
    assert "no_decay" not in plain["optimizer"]
    changes = ["train.estimate=power", "optimizer.no_decay=['*.bias']"]
    changed = read_recipe("moons-cll", overrides=changes)
    tree = changed.model_dump(mode="json")
    assert tree["train"]["estimate"] == "power"
    assert tree["optimizer"]["no_decay"] == ["*.bias"]
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(tree))
    assert read_recipe(str(path)) == changed


def test_a_pattern_without_a_parameter_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"optimizer\.no_decay: no parameter matches '\*\.theta'"):
        execute(read_recipe("moons-cll", "smoke", ["optimizer.no_decay=['*.theta']"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.validate_every=2", r"train\.validate_every: expected 0, got 2: there is no validation split"),
        ("certify.splits=[train, val]", r"certify\.splits: expected \[train\], found val: there is no"),
        ("certify.splits=[val]", r"certify\.splits: expected \[test\], found val: there is no"),
    ],
)
def test_nothing_may_ask_for_a_validation_split_that_is_not_there(override: str, message: str) -> None:
    none = ["data.val=0", "train.validate_every=0", "certify.splits=[train]"]
    assert read_recipe("moons-cll", "smoke", none).certify.splits == ("train",)
    with pytest.raises(InputError, match=message):
        read_recipe("moons-cll", "smoke", [*none, override])


def test_without_validation_every_training_image_is_trained_on(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path / "data")["root"]
    few = [f"data.root={root}", "train.batch_size=4", "train.validate_every=0", "certify.splits=[test]"]
    held = read_recipe("cifar10-grid", "smoke", [*few, "data.val=0.5"])
    whole = read_recipe("cifar10-grid", "smoke", [*few, "data.val=0"])
    assert len(whole.make_data("train")) > len(held.make_data("train")) == len(held.make_data("val"))
    assert len(whole.make_data("train")) == 2 * len(held.make_data("train"))
    with pytest.raises(InputError, match=r"data\.val: there is no validation split"):
        whole.make_data("val")
    run = execute(whole, tmp_path / "run")
    assert set(run.statement().splits) == {"test"}
    assert all(metrics.validation is None for metrics in run.metrics())


def test_fine_tuning_starts_from_another_model(tmp_path: Path) -> None:
    first = execute(read_recipe("moons-cll", "smoke"), tmp_path / "first")
    begun = read_recipe("moons-cll", "smoke", [f"start={first.path}"])
    model = begun.make_model(begun.make_card(begun.make_data("train")))
    trained = load(first.path)
    for a, b in zip(model.parameters(), trained.parameters(), strict=True):
        assert torch.equal(a, b)
    # Three classes: all layers but the head are kept.
    x, y = np.random.rand(60, 2), np.arange(60) % 3
    np.savez(tmp_path / "three.npz", x=x, y=y)
    changes = ["data.name=arrays", f"data.path={tmp_path / 'three.npz'}", f"start={first.path}"]
    three = read_recipe("moons-cll", "smoke", [*changes, "train.batch_size=20", "data.val=0.2"])
    model = three.make_model(three.make_card(three.make_data("train")))
    kept = [
        torch.equal(a, b) for a, b in zip(list(model.parameters())[:-2], trained.parameters(), strict=False)
    ]
    assert all(kept)
    assert model[-1].out_features == 3
    execute(three, tmp_path / "second")
    with pytest.raises(InputError, match="do not fit"):
        read_recipe("moons-cll", "smoke", [f"start={first.path}", "model.widths=[8, 8]"]).make_model(
            ModelCard("mlp", 2, (2,), {"widths": [8, 8]})
        )


@pytest.mark.parametrize("model", ["liresnet", "lipnext"])
def test_weights_that_run_away_end_in_one_line(model: str, tmp_path: Path) -> None:
    """Though their factorisation fails, and the gradient has no norm to clip."""
    root = write_cifar10(tmp_path / "data")["root"]
    few = [f"data.root={root}", "train.batch_size=4", "train.epochs=3", "optimizer.lr=1e25"]
    with pytest.raises(TrainingError, match=r"not finite|became"):
        execute(read_recipe(f"cifar10-{model}", "smoke", few), tmp_path / "run")


def test_radii_may_be_written_as_fractions() -> None:
    printed = (0.1411764705882353, 0.2823529411764706, 0.4235294117647059)
    assert read_recipe("cifar10-4c3f-cll").certify.radii == (*printed, 1.0)
    assert read_recipe("folder", None, ["data.root=photos"]).certify.radii == printed
    chosen = read_recipe("moons-cll", None, ["certify.radii=[36/255, 0.5]"])
    assert chosen.certify.model_dump(mode="json")["radii"] == [
        0.1411764705882353,
        0.5,
    ]  # as recipe.yaml has it


def test_arguments_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[str] = Counter()

    def counted(function: Any, arguments: Any, provided: set[str], where: str) -> dict[str, Any]:
        found[where] += 1
        return checked_arguments(function, arguments, provided, where)

    monkeypatch.setattr("lipcert.recipes.schema.checked_arguments", counted)
    recipe = read_recipe("moons-cll", "smoke", ["data.val=100", "train.validate_every=1"])
    build(recipe)
    recipe.stated_training()
    parts = ["data", "loss", "model", "optimizer", *(f"schedule.{key}" for key in recipe.schedule)]
    assert found == dict.fromkeys(parts, 1)
    assert read_recipe("moons-cll", "smoke") == read_recipe("moons-cll", "smoke")


def with_schedule(optimizer: str, number: str) -> None:
    settings = [f"optimizer={{name: {optimizer}}}", f"schedule.optimizer.{number}={{name: cosine}}"]
    read_recipe("moons-cll", None, ["schedule.optimizer.lr=null", *settings])


def damped(parameters: Any, lr: float = 0.1, dampening: float = 0.0) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, dampening=dampening)


def test_a_schedule_changes_any_number_that_the_optimiser_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    with_schedule("muon", "momentum")
    for optimizer, number in (("adam", "momentum"), ("adam", "betas"), ("sgd", "nesterov")):
        with pytest.raises(InputError, match="expected a number of the loss or the optimizer"):
            with_schedule(optimizer, number)
    monkeypatch.setitem(vars(OPTIMIZERS)["_entries"], "damped", Entry("damped", damped, dict))
    with_schedule("damped", "dampening")
