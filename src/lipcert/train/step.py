"""The steps of one training of any model, on Lightning Fabric: any device, any number of processes.

Several processes share every batch and hold the same weights and vectors. Sums over them are exact, so their
number changes only the order of additions.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

import torch
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.losses import Loss
from lipcert.train.placement import Ahead
from lipcert.train.state import Epoch, Training
from lipcert.types import PairLip


class Single:
    """Make the steps of one training."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._it, self._plan, self._fabric = training, training.plan, training.fabric
        bounded = training.bounded
        module = _compiled(bounded, self._plan.turns) if self._plan.compile else bounded
        self._forward, self._optimizer = self._fabric.setup(module, training.optimizer)
        self._epoch_drawn = -1
        # The samples of every step of an epoch, on the device and on the host.
        self._batches: tuple[Tensor, ...] = ()
        self._on_host: tuple[Tensor, ...] = ()
        self._draws: Tensor | None = None
        elsewhere = training.x.device.type != self._fabric.device.type
        self._ahead = Ahead(training.x, self._fabric.device) if elsewhere else None

    def advance(self) -> None:
        """Make one optimiser step."""
        it, plan = self._it, self._plan
        loss = plan.loss_at(it.fraction)
        for group, start in zip(self._optimizer.param_groups, it.start_numbers, strict=True):
            group.update(plan.optimizer_numbers(start, it.fraction))
        batch = self._batch()
        pieces = self._pieces(batch)
        self._optimizer.zero_grad()
        for i, piece in enumerate(pieces):
            with self._no_sync_before_the_last(i):
                self._backward(i, piece, loss, batch)
        if plan.clip is not None:
            # Numbers that are not finite show in the loss, which reports the step.
            self._fabric.clip_gradients(
                self._forward, self._optimizer, max_norm=plan.clip, error_if_nonfinite=False
            )
        self._optimizer.step()
        self._send_next()
        if it.average is not None:
            it.average.update(it.step)
        it.step += 1

    def _backward(self, number: int, piece: Tensor, loss: Loss, batch: Tensor) -> None:
        """Compute the gradient of this piece's part of the objective, with the penalty in the first piece."""
        it, first = self._it, number == 0
        x, labels = self._inputs(number, piece), it.y[piece]
        turn = self._plan.turn(it.step)
        logits, lip = self._forward(x, first=first, iterate=loss.uses_constants, turn=turn)
        values = loss.values(logits, labels, lip)  # its arguments were checked before the first step
        if it.class_weights is not None:
            values = values * it.class_weights[labels]
        # Processes average their gradients, so each sample counts once per process.
        mine = values.sum() / len(batch)
        objective = mine
        if it.shard.count > 1:
            objective = mine * it.shard.count
        if first:
            penalty = self._penalty(loss, lip, batch)
            objective = objective + penalty
            mine = mine + penalty / it.shard.count if it.shard.count > 1 else objective
        self._fabric.backward(objective)
        # Kept on the device: reading a value at every step would make a GPU wait.
        it.losses[it.step % self._plan.steps_per_epoch].add_(mine.detach())
        it.correct += (logits.detach().argmax(dim=1) == labels).sum()

    def _penalty(self, loss: Loss, lip: PairLip, batch: Tensor) -> Tensor:
        """Compute the penalty on the constants that all pieces and processes share: the global ones."""
        it = self._it
        shared = lip if self._plan.local is None else it.bounded.lip()
        if it.bounded.worst_pair is not None:  # many classes
            shared = it.bounded.near(shared, it.y[batch])
        return loss.penalty(shared)

    def _no_sync_before_the_last(self, piece: int) -> contextlib.AbstractContextManager[Any]:
        if self._plan.accumulate == 1:
            return contextlib.nullcontext()
        return self._fabric.no_backward_sync(self._forward, enabled=piece < self._plan.accumulate - 1)

    def _batch(self) -> Tensor:
        """Return this step's samples; the order of an epoch and its augmentation are drawn once.

        They are drawn on the CPU, so that they are the same on every device, and sent to it once per epoch.
        """
        plan, device = self._plan, self._fabric.device
        epoch, index = divmod(self._it.step, plan.steps_per_epoch)
        if epoch != self._epoch_drawn:
            self._epoch_drawn, self._on_host = epoch, plan.batches(epoch)
            order = torch.cat(self._on_host).to(device, non_blocking=True)
            self._batches = torch.split(order, plan.batch_size)
            if plan.augmentation is not None:
                draws = plan.augmentation.draws(len(plan.train), plan.seed, epoch)
                self._draws = draws.to(device, non_blocking=True)
        return self._batches[index]

    def _pieces(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Return this process's part of a batch, in the pieces that are computed in turn."""
        return self._it.shard.mine(batch).tensor_split(self._plan.accumulate)

    def _send_next(self) -> None:
        """Send the images of the next step, if they are on the host and the epoch has one."""
        index = self._it.step % self._plan.steps_per_epoch + 1
        if self._ahead is not None and index < len(self._on_host):
            self._ahead.send(self._pieces(self._on_host[index]))

    def _inputs(self, number: int, piece: Tensor) -> Tensor:
        """Return the samples of a piece of the batch as the model takes them, augmented."""
        it = self._it
        if self._ahead is None:
            images = it.x[piece]
        else:
            index = it.step % self._plan.steps_per_epoch
            images = self._ahead.take(self._pieces(self._on_host[index])[number])
        if images.dtype != torch.uint8:
            return images
        if self._plan.augmentation is None or self._draws is None:
            x = images.float() / 255
        else:
            x = self._plan.augmentation(images, self._draws[piece])
        x = x.to(it.dtype)
        return x.to(memory_format=torch.channels_last) if self._plan.channels_last else x

    def end_epoch(self, seconds: float) -> None:
        """Note the epoch that has just ended, and the seconds since the last note."""
        self._it.seconds += seconds
        self._it.end_epoch(self.sums())

    def save(self, seconds: float) -> None:
        """Save the state in the middle of an epoch, and note the seconds since the last note."""
        self._it.seconds += seconds
        self._it.save_within_epoch()

    @torch.no_grad()
    def sums(self) -> Epoch:
        """Return what the finished epoch came to."""
        it = self._it
        losses, correct = it.shard.total(it.losses), it.shard.total(it.correct)
        lip = it.bounded.lip() if self._plan.loss.uses_constants else it.converged()
        it.bounded.find_worst_pair()
        k_f = it.bounded.near(lip, it.y[:1]).max()
        return Epoch(losses.tolist(), int(correct), float(k_f))

    def hand_out(self) -> None:
        """Do nothing: the training is what is stepped."""

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


def _compiled(bounded: Bounded, turns: int) -> nn.Module:
    """Compile a model; the power iteration stays outside if every step iterates on other layers.

    Otherwise each turn would be compiled separately, and torch gives up after eight.
    """
    if turns > 1:
        bounded.iterate = torch.compiler.disable(bounded.iterate)  # type: ignore[method-assign, no-untyped-call]
    return cast(nn.Module, torch.compile(bounded))
