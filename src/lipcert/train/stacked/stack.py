"""Several trainings of one architecture that make each step together.

Each keeps its own seed, order of samples, loss and numbers, and computes what it would compute alone, to the
last bit: a single MLP is trained as a stack of one.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from lipcert.bounds.following import followers_in, one_step
from lipcert.errors import InputError
from lipcert.losses import Loss
from lipcert.train.plan import Plan
from lipcert.train.stacked.losses import kind, stack_losses
from lipcert.train.stacked.networks import Stacked, is_dense
from lipcert.train.state import Epoch, Training
from lipcert.types import PairLip

# The settings that the plans of a stack must share.
_COMMON = (
    "epochs",
    "batch_size",
    "accumulate",
    "clip",
    "ema",
    "iterations",
    "turns",
    "balanced",
    "augmentation",
)


class Stack:
    """Make the steps of several trainings that are at the same step."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        groups = _by_loss(trainings)
        self.trainings = [training for group in groups for training in group]
        ends = list(accumulate(map(len, groups), initial=0))
        self._groups = [slice(*pair) for pair in pairwise(ends)]
        first = self._first = self.trainings[0]
        self._plan, self._device = first.plan, first.fabric.device
        self._models = Stacked([training.bounded for training in self.trainings])
        self._followers = [layer for t in self.trainings for layer in followers_in(t.plan.model)]
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
        step, plan = self._first.step, self._plan
        (group,) = self._optimizer.param_groups
        group.update(plan.optimizer_numbers(self._first.start_numbers[0], self._first.fraction))
        losses = [training.plan.loss_at(training.fraction) for training in self.trainings]
        batch = self._batch()  # (M, B)
        self._optimizer.zero_grad()
        for i, piece in enumerate(batch.tensor_split(plan.accumulate, dim=1)):
            self._backward(piece, losses, batch.shape[1], first=i == 0)
        if plan.clip is not None:
            self._clip(plan.clip)
        self._optimizer.step()
        for training in self.trainings:
            if training.average is not None:
                training.average.update(step)
            training.step += 1

    def _backward(self, piece: Tensor, losses: Sequence[Loss], batch_size: int, first: bool) -> None:
        """Compute the gradients of this piece of the objectives, with the penalties in the first piece."""
        labels = self._y[piece].to(self._device)  # (M, b)
        iterations = self._plan.iterations if first and any(loss.uses_constants for loss in losses) else 0
        turn = self._plan.turn(self._first.step)
        with one_step(self._followers, first):
            logits, lip = self._models(self._inputs(piece), iterations, turn)
        objectives = [
            self._objectives(group, losses, logits, labels, lip, batch_size, first) for group in self._groups
        ]
        objective = objectives[0] if len(objectives) == 1 else torch.cat(objectives)  # (M,)
        objective.sum().backward()  # type: ignore[no-untyped-call]
        index = self._first.step % self._plan.steps_per_epoch
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
        samples = labels.shape[1]
        first_loss = losses[group][0]
        if first_loss.stacks:
            of_samples, of_models = stack_losses(losses[group], samples, like=lip.features)
            values = of_samples(logits.flatten(0, 1), labels.flatten(), lip).view(len(labels), samples)
            penalty = of_models.penalty(lip)
        else:  # a single model
            its = PairLip(lip.features[0], lip.head[0])
            values, penalty = first_loss(logits[0], labels[0], its)[None], first_loss.penalty(its)[None]
        if self._weights is not None:
            values = values * self._weights[group].gather(1, labels)
        objective = values.sum(1) / batch_size
        return objective + penalty if first else objective

    def _batch(self) -> Tensor:
        """Return the samples of this step, (M, B); orders and augmentation of an epoch are drawn once."""
        epoch, index = divmod(self._first.step, self._plan.steps_per_epoch)
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
        return x.to(self._first.dtype).view(*piece.shape, *x.shape[1:])

    @torch.no_grad()
    def _clip(self, largest: float) -> None:
        """Clip every model's gradient to at most this norm."""
        shared = self._models.flat.grad
        for i in range(len(self.trainings)):
            gradients = [p.grad for p in self._models.own(i) if p.grad is not None]
            gradients += [] if shared is None else [shared[i]]
            norm = torch.nn.utils.get_total_norm(gradients)
            torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp_max(1.0))

    @torch.no_grad()
    def epochs(self) -> list[Epoch]:
        """Return the sums of the finished epoch, training by training."""
        k_f = self._models.lip().max()
        # A loss that does not use the constants has not tracked them.
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

    def before_saving(self) -> None:
        """Copy the stack's state to the trainings."""
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

    def after_validation(self) -> None:
        """Take over the models' vectors, which validation has improved."""
        self._models.take_back()

    def close(self) -> None:
        """Give the models their weights back."""
        self.before_saving()
        self._models.release()


