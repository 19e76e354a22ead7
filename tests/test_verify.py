"""A certificate file is proved and counted again; whatever was touched does not hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lipcert import InputError
from lipcert.models import load
from lipcert.models.files import read_card, save
from lipcert.recipes import execute, read_recipe
from lipcert.recipes.certifying import verify_file


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify") / "run"
    execute(read_recipe("moons-cll", budget="smoke"), path)
    return path


def broken(path: Path, model: Path, root: str | None = ".") -> list[str]:
    return [check.statement for check in verify_file(path, str(model), root) if check.holds is False]


def test_an_untouched_certificate_holds(run: Path) -> None:
    checks = verify_file(run / "certificate.json", str(run), ".")
    assert len(checks) > 20
    assert all(check.holds is True for check in checks if not check.statement.startswith("k_hf"))


def test_without_the_data_the_counts_are_not_checked(run: Path) -> None:
    checks = verify_file(run / "certificate.json", str(run), None)
    assert [c.statement for c in checks if c.holds is None] == [
        "k_hf, which depends on the loss",
        "train: counts",
        "val: counts",
    ]
    assert not any(c.holds is False for c in checks)


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "k_f": lambda c: c.update(k_f=c["k_f"] * 0.999),
    "k_features": lambda c: c.update(k_features=c["k_features"] * 1.001),
    "a layer's bound": lambda c: c["layers"][2].update(upper=c["layers"][2]["upper"] * (1 - 1e-6)),
    "a layer's kind": lambda c: c["layers"][0].update(kind="Conv2d"),
    "a layer missing": lambda c: c["layers"].pop(),
    "a clean radius": lambda c: c["splits"]["val"]["clean"].update(radius=0.5),
    "the format": lambda c: c.update(format=99),
    "half an interval": lambda c: c["splits"]["val"]["clean"]["interval"].pop(),
    "a prover": lambda c: c["layers"][0].update(prover="gram"),
    "the pairs": lambda c: c["pairs"].update(median=c["pairs"]["median"] * 0.999),
    "the hash": lambda c: c.update(model_sha256="0" * 64),
    "a count": lambda c: c["splits"]["val"]["certified"][0].update(count=c["splits"]["val"]["samples"]),
    "a value": lambda c: c["splits"]["train"]["clean"].update(value=1.0),
    "an interval": lambda c: c["splits"]["train"]["clean"]["interval"].reverse(),
    "the radius": lambda c: c["splits"]["train"]["certified"][0].update(radius=0.001),
    "the data": lambda c: c["data"].update(noise=0.05),
    "the data's hash": lambda c: c["splits"]["val"].update(sha256="0" * 64),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_number_does_not_hold(edit: str, run: Path, tmp_path: Path) -> None:
    claim = json.loads((run / "certificate.json").read_text())
    before = copy.deepcopy(claim)
    EDITS[edit](claim)
    assert claim != before
    (tmp_path / "edited.json").write_text(json.dumps(claim))
    assert broken(tmp_path / "edited.json", run)


def test_a_weight_changed_in_its_last_bit_does_not_hold(run: Path, tmp_path: Path) -> None:
    card = read_card(run / "model.safetensors")
    model = load(run)
    with torch.no_grad():
        model[0].weight.view(torch.int32)[0, 0] ^= 1  # type: ignore[index,union-attr,operator]
    save(model, card, tmp_path / "model.safetensors")
    assert "the weights are those of the certificate" in broken(
        run / "certificate.json", tmp_path / "model.safetensors"
    )


def test_the_wrong_model_does_not_hold(run: Path, tmp_path: Path) -> None:
    execute(read_recipe("moons-gloro", budget="smoke"), tmp_path / "other")
    assert broken(run / "certificate.json", tmp_path / "other")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}'])
def test_what_is_not_a_certificate_is_named(content: str, run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(InputError, match=r"bad\.json"):
        verify_file(tmp_path / "bad.json", str(run), None)
    with pytest.raises(InputError, match="cannot be read"):
        verify_file(tmp_path / "missing.json", str(run), None)


@pytest.mark.parametrize("key", ["layers", "splits", "data", "k_f"])
def test_a_mangled_certificate_is_named(key: str, run: Path, tmp_path: Path) -> None:
    claim = json.loads((run / "certificate.json").read_text())
    claim[key] = "nonsense"
    (tmp_path / "mangled.json").write_text(json.dumps(claim))
    with pytest.raises(InputError):
        verify_file(tmp_path / "mangled.json", str(run), ".")


def test_the_command_exits_with_1_if_something_does_not_hold(run: Path, cli, tmp_path: Path) -> None:
    claim = json.loads((run / "certificate.json").read_text())
    claim["k_f"] *= 0.5
    (tmp_path / "edited.json").write_text(json.dumps(claim))
    for path, status, said in [
        (run / "certificate.json", 0, "everything that was checked holds"),
        (tmp_path / "edited.json", 1, "do NOT hold"),
    ]:
        found, out, _ = cli("verify", str(path), str(run))
        assert found == status
        assert said in out
        assert "not checked" in out


@pytest.mark.parametrize("data", [{}, {"name": ["moons"]}])
def test_a_certificate_that_names_no_data(data: dict[str, Any], run: Path, tmp_path: Path) -> None:
    claim = json.loads((run / "certificate.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps({**claim, "data": data}))
    with pytest.raises(InputError, match="names no data set"):
        verify_file(tmp_path / "c.json", str(run), ".")
