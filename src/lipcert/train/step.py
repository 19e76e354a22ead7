"""The steps of one training of any model, on Lightning Fabric: any device, any number of processes.

Several processes share every batch and hold the same weights and vectors. Sums over them are exact, so their
number changes only the order of additions.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

import torch
from torch import Tensor, nn

from lipcert.losses import Loss
from lipcert.train.state import Epoch, Training


class Single:
    """Make the steps of one training."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._it, self._plan, self._fabric = training, training.plan, training.fabric
        bounded = training.bounded
        module = cast(nn.Module, torch.compile(bounded)) if self._plan.compile else bounded
        self._forward, self._optimizer = self._fabric.setup(module, training.optimizer)
        self._epoch_drawn = -1
        self._batches: tuple[Tensor, ...] = ()
        self._draws: Tensor | None = None

    def advance(self) -> None:
        """Make one optimiser step."""
        it, plan = self._it, self._plan
        loss = plan.loss_at(it.fraction)
        for group, start in zip(self._optimizer.param_groups, it.start_numbers, strict=True):
            group.update(plan.optimizer_numbers(start, it.fraction))
        batch = self._batch()
        pieces = it.shard.mine(batch).tensor_split(plan.accumulate)
        self._optimizer.zero_grad()
        for i, piece in enumerate(pieces):
            with self._no_sync_before_the_last(i):
                self._backward(piece, loss, batch, first=i == 0)
        if plan.clip is not None:
            # Numbers that are not finite show in the loss, which reports the step.
            self._fabric.clip_gradients(
                self._forward, self._optimizer, max_norm=plan.clip, error_if_nonfinite=False
            )
        self._optimizer.step()
        if it.average is not None:
            it.average.update(it.step)
        it.step += 1

    def _backward(self, piece: Tensor, loss: Loss, batch: Tensor, first: bool) -> None:
        """Compute the gradient of this piece's part of the objective, with the penalty in the first piece."""
        it = self._it
        x, labels = self.inputs(piece), it.y[piece.to(it.y.device)]
        turn = self._plan.turn(it.step)
        logits, lip = self._forward(x, first=first, iterate=loss.uses_constants, turn=turn)
        values = loss(logits, labels, lip)
        if it.class_weights is not None:
            values = values * it.class_weights[labels]
        # Processes average their gradients, so each sample counts once per process.
        mine = values.sum() / len(batch)
        everyone = it.bounded.near(lip, it.y[batch.to(it.y.device)])
        penalty = loss.penalty(everyone) if first else mine.new_zeros(())
        self._fabric.backward(mine * it.shard.count + penalty)
        # Kept on the device: reading a value at every step would make a GPU wait.
        it.losses[it.step % self._plan.steps_per_epoch] += (mine + penalty / it.shard.count).detach()
        it.correct += (logits.detach().argmax(dim=1) == labels).sum()

    def _no_sync_before_the_last(self, piece: int) -> contextlib.AbstractContextManager[Any]:
        if self._plan.accumulate == 1:
            return contextlib.nullcontext()
        return self._fabric.no_backward_sync(self._forward, enabled=piece < self._plan.accumulate - 1)

    def _batch(self) -> Tensor:
        """Return this step's samples; the order of an epoch and its augmentation are drawn once."""
        plan = self._plan
        epoch, index = divmod(self._it.step, plan.steps_per_epoch)
        if epoch != self._epoch_drawn:
            self._epoch_drawn, self._batches = epoch, plan.batches(epoch)
            if plan.augmentation is not None:
                self._draws = plan.augmentation.draws(len(plan.train), plan.seed, epoch)
        return self._batches[index]

    def inputs(self, piece: Tensor) -> Tensor:
        """Return the samples of a piece of the batch as the model takes them, augmented."""
        it, device = self._it, self._fabric.device
        if it.x.dtype != torch.uint8:
            return it.x[piece.to(device)]
        images = it.x[piece].to(device, non_blocking=True)
        if self._plan.augmentation is None or self._draws is None:
            x = images.float() / 255
        else:
            x = self._plan.augmentation(images, self._draws[piece].to(device, non_blocking=True))
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
        """Nothing to do: the training is what is stepped."""

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""
