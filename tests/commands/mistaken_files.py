"""A directory of damaged and unsuitable files, for the commands of mistakes.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from PIL import Image

from lipcert.data.examples import write_folder
from lipcert.models import ModelCard, save
from lipcert.recipes import execute, read_recipe

# The finished run: these settings, in the smoke budget of moons-cll.
SMALL = ("train.epochs=1", "data.val=100", "model.widths=[4]")

RECIPES = {
    "binary.yaml": b"\xff\xfe\x00\x81",
    "loop.yaml": "extends: loop.yaml",
    "cut.yaml": "a: [1, 2",
    "words.yaml": "just words",
    "empty.yaml": "",
    "list.yaml": "- 1\n- 2",
    "heir.yaml": "extends: no-such-recipe",
    "number.yaml": "extends: 3",
    "claim.yaml": "claim: nothing else",
    "python.yaml": "!!python/object/apply:os.system ['echo hi']",
    "twice.yaml": "extends: moons-cll\nseed: 1\nseed: 2",
    "deep.yaml": "a: " + "[" * 600,
    "budgets.yaml": "extends: moons-cll\nbudgets: [1]",
    "budget.yaml": "extends: moons-cll\nbudgets: {tiny: 3}",
    "budgetkey.yaml": "extends: moons-cll\nbudgets: {tiny: {train.epochs: 0}}",
    "intkey.yaml": "extends: moons-cll\n3: 4",
    "outside.yaml": "extends: moons-cll\nname: ../../outside",
}

OWN = """
from torch import nn

class Sorts(nn.Module):
    def forward(self, x):
        return x.sort()[0]

def odd():
    return nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))

def fails():
    raise KeyError("broken")

def leaves():
    raise SystemExit(0)

