"""The training loop, on Lightning Fabric. It knows models, losses and data only by their contracts."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.data import Dataset
from lipcert.errors import InputError, InterruptedRunError, TrainingError
from lipcert.losses import Loss
from lipcert.train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from lipcert.train.interrupt import Interrupt
from lipcert.train.monitor import Monitor
from lipcert.train.rundir import RunDirectory
from lipcert.train.schedules import Schedule


@dataclass(frozen=True)
class Plan:
    """Everything one training needs, with no name left to look up."""

    model: nn.Module
    loss: Loss
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
    train: Dataset
    epochs: int
    batch_size: int
    seed: int
    val: Dataset | None = None
    validate_every: int = 0  # epochs; 0: never
    checkpoint_every: int = 1  # epochs
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    accelerator: str = "auto"

    def __post_init__(self) -> None:
        if self.batch_size > len(self.train):
            raise InputError(
                f"batch_size: {self.batch_size} is larger than the {len(self.train)} training samples"
            )

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps; the last batch of an epoch may be smaller."""
        return math.ceil(len(self.train) / self.batch_size)

    @property
    def total_steps(self) -> int:
        """Of the whole training."""
        return self.epochs * self.steps_per_epoch

    def batches(self, epoch: int) -> tuple[Tensor, ...]:
        """The samples of each step: a function of seed and epoch alone, so that any resume sees the same."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.train), generator=generator)
        return torch.split(order, self.batch_size)

    def loss_at(self, t: float) -> Loss:
        """The loss with its numbers at fraction t of the training."""
        numbers = {
            key.removeprefix("loss."): schedule(getattr(self.loss, key.removeprefix("loss.")), t)
            for key, schedule in self.schedules.items()
            if key.startswith("loss.")
        }
        return dataclasses.replace(self.loss, **numbers)

    def optimizer_numbers(self, start: Mapping[str, float], t: float) -> dict[str, float]:
        """The optimiser's scheduled numbers at fraction t."""
        keys = [key for key in self.schedules if key.startswith("optimizer.")]
        return {
            key.removeprefix("optimizer."): self.schedules[key](start[key.removeprefix("optimizer.")], t)
            for key in keys
        }


def fit(plan: Plan, run: RunDirectory) -> float:
    """Train `plan.model` in place, from the run's last checkpoint if it has one; seconds spent in all."""
    return _Training(plan, run).finish()


