"""The program that checks certificates without lipcert agrees with lipcert, and refuses forged files."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import lipcert
from lipcert.hashing import tensors_sha256

SCRIPT = Path(__file__).parents[1] / "examples" / "check_certificate.py"
PACKAGED = Path(lipcert.__file__).parent / "models" / "weights"
PROGRAM = runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = lipcert.data.load("moons", split="val")
    place = tmp_path_factory.mktemp("points") / "val.npz"
    np.savez(place, x=data.x.numpy(), y=data.y.numpy())
    return place


def check(folder: Path, *options: str | Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, folder, *options], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_neither_torch_nor_lipcert_is_imported() -> None:
    code = f"import runpy, sys; runpy.run_path({str(SCRIPT)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert {"flint", "numpy"} <= set(done.stdout.split()), done.stderr
    assert not {"torch", "lipcert"} & set(done.stdout.split())


def test_the_program_stays_short() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 300


def test_it_confirms_the_packaged_moons(points: Path) -> None:
    status, said = check(PACKAGED / "moons-cll", "--data", points, "--split", "val", "--samples", "200")
    assert (status, said.count("FAILED")) == (0, 0), said
    assert "the 200 checked here" in said
    assert "k_f: 52.34" in said


def lower(claim: dict[str, Any], *keys: Any) -> None:
    """Lower a claimed constant by a millionth."""
    *path, last = keys
    for key in path:
        claim = claim[key]
    claim[last] *= 1 - 1e-6


def more(claim: dict[str, Any]) -> None:
    claim["splits"]["val"]["certified"][0]["count"] = 20000


def other_data(claim: dict[str, Any]) -> None:
    claim["splits"]["val"]["sha256"] = "0" * 64


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a layer": (lambda claim: lower(claim, "layers", 4, "upper"), "layer 4"),
    "k_features": (lambda claim: lower(claim, "k_features"), "k_features"),
    "k_f": (lambda claim: lower(claim, "k_f"), "k_f"),
    "a pair": (lambda claim: lower(claim, "pairs", "median"), "the median K_ij"),
    "a missing layer": (lambda claim: claim["layers"].pop(0), "a constant for every layer"),
    "another architecture": (lambda claim: claim["model"].update(classes=["a", "b"]), "the model is that"),
    "a count": (more, "20000 of 20000 at radius 0.15"),
    "the data": (other_data, "the data is that"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_it_refuses_a_forged_certificate(name: str, tmp_path: Path, points: Path) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(PACKAGED / "moons-cll", folder)
    claim = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    forge, said = FORGERIES[name]
    forge(claim)
    (folder / "certificate.json").write_text(json.dumps(claim), encoding="utf-8")
    status, printed = check(folder, "--data", points, "--split", "val", "--samples", "200")
    assert status == 1
    assert [line for line in printed.splitlines() if line.startswith("FAILED") and said in line], printed


def test_it_refuses_other_weights(tmp_path: Path) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(PACKAGED / "moons-cll", folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    header = path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")]
    tensors["4.weight"][0, 0] += 1
    save_file(tensors, path, json.loads(header)["__metadata__"])
    status, printed = check(folder)
    assert status == 1
    assert "FAILED the weights" in printed
    assert "FAILED layer 4" in printed


def test_its_fingerprints_are_lipcert_s() -> None:
    tensors = {"b": torch.arange(3), "a": torch.randn(2, 2)}
    assert PROGRAM["sha256"]({k: v.numpy() for k, v in tensors.items()}) == tensors_sha256(tensors)


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "stride", "padding", "pixels"),
    [(3, 4, 3, 1, 1, 6), (2, 4, 4, 2, 1, 8), (6, 2, 3, 2, 1, 7), (1, 8, 3, 1, 0, 5), (4, 4, 4, 2, 0, 7)],
)
def test_norms_of_convolutions_agree(
    inputs: int, outputs: int, kernel: int, stride: int, padding: int, pixels: int
) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding).double()
    layer = PROGRAM["Layer"](conv.weight.detach().numpy(), conv.bias.detach().numpy(), stride, padding)
    mine = float(PROGRAM["norm_upper"](layer, pixels))
    theirs = lipcert.bounds.upper(conv, (inputs, pixels, pixels), effort="exact").value
    units = torch.eye(inputs * pixels**2, dtype=torch.float64).view(-1, inputs, pixels, pixels)
    dense = (conv(units) - conv(torch.zeros_like(units))).flatten(1).detach()
    true = float(torch.linalg.matrix_norm(dense, 2))
    assert true * (1 - 1e-12) <= mine <= true * (1 + 1e-9)
    assert mine == pytest.approx(theirs, rel=1e-9)


def test_logits_and_radii_of_a_convolutional_network_agree() -> None:
    torch.manual_seed(0)
    statistics = ((0.4, 0.5, 0.6), (0.5, 0.25, 0.3))
    model = lipcert.models.create(
        "4c3f", num_classes=3, input_shape=(3, 8, 8), width=0.125, normalise=statistics
    ).eval()
    tensors = {name: value.numpy() for name, value in model.state_dict().items()}
    card = {"name": "4c3f", "arguments": {}}
    network = PROGRAM["Network"](PROGRAM["layers_of"](tensors, card), [3, 8, 8])
    x = torch.rand(5, 3, 8, 8)
    certificate = lipcert.certify(model, x)
    exact = model.double()(x.double())
    for sample, logits, radius, label in zip(
        x.numpy(), exact, certificate.radius, certificate.prediction, strict=True
    ):
        found = network.logits(sample)
        assert [float(f) for f in found] == pytest.approx(logits.tolist(), rel=1e-10, abs=1e-10)
        top, mine = network.radius(found)
        assert top == label
        assert mine == pytest.approx(float(radius), rel=1e-6, abs=1e-12)


@pytest.mark.slow
def test_it_confirms_the_packaged_4c3f() -> None:
    status, said = check(PACKAGED / "cifar10-4c3f-cll")
    assert (status, said.count("ok "), said.count("FAILED")) == (0, 14, 0), said