number = 3
linear = nn.Linear(2, 2)
"""


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_files(root: Path) -> None:
    """Write everything that the mistakes name."""
    for name, content in RECIPES.items():
        write(root / name, content)
    (root / "folder.yaml").mkdir()
    (root / "nothing").mkdir()
    write(root / "file", "in the way")
    write(root / "taken" / "thesis.tex", "years of work")
    write(root / "own.py", OWN)
    write(root / "syntax.py", "def (")
    write(root / "exits.py", "raise SystemExit(0)")
    _images(root)
    _arrays(root)
    _models(root)
    execute(read_recipe("moons-cll", "smoke", SMALL), root / "run")
    _runs(root)
    _certificates(root)
    _sweeps(root)


def _images(root: Path) -> None:
    write_folder(root / "photos")
    photo = root / "photo.png"
    shutil.copy(root / "photos" / "cats" / "0.png", photo)
    write(root / "text.png", "a poem")
    for folder in ("void/cats", "void/dogs", "single-class/cats", "half/cats", "half/dogs"):
        (root / folder).mkdir(parents=True)
    shutil.copy(photo, root / "single-class" / "cats")
    shutil.copy(photo, root / "half" / "cats")
    for name in ("unreadable", "deep-pixels", "one-image", "splits/train", "splits/test"):
        shutil.copytree(root / "photos", root / name)
    write(root / "unreadable" / "cats" / "0.png", "a poem")
    Image.fromarray(np.zeros((8, 8), np.uint16)).save(root / "deep-pixels" / "cats" / "0.png")
    for i in range(1, 10):
        (root / "one-image" / "cats" / f"{i}.png").unlink()
    shutil.copytree(root / "photos" / "cats", root / "splits" / "test" / "birds")
    write(root / "cifar" / "cifar-10-batches-bin" / "data_batch_1.bin", "x")


def _arrays(root: Path) -> None:
    points, labels = np.zeros((30, 4), np.float32), np.arange(30) % 3
    write(root / "poem.npz", "a poem")
    np.save(root / "alone.npy", points)
    for name, arrays in {
        "good": {"x": points, "y": labels},
        "unnamed": {"a": points},
        "floats": {"x": points, "y": labels.astype(float)},
        "short": {"x": points, "y": labels[:-1]},
        "negative": {"x": points, "y": labels - 1},
        "nan": {"x": points * np.nan, "y": labels},
        "one-class": {"x": points, "y": labels * 0},
        "channels-last": {"x": np.zeros((20, 8, 8, 3), np.uint8), "y": np.arange(20) % 2},
        "texts": {"x": np.array(["a", "b"]), "y": np.array([0, 1])},
        "objects": {"x": np.array([{}], dtype=object), "y": np.array([0])},
        "complex": {"x": points.astype(complex), "y": labels},
        "no-samples": {"x": points[:0], "y": labels[:0]},
    }.items():
        np.savez(root / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def _models(root: Path) -> None:
    card = ModelCard("4c3f", 2, (3, 8, 8), {"width": 0.125}, ("cats", "dogs"))
    net = root / "net.safetensors"
    save(card.build(), card, net)
    weights = safetensors.torch.load_file(net)
    known = {
        "format": 1,
        "name": "4c3f",
        "num_classes": 2,
        "input_shape": [3, 8, 8],
        "arguments": {"width": 0.125},
        "classes": ["cats", "dogs"],
    }

    def with_card(file: str, /, **changes: Any) -> None:
        metadata = {"lipcert": json.dumps({**known, **changes})}
        safetensors.torch.save_file(weights, root / file, metadata=metadata)

    with_card("version.safetensors", format=9)
    with_card("architecture.safetensors", name="vgg")
    with_card("wider.safetensors", arguments={"width": 0.25})
    with_card("arguments.safetensors", arguments={"depth": 3})
    write(root / "cut.safetensors", net.read_bytes()[:500])
    write(root / "poem.safetensors", "a poem")
    safetensors.torch.save_file({"a": torch.zeros(2)}, root / "foreign.safetensors")
    safetensors.torch.save_file(weights, root / "no-card.safetensors", metadata={"lipcert": "{"})


def _runs(root: Path) -> None:
    def copied(name: str, without: str = "", **changes: str | bytes) -> None:
        shutil.copytree(root / "run", root / name)
        for file, content in changes.items():
            write(root / name / file.replace("__", ".").replace("_in_", "/"), content)
        if without:
            (root / name / without).unlink()

    copied("no-model", without="model.safetensors")
    copied("no-certificate", without="certificate.json")
    copied("no-samples", without="certified.npz")
    copied("bad-recipe", recipe__yaml="a: [")
    copied("binary-recipe", recipe__yaml=b"\xff\xfe")
    copied("bad-certificate", certificate__json="{")
    copied("bad-samples", certified__npz="x")
    copied("bad-metrics", metrics__jsonl="x\n")
    copied("binary-metrics", metrics__jsonl=b"\xff\xfe\n")
    copied("bad-tightness", tightness__json="{}")
    copied("bad-checkpoint", without="certificate.json", checkpoints_in_last__ckpt="a poem")
    copied("replaced")
    other = ModelCard("mlp", 2, (2,), {"widths": [4]}, ("upper", "lower"))
    torch.manual_seed(5)
    save(other.build(), other, root / "replaced" / "model.safetensors")


def _certificates(root: Path) -> None:
    known = json.loads((root / "run" / "certificate.json").read_text(encoding="utf-8"))
    for name, changes in {
        "unknown-key": {"extra": 1},
        "nan": {"k_f": float("nan")},
        "unknown-data": {"data": {"name": "mnist"}},
        "no-data": {"data": {}},
        "no-splits": {"splits": {}},
        "old": {"format": 1},
    }.items():
        write(root / f"{name}.json", json.dumps({**known, **changes}))
    write(root / "twice.json", '{"a": 1, "a": 2}')
    write(root / "list.json", "[]")
    write(root / "empty.json", "")
    write(root / "deep.json", "[" * 100_000)
    write(root / "binary.json", b"\xff\xfe")


def _sweeps(root: Path) -> None:
    trials = [{"run": "seed=1", "values": ["1"]}]
    known = {"recipe": "moons-cll", "keys": ["seed"], "command": "lipcert sweep", "trials": trials}
    write(root / "sweep" / "sweep.json", json.dumps(known))
    write(root / "bad-sweep" / "sweep.json", "{")
    uneven = {**known, "trials": [{"run": "../run", "values": ["1", "2"]}]}
    write(root / "uneven-sweep" / "sweep.json", json.dumps(uneven))
