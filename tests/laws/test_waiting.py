"""A training step reads no value from the device, so that a GPU never waits for the program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lipcert.data import Dataset
from lipcert.data.augmentations import AUGMENTATIONS, Augmentation
from lipcert.losses import CLL, LOSSES, Loss
from lipcert.models import MODELS, ModelCard
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.optimizers import OPTIMIZERS
from lipcert.train.optimizers.base import MakeOptimizer
from lipcert.train.state import Training
from lipcert.train.step import Single
from lipcert.waiting import as_on_an_accelerator
from tests.laws.reads import Reads

LOSS = CLL(eps=0.1, slack=0.1, lam=1e-3)
IMAGES = (3, 8, 8)
HOST = ("step", "mu_product")


@pytest.fixture(autouse=True)
def _as_on_an_accelerator() -> Iterator[None]:
    with as_on_an_accelerator():
        yield


def optimizer(name: str) -> MakeOptimizer:
    entry = OPTIMIZERS[name]

    def make(*given: Any, **named: Any) -> torch.optim.Optimizer:
        return entry.constructor(*given, **named, **entry.example)

    make.__signature__ = inspect.signature(entry.constructor)  # type: ignore[attr-defined]
    return make


def network(classes: int = 3) -> nn.Module:
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(256, 8), nn.ReLU(), nn.Linear(8, classes))


def samples(shape: tuple[int, ...], classes: int) -> Dataset:
    x = torch.randint(256, (max(8, classes), *shape), dtype=torch.uint8)
    y = torch.arange(len(x)) % classes
    return Dataset(x if len(shape) == 3 else x / 255, y, tuple(map(str, range(classes))))


def reads_of_a_step(
    path: Path,
    model: nn.Module | None = None,
    *,
    shape: tuple[int, ...] = IMAGES,
    classes: int = 3,
    loss: Loss = LOSS,
    make: MakeOptimizer | None = None,
    augmentation: Augmentation | None = None,
    **settings: Any,
) -> list[str]:
    """The reads of the third step; the first ones make the state of the optimiser."""
    torch.manual_seed(0)
    model = network(classes) if model is None else model
    plan = Plan(
        model=model,
        loss=loss,
        optimizer=make or optimizer("adam"),
        train=samples(shape, classes),
        epochs=100,
        batch_size=4,
        seed=0,
        augmentation=augmentation,
        **settings,
    )
    steps = Single(Training(plan, Run(path), Hardware("cpu").launch()))
    steps.advance()
    steps.advance()
    # Optimisers count their steps on the CPU, wherever the parameters are.
    host = [s[key] for s in steps.training.optimizer.state.values() for key in HOST if key in s]
    with Reads(host) as reads:
        steps.advance()
    return reads.found


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("classes", [3, 300])
def test_no_loss_reads(name: str, classes: int, tmp_path: Path) -> None:
    found = reads_of_a_step(
        tmp_path, loss=LOSSES.example(name), classes=classes, estimate="block", iterations=1
    )
    assert found == []


@pytest.mark.parametrize("name", list(MODELS))
def test_no_model_reads(name: str, tmp_path: Path) -> None:
    arguments = dict(MODELS[name].example)
    classes, shape = arguments.pop("num_classes", 3), tuple(arguments.pop("input_shape", (2,)))
    model = ModelCard(name, classes, shape, arguments).build()
    found = reads_of_a_step(tmp_path, model, shape=shape, classes=classes, estimate="block", iterations=1)
    assert found == []


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_no_augmentation_reads(name: str, tmp_path: Path) -> None:
    found = reads_of_a_step(tmp_path, augmentation=AUGMENTATIONS.example(name), estimate="block")
    assert found == []


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_no_optimizer_reads(name: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"clip": 1.0, "ema": 0.9, "accumulate": 2, "balanced": True}
    assert reads_of_a_step(tmp_path, make=optimizer(name), estimate="block", **settings) == []


@pytest.mark.parametrize("estimate", ["power", "block", "krylov"])
def test_no_estimate_reads(estimate: str, tmp_path: Path) -> None:
    assert reads_of_a_step(tmp_path, estimate=estimate) == []


def test_reads_are_noticed() -> None:
    x = torch.ones(3, requires_grad=True)
    with Reads() as reads:
        float(x.sum())
        x[x > 2]
        torch.linalg.eigh(torch.eye(2))
        torch.linalg.cholesky(torch.eye(2))
        torch.linalg.matrix_exp(torch.eye(2))
    assert len(reads.found) == 5
