"""Models that come with the package, and weights in 16 bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from lipcert.bounds import Bounded
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.loading import load
from lipcert.certificates.statement import claimed, read_certificate
from lipcert.commands.work.certify_model import verify_file
from lipcert.errors import InputError
from lipcert.models import ModelCard, create, save, trained
from lipcert.models.model_files import model_file, read_card, round_to_16_bits
from lipcert.models.model_names import model_place
from lipcert.models.trained import trained_models
from lipcert.report.model_card import model_card


@pytest.mark.parametrize("name", trained_models())
def test_a_packaged_model_is_the_one_of_its_certificate(name: str) -> None:
    model, card = load(name), read_card(model_file(name))
    logits = model(torch.zeros(1, *card.input_shape))
    assert logits.dtype == torch.float32
    assert logits.shape == (1, card.num_classes)
    # Its own proof may be the exact one, which takes minutes; this one is quick and never below it. The
    # certificate claims up to 2e-8 more than was proved.
    stated = read_certificate(model_place(name) / "certificate.json")
    estimate = float(Bounded(model, card.input_shape).converge().max())
    assert estimate * (1 - 1e-5) <= stated.k_f <= Certifier(model, card.input_shape, "fast").k_f * (1 + 3e-8)


def test_a_packaged_certificate_is_proved_again() -> None:
    checks = verify_file("moons-cll", None)
    assert all(check.holds is True for check in checks if check.is_claim)
    assert sum("at radius" in check.statement for check in checks) == 2  # counted, too


@pytest.mark.parametrize("name", trained_models())
def test_a_packaged_certificate_claims_more_than_any_machine_proves(name: str) -> None:
    statement = read_certificate(model_place(name) / "certificate.json")
    constants = [statement.k_features, statement.k_f, *(layer.upper for layer in statement.layers)]
    assert constants == [claimed(name, value) for value in constants]  # nine digits, rounded up


@pytest.mark.parametrize("name", trained_models())
def test_every_packaged_model_says_where_it_comes_from(name: str) -> None:
    place = model_place(name)
    assert (place / "model-card.md").read_text() == model_card(place, name)
    assert read_certificate(place / "certificate.json").rounding == "float64"
    assert sum(p.stat().st_size for p in place.iterdir()) < 6e6


def test_a_damaged_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "_HOME", tmp_path)
    copy = tmp_path / "moons-cll"
    shutil.copytree(Path(trained.__file__).parent / "weights" / "moons-cll", copy)
    assert trained_models() == ["moons-cll"]
    load("moons-cll")
    model, card = load(copy), read_card(copy / "model.safetensors")
    with torch.no_grad():
        model[0].weight[0, 0] += 1
    save(model, card, copy / "model.safetensors")
    with pytest.raises(InputError, match="not those of the certificate"):
        load("moons-cll")


def test_what_is_on_disk_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("moons-cll").mkdir()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        load("moons-cll")


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="moons-cll"):
        load("moons-clll")


def test_sixteen_bits_hold_exactly_the_rounded_weights(tmp_path: Path) -> None:
    card = ModelCard("mlp", 3, (4,), {"widths": [8]})
    model = card.build()
    save(model, card, tmp_path / "long.safetensors")
    round_to_16_bits(model)
    save(model, card, tmp_path / "short.safetensors")
    again = load(tmp_path / "short.safetensors")
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert b.dtype == torch.float32
        assert torch.equal(a, b)
    header = json.loads(model_header(tmp_path / "short.safetensors"))
    assert {v["dtype"] for k, v in header.items() if k != "__metadata__"} == {"F16"}
    unrounded = load(tmp_path / "long.safetensors")
    assert not torch.equal(unrounded[0].weight, again[0].weight)


def test_weights_beyond_sixteen_bits_are_refused() -> None:
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, 1e6)
    with pytest.raises(InputError, match="too large"):
        round_to_16_bits(model)


def model_header(path: Path) -> bytes:
    content = path.read_bytes()
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def test_gain_scales_every_layer() -> None:
    torch.manual_seed(1)
    small = create("4c3f", num_classes=3, input_shape=(1, 8, 8), width=0.125, gain=0.5)
    torch.manual_seed(1)
    usual = create("4c3f", num_classes=3, input_shape=(1, 8, 8), width=0.125, gain=1.0)
    for a, b in zip(small.parameters(), usual.parameters(), strict=True):
        assert torch.allclose(2 * a, b)
    for gain in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="gain"):
            create("4c3f", num_classes=3, input_shape=(1, 8, 8), gain=gain)


def test_weights_replaced_beside_a_certificate_are_refused(tmp_path: Path) -> None:
    shutil.copytree(model_place("moons-cll"), tmp_path / "run")
    model, file = load(tmp_path / "run"), tmp_path / "run" / "model.safetensors"
    with torch.no_grad():
        model[0].bias[0] += 1
    save(model, read_card(file), file)
    with pytest.raises(InputError, match="one of the two was replaced"):
        load(tmp_path / "run")
    assert any(check.holds is False for check in verify_file(str(tmp_path / "run"), None))
    (tmp_path / "run" / "certificate.json").write_text("{}")
    with pytest.raises(InputError, match="not a lipcert certificate"):
        load(tmp_path / "run")


GOOD = {"format": 1, "name": "mlp", "num_classes": 2, "input_shape": [2], "classes": [], "arguments": {}}


@pytest.mark.parametrize(
    "card",
    [
        None,
        5,
        {**GOOD, "name": ["x"]},
        {**GOOD, "num_classes": "two"},
        {**GOOD, "input_shape": ["a"]},
        {**GOOD, "arguments": 5},
        {**GOOD, "arguments": {"a": 1}},
    ],
)
def test_a_mangled_model_card_is_named(card: object, tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    safetensors.torch.save_file({"x": torch.zeros(1)}, file, metadata={"lipcert": json.dumps(card)})
    with pytest.raises(InputError, match=r"mine\.safetensors|unknown"):
        load(file)
