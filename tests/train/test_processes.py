"""Several real processes: the same training as one, to the last digits that the order of sums leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lipcert.certificates.certifier import Certifier
from lipcert.certificates.verification import certify_data
from lipcert.runs import Run
from lipcert.train.hardware import is_first_process, started
from tests.train.program import plan

PROGRAM = str(Path(__file__).with_name("program.py"))
ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run(*command: str, fails: bool = False) -> str:
    """Run it; what it said on stderr."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode != 0) == fails, done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("alone") / "run"
    run(sys.executable, PROGRAM, str(path), "1")
    return path


def state(path: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(path / f"rank{rank}.pt", weights_only=True)
    return found


def agree(a: Path, b: Path) -> None:
    first, second = state(a), state(b)
    for name in first:
        assert torch.allclose(first[name].double(), second[name].double(), rtol=1e-9, atol=1e-9), name


@pytest.mark.parametrize("launcher", ["fabric", "torchrun"])
def test_two_processes_train_what_one_trains(launcher: str, alone: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, PROGRAM] if launcher == "fabric" else [*TORCHRUN, PROGRAM]
    run(*command, str(path), "2" if launcher == "fabric" else "1")  # torchrun says how many
    agree(alone, path)
    # The power-iteration vectors, the weights and the certificates of all processes are the same bits.
    first, second = state(path, 0), state(path, 1)
    assert all(torch.equal(first[name], second[name]) for name in first)
    # Counts over uneven parts are exact.
    for one, two in zip(Run(alone).metrics(), Run(path).metrics(), strict=True):
        assert two.loss == pytest.approx(one.loss, rel=1e-9)
        for count in ("accuracy", "val_accuracy", "val_cra_estimate"):
            assert two.numbers[count] == one.numbers[count]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["model=built", "optimizer=muon"])
def test_layers_that_follow_their_norms_and_muon_train_alike(option: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    run(sys.executable, PROGRAM, str(one), "1", option)
    run(sys.executable, PROGRAM, str(two), "2", option)
    agree(one, two)
    first, second = state(two, 0), state(two, 1)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("1", "2"), ("2", "1")])
def test_a_run_resumes_on_another_number_of_devices(
    before: str, after: str, alone: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    run(sys.executable, PROGRAM, str(path), before, "stop=13", fails=True)
    run(sys.executable, PROGRAM, str(path), after)
    agree(alone, path)
    assert [m.step for m in Run(path).metrics()] == [11, 22]


@pytest.mark.slow
def test_one_network_is_certified_even_if_statistics_differ(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(sys.executable, PROGRAM, str(path), "2", "model=batch")
    trained = [torch.load(path / f"trained{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert any(not torch.equal(trained[0][k], trained[1][k]) for k in trained[0])
    first, second = state(path, 0), state(path, 1)
    assert torch.equal(first["radius"], second["radius"])
    network = plan("batch").model
    network.load_state_dict(trained[0])
    again = certify_data(Certifier(network.eval(), (1, 6, 6)), plan("batch").train)
    assert torch.allclose(first["radius"], again.radius, rtol=1e-9)


def test_processes_part_while_the_interpreter_is_whole() -> None:
    """Threads of gloo that outlive it abort the process, now and then."""
    program = """
import atexit
from torch import distributed
from lipcert.train import Hardware
atexit.register(lambda: print(distributed.is_initialized()))  # the last to run
Hardware("cpu", 1, strategy="ddp").launch()
print(distributed.is_initialized())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("rank", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_process_that_dies_ends_the_job_with_its_error(rank: str, tmp_path: Path) -> None:
    said = run(sys.executable, PROGRAM, str(tmp_path / "run"), "2", f"die={rank}", fails=True)
    assert "TypeError: died" in said


@pytest.mark.slow
def test_the_command_line_on_two_devices(cli, tmp_path: Path) -> None:
    common = ["moons-cll", "--set", "train.epochs=1", "--set", "train.dtype=float64", "--set", "data.val=501"]
    for devices in ("1", "2"):
        place = str(tmp_path / devices)
        command = ["train", *common, "--accelerator", "cpu", "--devices", devices, "--output", place]
        run(sys.executable, "-m", "lipcert.cli", *command)
    one, two = (load_file(tmp_path / d / "model.safetensors") for d in "12")
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 1e-9
    # The certificate that two processes counted is what one counts on the same weights.
    again = ["certify", str(tmp_path / "2"), "--split", "val", "--output", str(tmp_path / "again.json")]
    assert cli(*again)[0] == 0
    shared, single = (json.loads((tmp_path / p).read_text()) for p in ("2/certificate.json", "again.json"))
    assert shared["splits"]["val"] == single["splits"]["val"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--devices", "0"], "--devices"),
        (["--devices", "many"], "--devices"),
        (["--nodes", "0"], "--nodes"),
        (["--precision", "8"], "--precision"),
        (["--precision", "16-mixed", "--accelerator", "cpu"], "needs an accelerator"),
        (["--strategy", "magic"], "magic"),
        (["--accelerator", "quantum"], "quantum"),
    ],
)
def test_hardware_that_cannot_be_is_named(arguments: list[str], said: str, cli) -> None:
    status, _, error = cli("train", "moons-cll", "--budget", "smoke", *arguments)
    assert status == 2
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "first"),
    [
        ({}, True),
        ({"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"RANK": "4", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
        ({"LOCAL_RANK": "1"}, False),
        ({"NODE_RANK": "1"}, False),
        ({"NODE_RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"SLURM_PROCID": "3", "SLURM_LOCALID": "0"}, False),
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "1", "LOCAL_RANK": "0"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
    ],
)
def test_one_process_writes(variables: dict[str, str], first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() == first


@pytest.mark.parametrize(
    ("variables", "devices"),
    [
        ({}, ("1", 1)),
        ({"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8"}, (4, 2)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_NNODES": "2"}, (4, 2)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_NAME": "bash"}, ("1", 1)),
    ],
)
def test_the_launcher_says_how_many_processes_there_are(
    variables: dict[str, str], devices: tuple[int | str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE", "SLURM_PROCID", "SLURM_JOB_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert started("1", 1) == devices
    assert started("3", 1) == ("3", 1)
