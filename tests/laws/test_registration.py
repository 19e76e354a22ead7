"""Adding one file of any kind is enough: it is listed, completed and tested, and its laws can fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lipcert
from lipcert.bounds.contract import REFUSALS, RULES
from lipcert.commands.support import completion
from lipcert.commands.support.registries import KINDS

LAWS = Path(__file__).parent

# One new file per kind: its law file, where it goes, the name it brings, and its content.
NEW = {
    "losses": (
        "test_losses.py",
        "losses/extra_hinge.py",
        "extra-hinge",
        '''
"""A hinge on the margin."""
from dataclasses import dataclass
from lipcert.losses.base import LOSSES, Loss, finite, off_label

@LOSSES.register("extra-hinge", example={"eps": 0.1})
@dataclass(frozen=True)
class ExtraHinge(Loss):
    """A hinge."""
    eps: float
    def values(self, logits, labels, lip):
        f = finite(logits)
        gap = f - f.gather(1, labels[:, None]) + self.eps * lip.rows(labels)
        return finite((gap * off_label(f, labels)).relu().amax(dim=1))
''',
    ),
    "layers": (
        "test_layers.py",
        "nn/extra_stretch.py",
        "ExtraStretch",
        '''
"""Mirrors the channels."""
from torch import nn
from lipcert.bounds import Constant, rule

class ExtraStretch(nn.Module):
    def forward(self, x):
        return -1.0 * x.flip(1)

@rule(ExtraStretch, examples=[lambda: (ExtraStretch(), (4,))])
class ExtraStretchRule(Constant):
    """Said to be 1."""
''',
    ),
    "models": (
        "test_models.py",
        "models/extra_net.py",
        "extra-net",
        '''
"""A small network."""
import math
from torch import nn
from lipcert.models.base import MODELS, initialise
from lipcert.nn import MinMax

@MODELS.register("extra-net", example={"num_classes": 3, "input_shape": (2,)})
def extra_net(num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """One hidden layer."""
    layers = nn.Flatten(), nn.Linear(math.prod(input_shape), 8), MinMax(), nn.Linear(8, num_classes)
    return initialise(nn.Sequential(*layers))
''',
    ),
    "heads": (
        "test_heads.py",
        "models/heads/extra_reversed.py",
        "extra-reversed",
        '''
"""The last features."""
import torch
from torch import nn
from lipcert.models.heads.base import HEADS, expect_features
from lipcert.nn import FixedLinear

@HEADS.register("extra-reversed", example={"features": 7, "num_classes": 3})
def extra_reversed(features: int, num_classes: int) -> nn.Module:
    """The last features, in reverse order."""
    expect_features("extra-reversed", features, num_classes)
    return FixedLinear(torch.eye(num_classes, features).flip(1))
''',
    ),
    "data": (
        "test_data.py",
        "data/extra_points.py",
        "extra-points",
        '''
"""Random points."""
import torch
from lipcert.data.base import DATASETS, Dataset, Split

@DATASETS.register("extra-points")
def extra_points(split: Split = "train") -> Dataset:
    """Points left and right of a line."""
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(len(split)))
    x = x if split == "train" else x + (len(split) == 3) + (split == "val")
    return Dataset(x, (x[:, 0] > 0.5).long(), ("left", "right"))
''',
    ),
    "augmentations": (
        "test_augmentations.py",
        "data/augmentations/extra_negative.py",
        "extra-negative",
        '''
"""Negatives."""
from dataclasses import dataclass
from typing import ClassVar
import torch
from lipcert.data.augmentations.base import AUGMENTATIONS, Augmentation

@AUGMENTATIONS.register("extra-negative")
@dataclass(frozen=True)
class ExtraNegative(Augmentation):
    """Turns half of the images into negatives."""
    chances: ClassVar[int] = 1
    def changed(self, images, draws):
        x = images.float() / 255
        return torch.where(draws[:, :, None, None] < 0.5, 1 - x, x)
''',
    ),
    "attacks": (
        "test_attacks.py",
        "attack/extra_push.py",
        "extra-push",
        '''
"""A short push."""
import torch
from lipcert.attack.base import ATTACKS, WithinEps
from lipcert.attack.margin import towards_rival

@ATTACKS.register("extra-push")
class ExtraPush(WithinEps):
    """Three steps towards the rival."""
    def within(self, target, eps, size):
        return towards_rival(target, torch.full_like(target.radius, eps), 3)
''',
    ),
    "provers": (
        "test_provers.py",
        "bounds/provers/convolutions/extra_triangle.py",
        "extra-triangle",
        '''
"""The triangle inequality."""
import math
import torch
from lipcert.bounds.provers.convolutions.base import PROVERS, Prover

@PROVERS.register("extra-triangle")
class ExtraTriangle(Prover):
    """The sum of the norms of all taps."""
    looseness = 4
    def is_affordable(self, weight, g, effort):
        return True
    def upper(self, weight, g):
        taps = torch.linalg.matrix_norm(weight.permute(2, 3, 0, 1), 2)
        return math.sqrt(g.copies) * float(taps.sum()) * (1 + 1e-9)
''',
    ),
    "optimizers": (
        "test_optimizers.py",
        "train/optimizers/extra_descent.py",
        "extra-descent",
        '''
"""Gradient descent."""
import torch
from lipcert.train.optimizers.base import OPTIMIZERS, check_rates

@OPTIMIZERS.register("extra-descent")
def extra_descent(parameters, lr: float = 0.1) -> torch.optim.Optimizer:
    """Plain gradient descent."""
    check_rates(lr, 0.0)
    return torch.optim.SGD(parameters, lr=lr)
''',
    ),
    "schedules": (
        "test_schedules.py",
        "train/schedules/extra_root.py",
        "extra-root",
        '''
"""A square root."""
from dataclasses import dataclass
from lipcert.train.schedules.base import SCHEDULES, Schedule

@SCHEDULES.register("extra-root")
@dataclass(frozen=True)
class ExtraRoot(Schedule):
    """start + (end - start) times the root of t."""
    end: float = 2.0
    def __call__(self, start, t):
        return start + (self.end - start) * t**0.5
''',
    ),
    "reproductions": (
        "test_reproductions.py",
        "paper/extra_figure.py",
        "extra-figure",
        '''
"""A figure."""
from lipcert.paper.definition import Reproduction, Variant, register

def draw(trained, base):
    return []

register(Reproduction("extra-figure", "A figure of nothing", (Variant("moons-cll"),), draw))
''',
    ),
    "commands": (
        "test_commands.py",
        "commands/extra.py",
        "extra",
        '''
"""`lipcert extra`: greet."""
from lipcert.commands.support.options import command

app = command()

@app.command()
def extra(name: str = "you") -> None:
    """Greet somebody.

    Example: lipcert extra --name me
    """
    print(f"hello {name}")
''',
    ),
    "activations": (
        "test_layers.py",
        "bounds/rules/extra_softsign.py",
        "Softsign",
        '''
"""x/(1 + |x|)."""
from torch import nn
from lipcert.bounds.contract import register
from lipcert.bounds.rules.pointwise import Smooth

register(Smooth(1.0), nn.Softsign, examples=[lambda: (nn.Softsign(), (6,))])
''',
    ),
}

# Files that break a law, and the law.
WRONG = {
    "common_shift": (
        "losses/wrong_hinge.py",
        NEW["losses"][3].replace("extra-hinge", "wrong-hinge").replace("gap = f -", "gap = 2 * f -"),
    ),
    "beats_the_proved_bound": (
        "nn/wrong_stretch.py",
        NEW["layers"][3].replace("ExtraStretch", "WrongStretch").replace("-1.0", "-1.01"),
    ),
}

# Asks the copy what it lists and completes, and runs the laws on what is new.
PROGRAM = """
import contextlib, json, sys
import pytest
from lipcert.commands.support import completion
from lipcert.commands.work.listing import listing

