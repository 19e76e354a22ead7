"""Larger pieces of work on a device: trainings, some of them resumed, proofs, certificates, attacks."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch
from torch import Tensor, nn

from lipcert.attack import attack
from lipcert.certificates.certifier import certifier
from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.losses import CLL
from lipcert.models import create
from lipcert.runs import Run
from lipcert.selftest.deviation import deviation
from lipcert.selftest.device_checks import Numbers
from lipcert.train import Hardware, Plan, fit
from lipcert.train.hardware import Accelerator, Precision
from lipcert.train.interrupt import Interrupt
from lipcert.train.loop import advance_to, monitored, steps_of
from lipcert.train.optimizers.adam import adam
from lipcert.train.state import Training

_SHAPE = (3, 16, 16)
_EPOCHS, _BATCH = 3, 32


@dataclass(frozen=True)
class Work:
    """A piece of work, how far its result lies from the expected one, and how far it may."""

    kind: str
    name: str
    precision: Numbers
    allowed: float
    measure: Callable[[], float]


def works(device: torch.device) -> Iterator[Work]:
    """Yield what can be done on this device."""
    yield from _trainings(device)
    model, data = small_model(), images()
    yield Work("proof", "K_f as on the CPU", "proved", 1e-12, partial(other_constant, model, device))
    yield Work(
        "certificate", "radii as on the CPU", "float64", 1e-6, partial(other_radii, model, data, device)
    )
    yield Work("attack", "certificates that break", "float64", 0.0, partial(broken, model, data, device))


def _trainings(device: torch.device) -> Iterator[Work]:
    """Yield a training, the same one stopped and resumed, in mixed precision, and in two processes."""
    accelerator = cast(Accelerator, device.type)
    train = cache(partial(trained, accelerator))

    def from_full(**changes: Any) -> Callable[[], float]:
        return lambda: deviation(trained(accelerator, **changes), train())

    exact = 0.0 if device.type == "cpu" else 1e-4  # other devices add in any order
    yield Work("training", "as on the CPU", "float32", 2e-2, lambda: deviation(train(), trained("cpu")))
    yield Work("training", "stopped and resumed", "float32", exact, from_full(stop=11))
    if device.type != "cpu":
        mixed: tuple[Numbers, ...] = ("bf16-mixed", "16-mixed")
        for precision in mixed:
            yield Work("training", "near full precision", precision, 0.3, from_full(precision=precision))
    if device.type == "cpu" or torch.cuda.device_count() > 1:
        yield Work("training", "two processes as one", "float32", 1e-3, partial(two_processes, accelerator))


def images() -> Dataset:
    """Return noise whose brightness is its class."""
    generator = torch.Generator().manual_seed(1)
    y = torch.arange(192) % 3
    noise = torch.randint(0, 86, (len(y), *_SHAPE), generator=generator)
    return Dataset((noise + 60 * y.view(-1, 1, 1, 1)).to(torch.uint8), y, ("dark", "grey", "bright"))


def small_model() -> nn.Module:
    """Return a small 4C3F with the weights of seed 1."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return create("4c3f", num_classes=3, input_shape=_SHAPE, width=0.125)


def plan() -> Plan:
    """Return a training with augmentation, a penalty and averaged weights."""
    return Plan(
        model=small_model(),
        loss=CLL(eps=0.15, slack=0.1, lam=1e-3),
        optimizer=partial(adam, lr=1e-3),
        train=images(),
        epochs=_EPOCHS,
        batch_size=_BATCH,
        seed=1,
        augmentation=Standard(crop=1, flip=True),
        ema=0.9,
    )


def trained(accelerator: Accelerator, precision: Precision = "32", stop: int | None = None) -> list[Tensor]:
    """Return the weights after a short training, which may be stopped after a step and resumed."""
    fabric = Hardware(accelerator=accelerator, precision=precision).launch()
    with TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        run.start({"name": "selftest"}, resume=False, overwrite=False)
        if stop is not None:
            training = Training(plan(), run, fabric)
            with monitored(training, bar=False), Interrupt() as interrupt:
                steps = steps_of(training)
                advance_to(stop, steps, interrupt)
                steps.save(0.0)
                steps.close()
        rest = plan()
        fit(rest, run, fabric, bar=False)
    return [p.detach().to("cpu", torch.float64) for p in rest.model.parameters()]


def two_processes(accelerator: Accelerator) -> float:
    """Return how far the losses of two processes lie from those of one."""
    with TemporaryDirectory() as folder:
        losses = [_losses(Run(Path(folder) / str(count)), accelerator, count) for count in (1, 2)]
    return deviation(losses[1:], losses[:1])


def _losses(run: Run, accelerator: Accelerator, devices: int) -> Tensor:
    command = [sys.executable, "-m", "lipcert", "train", "moons-cll", "--budget", "smoke"]
    options = ["--output", str(run.path), "--accelerator", accelerator, "--devices", str(devices)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}")
    return torch.tensor([epoch.loss for epoch in run.metrics()], dtype=torch.float64)


def other_constant(model: nn.Module, device: torch.device) -> float:
    """Return how far the proved constant of the model on the device lies from that on the CPU."""
    here, there = (certifier(one, _SHAPE).k_f for one in (model, _moved(model, device)))
    return abs(there - here) / here


def other_radii(model: nn.Module, data: Dataset, device: torch.device) -> float:
    """Return how far radii lie from those on the CPU; other predictions count as infinitely far."""
    x = data.floats(slice(64))
    here = certifier(model, _SHAPE)(x)
    there = certifier(_moved(model, device), _SHAPE)(x.to(device))
    if not torch.equal(here.prediction, there.prediction.cpu()):
        return float("inf")
    return deviation([there.radius.cpu().double()], [here.radius.double()])


def broken(model: nn.Module, data: Dataset, device: torch.device) -> float:
    """Return how many certificates our own attack refutes."""
    moved = _moved(model, device)
    on_device = replace(data, x=data.x.to(device), y=data.y.to(device))
    found = attack(moved, certifier(moved, _SHAPE), on_device, [0.1], "smoke", attacks=["margin"])
    return float(len(found.broken))


def _moved(model: nn.Module, device: torch.device) -> nn.Module:
    return copy.deepcopy(model).to(device).eval()
