"""Files of every kind obey the laws as they are written, and a planted fault of every kind is named."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lipcert import extensions
from lipcert.commands.support.completion import new_kinds
from lipcert.commands.work.new_file import written_text
from lipcert.laws import check_source
from lipcert.laws.checking import all_laws

pytestmark = pytest.mark.usefixtures("own_registries")

Cli = Callable[..., tuple[int, str, str]]

NOISY = """

import torch

class Noisy(nn.Sequential):
    def forward(self, x):
        return super().forward(x) + torch.randn(())
"""

FAR = """
    def sets(self, target, radii, size):
        for eps in radii:
            yield self.within(target, 2 * eps, size)
"""

# What is wrong, the kind, what is replaced in the file that `lipcert new` writes, and what the table says.
FAULTS = {
    "constant too small": ("layer", "1 + 2.0**-21", "0.5", "two points are stretched by"),
    "roundoff of a map that moves entries": (
        "layer",
        "return 8 * U * sample_norm(inputs[0]) + ",
        "return 0 * U * sample_norm(inputs[0]) + ",
        "float32 rounding error is",
    ),
    "roundoff too small": ("layer", "8 * U", "1e-3 * U", "float32 rounding error is"),
    "gain too small": ("layer", "return 9.0", "return 0.1", "`roundoff_gain` says 0.1"),
    "gradient of a layer": (
        "layer",
        "a, b = x.chunk",
        "a, b = (x.detach() * 0.5 + x * 0.5).chunk",
        "gradient to",
    ),
    "layer that couples samples": (
        "layer",
        "x.chunk",
        "(x - x.mean(0)).chunk",
        "changes with the other samples",
    ),
    "gradient of a loss": (
        "loss",
        "short**2\n",
        "short.detach() * short\n",
        "the gradient to the logits says",
    ),
    "loss that couples samples": (
        "loss",
        "short**2\n",
        "short**2 + short.mean()\n",
        "changes with the other",
    ),
    "loss with a common shift": (
        "loss",
        "short**2\n",
        "short**2 + logits[:, 0]\n",
        "added to all logits changes",
    ),
    "loss that overflows": (
        "loss",
        "short**2\n",
        "short.exp() - 1\n",
        "expected finite ones, found others at",
    ),
    "loss without its example": (
        "loss",
        '{"eps": 0.1}',
        "{}",
        "missing 1 required positional argument: 'eps'",
    ),
    "random number in forward": (
        "model",
        "(nn.Sequential(*layers))",
        f"(Noisy(*layers)){NOISY}",
        "other logits",
    ),
    "model of three classes": (
        "model",
        "width, num_classes",
        "width, 3",
        "1 classes: expected logits (3, 2)",
    ),
    "head of three classes": ("head", "eye(num_classes", "eye(3", "1 classes: expected logits (3, 2)"),
    "labels out of range": ("data", "(labels).long()", "(labels).long() + 1", "expected labels 0..1, got 2"),
    "random data": (
        "data",
        "3 * seed + get_args(Split).index(split)",
        "None",
        "two calls load different samples",
    ),
    "splits that overlap": (
        "data",
        "get_args(Split).index(split)",
        "0",
        "samples are in more than one split",
    ),
    "pixels out of range": (
        "augmentation",
        "1 - x",
        "2 - x",
        "expected pixels between 0 and 1, found others",
    ),
    "random numbers of its own": (
        "augmentation",
        "draws[:, :1, ",
        "torch.rand(len(x), 1)[:, :, ",
        "of its own",
    ),
    "ascent": (
        "optimizer",
        "lr=lr, momentum",
        "lr=lr, maximize=True, momentum",
        "40 steps take the loss from",
    ),
    "rates that are not checked": (
        "optimizer",
        "    check_rates(lr, weight_decay)\n",
        "",
        "found 'Invalid learning rate: -1.0'; call check_rates(lr, weight_decay)",
    ),
    "wrong end": ("schedule", "self.end - start", "1 - start", "expected 2 at fraction 1, found 1"),
    "turns without a knot": (
        "schedule",
        "t**0.5",
        "(t if t < 0.3 else 2 * t**2 - t)",
        "rises and falls between",
    ),
    "out of the ball": ("attack", "size.steps // 2)\n", f"size.steps // 2)\n{FAR}", "points leave the ball"),
    "too weak": (
        "attack",
        "return towards_rival(",
        "return target.x + 0 * towards_rival(",
        "breaks no certificate whose radius is three times too large",
    ),
    "too low": ("prover", "return with_padding", "return 0.1 * with_padding", "is below the norm"),
    "too high": ("prover", "return with_padding", "return 9 * with_padding", "the sum of all taps"),
    "no place of its own": ("prover", "= 100", "= 1", "looseness: 1 is that of StripProver, too"),
}


def words(out: str) -> str:
    """The text of a table whose cells were folded."""
    return " ".join(out.split())


@pytest.mark.parametrize("kind", new_kinds())
def test_a_new_file_of_every_kind_obeys_the_laws(kind: str, cli: Cli) -> None:
    status, out, err = cli("new", kind, f"trial-{kind}")
    assert status == 0, err
    path = shlex.split(out.splitlines()[-1])[-1]
    assert path == f"trial_{kind}.py"
    status, out, err = cli("check", path)
    assert (status, err) == (0, ""), out
    assert "passed" in out
    assert "failed" not in out


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault: str, tmp_path: Path) -> None:
    kind, right, wrong, said = FAULTS[fault]
    text = written_text(kind, f"trial-{kind}")
    assert text.count(right) == 1
    (tmp_path / "mine.py").write_text(text.replace(right, wrong), encoding="utf-8")
    failed = check_source(str(tmp_path / "mine.py")).failed
    assert any(said in check.reason for check in failed), [(c.law, c.reason) for c in failed]
    assert all("\n" not in check.reason for check in failed)


def test_a_broken_law_is_status_1(cli: Cli) -> None:
    text = written_text("layer", "trial").replace("1 + 2.0**-21", "0.5")
    Path("mine.py").write_text(text, encoding="utf-8")
    state = torch.get_rng_state()
    status, out, err = cli("check", "mine.py", "--output", "checks.json")
    assert status == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert "the proved constant is 0.5" in words(out)
    checks = json.loads(Path("checks.json").read_text(encoding="utf-8"))["checks"]
    failed = [check for check in checks if check["outcome"] == "failed"]
    assert failed
    assert err == f"lipcert: mine.py: {len(failed)} of {len(checks)} checks failed\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "mine.py: registers nothing; expected one of attacks, augmentations, data"),
        ("1 / 0", "mine.py: ZeroDivisionError: division by zero"),
        ("def", "mine.py: SyntaxError"),
    ],
)
def test_bad_files_are_status_2(content: str, said: str, cli: Cli) -> None:
    Path("mine.py").write_text(content, encoding="utf-8")
    status, out, err = cli("check", "mine.py")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_module_is_checked_with_what_is_inside_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "trial_package"
    package.mkdir()
    (package / "__init__.py").write_text("from trial_package import parts\n", encoding="utf-8")
    (package / "parts.py").write_text(written_text("schedule", "trial"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = check_source("trial_package")
    assert {(check.kind, check.name, check.outcome) for check in found.checks} == {
        ("schedules", "trial", "passed")
    }
    # What was loaded before is found by where it is.
    assert len(check_source("trial_package").checks) == len(found.checks)
    assert len(check_source("trial_package.parts").checks) == len(found.checks)


def test_a_rule_for_another_s_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "from lipcert.bounds.contract import register\n"
        "from lipcert.bounds.rules.pointwise import Smooth\n"
        "register(Smooth(1.0), nn.Softsign, examples=[lambda: (nn.Softsign(), (6,))])\n",
        encoding="utf-8",
    )
    for _ in range(2):
        found = check_source(str(tmp_path / "mine.py"))
        assert {check.name for check in found.checks} == {"Softsign-0"}
        assert not found.failed


def test_code_that_ends_the_process_is_a_failed_check(tmp_path: Path) -> None:
    text = written_text("schedule", "trial")
    (tmp_path / "mine.py").write_text(
        text.replace("return start", "raise SystemExit(3)\n        return start")
    )
    checks = check_source(str(tmp_path / "mine.py")).checks
    assert [check.outcome for check in checks] == ["passed", *["failed"] * 4]
    assert {check.reason for check in checks[1:]} == {"SystemExit: 3"}


def test_a_rule_that_bounds_no_rounding_error_is_skipped_there(tmp_path: Path) -> None:
    text = written_text("layer", "trial")
    text = (
        text[: text.index("    # `Constant` says 0")]
        .replace("(Constant)", "(Rule)")
        .replace("import Constant, ", "import ")
    )
    text = text.replace("lipcert.bounds import rule", "lipcert.bounds import Proof, Rule, rule").replace(
        "    def constant(", "    def estimate(self, module, vector):\n        return 1.0\n\n    def upper("
    )
    text = text.replace("shape: Any) -> float", "shape: Any, effort: Any) -> Proof").replace(
        "return 1 + 2.0**-21", 'return Proof(1 + 2.0**-21, "known")'
    )
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    found = check_source(str(tmp_path / "mine.py"))
    assert not found.failed, found.failed
    skipped = {check.reason for check in found.checks if "rounding error" in check.law}
    assert skipped == {
        "TrialRule says no `roundoff`: certificates of such a layer ignore rounding error",
        "TrialRule says no `roundoff_gain`, which float32 certificates need",
    }


def test_every_kind_that_a_file_can_register_has_laws() -> None:
    from lipcert.commands.support.registries import KINDS

    assert {laws.kind for laws in all_laws()} == {*KINDS, "layers"}
    assert all(len(list(laws)) >= 3 for laws in all_laws())


def test_nothing_stays_loaded() -> None:
    assert not extensions.loaded()  # by the tests before: their registries were theirs


def test_new_and_check_in_a_process_of_their_own(tmp_path: Path) -> None:
    for command in (["new", "loss", "trial-loss"], ["check", "trial_loss.py"]):
        done = subprocess.run(
            [sys.executable, "-m", "lipcert", *command],
            cwd=tmp_path,
            env=dict(os.environ),
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "trial_loss.py passed" in done.stdout
