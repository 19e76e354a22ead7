"""Paths of a run: it can be moved, reached through a link, and used from any directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from lipcert.runs.run_paths import absolute, expanded, restored, stored

Cli = Callable[..., tuple[int, str, str]]


def test_a_relative_path_stays_relative_and_an_absolute_one_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path("runs/one")
    near = {"data": {"name": "folder", "root": "my photos"}, "start": "other"}
    assert stored(near, run) == {
        "data": {"name": "folder", "root": "../../my photos"},
        "start": "../../other",
    }
    far = {"data": {"name": "arrays", "path": "/far/points.npz"}}
    assert stored(far, run) == far
    inside = {"data": {"name": "folder", "root": str(tmp_path / "runs/one/größe")}}
    assert stored(inside, run)["data"]["root"] == "größe"
    assert absolute(restored(stored(near, run), run)) == absolute(near)


def test_other_keys_and_names_of_models_are_left_alone(tmp_path: Path) -> None:
    recipe = {"seed": 1, "data": {"name": "moons", "noise": 0.1}, "start": "moons-cll"}
    assert stored(recipe, tmp_path) == recipe
    assert restored(recipe, tmp_path) == recipe
    assert stored({}, tmp_path) == {}


def test_a_link_to_the_runs_leads_to_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large/disk/runs").mkdir(parents=True)
    (tmp_path / "home/photos").mkdir(parents=True)
    (tmp_path / "home/runs").symlink_to(tmp_path / "large/disk/runs")
    monkeypatch.chdir(tmp_path / "home")
    kept = stored({"data": {"root": "photos"}}, Path("runs/one"))
    for run in ("runs/one", tmp_path / "large/disk/runs/one"):
        found = Path(restored(kept, Path(run))["data"]["root"])
        assert found.resolve() == tmp_path / "home/photos"


def test_a_path_of_before_is_taken_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path)
    assert restored({"data": {"root": "photos"}}, Path("runs/one"))["data"]["root"] == "photos"
    (tmp_path / "runs/one/photos").mkdir(parents=True)
    assert restored({"data": {"root": "photos"}}, Path("runs/one"))["data"]["root"] == "runs/one/photos"


def test_the_home_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded({"data": {"root": "~/photos"}})["data"]["root"] == "/home/me/photos"


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Write a table with two classes."""
    x = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    place = tmp_path / "my project" / "points.npz"
    place.parent.mkdir()
    np.savez(place, x=x, y=(x[:, 0] > 0).astype(np.int64))
    return place


RECIPE = ["train", "moons-cll", "--budget", "smoke", "--set", "train.batch_size=16", "--set"]


def train(cli: Cli, path: str, *more: str) -> None:
    data = f"data={{name: arrays, path: {path}}}"
    status, _, err = cli(*RECIPE, data, "--set", "train.epochs=1", *more)
    assert status == 0, err


def test_a_run_is_used_from_any_directory(
    cli: Cli, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = points.parent
    monkeypatch.chdir(project)
    train(cli, "points.npz", "--output", "runs/a run")
    run = project / "runs/a run"
    assert yaml.safe_load((run / "recipe.yaml").read_text())["data"]["path"] == "../../points.npz"
    assert json.loads((run / "certificate.json").read_text())["data"]["path"] == "../../points.npz"
    (tmp_path / "elsewhere").mkdir()
    for place in (tmp_path / "elsewhere", run, project):
        monkeypatch.chdir(place)
        for command in (
            ["certify", str(run)],
            ["verify", str(run)],
            ["tightness", str(run), "--budget", "smoke"],
        ):
            status, _, err = cli(*command)
            assert status == 0, err
    train(cli, "points.npz", "--output", "runs/a run", "--resume")

    monkeypatch.chdir(tmp_path)
    moved = project.rename(tmp_path / "moved")  # the runs and the data in one go
    run = moved / "runs/a run"
    for command in (
        ["certify", str(run)],
        ["verify", str(run)],
        ["verify", str(run / "certificate-test.json")],
    ):
        status, _, err = cli(*command)
        assert status == 0, err
    monkeypatch.chdir(moved)
    train(cli, "points.npz", "--output", "runs/a run", "--resume")


def test_a_run_moves_with_absolute_data_or_data_inside(
    cli: Cli, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train(cli, str(points), "--output", "far")
    Path("near").mkdir()
    shutil.copy(points, "near/points.npz")
    train(cli, "near/points.npz", "--output", "near", "--overwrite")
    assert (
        yaml.safe_load(Path("near/recipe.yaml").read_text(encoding="utf-8"))["data"]["path"] == "points.npz"
    )
    for name in ("far", "near"):
        place = tmp_path / "archive" / "ältere Läufe" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        Path(name).rename(place)
        for command in ("certify", "verify"):
            status, _, err = cli(command, str(place))
            assert status == 0, err


def test_data_that_is_gone_is_named_with_the_file_that_names_it(
    cli: Cli, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(points.parent)
    train(cli, "points.npz", "--output", "run")
    points.unlink()
    status, _, err = cli("certify", "run")
    assert status == 2
    assert f"{points}: no such file" in err
    assert "correct data.path in run/recipe.yaml" in err


def test_a_run_of_before_is_read_where_it_was_started(
    cli: Cli, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(points.parent)
    train(cli, "points.npz", "--output", "runs/one")
    for file in ("recipe.yaml", "certificate.json"):
        path = Path("runs/one") / file
        path.write_text(path.read_text().replace("../../points.npz", "points.npz"))
    for command in (["certify", "runs/one"], ["verify", "runs/one"]):
        status, _, err = cli(*command)
        assert status == 0, err
    train(cli, "points.npz", "--output", "runs/one", "--resume")
