"""The command line as a user meets it: what it prints, writes, refuses, and its exit status."""

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

from lipcert.certificates.loading import load
from lipcert.commands.support import completion
from lipcert.commands.work import diagnosis
from lipcert.data.archives import archives
from lipcert.models.trained import trained_models
from lipcert.paper import REPRODUCTIONS
from lipcert.recipes import packaged_recipes
from tests.laws.test_commands import all_commands

SMOKE = ["train", "moons-cll", "--budget", "smoke"]


def test_help_does_not_wait_for_torch() -> None:
    program = (
        "import sys; sys.argv = ['lipcert', '--help']\n"
        "from lipcert.cli import main\n"
        "try: main()\n"
        "except SystemExit: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Usage: lipcert" in done.stdout
    assert done.stdout.rstrip().endswith("False")


def test_a_stack_leaves_the_runs_that_single_trainings_leave(cli) -> None:
    status, out, err = cli(*SMOKE, "--stack", "seed=1..2", "--stack", "loss.eps=0.1,0.2", "--output", "all")
    assert status == 0, err
    names = [f"moons-cll-seed{seed}-eps{eps}" for seed in (1, 2) for eps in (0.1, 0.2)]
    assert sorted(p.name for p in Path("all").iterdir()) == names
    assert all(f"run: all/{name}" in out for name in names)
    assert cli(*SMOKE, "--set", "seed=2", "--set", "loss.eps=0.1", "--output", "one")[0] == 0
    one, stacked = Path("one"), Path("all") / names[2]
    assert (one / "recipe.yaml").read_text() == (stacked / "recipe.yaml").read_text()
    assert (one / "model.safetensors").read_bytes() == (stacked / "model.safetensors").read_bytes()
    found = [json.loads((run / "certificate.json").read_text()) for run in (one, stacked)]
    for certificate in found:
        del certificate["seconds"], certificate["layers"]  # which tell how long each proof took
    assert found[0] == found[1]
    assert cli("verify", str(stacked))[0] == 0
    before = (stacked / "model.safetensors").stat().st_mtime_ns
    arguments = ["--stack", "seed=1..2", "--stack", "loss.eps=0.1,0.2", "--output", "all"]
    assert cli(*SMOKE, *arguments, "--resume")[0] == 0  # finished: nothing is made again
    assert (stacked / "model.safetensors").stat().st_mtime_ns == before
    status, _, err = cli(*SMOKE, *arguments)
    assert status == 2
    assert "holds another run" in err


def test_train_then_certify(cli, tmp_path: Path) -> None:
    status, out, err = cli(*SMOKE, "--output", "run")
    assert status == 0, err
    assert "CRA" in out
    assert "run: run" in out
    names = {p.name for p in Path("run").iterdir()}
    assert names >= {
        "recipe.yaml",
        "metrics.jsonl",
        "model.safetensors",
        "certificate.json",
        "checkpoints",
        "tensorboard",
    }
    found = json.loads(Path("run/certificate.json").read_text(encoding="utf-8"))
    assert found["splits"]["train"]["samples"] == 2000
    assert found["rounding"] == "float64"
    assert load("run").training is False

    status, out, _ = cli("certify", "run", "--split", "val", "--radii", "0.05,0.1", "--output", "c.json")
    assert status == 0
    assert "float64 rounding included" in out
    again = json.loads(Path("c.json").read_text(encoding="utf-8"))["splits"]["val"]["certified"]
    assert [row["radius"] for row in again] == [0.05, 0.1]
    status, out, _ = cli("certify", "run/model.safetensors", "--data", "moons", "--rounding", "ignored")
    assert status == 0
    assert "ROUNDING IGNORED" in out

    status, out, _ = cli("inspect", "run")
    assert status == 0
    assert out.count("Linear") == 7
    assert "cholesky" in out

    status, _, err = cli(*SMOKE, "--output", "run")
    assert status == 2
    assert "--resume continues it" in err
    status, _, err = cli(*SMOKE, "--output", "run", "--resume", "--set", "seed=5")
    assert status == 2
    assert "differs in seed" in err
    before = Path("run/model.safetensors").stat().st_mtime_ns
    assert cli(*SMOKE, "--output", "run", "--resume")[0] == 0
    assert Path("run/model.safetensors").stat().st_mtime_ns == before
    Path("run/mine.txt").write_text("not lipcert's", encoding="utf-8")
    assert cli(*SMOKE, "--output", "run", "--overwrite")[0] == 0
    assert Path("run/mine.txt").exists()
    assert Path("run/model.safetensors").stat().st_mtime_ns != before


OWN = """
import torch.nn.functional as F
from torch import nn
from lipcert.nn import MinMax

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4 * 25, 2)

    def forward(self, x):
        x = F.relu(self.first(x))
        return self.head((x + self.second(x)).flatten(1))
"""


def test_inspect_a_model_of_ones_own(cli) -> None:
    Path("own.py").write_text(OWN, encoding="utf-8")
    status, out, err = cli("inspect", "own.py:Own", "--input-shape", "3,5,5")
    assert status == 0, err
    assert "4×5×5" in out
    assert "gram" in out


def test_an_output_that_cannot_be_written(cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for output in ("file", "file/run", "/proc/lipcert"):
        status, _, err = cli(*SMOKE, "--output", output)
        assert status == 2
        assert len(err.strip().splitlines()) == 1
    assert (tmp_path / "file").read_text() == "in the way"
    status, _, err = cli("reproduce", "moons-demo", "--budget", "smoke", "--output", "file/out")
    assert status == 2
    assert "cannot be written" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_directory(cli, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    status, _, err = cli(*SMOKE, "--output", "locked/run")
    assert status == 2
    assert "cannot be written" in err


def test_other_files_are_not_overwritten_without_being_told(cli, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    status, _, err = cli(*SMOKE, "--output", "run")
    assert status == 2
    assert "--overwrite" in err
    assert (tmp_path / "run" / "thesis.tex").read_text() == "years of work"


def test_a_damaged_run_is_named(cli, tmp_path: Path) -> None:
    assert cli(*SMOKE, "--output", "run")[0] == 0
    Path("run/certificate.json").unlink()
    checkpoint = Path("run/checkpoints/last.ckpt")
    checkpoint.write_bytes(checkpoint.read_bytes()[:500])
    status, _, err = cli(*SMOKE, "--output", "run", "--resume")
    assert status == 2
    assert "last.ckpt: cut short" in err
    weights = Path("run/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-9])
    status, _, err = cli("certify", "run")
    assert status == 2
    assert "cut short" in err


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "lipcert", "list", "unicorns"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("lipcert: list: expected one of")


@pytest.mark.parametrize("kind", completion.NAMES)
def test_list_shows_every_kind(kind: str, cli) -> None:
    status, out, _ = cli("list", kind)
    assert status == 0
    assert len(out.splitlines()) > 4


def test_alone_it_shows_where_to_start(cli) -> None:
    status, out, err = cli()
    assert status == 0, err
    typed = [line.split("   ")[0].strip() for line in out.splitlines() if line.startswith("  lipcert ")]
    assert len(typed) > 5
    for line in typed:
        name, *words = shlex.split(line.removeprefix("lipcert "))
        all_commands()[name].make_context(name, words)


def test_the_doctor(cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-bin").mkdir()
    monkeypatch.setenv("LIPCERT_DATA", str(tmp_path))
    known = diagnosis.metadata.version

    def version(name: str) -> str:
        if name == "foolbox":
            raise diagnosis.metadata.PackageNotFoundError(name)
        return "0.1" if name == "typer" else known(name)

    monkeypatch.setattr(diagnosis.metadata, "version", version)
    status, out, err = cli("doctor")
    assert status == 0, err
    assert str(tmp_path / "cifar-10-batches-bin") in out
    assert "lipcert data fetch cifar100" in out
    assert "missing foolbox: pip install 'lipcert[attack]'" in out
    assert "0.1, but lipcert needs >=0.15" in out
    assert str(torch.__version__) in out


def test_a_shell_completes_what_there_is() -> None:
    assert completion.kinds("") == sorted(completion.NAMES)
    assert completion.reproductions("") == list(REPRODUCTIONS)
    assert completion.data_sets("") == list(archives())
    assert completion.recipes("") == packaged_recipes()
    assert completion.recipes("moons-g") == [
        name for name in packaged_recipes() if name.startswith("moons-g")
    ]
    assert completion.models("") == trained_models()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("lipcert tra", "train"),
        ("lipcert train moons-cl", "moons-cll-0.2"),
        ("lipcert list rep", "reproductions"),
        ("lipcert list optimizers mu", "muon"),
        ("lipcert reproduce fig-s", "fig-slack"),
    ],
)
def test_completion_in_a_real_shell(words: str, expected: str) -> None:
    """The script that --show-completion gives, asked by bash itself."""
    lipcert = Path(sys.executable).parent / "lipcert"
    environment = {
        **os.environ,
        "PATH": f"{lipcert.parent}:{os.environ['PATH']}",
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    asked = f"""
    eval "$(lipcert --show-completion bash)"
    COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}
    _lipcert_completion lipcert && printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, env=environment)
    assert expected in done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    ],
    ids=["python", "torch"],
)
def test_memory_that_is_missing_is_one_line(
    error: Exception, cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("lipcert.recipes.execution.build", fails)
    status, _, said = cli("train", "moons-cll", "--budget", "smoke")
    assert (status, said.count("\n")) == (1, 1)
    assert said.startswith("lipcert: there is not enough memory")
