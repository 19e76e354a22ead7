"""The SLURM script in examples/ with stand-ins for srun and scontrol, which this machine does not have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lipcert.runs import Run

ROOT = Path(__file__).parents[1]

# Starts the command once per task with the variables of SLURM, hands signals on, returns the largest status.
SRUN = """
import os, signal, subprocess, sys
tasks = int(os.environ["SLURM_NTASKS"])
def variables(rank):
    return {**os.environ, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0"}
processes = [subprocess.Popen(sys.argv[1:], env=variables(rank)) for rank in range(tasks)]
signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in processes])
sys.exit(max(process.wait() for process in processes))
"""


def program(path: Path, source: str) -> None:
    path.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a job with two tasks on one node."""
    tools = tmp_path / "tools"
    tools.mkdir()
    program(tools / "srun", SRUN)
    program(
        tools / "scontrol", f"import sys\nopen({str(tmp_path / 'said')!r}, 'w').write(' '.join(sys.argv[1:]))"
    )
    program(tools / "lipcert", "from lipcert.cli import main\nmain()")
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_NNODES": "1",
        "SLURM_JOB_ID": "71",
        "SLURM_JOB_NAME": "lipcert",
        "SLURM_NODELIST": "localhost",
    }


def job(*arguments: str) -> list[str]:
    return ["bash", str(ROOT / "examples" / "slurm.sh"), "moons-cll", *arguments, "--set", "model.widths=[4]"]


@pytest.mark.slow
def test_a_job_trains_stops_at_its_signal_and_goes_on(cluster: dict[str, str], tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    command = job(str(run.path), "--accelerator", "cpu", "--set", "train.epochs=40")
    first = subprocess.Popen(command, env=cluster, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (run.metrics_file.is_file() and run.metrics_file.read_text(encoding="utf-8").count("\n") > 1):
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    step = subprocess.run(["pgrep", "-P", str(first.pid)], capture_output=True, text=True, check=True)
    os.kill(int(step.stdout), signal.SIGTERM)  # to the step, as `--signal=TERM@120` does
    assert first.wait(timeout=120) == 0
    assert (tmp_path / "said").read_text(encoding="utf-8") == "requeue 71"
    assert run.checkpoint.is_file()
    assert not run.certificate.exists()
    subprocess.run(command, env=cluster, timeout=240, check=True)
    assert [row.epoch for row in run.metrics()] == list(range(1, 41))
    assert run.certificate.is_file()


def test_a_job_without_a_run_is_told_its_usage(cluster: dict[str, str]) -> None:
    done = subprocess.run(job()[:2], env=cluster, capture_output=True, text=True)
    assert done.returncode != 0
    assert "usage: sbatch examples/slurm.sh RECIPE RUN" in done.stderr