class Outcomes(dict):
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self[report.nodeid] = report.outcome

outcomes = Outcomes()
quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "extra or wrong or Softsign"]
completed = {kind: list(read()) for kind, read in completion.NAMES.items()}
with contextlib.redirect_stdout(sys.stderr):
    listed = {kind: [cells[0] for cells in listing(kind)[0].cells] for kind in completed if kind != "trained"}
    pytest.main([*quiet, *sys.argv[1:]], plugins=[outcomes])
print(json.dumps({"completed": completed, "listed": listed, "outcomes": outcomes}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ask a fresh process about a copy of lipcert with one more file of every kind and no other change."""
    place = tmp_path_factory.mktemp("copy")
    copy = place / "lipcert"
    shutil.copytree(Path(lipcert.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for file, content in [*((file, content) for _, file, _, content in NEW.values()), *WRONG.values()]:
        assert not (copy / file).exists()
        (copy / file).write_text(content)
    laws = sorted({str(LAWS / law) for law, *_ in NEW.values()})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *laws],
        capture_output=True,
        text=True,
        cwd=LAWS.parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(LAWS.parents[1])])},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_there_is_a_new_file_of_every_kind() -> None:
    assert {*KINDS, "layers", "commands", "activations"} == set(NEW)


@pytest.mark.parametrize("kind", NEW)
def test_a_new_file_is_listed_and_completed(kind: str, found: dict[str, Any]) -> None:
    name = NEW[kind][2]
    kind = {"activations": "layers"}.get(kind, kind)
    assert name in found["listed"][kind]
    assert name in found["completed"][kind]


@pytest.mark.parametrize("kind", NEW)
def test_a_new_file_is_tested(kind: str, found: dict[str, Any]) -> None:
    law, _, name, _ = NEW[kind]
    outcomes = {
        test: outcome
        for test, outcome in found["outcomes"].items()
        if law in test and name in test.partition("::")[2]
    }
    assert len(outcomes) >= 3
    assert set(outcomes.values()) == {"passed"}, outcomes


@pytest.mark.parametrize("law", WRONG)
def test_a_new_file_that_breaks_a_law_fails(law: str, found: dict[str, Any]) -> None:
    failed = [test for test, outcome in found["outcomes"].items() if outcome == "failed"]
    assert any(law in test and "wrong" in test.lower() for test in failed)


@pytest.mark.parametrize("kind", KINDS)
def test_names_read_from_files_are_those_registered(kind: str) -> None:
    registry = KINDS[kind].open()
    assert KINDS[kind].names() == list(registry)
    for name in registry:
        assert kind == "reproductions" or registry[name].summary, f"{name} has no docstring"


def test_layers_read_from_files_are_those_with_rules() -> None:
    known = {t for t in {*RULES, *REFUSALS} if t.__module__.startswith(("lipcert.", "torch."))}
    assert set(completion.NAMES["layers"]()) == {t.__name__ for t in known}
