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
from lipcert.commands.work.new_file import written_text

LAWS = Path(__file__).parent

# One new file per kind: its law file, where it goes, the name it brings, and its content.
NEW = {
    "losses": ("test_losses.py", "losses/extra_hinge.py", "extra-hinge", written_text("loss", "extra-hinge")),
    "layers": ("test_layers.py", "nn/extra_turn.py", "ExtraTurn", written_text("layer", "extra-turn")),
    "models": ("test_models.py", "models/extra_net.py", "extra-net", written_text("model", "extra-net")),
    "heads": (
        "test_heads.py",
        "models/heads/extra_reversed.py",
        "extra-reversed",
        written_text("head", "extra-reversed"),
    ),
    "data": ("test_data.py", "data/extra_points.py", "extra-points", written_text("data", "extra-points")),
    "augmentations": (
        "test_augmentations.py",
        "data/augmentations/extra_negative.py",
        "extra-negative",
        written_text("augmentation", "extra-negative"),
    ),
    "attacks": (
        "test_attacks.py",
        "attack/extra_push.py",
        "extra-push",
        written_text("attack", "extra-push"),
    ),
    "provers": (
        "test_provers.py",
        "bounds/provers/convolutions/extra_triangle.py",
        "extra-triangle",
        written_text("prover", "extra-triangle"),
    ),
    "optimizers": (
        "test_optimizers.py",
        "train/optimizers/extra_descent.py",
        "extra-descent",
        written_text("optimizer", "extra-descent"),
    ),
    "schedules": (
        "test_schedules.py",
        "train/schedules/extra_root.py",
        "extra-root",
        written_text("schedule", "extra-root"),
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
        written_text("loss", "wrong-hinge").replace("return short**2", "return short**2 + logits[:, 0]"),
    ),
    "beats_the_proved_bound": (
        "nn/wrong_turn.py",
        written_text("layer", "wrong-turn").replace("return torch.cat", "return 1.01 * torch.cat"),
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
