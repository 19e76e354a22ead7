"""Train a network on arrays in memory, by the loop that trains recipes."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from pathlib import Path

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from torch import Tensor, nn

from lipcert.data import Dataset
from lipcert.errors import InputError, InterruptedRunError
from lipcert.losses import Loss
from lipcert.models import create
from lipcert.runs import Run
from lipcert.train import Plan, fit
from lipcert.train.optimizers.adam import adam
from lipcert.train.schedules.one_cycle import OneCycle

# Enough for scikit-learn's own tables; a large table is still seen a few times.
_STEPS, _EPOCHS = 500, 10


@dataclass(frozen=True)
class Settings:
    """The settings of a network; checked by their users, and here where that would be too late."""

    widths: Sequence[int]
    learning_rate: float
    epochs: int | None
    batch_size: int
    balanced: bool
    seed: int

    def __post_init__(self) -> None:
        counts = {"batch_size": self.batch_size, "epochs": 1 if self.epochs is None else self.epochs}
        for name, value in counts.items():
            if not isinstance(value, Integral) or value < 1:
                raise InputError(f"{name}: expected a whole number >= 1, got {value!r}")
        if not isinstance(self.learning_rate, Real) or not self.learning_rate > 0:
            raise InputError(f"learning_rate: expected a number > 0, got {self.learning_rate!r}")
        if not isinstance(self.widths, Sequence) or isinstance(self.widths, str):
            raise InputError(f"widths: expected a sequence of even numbers, got {self.widths!r}")

    def epochs_for(self, samples: int) -> int:
        """Return the given number of epochs, or as many as make enough steps."""
        steps = math.ceil(samples / self.batch_size)
        return max(_EPOCHS, math.ceil(_STEPS / steps)) if self.epochs is None else self.epochs


@dataclass(frozen=True)
class WeightedPlan(Plan):
    """A plan whose epochs hold samples as often as their weights say, in a random order."""

    weights: Tensor | None = None  # (B,), not negative

    def batches(self, epoch: int) -> tuple[Tensor, ...]:
        """Return the samples of each step; with equal weights every sample occurs once per epoch."""
        if self.weights is None:
            return super().batches(epoch)
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        count, edges = len(self.train), self.weights.double().cumsum(0)
        # Evenly spaced points with one random start: a sample occurs ⌊nw⌋ or ⌈nw⌉ times.
        start = torch.rand((), generator=generator, dtype=torch.float64)
        points = (torch.arange(count, dtype=torch.float64) + start) * (edges[-1] / count)
        chosen = torch.searchsorted(edges, points, right=True).clamp_max(count - 1)
        return torch.split(chosen[torch.randperm(count, generator=generator)], self.batch_size)


def train_network(
    data: Dataset, loss: Loss, settings: Settings, bar: bool, weights: Tensor | None = None
) -> nn.Module:
    """Train a network; the result depends on the arguments alone, and torch's generator is left unchanged."""
    epochs = settings.epochs_for(len(data))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = create(
            "mlp", num_classes=len(data.classes), input_shape=data.input_shape, widths=settings.widths
        )
        plan = WeightedPlan(
            model=model,
            loss=loss,
            optimizer=partial(adam, lr=settings.learning_rate),
            schedules={"optimizer.lr": OneCycle()},
            train=data,
            epochs=epochs,
            batch_size=min(settings.batch_size, len(data)),
            seed=settings.seed,
            checkpoint_every=epochs,
            balanced=settings.balanced,
            weights=weights,
        )
        _train(plan, bar)
    return model.eval()


def _train(plan: Plan, bar: bool) -> None:
    """Train in this process and discard the loop's files."""
    fabric = Fabric(accelerator="cpu", devices=1, plugins=LightningEnvironment())
    with tempfile.TemporaryDirectory(prefix="lipcert-") as place:
        run = Run(Path(place) / "CertifiedClassifier")
        run.start({}, resume=False, overwrite=False)
        try:
            fit(plan, run, fabric, bar=bar)
        except InterruptedRunError:  # the saved state goes with the directory
            raise KeyboardInterrupt from None
