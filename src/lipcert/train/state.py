"""The state of one training: the content of a checkpoint, and the metrics at the end of an epoch."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass

import torch
from lightning_fabric import Fabric

from lipcert.bounds import Bounded
from lipcert.data import Dataset
from lipcert.errors import InputError, TrainingError
from lipcert.nn.bases.derived import estimated_weights
from lipcert.runs import Run
from lipcert.runs.checkpoint import Checkpoint
from lipcert.runs.metrics import Metrics, Validation
from lipcert.train.averaging import Average
from lipcert.train.cadence import Cadence
from lipcert.train.division import check_division
from lipcert.train.hardware import shard_of
from lipcert.train.monitor import Monitor
from lipcert.train.optimizers import optimizer_for
from lipcert.train.placement import lives_on
from lipcert.train.plan import Plan
from lipcert.train.random_states import random_states, set_random_states
from lipcert.train.schedule_checks import check_schedules
from lipcert.types import PairLip

# Small enough that the values between two layers stay in the cache.
_VALIDATION_BATCH = 128

# The constants at the end of an epoch need no more digits than its counts.
TOLERANCE, PRODUCTS = 1e-5, 200


@dataclass(frozen=True)
class Epoch:
    """Sums over the steps of one epoch and all processes, and K_f after it."""

    losses: list[float]
    correct: int
    k_f: float


class Training:
    """A model in training. The owner of the steps updates `step`, `seconds`, `losses` and `correct`."""

    def __init__(self, plan: Plan, run: Run, fabric: Fabric) -> None:
        self.plan, self.run, self.fabric, self.shard = plan, run, fabric, shard_of(fabric)
        check_division(plan.loss, plan.model, plan.batch_size, plan.accumulate * self.shard.count)
        device = fabric.device
        self.bounded = Bounded(
            plan.model.to(device),
            plan.train.input_shape,
            plan.iterations,
            plan.local,
            plan.estimate,
            plan.turns,
        )
        classes = max(self.bounded.classes, 2)
        if int(plan.train.y.max()) >= classes:
            raise InputError(f"labels: expected 0..{classes - 1}, got {int(plan.train.y.max())}")
        if plan.channels_last:
            plan.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dtype = next(plan.model.parameters()).dtype
        self.optimizer = optimizer_for(self.bounded, plan.optimizer, plan.no_decay)
        if plan.clip is not None:
            # Fused optimisers divide by the scale of half precision themselves, which is too late for a clip:
            # the scaler does it then.
            self.optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]
        self.average = Average(self.bounded, plan.ema) if plan.ema is not None else None
        # Images stay bytes, on the device if they fit there; anything smaller moves to the device at once.
        bytes_ = plan.train.x.dtype == torch.uint8
        moves = not bytes_ or lives_on(device, plan.train.x, plan.data_on_device)
        x = plan.train.x.to(device) if moves else plan.train.x
        self.x = x if bytes_ else x.to(self.dtype)
        self.y = plan.train.y.to(device)
        weights = plan.class_weights()
        self.class_weights = None if weights is None else weights.to(device, self.dtype)
        self.start_numbers = [dict(group) for group in self.optimizer.param_groups]
        for numbers in self.start_numbers:
            check_schedules(plan.loss, numbers, plan.schedules)
        self.losses = torch.zeros(plan.steps_per_epoch, dtype=torch.float64, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        self.step, self.seconds = 0, 0.0
        self._cadence = Cadence(plan.checkpoint_every)
        self.monitor: Monitor | None = None
        if run.checkpoint.exists():
            self._restore(run.load_checkpoint())

    @property
    def fraction(self) -> float:
        """Return the fraction of the training that is done."""
        return self.step / self.plan.total_steps

    def end_epoch(self, sums: Epoch) -> None:
        """Note the epoch that has just ended; save the state where it is time to."""
        metrics = self.finish_epoch(sums)
        if self.monitor is not None:
            self.monitor.epoch(metrics)
        if self.saves:
            self.save()

    def save_within_epoch(self) -> None:
        """Save the state of an unfinished epoch, unless it has gone wrong already."""
        self.check_finite(self.shard.total(self.losses).tolist())
        self.save()

    def deliver(self) -> float:
        """Put the averaged weights in place, if there are any; return the seconds spent in all."""
        if self.average is not None:
            self.average.deliver()
        return self.seconds

    def finish_epoch(self, sums: Epoch) -> Metrics:
        """Return the metrics of the epoch that has just ended, and reset the sums."""
        plan, t = self.plan, self.fraction
        self.check_finite(sums.losses)
        loss, scheduled, validation = plan.loss_at(t), {}, None
        for key in plan.schedules:
            part, _, name = key.partition(".")
            numbers = plan.optimizer_numbers(self.start_numbers[0], t)
            scheduled[key] = getattr(loss, name) if part == "loss" else numbers[name]
        if plan.val is not None and self.validates:
            with self.average.in_place() if self.average is not None else contextlib.nullcontext():
                validation = self._validate(plan.val)
        metrics = Metrics(
            epoch=self.step // plan.steps_per_epoch,
            step=self.step,
            loss=self._mean(sums.losses),
            accuracy=sums.correct / len(plan.train),
            k_f=sums.k_f,
            seconds=round(self.seconds, 3),
            scheduled=scheduled,
            validation=validation,
        )
        self.correct.zero_()
        self.losses.zero_()
        return metrics

    def _mean(self, losses: list[float]) -> float:
        """Return the mean over the samples of an epoch; its last batch may be smaller than the others."""
        *full, last = losses
        rest = len(self.plan.train) - len(full) * self.plan.batch_size
        return (sum(full) * self.plan.batch_size + last * rest) / len(self.plan.train)

    @property
    def validates(self) -> bool:
        """Return whether there is a validation at this step."""
        epoch, rest = divmod(self.step, self.plan.steps_per_epoch)
        every = self.plan.validate_every
        return self.plan.val is not None and not rest and every > 0 and epoch % every == 0

    @property
    def saves(self) -> bool:
        """Return whether there is a checkpoint at this step; the first process's clock decides for all."""
        epoch, rest = divmod(self.step, self.plan.steps_per_epoch)
        if rest:
            return False
        return epoch == self.plan.epochs or bool(self.shard.first(self._cadence.is_due(epoch, self.seconds)))

    @torch.no_grad()
    def _validate(self, data: Dataset) -> Validation:
        """Return the accuracy, and the certified one at the loss's ε, with estimated constants and norms."""
        self.bounded.eval()
        with estimated_weights(self.bounded):
            return self._validated(data)

    def _validated(self, data: Dataset) -> Validation:
        before = self.bounded.vectors()
        lip = self.converged()
        self.bounded.find_worst_pair()
        k_f = float(self.bounded.near(lip, self.y[:1]).max())
        correct, certified = 0, 0
        eps = float(getattr(self.plan.loss_at(1.0), "eps", 0.0))
        mine = self.shard.mine(torch.arange(len(data)))
        for index in torch.split(mine, _VALIDATION_BATCH):
            x = data.floats(index, self.dtype).to(self.fabric.device)
            y = data.y[index].to(self.y)
            logits, lip = self.bounded(x)
            top = logits.argmax(dim=1)
            margin = logits.gather(1, top[:, None]) - logits - eps * lip.rows(top)
            holds = (margin > 0).scatter(1, top[:, None], True).all(dim=1)
            correct += int((top == y).sum())
            certified += int(((top == y) & holds).sum())
        self.bounded.train()
        if self.plan.estimate == "power":  # five iterations per step and no others, whether validated or not
            self.bounded.set_vectors(before)
        counts = self.shard.total(torch.tensor([correct, certified], device=self.fabric.device))
        correct, certified = (int(count) for count in counts)
        accuracy, cra = correct / len(data), certified / len(data)
        return Validation(val_accuracy=accuracy, val_cra_estimate=cra, k_f_converged=k_f)

    def converged(self) -> PairLip:
        """Return the constants with better vectors, good enough for a report."""
        return self.bounded.converge(TOLERANCE, PRODUCTS)

    def check_finite(self, losses: list[float]) -> None:
        """Raise with the first bad step of this epoch; nothing bad is ever saved."""
        bad = [i for i, loss in enumerate(losses) if not math.isfinite(loss)]
        if bad:
            epoch_start = (self.step - 1) // self.plan.steps_per_epoch * self.plan.steps_per_epoch
            raise TrainingError(
                f"the loss became {losses[bad[0]]} at step {epoch_start + bad[0] + 1}; {self._kept()}"
            )

    def _kept(self) -> str:
        if self.run.checkpoint.exists():
            return f"{self.run.checkpoint} is the last good state"
        return "there is no checkpoint yet"

    def save(self) -> None:
        """Write the checkpoint, in the first process."""
        if not all(bool(torch.isfinite(p).all()) for p in self.bounded.parameters()):
            raise TrainingError(f"the weights are not finite after step {self.step}; {self._kept()}")
        losses, correct = self.shard.total(self.losses), self.shard.total(self.correct)
        start = time.perf_counter()
        if self.fabric.is_global_zero:
            self.run.save_checkpoint(
                Checkpoint(
                    step=self.step,
                    seconds=self.seconds,
                    model=self.bounded.state_dict(),
                    optimizer=self.optimizer.state_dict(),
                    average=None if self.average is None else self.average.weights,
                    random=random_states(self.fabric.device),
                    scaler=self.fabric.strategy.precision.state_dict(),
                    losses=losses,
                    correct=int(correct),
                )
            )
        self._cadence.saved(self.seconds, time.perf_counter() - start)
        self.fabric.barrier()

    def _restore(self, checkpoint: Checkpoint) -> None:
        try:
            self.bounded.load_state_dict(checkpoint["model"])
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            set_random_states(checkpoint["random"], self.fabric.device)
            if checkpoint["scaler"]:
                self.fabric.strategy.precision.load_state_dict(checkpoint["scaler"])
            if self.fabric.is_global_zero:  # sums over all processes
                self.losses.copy_(checkpoint["losses"])
                self.correct.fill_(checkpoint["correct"])
            if self.average is not None and checkpoint["average"] is not None:
                self.average.load(checkpoint["average"])
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{self.run.checkpoint}: belongs to another model ({reason})") from None
        self.step, self.seconds = checkpoint["step"], checkpoint["seconds"]
        self._cadence.last = self.seconds
