"""An image recipe from files to report: what a run writes, and how runs are compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from lipcert import InputError
from lipcert.data.examples import write_cifar10
from lipcert.recipes import Recipe, execute, packaged_recipes, read_recipe
from lipcert.recipes.splits import Splits
from lipcert.report.comparison import ComparedRow, _models, _paper, _splits_shown, compare
from lipcert.report.method_names import is_published_size
from lipcert.report.run_figures import write_evaluation
from lipcert.runs import Run
from lipcert.sweeps.trial import Trial
from lipcert.tables.kinds import PERCENT
from lipcert.tables.table import text_table
from lipcert.tables.table_files import write_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("images")
    root = write_cifar10(place / "data")["root"]
    overrides = ["train.batch_size=32", f"data.root={root}", "train.balanced=true", "train.ema=0.9"]
    return execute(read_recipe("cifar10-4c3f-cll", "smoke", overrides), place / "run")


def test_certificates_are_kept_sample_by_sample(run: Run) -> None:
    found = run.samples("test")
    claimed = json.loads(run.certificate.read_text())["splits"]["test"]
    right = found.correct
    assert int(right.sum()) == claimed["clean"]["count"]
    for row in claimed["certified"]:
        assert int((right & (found.radius > row["radius"])).sum()) == row["count"]
    with pytest.raises(InputError, match="no certificates of the split train"):
        run.samples("train")


def test_pictures_and_the_table_by_class(run: Run) -> None:
    written = {path.name: path for path in write_evaluation(run, read_recipe(str(run.recipe)), Splits())}
    assert set(written) == {"curve.png", "classes.csv", "images.png"}
    assert all(path.stat().st_size > 100 for path in written.values())
    rows = list(csv.DictReader(written["classes.csv"].open()))
    assert [row["class"] for row in rows][:2] == ["airplane", "automobile"]
    assert sum(int(row["samples"]) for row in rows) == 20
    found = run.samples("test")
    clean = 100 * float((found.correct).double().mean())
    assert sum(float(row["clean"]) for row in rows) / 10 == pytest.approx(clean, abs=0.01)


def test_a_report_has_the_papers_row_beside_ours(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run.tightness()
    assert found is not None
    monkeypatch.setattr(Run, "tightness", lambda _: found.model_copy(update={"tightness": 0.256}))
    compared = compare([Trial.of(run)])
    titles, cells = compared.titles, compared.cells
    assert titles[7:11] == ["clean", "CRA 36/255", "CRA 72/255", "CRA 108/255"]
    ours, paper = cells
    assert (ours[:2], paper[:2]) == (["CLL", "4C3F, other size"], ["CLL", "4C3F"])
    assert (ours[3:5], paper[3:5]) == (["0.15", "0.15"], ["0.15", "0.15"])
    assert paper[5:12] == ["–", "–", "77.6", "61.4", "44.2", "29.1", "–"]
    assert ours[-2] == "26"  # tightness, in percent
    markdown, table, latex = (path.read_text() for path in write_table(compared, tmp_path / "r"))
    assert markdown.count("\n") == 4
    assert next(csv.reader(table.splitlines())) == titles
    assert latex.count(r"\\") == 3
    assert r"K\_f" in latex


def paper(recipe: Recipe, radii: Sequence[float]) -> list[ComparedRow]:
    return _paper(recipe, *_models([recipe]), radii)


IMAGES = [name for name in packaged_recipes() if name.startswith(("cifar", "tiny"))]


@pytest.mark.parametrize("name", IMAGES)
def test_every_recipe_finds_the_row_it_claims(name: str) -> None:
    recipe = read_recipe(name)
    assert is_published_size(recipe)
    rows = paper(recipe, recipe.certify.radii)
    assert bool(rows) == ("none printed" not in recipe.claim)
    if rows:
        printed = [(PERCENT.text(row.clean), PERCENT.text(row.cra[0])) for row in rows]
        assert any(recipe.claim.startswith(f"clean {clean}, CRA {cra}") for clean, cra in printed)
        assert all(row.cra[-1] is None for row in rows)  # nothing is printed at 255/255


@pytest.mark.parametrize("name", ["cifar10-lipconv20-cll", "cifar10-sll-xl", "cifar10-cpl-xl"])
def test_a_thin_network_stands_beside_the_row_it_is_for(name: str) -> None:
    full, thin = read_recipe(name), read_recipe(name, "cpu")
    assert not is_published_size(thin)
    assert paper(thin, full.certify.radii) == paper(full, full.certify.radii) != []


def test_all_printed_rows_of_a_network_are_shown() -> None:
    recipe = read_recipe("tiny-8c2f-gloro-trades")
    reported, reproduced = paper(recipe, recipe.certify.radii)
    assert (reported.source, reported.clean, reproduced.clean) == ("paper, reported by GloRo", 0.355, 0.395)


def test_a_row_is_printed_at_its_own_radii_and_epsilon_only() -> None:
    recipe = read_recipe("cifar10-4c3f-gloro")
    assert not paper(recipe, [0.5])
    (found,) = paper(recipe, [72 / 255, 0.5])
    assert found.cra == (0.408, None)
    assert not paper(read_recipe("cifar10-4c3f-gloro", overrides=["loss.eps=0.5"]), recipe.certify.radii)


def test_a_caption_names_the_split_that_is_shown(run: Run, tmp_path: Path) -> None:
    moons = Trial.of(execute(read_recipe("moons-cll", "smoke"), tmp_path / "moons"))
    assert _splits_shown([Trial.of(run)]) == "on the test split"
    assert _splits_shown([moons]) == "on the val split"
    assert _splits_shown([Trial.of(run), moons]) == "on the test and the val splits"


def test_runs_that_cannot_be_compared_are_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is the run finished"):
        compare([Trial(tmp_path, read_recipe("moons-cll"))])
    moons = Trial.of(execute(read_recipe("moons-cll", "smoke"), tmp_path / "moons"))
    with pytest.raises(InputError, match="other radii"):
        compare([Trial.of(run), moons])


def test_balanced_weights_have_mean_one() -> None:
    from lipcert.recipes.execution import build

    plan, _ = build(read_recipe("moons-cll", "smoke", ["train.balanced=true"]))
    weights = plan.class_weights()
    assert weights is not None
    torch.testing.assert_close(weights[plan.train.y].mean(), torch.ones(()).double())


def test_latex_needs_no_editing(tmp_path: Path) -> None:
    write_table(text_table(["K_f", "±"], [["50 % & more", "1 ± 2"], [r"a\b", "–"]]), tmp_path / "t")
    text = (tmp_path / "t.tex").read_text()
    assert r"K\_f & $\pm$ \\" in text
    assert r"50 \% \& more & 1 $\pm$ 2 \\" in text
    assert r"a\textbackslash{}b & -- \\" in text
