"""Reproductions at their smoke budget: figures, results, interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest

from lipcert.commands.work.reproduction import carry_out
from lipcert.data.examples import write_cifar10, write_cifar100, write_tiny_imagenet
from lipcert.errors import InputError, LipcertError
from lipcert.paper import REPRODUCTIONS
from lipcert.runs import Run
from lipcert.sweeps import LocalCrew
from tests.sweeps.here import CrewHere

TABLES = ("table-tiny-imagenet", "table-cifar10", "table-cifar100")
# One is drawn from formulas, all others from trainings.
TRAINED = [name for name in REPRODUCTIONS if REPRODUCTIONS.create(name).variants]
QUICK = ("moons-demo", "table-epsilon-slack", "fig-convergence")


@pytest.fixture(scope="module", autouse=True)
def _small_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A few images in the files of every data set."""
    root = tmp_path_factory.mktemp("data")
    for write in (write_cifar10, write_cifar100, write_tiny_imagenet):
        write(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIPCERT_DATA", str(root))
        yield


def test_the_panels_of_the_supplement_differ_in_what_the_paper_varies(tmp_path: Path) -> None:
    slacks = [trial.recipe for _, trial in REPRODUCTIONS.create("moons-slack").trials(tmp_path, "full")]
    assert [recipe.loss.arguments["slack"] for recipe in slacks] == [0.375, 0.125, 0.005, 0.00005]
    assert not any("loss.slack" in recipe.schedule for recipe in slacks)
    *soc, cll = [trial.recipe for _, trial in REPRODUCTIONS.create("moons-soc").trials(tmp_path, "full")]
    panels = [(recipe.loss.arguments["gamma"], len(recipe.model.arguments["widths"]) + 1) for recipe in soc]
    assert panels == [(gamma, depth) for gamma in (0, 0.3, 1) for depth in (3, 7, 25)]
    assert cll.loss.name == "cll"


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in TRAINED]
)
def test_every_reproduction_draws_and_writes_its_results(name: str, tmp_path: Path) -> None:
    few = [] if name.startswith("moons") or name == "table-seeds" else ["train.batch_size=4"]
    report = carry_out(name, tmp_path, crew=CrewHere(), budget="smoke", settings=few)
    for path in report.written:
        if path.suffix == ".png":
            picture = matplotlib.image.imread(path)
            assert min(picture.shape[:2]) > 300
            assert picture.std() > 0.05  # something is drawn
        assert path.stat().st_size > (40 if name == "grid" else 100)  # four cells are a short table
    suffixes = {path.suffix for path in report.written}
    table, figure = {".md", ".csv", ".tex", ".json"}, {".png", ".svg", ".pdf", ".json"}
    assert suffixes == (table | figure if name == "grid" else table if "table" in name else figure)
    results = json.loads((tmp_path / "results.json").read_text())
    trials = REPRODUCTIONS.create(name).trials(tmp_path, "smoke")
    assert [row["recipe"] for row in results["rows"]] == [trial.recipe.name for _, trial in trials]
    said = f"lipcert reproduce {name} --budget smoke"
    assert results["command"] == " ".join([said, *(f"--set {setting}" for setting in few)])
    splits = [row[split] for row in results["rows"] for split in ("train", "val", "test") if split in row]
    assert splits
    assert all(0 <= split["cra"] <= split["clean"] <= 1 for split in splits)
    assert len(report.tables[0].rows) == len(results["rows"])


def test_a_figure_of_formulas_trains_nothing(cli, tmp_path: Path) -> None:
    status, said, _ = cli("reproduce", "fig-calibration", "--output", str(tmp_path))
    assert status == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"fig-calibration.{suffix}" for suffix in ("png", "svg", "pdf")
    }
    assert "fig-calibration.png" in said


