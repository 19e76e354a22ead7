"""Estimates against what really happens: exact where they say so, within a stated factor elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from lipcert.bounds.provers.factorisation import spectral_norm_upper
from lipcert.certificates.loading import load
from lipcert.costs import estimate
from lipcert.costs.counting import Counting, Pretending
from lipcert.costs.timing import timed
from lipcert.data.examples import write_folder
from lipcert.recipes import execute, read_recipe
from lipcert.runs import Run

MOONS = ["train.epochs=2", "data.train=200", "data.test=50", "data.val=50"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("moons-cll", MOONS),
        ("folder", ["train.epochs=1", "train.ema=0.9", "model.width=0.0625"]),
        ("folder", ["train.epochs=1", "optimizer={name: sgd, lr: 0.1, momentum: 0.9}", "model.width=0.0625"]),
        ("cifar10-lipnext", ["train.batch_size=4"]),
        ("cifar10-cpl-xl-cll", ["train.batch_size=4"]),
    ],
)
def test_steps_parameters_and_checkpoints_are_exact(name: str, settings: list[str], tmp_path: Path) -> None:
    if name != "moons-cll":
        root = write_folder(tmp_path / "images")["root"]
        settings = [*settings, f"data={{name: folder, root: {root}, size: 16}}", "certify.tightness=null"]
    recipe = read_recipe(name, "smoke", settings)
    run = execute(recipe, tmp_path / "run")
    found = estimate(recipe)
    assert found.steps == Run(run.path).load_checkpoint()["step"]
    assert found.checkpoint == run.checkpoint.stat().st_size
    assert found.parameters == sum(p.numel() for p in load(run.path).parameters())
    assert [part.name for part in found.parts][:3] == ["training", "proof", "certificates"]
    assert all(part.flops > 0 < part.bytes for part in found.parts)


@pytest.mark.slow
def test_the_largest_network_is_estimated_without_being_allocated() -> None:
    code = """
import json, re
from pathlib import Path
from lipcert.certificates.loading import load
from lipcert.costs import estimate
from lipcert.recipes import read_recipe
recipe = read_recipe("cifar10-cpl-xl-cll", None, ["certify.effort=fast"])
found = estimate(recipe)
# The peak of getrusage would be that of the process of the test, which this one was forked from.
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([found.parameters, found.checkpoint, found.parts[0].memory, peak]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parameters, checkpoint, memory, peak = json.loads(done.stdout)
    assert round(parameters / 1e6) == 472
    assert checkpoint > 12 * parameters
    assert memory > 16 * parameters
    assert peak < 1.5e9 < memory


def test_products_and_memory_are_counted() -> None:
    with torch.device("meta"):
        layer, x = nn.Linear(30, 20, bias=False), torch.empty(7, 30)
        with Counting(*layer.parameters(), x) as counting:
            y = layer(x)
            del y
            layer(x)
    assert counting.work.flops == 2 * 2 * 7 * 30 * 20
    assert counting.work.peak == 4 * (30 * 20 + 7 * 30 + 7 * 20)


def test_a_proof_is_counted_as_it_runs() -> None:
    real = torch.rand(40, 60, dtype=torch.float64)
    with Counting() as counted:
        spectral_norm_upper(real)
    with torch.device("meta"), Pretending() as pretended:
        spectral_norm_upper(torch.empty(40, 60, dtype=torch.float64))
    assert pretended.work.flops == pytest.approx(counted.work.flops, rel=0.5)
    assert pretended.work.flops >= 2 * 40 * 40 * 60


def test_counting_leaves_no_trace_in_later_proofs() -> None:
    recipe = read_recipe("cifar10-4c3f-cll", "smoke", ["model.width=0.0625", "certify.effort=fast"])
    state = torch.get_rng_state()
    estimate(recipe)
    assert torch.equal(torch.get_rng_state(), state)
    with torch.random.fork_rng():
        layer = nn.Conv2d(3, 4, 3, padding=1)
    from lipcert.bounds import upper

    assert 0 < upper(layer, (3, 32, 32), "fast").value < 100


def test_seconds_grow_with_the_work() -> None:
    def work(side: int) -> float:
        with torch.device("meta"), Counting() as counting:
            torch.empty(side, side) @ torch.empty(side, side)
        return timed(counting.work, torch.device("cpu")).seconds

    assert work(1024) > 5 * work(128)


def test_the_command_prints_what_is_exact_and_what_is_not(cli) -> None:
    status, out, _ = cli("estimate", "moons-cll", "--budget", "smoke")
    assert status == 0
    assert "exact" in out
    assert "estimated" in out
    status, out, said = cli("estimate", "moons-cll", "--device", "nowhere")
    assert status == 2
    assert said.startswith("lipcert: --device: expected a device")
