"""The command line as a user meets it: what it prints, writes, refuses, and its exit status."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lipcert.certificates.loading import load
from lipcert.commands.support import completion
from lipcert.commands.work import diagnosis
from lipcert.data.fetch import ARCHIVES
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


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--stack", "seed"], "expected KEY=VALUES"),
        (["--stack", "seed="], "expected KEY=VALUES"),
        (["--stack", "seed=1,1"], "seed has a value twice"),
        (["--stack", "seed=one"], "seed"),
        (["--stack", "optimizer.lr=0.1,0.2"], "differ in optimizer"),
        (["--stack", "model.widths=1"], "widths"),
        (["moons-soc"], "moons-cll and moons-soc differ in model"),
        (["--stack", "seed=1..2", "--devices", "2"], "in one process"),
    ],
)
def test_what_cannot_be_stacked_is_named(cli, arguments: list[str], complaint: str) -> None:
    status, _, err = cli(*SMOKE, *arguments, "--output", "out")
    assert status == 2
    assert complaint in err
    assert not Path("out").exists()


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
    found = json.loads(Path("run/certificate.json").read_text())
    assert found["splits"]["train"]["samples"] == 2000
    assert found["rounding"] == "float64"
    assert load("run").training is False

    status, out, _ = cli("certify", "run", "--split", "val", "--radii", "0.05,0.1", "--output", "c.json")
    assert status == 0
    assert "float64 rounding included" in out
    again = json.loads(Path("c.json").read_text())["splits"]["val"]["certified"]
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
    Path("run/mine.txt").write_text("not lipcert's")
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

def odd():
    return nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))

number = 3
"""


def test_inspect_a_model_of_ones_own(cli) -> None:
    Path("own.py").write_text(OWN)
    status, out, err = cli("inspect", "own.py:Own", "--input-shape", "3,5,5")
    assert status == 0, err
    assert "4×5×5" in out
    assert "gram" in out
    for arguments, said in [
        (["own.py:Own"], "--input-shape"),
        (["own.py:Own", "--input-shape", "3,5"], "input_shape"),
        (["own.py:Own", "--input-shape", "wide"], "--input-shape"),
        (["own.py:odd", "--input-shape", "2"], "LayerNorm"),
        (["own.py:number", "--input-shape", "2"], "not callable"),
        (["own.py:nothing", "--input-shape", "2"], "nothing"),
        (["gone.py:Own", "--input-shape", "2"], "no such Python file"),
    ]:
        status, _, err = cli("inspect", *arguments)
        assert status in (1, 2), arguments
        assert said in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "nothing"], "unknown recipe 'nothing'"),
        ([*SMOKE, "--set", "loss.slack=0.7"], "loss.slack: expected between 0 and 0.5"),
        ([*SMOKE, "--set", "train.batch_size=2001"], "train.batch_size: 2001 is larger than the 2000"),
        ([*SMOKE, "--set", "data.train=1"], "data.train: expected at least 2 points"),
        ([*SMOKE, "--set", "model.widths=[3]"], "model.widths: expected even numbers"),
        ([*SMOKE, "--budget", "huge"], "no budget 'huge'"),
        (["train"], "Missing argument"),
        (["train", "moons-cll", "--epochs", "3"], "No such option: --epochs"),
        (["fly"], "No such command"),
        (["certify", "nowhere"], "no such run directory"),
        (["certify", ".", "--split", "dev"], "--split"),
        (["certify", ".", "--rounding", "up"], "--rounding: expected one of float64, float32, ignored"),
        (["certify", ".", "--effort", "much"], "--effort: expected one of auto, exact, fast"),
        (["inspect", ".", "--effort", "much"], "--effort: expected one of auto, exact, fast"),
        (["tightness", ".", "--budget", "huge"], "--budget: expected one of full, cpu, smoke"),
        (["attack", ".", "--budget", "huge"], "--budget: expected one of full, cpu, smoke"),
        (["reproduce", "fig-1000"], "unknown reproduction"),
        (["reproduce", "moons", "--seeds", "one"], "--seeds"),
        (["reproduce", "moons", "--seeds", "1,1"], "--seeds"),
        (["reproduce", "moons", "--jobs", "0", "--budget", "smoke"], "--jobs"),
        (["list", "unicorns"], "list: expected one of"),
    ],
)
def test_wrong_input_is_one_line_status_2_and_nothing_written(
    arguments: list[str], said: str, cli, tmp_path
) -> None:
    status, out, err = cli(*arguments)
    assert status == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


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
    assert set(completion.DATA_SETS) == set(ARCHIVES)
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


def test_ctrl_c_ends_a_certification_with_status_130_and_writes_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, signal, os\n"
        "def certify(*a, **k): os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)\n"
        "import lipcert.commands.work.certify_model as certifying; certifying.certify_data = certify\n"
        "sys.argv = ['lipcert', 'certify', 'moons-cll']\n"
        "from lipcert.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "lipcert: interrupted"
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
