"""Several trainings of one architecture that make each step together.

Each keeps its own seed, order of samples, loss and numbers, and computes what it would compute alone, to the
last bit: a single MLP is trained as a stack of one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.following import followers_in, one_step
from lipcert.bounds.small_pieces import batch_norms_in, statistics_for
from lipcert.errors import TrainingError
from lipcert.losses import Loss
from lipcert.train.stacked.networks import Stacked
from lipcert.train.stacked.vmapped_losses import kind, understood_by_vmap, values_and_penalties
from lipcert.train.state import Epoch, Training
from lipcert.types import PairLip


class FailedTrainingsError(TrainingError):
    """Some trainings of a stack failed, for these reasons; the message is the first one's."""

    def __init__(self, failures: dict[Training, TrainingError]) -> None:
        super().__init__(str(next(iter(failures.values()))))
        self.failures = failures


class Stack:
    """Make the steps of several trainings that are at the same step."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        groups = _by_loss(trainings)
        self.trainings = [training for group in groups for training in group]
        settings = [(t.plan.loss, t.plan.schedules) for t in self.trainings]
        self._same_loss = [settings.index(setting) for setting in settings]
        ends = list(accumulate(map(len, groups), initial=0))
        self._groups = [slice(*pair) for pair in pairwise(ends)]
        first = self.training = self.trainings[0]
        self._plan, self._device = first.plan, first.fabric.device
        self._models = Stacked([training.bounded for training in self.trainings])
        self._followers = [layer for t in self.trainings for layer in followers_in(t.plan.model)]
        self._norms = [norm for t in self.trainings for norm in batch_norms_in(t.plan.model)]
        self._optimizer = first.plan.optimizer(self._models.parameters())
        self._collect_states()
        self._x, self._y, self._offsets = _data(self.trainings)
        weights = [t.class_weights for t in self.trainings if t.class_weights is not None]
        self._weights = torch.stack(weights) if weights else None
        self._losses = torch.stack([training.losses for training in self.trainings])
        self._correct = torch.stack([training.correct for training in self.trainings])
        self._epoch_drawn = -1
        self._batches: tuple[Tensor, ...] = ()
        self._draws: Tensor | None = None

    def advance(self) -> None:
        """Make one optimiser step of every training."""
        step, plan = self.training.step, self._plan
        (group,) = self._optimizer.param_groups
        group.update(plan.optimizer_numbers(self.training.start_numbers[0], self.training.fraction))
        losses = self._losses_now()
        batch = self._batch()  # (M, B)
        self._optimizer.zero_grad()
        pieces = batch.tensor_split(min(plan.accumulate, batch.shape[1]), dim=1)  # none is empty
        for i, piece in enumerate(pieces):
            self._backward(piece, losses, batch.shape[1], first=i == 0)
        if plan.clip is not None:
            self._clip(plan.clip)
        self._optimizer.step()
        for training in self.trainings:
            if training.average is not None:
                training.average.update(step)
            training.step += 1

    def _losses_now(self) -> list[Loss]:
        """Return the loss of every training with its present numbers; equal ones are one object."""
        made = {i: self.trainings[i].plan.loss_at(self.training.fraction) for i in set(self._same_loss)}
        return [made[i] for i in self._same_loss]

    def _backward(self, piece: Tensor, losses: Sequence[Loss], batch_size: int, first: bool) -> None:
        """Compute the gradients of this piece of the objectives, with the penalties in the first piece."""
        labels = self._y[piece].to(self._device)  # (M, b)
        iterations = self._plan.iterations if first and any(loss.uses_constants for loss in losses) else 0
        turn = self._plan.turn(self.training.step)
        with one_step(self._followers, first), statistics_for(piece.shape[1], self._norms):
            logits, lip = self._models(self._inputs(piece), iterations, turn)
        objectives = [
            self._objectives(group, losses, logits, labels, lip, batch_size, first) for group in self._groups
        ]
        objective = objectives[0] if len(objectives) == 1 else torch.cat(objectives)  # (M,)
        objective.sum().backward()  # type: ignore[no-untyped-call]
        index = self.training.step % self._plan.steps_per_epoch
        self._losses[:, index] += objective.detach()
        self._correct += (logits.detach().argmax(2) == labels).sum(1)

    def _objectives(
        self,
        group: slice,
        losses: Sequence[Loss],
        logits: Tensor,
        labels: Tensor,
        lip: PairLip,
        batch_size: int,
        first: bool,
    ) -> Tensor:
        """Compute the objectives of the trainings whose losses are of one kind: (m,)."""
        if len(self._groups) > 1:
            logits, labels, lip = logits[group], labels[group], PairLip(lip.features[group], lip.head[group])
        values, penalty = values_and_penalties(losses[group], logits, labels, lip)
        if self._weights is not None:
            values = values * self._weights[group].gather(1, labels)
        objective = values.sum(1) / batch_size
        return objective + penalty if first else objective

    def _batch(self) -> Tensor:
        """Return the samples of this step, (M, B); orders and augmentation of an epoch are drawn once."""
        epoch, index = divmod(self.training.step, self._plan.steps_per_epoch)
        if epoch != self._epoch_drawn:
            self._epoch_drawn = epoch
            plans = [training.plan for training in self.trainings]
            orders = torch.stack([torch.cat(plan.batches(epoch)) for plan in plans]) + self._offsets
            self._batches = torch.split(orders.to(self._x.device), self._plan.batch_size, dim=1)
            if self._plan.augmentation is not None:
                draw = self._plan.augmentation.draws
                self._draws = torch.stack([draw(len(plan.train), plan.seed, epoch) for plan in plans])
        return self._batches[index]

    def _inputs(self, piece: Tensor) -> Tensor:
        """Return the inputs: (M, b, …)."""
        if self._x.dtype != torch.uint8:
            return self._x[piece]
        images = self._x[piece.flatten()].to(self._device)
        if self._plan.augmentation is None or self._draws is None:
            x = images.float() / 255
        else:
            of_model = torch.arange(len(piece))[:, None]
            draws = self._draws[of_model, piece - self._offsets].flatten(0, 1)
            x = self._plan.augmentation(images, draws.to(self._device))
        return x.to(self.training.dtype).view(*piece.shape, *x.shape[1:])

    @torch.no_grad()
    def _clip(self, largest: float) -> None:
        """Clip every model's gradient to at most this norm."""
        shared = self._models.flat.grad
        for i in range(len(self.trainings)):
            gradients = [p.grad for p in self._models.own(i) if p.grad is not None]
            gradients += [] if shared is None else [shared[i]]
            norm = torch.nn.utils.get_total_norm(gradients)
            torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp_max(1.0))

    def end_epoch(self, seconds: float) -> None:
        """Note the epoch that has just ended; the trainings share the time. One may fail, not the others."""
        self._share(seconds)
        sums = dict(zip(self.trainings, self._sums(), strict=True))
        if any(training.validates or training.saves for training in self.trainings):
            self.hand_out()
        try:
            self._with_each(lambda training: training.end_epoch(sums[training]))
        finally:
            if any(training.validates for training in self.trainings):
                self._models.take_back()  # vectors that the validation has improved

    def save(self, seconds: float) -> None:
        """Save the states of all in the middle of an epoch."""
        self._share(seconds)
        self.hand_out()
        self._with_each(Training.save_within_epoch)

    def _share(self, seconds: float) -> None:
        for training in self.trainings:
            training.seconds += seconds / len(self.trainings)

    def _with_each(self, action: Callable[[Training], None]) -> None:
        """Do something with every training, then raise if it failed with one."""
        failures = {}
        for training in self.trainings:
            try:
                action(training)
            except TrainingError as error:
                failures[training] = error
        if failures:
            raise FailedTrainingsError(failures)

    @torch.no_grad()
    def _sums(self) -> list[Epoch]:
        """Return what the finished epoch came to, training by training."""
        k_f = torch.vmap(PairLip.max)(self._models.lip())
        # A loss that does not use the constants has not followed them.
        idle = [i for i, training in enumerate(self.trainings) if not training.plan.loss.uses_constants]
        if idle:
            self._models.hand_out()
            for i in idle:
                k_f[i] = self.trainings[i].converged().max()
            self._models.take_back()
        rows = zip(self._losses.tolist(), self._correct.tolist(), k_f.tolist(), strict=True)
        self._losses.zero_()
        self._correct.zero_()
        return [Epoch(*row) for row in rows]

    def hand_out(self) -> None:
        """Hand the trainings what the stack keeps for them."""
        self._models.hand_out()
        for training, losses, correct in zip(self.trainings, self._losses, self._correct, strict=True):
            training.losses.copy_(losses)
            training.correct.copy_(correct)
        whole = self._optimizer.state[self._models.flat]
        for i, training in enumerate(self.trainings):
            state = training.optimizer.state
            for p, place in self._models.shared(i):
                state[p] = {name: _part(value, i, place, p) for name, value in whole.items()}
            state.update({p: self._optimizer.state[p] for p in self._models.own(i)})

    def _collect_states(self) -> None:
        """Load the optimiser state of the trainings into the stack's optimiser."""
        flat = self._models.flat
        for i, training in enumerate(self.trainings):
            state = training.optimizer.state
            for p, place in self._models.shared(i):
                for name, value in state[p].items():
                    if isinstance(value, Tensor) and value.ndim:
                        whole = self._optimizer.state[flat].setdefault(name, torch.zeros_like(flat))
                        whole[i, place] = value.flatten()
                    else:
                        self._optimizer.state[flat][name] = copy.deepcopy(value)
            self._optimizer.state.update({p: state[p] for p in self._models.own(i) if p in state})

    def close(self) -> None:
        """Give the models their weights back."""
        self.hand_out()
        self._models.release()