def test_released_moons_differ_from_printed_ones_in_slack_and_normaliser(tmp_path: Path) -> None:
    trials = [t.recipe for _, t in REPRODUCTIONS.create("moons-released").trials(tmp_path, "full")]
    released, printed = trials[:4], trials[4:]
    assert [r.loss.arguments["eps"] for r in released] == [r.loss.arguments["eps"] for r in printed]
    for recipe, slacks, normaliser in (
        (released[0], (5e-4, 5e-16), "logit"),
        (printed[0], (1e-3, 1e-12), "pair"),
    ):
        loss, end = recipe.make_loss(), recipe.final_loss()
        assert (loss.slack, end.slack) == pytest.approx(slacks, rel=1e-12)  # type: ignore[attr-defined]
        assert loss.normaliser == normaliser  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [n for n in TRAINED if not n.startswith("moons") and n != "table-seeds"])
def test_images_have_seeds_enough_at_the_cpu_budget(name: str) -> None:
    trials = REPRODUCTIONS.create(name).trials(Path("out"), "cpu")
    assert len({trial.recipe.seed for _, trial in trials}) >= (1 if name in TABLES else 2)


@pytest.mark.parametrize(
    "key", ["loss.eps=0.3", "model.layer=lot", "model={name: mlp}", "certify.splits=[val]"]
)
def test_what_it_varies_or_draws_is_not_for_all_of_it(key: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"--set {key.partition('=')[0]}: grid sets it itself"):
        REPRODUCTIONS.create("grid").trials(tmp_path, "cpu", settings=[key])


def test_finished_trainings_are_kept(tmp_path: Path) -> None:
    """In real processes; the second time none is started."""
    carry_out("moons-demo", tmp_path, crew=LocalCrew(), budget="smoke")
    model = tmp_path / "moons-cll-seed1" / "model.safetensors"
    before = model.stat().st_mtime_ns
    carry_out("moons-demo", tmp_path, crew=LocalCrew(), budget="smoke")
    assert model.stat().st_mtime_ns == before


@pytest.mark.slow
def test_ctrl_c_stops_the_trainings_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "lipcert.cli",
        "reproduce",
        "moons-demo",
        "--output",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    runs = [Run(tmp_path / "out" / f"moons-{loss}-seed1") for loss in ("cll", "gloro")]
    while not all(run.metrics() for run in runs) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert all(run.checkpoint.exists() for run in runs)
    time.sleep(0.5)
    sizes = [run.metrics_file.stat().st_size for run in runs]
    time.sleep(1.0)
    assert [run.metrics_file.stat().st_size for run in runs] == sizes  # nothing trains on in the background


def test_a_place_that_is_taken_is_reported(cli, tmp_path: Path) -> None:
    (tmp_path / "moons-cll-seed1").mkdir()
    (tmp_path / "moons-cll-seed1" / "other.txt").write_text("in the way")
    status, _, error = cli("reproduce", "moons-demo", "--budget", "smoke", "--output", str(tmp_path))
    assert status == 2
    assert "moons-cll-seed1" in error
    assert "holds another run or other files" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("name", ["moons", pytest.param("moons-soc", marks=pytest.mark.slow)])
def test_what_did_not_fail_is_drawn(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = REPRODUCTIONS.create(name)
    first, second = whole.variants[0], whole.variants[-1]
    bad = replace(first, settings=("optimizer.lr=1e30",))
    monkeypatch.setattr(REPRODUCTIONS, "create", lambda _: replace(whole, variants=(bad, second)))
    report = carry_out(name, tmp_path, crew=CrewHere(), budget="smoke")
    assert report.failures.startswith("1 of 2 failed; the first: ")
    assert "the loss became nan" in report.failures
    results = json.loads((tmp_path / "results.json").read_text())
    assert [row["recipe"] for row in results["rows"]] == [second.recipe]
    assert list(results["failed"]) == [f"{first.name}-seed1"]
    assert matplotlib.image.imread(tmp_path / f"{name}.png").std() > 0.05
    monkeypatch.setattr(REPRODUCTIONS, "create", lambda _: replace(whole, variants=(bad,)))
    with pytest.raises(LipcertError, match="1 of 1 failed"):
        carry_out(name, tmp_path, crew=CrewHere(), budget="smoke")
