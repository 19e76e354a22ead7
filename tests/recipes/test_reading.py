"""Recipes: every packaged one is valid, and every mistake is one line that names the key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
from lipcert.recipes.signatures import checked_arguments


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


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("train.epoch=3", "train.epoch: unknown key"),
        ("train.epochs=many", "train.epochs"),
        ("train.epochs=0", "train.epochs"),
        ("train.epochs=2.5", "train.epochs"),
        ("train.dtype=float16", "train.dtype"),
        ("bogus=1", "bogus: unknown key"),
        ("loss.slak=0.1", "loss.slak: unknown key"),
        ("loss.slack=0.75", "loss.slack: expected between 0 and 0.5, got 0.75"),
        ("loss.slack=abc", "loss.slack"),
        ("loss.eps=-1", "loss.eps: expected a number > 0"),
        ("loss.sides=three", "loss.sides"),
        ("loss.name=nll", "loss.name: unknown loss 'nll'; known: aol"),
        ("loss=3", "loss"),
        ("model.width=[3]", "model.width: unknown key"),
        ("model.widths=wide", "model.widths"),
        ("data.name=mnist", "data.name: unknown data set 'mnist'"),
        ("data.nois=1", "data.nois"),
        ("optimizer.lr=-1", "optimizer.lr"),
        ("optimizer.name=lion", "optimizer.name"),
        ("schedule.loss.slack.name=wavy", "schedule.loss.slack.name"),
        ("schedule.loss.slack.gamma=x", "schedule.loss.slack.gamma"),
        ("schedule.optimizer.lr.at=[400]", "schedule.optimizer.lr.at: expected a fraction"),
        ("schedule.loss.sides.name=cosine", "schedule.loss.sides"),
        ("schedule.model.widths.name=cosine", "schedule.model.widths"),
        ("certify.radii=[]", "certify.radii"),
        ("certify.radii=[-1]", "radii"),
        ("certify.splits=[dev]", "certify.splits"),
        ("seed=-1", "seed"),
        ("train=null", "train: missing"),
        ("nonsense", "--set nonsense"),
        ("a.b=[1", "--set a.b"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(override: str, key: str) -> None:
    with pytest.raises(InputError) as error:
        read_recipe("moons-cll", overrides=[override])
    assert key in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [1, 2", "not YAML (line"),
        ("just words", "expected keys and values"),
        ("", "expected keys and values"),
        ("- 1\n- 2", "expected keys and values, found list"),
        ("extends: nowhere", "unknown recipe 'nowhere'"),
        ("extends: 3", "extends: expected the name"),
        ("claim: nothing else", "missing"),
        ("!!python/object/apply:os.system ['echo hi']", "not YAML"),
    ],
)
def test_files_that_are_not_recipes(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        read_recipe(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x81")
    loop = tmp_path / "loop.yaml"
    loop.write_text(f"extends: {loop}")
    for source, message in [
        (tmp_path / "missing.yaml", "cannot be read"),
        (tmp_path / "binary.yaml", "not a text file"),
        (loop, "extends itself"),
        ("moons-xyz", "unknown recipe"),
    ]:
        with pytest.raises(InputError, match=message):
            read_recipe(str(source))
    with pytest.raises(InputError, match="no budget 'huge'"):
        read_recipe("moons-cll", budget="huge")


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