class _Training:
    """The state of one training, and its steps."""

    def __init__(self, plan: Plan, run: RunDirectory) -> None:
        self.plan, self.run = plan, run
        self.bounded = Bounded(plan.model, plan.train.input_shape)
        self.fabric = _fabric(plan.accelerator)
        self.forward, self.optimizer = self.fabric.setup(
            self.bounded, plan.optimizer(self.bounded.parameters())
        )
        self.x = plan.train.x.to(self.fabric.device, next(plan.model.parameters()).dtype)
        self.y = plan.train.y.to(self.fabric.device)
        self.start_numbers = dict(self.optimizer.param_groups[0])
        self.losses = torch.zeros(plan.steps_per_epoch, dtype=torch.float64, device=self.fabric.device)
        self.correct = torch.zeros((), dtype=torch.int64, device=self.fabric.device)
        self.step, self.seconds = 0, 0.0
        self.epoch_drawn = -1
        self.batches: tuple[Tensor, ...] = ()
        if run.checkpoint.exists():
            self._restore(load_checkpoint(run.checkpoint))

    def finish(self) -> float:
        plan = self.plan
        with Interrupt() as interrupt, Monitor(self.run, plan.epochs, self.step) as monitor:
            clock = time.perf_counter()
            while self.step < plan.total_steps:
                self._advance()
                if self.step % plan.steps_per_epoch == 0:
                    epoch = self.step // plan.steps_per_epoch
                    self._check_finite()
                    now = time.perf_counter()
                    self.seconds, clock = self.seconds + now - clock, now
                    monitor.epoch(self._metrics(epoch))
                    self.correct.zero_()
                    if epoch % plan.checkpoint_every == 0 or epoch == plan.epochs:
                        self._save()
                if interrupt.requested:
                    self.seconds += time.perf_counter() - clock
                    self._check_finite()
                    self._save()
                    raise InterruptedRunError(
                        f"{self.run.path}: interrupted after step {self.step}; the state is saved, "
                        "--resume continues"
                    )
        return self.seconds

    def _advance(self) -> None:
        """One optimiser step."""
        plan, t = self.plan, self.step / self.plan.total_steps
        loss = plan.loss_at(t)
        for group in self.optimizer.param_groups:
            group.update(plan.optimizer_numbers(self.start_numbers, t))
        batch = self._batch().to(self.fabric.device)
        logits, lip = self.forward(self.x[batch])
        labels = self.y[batch]
        objective = loss(logits, labels, lip).mean() + loss.penalty(lip)
        self.optimizer.zero_grad()
        self.fabric.backward(objective)
        self.optimizer.step()
        # Kept on the device: reading a value every step would make a GPU wait.
        self.losses[self.step % plan.steps_per_epoch] = objective.detach()
        self.correct += (logits.detach().argmax(dim=1) == labels).sum()
        self.step += 1

    def _batch(self) -> Tensor:
        """This step's samples; the order of an epoch is drawn once."""
        epoch, index = divmod(self.step, self.plan.steps_per_epoch)
        if epoch != self.epoch_drawn:
            self.epoch_drawn, self.batches = epoch, self.plan.batches(epoch)
        return self.batches[index]

    def _check_finite(self) -> None:
        """Name the first bad step of this epoch; nothing bad is ever saved."""
        bad = (~torch.isfinite(self.losses)).nonzero()
        if len(bad):
            index = int(bad[0])
            epoch_start = (self.step - 1) // self.plan.steps_per_epoch * self.plan.steps_per_epoch
            kept = (
                f"{self.run.checkpoint} is the last good state"
                if self.run.checkpoint.exists()
                else ("it happened before the first checkpoint")
            )
            raise TrainingError(
                f"the loss became {float(self.losses[index])} at step {epoch_start + index + 1}; {kept}"
            )

    @torch.no_grad()
    def _metrics(self, epoch: int) -> dict[str, Any]:
        plan, t = self.plan, self.step / self.plan.total_steps
        metrics = {
            "epoch": epoch,
            "step": self.step,
            "loss": float(self.losses.mean()),
            "accuracy": int(self.correct) / len(plan.train),
            "k_f": float(self.bounded.lip().max()),
            "seconds": round(self.seconds, 3),
        }
        loss = plan.loss_at(t)
        for key in plan.schedules:
            part, _, name = key.partition(".")
            value = (
                getattr(loss, name) if part == "loss" else plan.optimizer_numbers(self.start_numbers, t)[name]
            )
            metrics[key] = value
        if plan.val is not None and plan.validate_every and epoch % plan.validate_every == 0:
            metrics |= self._validate(plan.val)
        return metrics

    @torch.no_grad()
    def _validate(self, data: Dataset) -> dict[str, float]:
        """Accuracy, and certified accuracy at the loss's ε with estimated constants."""
        self.forward.eval()
        self.bounded.converge()
        right, certified = 0, 0
        eps = float(getattr(self.plan.loss, "eps", 0.0))
        for i in range(0, len(data), 1024):
            x = data.x[i : i + 1024].to(self.x)
            y = data.y[i : i + 1024].to(self.y)
            logits, lip = self.forward(x)
            top = logits.argmax(dim=1)
            margin = logits.gather(1, top[:, None]) - logits - eps * lip.rows(top)
            holds = (margin > 0).scatter(1, top[:, None], True).all(dim=1)
            right += int((top == y).sum())
            certified += int(((top == y) & holds).sum())
        self.forward.train()
        return {"val_accuracy": right / len(data), "val_cra_estimate": certified / len(data)}

    def _save(self) -> None:
        save_checkpoint(
            self.run.checkpoint,
            Checkpoint(
                step=self.step,
                seconds=self.seconds,
                model=self.bounded.state_dict(),
                optimizer=self.optimizer.state_dict(),
                random=torch.get_rng_state(),
                losses=self.losses,
                correct=int(self.correct),
            ),
        )

    def _restore(self, checkpoint: Checkpoint) -> None:
        try:
            self.bounded.load_state_dict(checkpoint["model"])
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            torch.set_rng_state(checkpoint["random"])
            self.losses.copy_(checkpoint["losses"])
            self.correct.fill_(checkpoint["correct"])
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{self.run.checkpoint}: of another model ({reason})") from None
        self.step, self.seconds = checkpoint["step"], checkpoint["seconds"]


def _fabric(accelerator: str) -> Fabric:
    fabric = Fabric(accelerator=accelerator, devices=1)
    fabric.launch()
    return fabric