def check_stack(plans: Sequence[Plan]) -> None:
    """Raise if these plans cannot be trained as one stack."""
    first = plans[0]
    if len(plans) > 1 and not _is_elementwise(_optimizer_of(first)):
        raise InputError("--stack: the optimiser must be Adam, AdamW or SGD, with the same numbers for all")
    for plan in plans[1:]:
        if _architecture(plan) != _architecture(first):
            raise InputError("--stack: the models must be of one architecture and precision")
        if _optimizer_numbers(plan) != _optimizer_numbers(first):
            raise InputError(
                "--stack: the optimiser, its numbers and their schedules must be the same for all"
            )
        if (plan.train.classes, plan.train.x.dtype) != (first.train.classes, first.train.x.dtype):
            raise InputError("--stack: the data of all must have the same classes and type")
        for name in _COMMON:
            if getattr(plan, name) != getattr(first, name):
                raise InputError(
                    f"--stack: train.{name} must be the same for all, got {_two(name, first, plan)}"
                )
        if len(plan.train) != len(first.train) or plan.train.input_shape != first.train.input_shape:
            raise InputError("--stack: the data of all must have equally many samples of the same shape")
    if any(plan.compile or plan.local is not None for plan in plans):
        raise InputError("--stack: train.compile and train.local are for single trainings")
    if len(plans) > 1 and any(isinstance(module, _DropoutNd) for module in first.model.modules()):
        raise InputError("--stack: models with dropout draw from one generator; train them one by one")


def is_stackable(training: Training) -> bool:
    """Return whether a stack of one gives the same training faster: an MLP, in one process."""
    plan, fabric = training.plan, training.fabric
    alone = fabric.world_size == 1 and fabric.strategy.precision.precision == "32-true"
    plain = not plan.compile and plan.local is None and not plan.channels_last
    return alone and plain and _is_elementwise(training.optimizer) and is_dense(training.bounded)


def _optimizer_of(plan: Plan) -> torch.optim.Optimizer:
    return plan.optimizer(list(plan.model.parameters()))


def _is_elementwise(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether an optimiser treats every number alike, in any tensor."""
    known = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
    return type(optimizer) in known and len(optimizer.param_groups) == 1


def _optimizer_numbers(plan: Plan) -> list[object]:
    optimizer = _optimizer_of(plan)
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    schedules = {k: repr(v) for k, v in plan.schedules.items() if k.startswith("optimizer.")}
    return [type(optimizer), groups, schedules]


def _architecture(plan: Plan) -> list[object]:
    return [repr(plan.model), [(p.shape, p.dtype, p.requires_grad) for p in plan.model.parameters()]]


def _two(name: str, one: Plan, other: Plan) -> str:
    return f"{getattr(one, name)!r} and {getattr(other, name)!r}"


def _by_loss(trainings: Sequence[Training]) -> list[list[Training]]:
    """Group trainings whose losses differ in numbers alone; a loss that does not stack is its own group."""
    groups: dict[Hashable, list[Training]] = {}
    for training in trainings:
        loss = training.plan.loss
        groups.setdefault(kind(loss) if loss.stacks else training, []).append(training)
    return list(groups.values())


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
