"""The training loop, on Lightning Fabric. It knows models, losses and data only by their contracts.

Several processes share every batch and hold the same weights and vectors; sums over them are exact, so their
number changes nothing but the order of additions.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.data import Dataset
from lipcert.errors import InputError, InterruptedRunError, TrainingError
from lipcert.losses import Loss
from lipcert.train.allocator import keep_freed_memory
from lipcert.train.averaging import Average
from lipcert.train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from lipcert.train.hardware import Hardware, shard_of
from lipcert.train.interrupt import Interrupt
from lipcert.train.monitor import Monitor
from lipcert.train.plan import Plan
from lipcert.train.rundir import RunDirectory
from lipcert.types import PairLip

# Steps after which several processes ask each other whether one was interrupted.
_ASK_EVERY = 20

_VALIDATION_BATCH = 1024

# The constants at the end of an epoch need no more digits than its counts.
_TOLERANCE, _PRODUCTS = 1e-5, 200


def fit(plan: Plan, run: RunDirectory, fabric: Fabric | None = None) -> float:
    """Train `plan.model` in place, from the run's last checkpoint if it has one; seconds spent in all."""
    return _Training(plan, run, fabric or Hardware(accelerator="cpu").launch()).finish()


class _Training:
    """The state of one training, and its steps."""

    def __init__(self, plan: Plan, run: RunDirectory, fabric: Fabric) -> None:
        self.plan, self.run, self.fabric, self.shard = plan, run, fabric, shard_of(fabric)
        device = fabric.device
        if device.type == "cpu":
            keep_freed_memory()
        self.bounded = Bounded(plan.model, plan.train.input_shape, plan.iterations, plan.local)
        if plan.channels_last:
            plan.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dtype = next(plan.model.parameters()).dtype
        module = cast(nn.Module, torch.compile(self.bounded)) if plan.compile else self.bounded
        self.forward, self.optimizer = fabric.setup(module, plan.optimizer(self.bounded.parameters()))
        self.average = Average(self.bounded, plan.ema) if plan.ema is not None else None
        # Images stay bytes where they are; anything smaller moves to the device at once.
        bytes_ = plan.train.x.dtype == torch.uint8
        self.x = plan.train.x if bytes_ else plan.train.x.to(device, self.dtype)
        self.y = plan.train.y.to(device)
        weights = plan.class_weights()
        self.class_weights = None if weights is None else weights.to(device, self.dtype)
        self.start_numbers = dict(self.optimizer.param_groups[0])
        self.losses = torch.zeros(plan.steps_per_epoch, dtype=torch.float64, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        self.step, self.seconds = 0, 0.0
        self.epoch_drawn = -1
        self.batches: tuple[Tensor, ...] = ()
        self.draws: Tensor | None = None
        if run.checkpoint.exists():
            self._restore(load_checkpoint(run.checkpoint))

    def finish(self) -> float:
        plan = self.plan
        with Interrupt() as interrupt, self._monitor() as monitor:
            clock = time.perf_counter()
            while self.step < plan.total_steps:
                self._advance()
                if self.step % plan.steps_per_epoch == 0:
                    epoch = self.step // plan.steps_per_epoch
                    losses = self.shard.total(self.losses)
                    self._check_finite(losses)
                    now = time.perf_counter()
                    self.seconds, clock = self.seconds + now - clock, now
                    metrics = self._metrics(epoch, losses)
                    if monitor is not None:
                        monitor.epoch(metrics)
                    self.correct.zero_()
                    self.losses.zero_()
                    if epoch % plan.checkpoint_every == 0 or epoch == plan.epochs:
                        self._save()
                if self._asked_to_stop(interrupt):
                    self.seconds += time.perf_counter() - clock
                    self._check_finite(self.shard.total(self.losses))
                    self._save()
                    raise InterruptedRunError(
                        f"{self.run.path}: interrupted after step {self.step}; the state is saved, "
                        "--resume continues"
                    )
        if self.average is not None:
            self.average.deliver()
        return self.seconds

    def _monitor(self) -> contextlib.AbstractContextManager[Monitor | None]:
        """Only the first process tells the world."""
        if not self.fabric.is_global_zero:
            return contextlib.nullcontext()
        return Monitor(self.run, self.plan.epochs, self.step)

    def _advance(self) -> None:
        """One optimiser step."""
        plan, t = self.plan, self.step / self.plan.total_steps
        loss = plan.loss_at(t)
        for group in self.optimizer.param_groups:
            group.update(plan.optimizer_numbers(self.start_numbers, t))
        batch = self._batch()
        pieces = self.shard.mine(batch).tensor_split(plan.accumulate)
        self.optimizer.zero_grad()
        for i, piece in enumerate(pieces):
            with self._no_sync_before_the_last(i):
                self._backward(piece, loss, len(batch), first=i == 0)
        if plan.clip is not None:
            self.fabric.clip_gradients(self.forward, self.optimizer, max_norm=plan.clip)
        self.optimizer.step()
        if self.average is not None:
            self.average.update(self.step)
        self.step += 1

    def _backward(self, piece: Tensor, loss: Loss, batch_size: int, first: bool) -> None:
        """The gradient of this piece's part of the objective, the penalty with the first one."""
        x, labels = self._inputs(piece), self.y[piece.to(self.y.device)]
        logits, lip = self.forward(x, iterate=first and loss.uses_constants)
        values = loss(logits, labels, lip)
        if self.class_weights is not None:
            values = values * self.class_weights[labels]
        # Processes average their gradients, so each counts its samples as often as there are processes.
        mine = values.sum() / batch_size
        penalty = loss.penalty(lip) if first else 0.0
        self.fabric.backward(mine * self.shard.count + penalty)
        # Kept on the device: reading a value every step would make a GPU wait.
        part = mine.detach() + (penalty.detach() if isinstance(penalty, Tensor) else penalty) / (
            self.shard.count
        )
        self.losses[self.step % self.plan.steps_per_epoch] += part
        self.correct += (logits.detach().argmax(dim=1) == labels).sum()

    def _no_sync_before_the_last(self, piece: int) -> contextlib.AbstractContextManager[Any]:
        if self.plan.accumulate == 1:
            return contextlib.nullcontext()
        return self.fabric.no_backward_sync(self.forward, enabled=piece < self.plan.accumulate - 1)

    def _batch(self) -> Tensor:
        """This step's samples; the order of an epoch and its augmentation are drawn once."""
        plan = self.plan
        epoch, index = divmod(self.step, plan.steps_per_epoch)
        if epoch != self.epoch_drawn:
            self.epoch_drawn, self.batches = epoch, plan.batches(epoch)
            if plan.augmentation is not None:
                self.draws = plan.augmentation.draws(len(plan.train), plan.seed, epoch)
        return self.batches[index]

    def _inputs(self, piece: Tensor) -> Tensor:
        device = self.fabric.device
        if self.x.dtype != torch.uint8:
            return self.x[piece.to(device)]
        images = self.x[piece].to(device, non_blocking=True)
        if self.plan.augmentation is None or self.draws is None:
            x = images.float() / 255
        else:
            x = self.plan.augmentation(images, self.draws[piece].to(device, non_blocking=True))
        x = x.to(self.dtype)
        return x.to(memory_format=torch.channels_last) if self.plan.channels_last else x

    def _asked_to_stop(self, interrupt: Interrupt) -> bool:
        """All processes stop after the same step."""
        if self.shard.count == 1:
            return interrupt.requested
        if self.step % _ASK_EVERY and self.step % self.plan.steps_per_epoch:
            return False
        return bool(self.shard.total(torch.tensor(float(interrupt.requested), device=self.fabric.device)))

    def _check_finite(self, losses: Tensor) -> None:
        """Name the first bad step of this epoch; nothing bad is ever saved."""
        bad = (~torch.isfinite(losses)).nonzero()
        if len(bad):
            index = int(bad[0])
            epoch_start = (self.step - 1) // self.plan.steps_per_epoch * self.plan.steps_per_epoch
            raise TrainingError(
                f"the loss became {float(losses[index])} at step {epoch_start + index + 1}; {self._kept()}"
            )

    def _kept(self) -> str:
        if self.run.checkpoint.exists():
            return f"{self.run.checkpoint} is the last good state"
        return "it happened before the first checkpoint"

    @torch.no_grad()
    def _metrics(self, epoch: int, losses: Tensor) -> dict[str, Any]:
        plan, t = self.plan, self.step / self.plan.total_steps
        loss = plan.loss_at(t)
        lip = self.bounded.lip() if loss.uses_constants else self._converged()
        metrics = {
            "epoch": epoch,
            "step": self.step,
            "loss": float(losses.mean()),
            "accuracy": int(self.shard.total(self.correct)) / len(plan.train),
            "k_f": float(lip.max()),
            "seconds": round(self.seconds, 3),
        }
        for key in plan.schedules:
            part, _, name = key.partition(".")
            value = (
                getattr(loss, name) if part == "loss" else plan.optimizer_numbers(self.start_numbers, t)[name]
            )
            metrics[key] = value
        if plan.val is not None and plan.validate_every and epoch % plan.validate_every == 0:
            with self.average.in_place() if self.average is not None else contextlib.nullcontext():
                metrics |= self._validate(plan.val)
        return metrics

    def _validate(self, data: Dataset) -> dict[str, float]:
        """Accuracy, and certified accuracy at the loss's ε with estimated constants."""
        self.forward.eval()
        k_f = float(self._converged().max())
        right, certified = 0, 0
        eps = float(getattr(self.plan.loss_at(1.0), "eps", 0.0))
        mine = self.shard.mine(torch.arange(len(data)))
        for index in torch.split(mine, _VALIDATION_BATCH):
            x = data.floats(index, self.dtype).to(self.fabric.device)
            y = data.y[index].to(self.y)
            logits, lip = self.bounded(x)
            top = logits.argmax(dim=1)
            margin = logits.gather(1, top[:, None]) - logits - eps * lip.rows(top)
            holds = (margin > 0).scatter(1, top[:, None], True).all(dim=1)
            right += int((top == y).sum())
            certified += int(((top == y) & holds).sum())
        self.forward.train()
        counts = self.shard.total(torch.tensor([right, certified], device=self.fabric.device))
        right, certified = (int(count) for count in counts)
        accuracy, cra = right / len(data), certified / len(data)
        return {"val_accuracy": accuracy, "val_cra_estimate": cra, "k_f_converged": k_f}

    def _converged(self) -> PairLip:
        return self.bounded.converge(_TOLERANCE, _PRODUCTS)

    def _save(self) -> None:
        if not all(bool(torch.isfinite(p).all()) for p in self.bounded.parameters()):
            raise TrainingError(f"the weights are not finite after step {self.step}; {self._kept()}")
        losses, correct = self.shard.total(self.losses), self.shard.total(self.correct)
        if self.fabric.is_global_zero:
            save_checkpoint(
                self.run.checkpoint,
                Checkpoint(
                    step=self.step,
                    seconds=self.seconds,
                    model=self.bounded.state_dict(),
                    optimizer=self.optimizer.state_dict(),
                    average=None if self.average is None else self.average.weights,
                    random=torch.get_rng_state(),
                    losses=losses,
                    correct=int(correct),
                ),
            )
        self.fabric.barrier()

    def _restore(self, checkpoint: Checkpoint) -> None:
        try:
            self.bounded.load_state_dict(checkpoint["model"])
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            torch.set_rng_state(checkpoint["random"])
            if self.fabric.is_global_zero:  # sums over all processes
                self.losses.copy_(checkpoint["losses"])
                self.correct.fill_(checkpoint["correct"])
            if self.average is not None and checkpoint["average"] is not None:
                self.average.load(checkpoint["average"])
        except (RuntimeError, ValueError, TypeError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{self.run.checkpoint}: of another model ({reason})") from None
        self.step, self.seconds = checkpoint["step"], checkpoint["seconds"]
