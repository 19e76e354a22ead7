"""`lipcert certify FILE.py:NAME`: a network that lipcert neither made nor trained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.certificates.certificate import RADII, certified_accuracy

Cli = Callable[..., tuple[int, str, str]]

FILE = """
from torch import nn

def small():
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

def layered():
    return nn.Sequential(nn.Linear(2, 8), nn.LayerNorm(8), nn.Linear(8, 3))

two = nn.Sequential(nn.Linear(2, 2))
"""


def written(classes: int = 3) -> tuple[nn.Module, Tensor, Tensor]:
    """The file, weights after some steps, and points of so many classes."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(90) % 3
    x = torch.randn(90, 2, generator=generator) + 4 * torch.nn.functional.one_hot(y, 3)[:, :2].float()
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    Path("own.py").write_text(FILE, encoding="utf-8")
    torch.save(model.state_dict(), "own.pt")
    x, y = x[y < classes], y[y < classes]
    np.savez("points.npz", x=x.numpy(), y=y.numpy())
    return model.eval(), x, y


def test_the_table_is_what_the_certifier_says(cli: Cli) -> None:
    model, x, y = written()
    status, out, err = cli("certify", "own.py:small", "--weights", "own.pt", "--data", "points.npz")
    assert status == 0, err
    certificate = certifier(model, (2,))(x)
    counts = [row.count for row in certified_accuracy(certificate, y, [0.0, *RADII])]
    printed = [int(row) for row in re.findall(r"^ +(?:0|\d+/255) .* (\d+) *$", out, re.MULTILINE)]
    assert printed == counts
    assert counts[0] > 70
    assert 0 < counts[-1] < counts[0]
    mean = torch.where(certificate.prediction == y, certificate.radius, 0).mean()
    assert float(re.findall(r"mean ([\d.]+)", out)[0]) == pytest.approx(float(mean), rel=1e-5)
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == [
        "own.pt",
        "own.py",
        "points.npz",
    ]


def test_its_certificate_is_verified_against_the_same_weights_only(cli: Cli) -> None:
    written(classes=2)  # the third class has no sample, and is still a rival
    words = ["--weights", "own.pt", "--data", "points.npz", "--radii", "0.5", "--output", "out/c.json"]
    status, out, err = cli("certify", "own.py:small", *words)
    assert status == 0, err
    assert "next: lipcert verify out/c.json own.py:small --weights own.pt" in out
    found = json.loads(Path("out/c.json").read_text(encoding="utf-8"))
    assert found["model"] == {
        "name": "own.py:small",
        "num_classes": 3,
        "input_shape": [2],
        "arguments": {},
        "classes": [],
    }
    assert found["data"]["path"] == "../points.npz"
    assert found["splits"]["test"]["samples"] == 60
    assert cli("verify", "out/c.json", "own.py:small", "--weights", "own.pt")[0] == 0
    assert cli("verify", "out/c.json", "own.py:small")[0] == 1  # freshly initialised
    np.savez("points.npz", x=np.zeros((60, 2)), y=np.arange(60) % 2)
    status, out, _ = cli("verify", "out/c.json", "own.py:small", "--weights", "own.pt")
    assert status == 1
    assert re.search(r"the data is that of the certificate +NO", out)


def test_a_certificate_of_another_model_is_not_replaced(cli: Cli) -> None:
    written()
    words = ["--data", "points.npz", "--output", "c.json"]
    assert cli("certify", "own.py:small", "--weights", "own.pt", *words)[0] == 0
    before = Path("c.json").read_bytes()
    status, _, err = cli("certify", "own.py:small", *words)
    assert status == 2
    assert "is the certificate of another model (own.py:small)" in err
    assert Path("c.json").read_bytes() == before


def test_labels_beyond_the_classes_and_layers_without_rules_are_refused(cli: Cli) -> None:
    written()
    status, _, err = cli("certify", "own.py:two", "--data", "points.npz")
    assert status == 2
    assert "tells 2 classes apart, points.npz has 3" in err
    status, _, err = cli("certify", "own.py:layered", "--data", "points.npz")
    assert status == 1
    assert "LayerNorm" in err
    assert err.count("\n") == 1
    np.savez("empty.npz", x=np.zeros((0, 2)), y=np.zeros(0, np.int64))
    status, _, err = cli("certify", "own.py:small", "--data", "empty.npz")
    assert status == 2
    assert "expected samples of shape (n, ...), n > 0" in err


def test_it_can_be_inspected_and_attacked(cli: Cli) -> None:
    written()
    status, out, err = cli("inspect", "own.py:small", "--weights", "own.pt", "--input-shape", "2")
    assert status == 0, err
    assert "BatchNorm1d" in out
    words = ["--weights", "own.pt", "--data", "points.npz", "--radii", "0.5", "--budget", "smoke"]
    status, out, err = cli("attack", "own.py:small", *words)
    assert status == 0, err
    assert json.loads(Path("attack.json").read_text(encoding="utf-8"))["broken"] == []