def _by_loss(trainings: Sequence[Training]) -> list[list[Training]]:
    """Group trainings whose losses differ in numbers alone; a loss that does not stack is its own group."""
    groups: dict[Hashable, list[Training]] = {}
    for training in trainings:
        groups.setdefault(kind(training.plan.loss), []).append(training)
    return [
        part for group in groups.values() for part in ([group] if _is_one(group) else [[t] for t in group])
    ]


def _is_one(group: Sequence[Training]) -> bool:
    """Return whether the losses of these trainings can be one call, tried on two samples of each."""
    if len(group) == 1:
        return True
    lips = [training.bounded.lip() for training in group]
    lip = PairLip(*(torch.stack(part) for part in zip(*lips, strict=True)))
    logits = lip.head.new_zeros(len(group), 2, lip.head.shape[1])
    return understood_by_vmap([t.plan.loss_at(t.fraction) for t in group], logits, lip)


def _data(trainings: Sequence[Training]) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples and labels, and where those of each training begin: (M, 1)."""
    first, count = trainings[0], len(trainings)
    if all(torch.equal(t.x, first.x) and torch.equal(t.y, first.y) for t in trainings[1:]):
        return first.x, first.y.to(first.x.device), torch.zeros(count, 1, dtype=torch.int64)
    x, y = torch.cat([t.x for t in trainings]), torch.cat([t.y for t in trainings])
    return x, y.to(x.device), len(first.x) * torch.arange(count)[:, None]


def _part(value: Any, index: int, place: slice, parameter: nn.Parameter) -> Any:
    """Copy one parameter's part of an optimiser's state, because a file would hold all of it otherwise."""
    whole = isinstance(value, Tensor) and value.ndim > 0
    return value[index, place].reshape(parameter.shape).clone() if whole else copy.deepcopy(value)
