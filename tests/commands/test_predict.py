"""`lipcert train folder`, then `lipcert predict`: the three commands of an engineer with images."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load
from lipcert.certificates.predictions import predict_files
from lipcert.data import load as load_data
from lipcert.data.examples import write_folder
from lipcert.recipes import execute, read_recipe

SMOKE = ("train.epochs=1", "model.width=0.125", "certify.tightness=null")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in class folders, and a model trained on them."""
    root = tmp_path_factory.mktemp("own")
    write_folder(root / "photos")
    recipe = read_recipe("folder", "smoke", [*SMOKE, f"data.root={root / 'photos'}"])
    execute(recipe, root / "run")
    return root


def test_three_commands(place: Path, cli) -> None:
    flags = [flag for setting in SMOKE for flag in ("--set", setting)]
    photos = str(place / "photos")
    status, out, err = cli("train", "folder", "--budget", "smoke", *flags, "--set", f"data.root={photos}")
    assert status == 0, err
    assert "lipcert predict runs/folder" in out  # what to do next
    assert cli("certify", "runs/folder")[0] == 0
    status, out, _ = cli("predict", "runs/folder", photos, "--json")
    assert status == 0
    found = json.loads(out)
    assert [Path(p["file"]).parent.name for p in found] == ["cats"] * 10 + ["dogs"] * 10
    assert {p["class"] for p in found} <= {"cats", "dogs"}


def test_predictions_are_those_of_the_certifier(place: Path) -> None:
    predictions, complaints = predict_files(str(place / "run"), [place / "photos"])
    assert not complaints
    data = load_data("folder", split="test", root=str(place / "photos"), detect=True)
    certificate = certifier(load(place / "run"), data.input_shape)(data.floats(slice(None)))
    radii = {round(p.radius, 12) for p in predictions}
    assert {round(float(r), 12) for r in certificate.radius} <= radii
    assert all(0.5 <= p.probability <= 1 and p.rival != p.label for p in predictions)


def test_the_model_abstains_where_it_is_not_sure(place: Path) -> None:
    everything = predict_files(str(place / "run"), [place / "photos"])[0]
    middle = sorted(p.radius for p in everything)[len(everything) // 2]
    careful = predict_files(str(place / "run"), [place / "photos"], abstain_below=middle)[0]
    assert [p.label is None for p in careful] == [p.radius <= middle for p in everything]


def test_other_files_go_on(place: Path, cli, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no image")
    Image.fromarray(np.zeros((30, 50, 4), np.uint8)).save(tmp_path / "large.png")
    (tmp_path / "empty").mkdir()
    good, deep = "large.png", tmp_path / ("long" * 30)
    deep.mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(deep / "small.png")
    status, out, err = cli(
        "predict",
        str(place / "run"),
        good,
        str(deep),
        *(str(tmp_path / n) for n in ("text.png", "none.png", "empty")),
    )
    assert status == 2
    assert "large.png" in out
    assert "small.png" in "".join(line.split()[0] for line in out.splitlines() if line.split())  # not cut
    assert [line.partition(": ")[2] for line in err.splitlines()] == [
        f"{tmp_path}/none.png: no such file or directory",
        f"{tmp_path}/empty: no images in this directory",
        f"{tmp_path}/text.png: not a readable image (cannot identify image file '{tmp_path}/text.png')",
    ]
    assert cli("predict", str(place / "run"), good, "--abstain-below", "-1")[0] == 2
    status, _, err = cli("predict", "moons-cll", good)
    assert status == 2
    assert "not grey or RGB images" in err


def test_csv_has_a_line_per_file_with_every_digit(place: Path, cli, tmp_path: Path) -> None:
    odd = tmp_path / 'a "b", c\nd.png'
    odd.write_bytes((place / "photos" / "cats" / "0.png").read_bytes())
    everything = [p.radius for p in predict_files(str(place / "run"), [place / "photos"])[0]]
    middle = sorted(everything)[len(everything) // 2]
    model, photos = str(place / "run"), str(place / "photos")
    common = ["predict", model, str(odd), photos, "--abstain-below", repr(middle)]
    status, out, err = cli(*common, "--csv", "found.csv")
    assert (status, out, err) == (0, "wrote found.csv\n", "")
    with (tmp_path / "found.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["file", "class", "abstained", "probability", "radius", "rival"]
    expected = predict_files(model, [odd, place / "photos"], middle)[0]
    assert [row["file"] for row in rows] == [p.file for p in expected]
    assert [float(row["radius"]) for row in rows] == [p.radius for p in expected]
    assert [float(row["probability"]) for row in rows] == [p.probability for p in expected]
    assert [row["class"] or None for row in rows] == [p.label for p in expected]
    assert [row["abstained"] == "true" for row in rows] == [p.label is None for p in expected]
    assert {row["abstained"] for row in rows} == {"true", "false"}
    status, out, _ = cli(*common, "--csv", "-")
    assert status == 0
    assert out == (tmp_path / "found.csv").read_text(encoding="utf-8")


def test_a_file_name_in_csv_keeps_its_bytes(place: Path, cli, tmp_path: Path) -> None:
    strange = os.fsdecode(b"caf\xe9.png")  # Latin-1, no UTF-8
    (tmp_path / strange).write_bytes((place / "photos" / "cats" / "0.png").read_bytes())
    assert cli("predict", str(place / "run"), strange, "--csv", "found.csv")[0] == 0
    assert b"\ncaf\xe9.png," in (tmp_path / "found.csv").read_bytes()


def test_csv_of_some_files_names_the_others(place: Path, cli, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no image")
    photo = str(place / "photos" / "cats" / "0.png")
    status, out, err = cli("predict", str(place / "run"), "text.png", photo, "--csv", "-")
    assert status == 2
    assert "text.png: not a readable image" in err
    assert [row["file"] for row in csv.DictReader(out.splitlines())] == [photo]


def test_a_bare_model_file_predicts_too(place: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((place / "run" / "model.safetensors").read_bytes())
    of_run = predict_files(str(place / "run"), [place / "photos" / "cats"])[0]
    of_file = predict_files(str(alone), [place / "photos" / "cats"])[0]
    assert [(p.label, p.radius) for p in of_run] == [(p.label, p.radius) for p in of_file]


def test_a_single_mean_serves_every_channel() -> None:
    from lipcert.models import create

    x, models = torch.rand(2, 3, 8, 8), []
    for mean, std in (((0.5,), (2.0,)), ((0.5,) * 3, (2.0,) * 3)):
        torch.manual_seed(0)
        models.append(
            create("4c3f", num_classes=2, input_shape=(3, 8, 8), width=0.125, normalise=(mean, std))
        )
    assert torch.equal(models[0](x), models[1](x))


def test_many_files_that_cannot_be_read_are_counted(place: Path, cli, tmp_path: Path) -> None:
    for i in range(25):
        (tmp_path / f"{i}.png").write_text("no image", encoding="utf-8")
    status, out, err = cli("predict", str(place / "run"), str(tmp_path))
    lines = err.splitlines()
    assert (status, out) == (2, "")
    assert all("not a readable image" in line for line in lines[:20])
    assert lines[20:] == ["lipcert: and 5 more"]
