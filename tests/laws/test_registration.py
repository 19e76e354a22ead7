"""Adding one file adds its tests, and they can fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lipcert

LAWS = Path(__file__).parent
FILES = [p for p in LAWS.glob("test_*.py") if p.name != "test_registration.py"]

EXTRA_LOSS = '''
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
'''
EXTRA_LAYER = '''
"""Turns pairs of channels by a fixed angle, and stretches them."""
import torch
from torch import nn
from lipcert.bounds import Constant, rule

class ExtraStretch(nn.Module):
    def forward(self, x):
        return STRETCH * x.flip(1)

@rule(ExtraStretch, examples=[lambda: (ExtraStretch(), (4,))])
class ExtraStretchRule(Constant):
    """Said to be 1."""
'''


def run_laws(package: str, file: str, content: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the law tests in a fresh process on a copy of lipcert with one more file, and no other change."""
    copy = tmp_path / "lipcert"
    shutil.copytree(Path(lipcert.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / Path(*package.split(".")) / file).write_text(content)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "extra", *map(str, FILES)],
        capture_output=True,
        text=True,
        cwd=LAWS.parents[1],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )


@pytest.mark.parametrize(
    ("package", "file", "content", "at_least"),
    [
        ("lipcert.losses", "extra_hinge.py", EXTRA_LOSS, 8),
        ("lipcert.nn", "extra_stretch.py", EXTRA_LAYER.replace("STRETCH", "-1.0"), 6),
    ],
)
def test_a_new_file_is_tested(package: str, file: str, content: str, at_least: int, tmp_path: Path) -> None:
    done = run_laws(package, file, content, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = int(done.stdout.rpartition(" passed")[0].split()[-1])
    assert passed >= at_least


@pytest.mark.parametrize(
    ("package", "file", "content", "law"),
    [
        (
            "lipcert.losses",
            "extra_hinge.py",
            EXTRA_LOSS.replace("gap = f -", "gap = 2 * f -"),
            "common_shift",
        ),
        ("lipcert.nn", "extra_stretch.py", EXTRA_LAYER.replace("STRETCH", "-1.01"), "beats_the_proved_bound"),
    ],
)
def test_a_new_file_that_breaks_a_law_fails(
    package: str, file: str, content: str, law: str, tmp_path: Path
) -> None:
    done = run_laws(package, file, content, tmp_path)
    assert done.returncode == 1
    assert law in done.stdout
