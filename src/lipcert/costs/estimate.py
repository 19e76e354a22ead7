"""Estimate what a recipe costs: every part of it runs once on the meta device, which allocates nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.bounds.contract import plain_type
from lipcert.bounds.evaluation import evaluate
from lipcert.bounds.proof import Bound, LayerBound, layer_effort
from lipcert.bounds.provers.proof_cache import fresh_proofs
from lipcert.bounds.tracing.program import Program, Step, trace
from lipcert.bounds.witness import quotients
from lipcert.costs.checkpoint_size import checkpoint_bytes
from lipcert.costs.counting import Pretending, Work
from lipcert.costs.timing import disk_speed, timed
from lipcert.data.base import Split
from lipcert.data.sizes import Size, size_of
from lipcert.models import ModelCard
from lipcert.nn.bases.derived import Derived
from lipcert.recipes import Recipe
from lipcert.recipes.tightness_search import BUDGETS
from lipcert.runs.tightness import PAIRS_AT_ONCE
from lipcert.train.cadence import SHARE
from lipcert.train.optimizers import optimizer_for
from lipcert.train.plan import scheduled
from lipcert.transforms import pretending

# Samples certified at once: the largest piece that a certificate of a small network takes.
_PIECE = 16

# Memory of a process before it has a model: torch and what it loads.
_PROCESS = 350e6


@dataclass(frozen=True)
class Part:
    """A part of a recipe: the work of one round of it, and how many rounds there are."""

    name: str
    rounds: int
    work: Work
    memory: float  # bytes, the process included
    seconds: float  # the sum over all rounds

    @property
    def flops(self) -> float:
        """Return the multiplications and additions of all rounds."""
        return self.rounds * self.work.flops

    @property
    def bytes(self) -> float:
        """Return what all rounds read and write."""
        return self.rounds * self.work.bytes


@dataclass(frozen=True)
class Estimated:
    """The cost of a recipe: parameters, steps and bytes of a checkpoint are exact, all else is estimated."""

    recipe: Recipe
    parameters: int
    steps: int
    checkpoint: int  # bytes
    checkpoint_seconds: float  # for one
    checkpoints: int
    data: int  # bytes of all splits that are used
    parts: tuple[Part, ...]
    measured: float  # part of the work whose operations were timed


def estimate(recipe: Recipe, device: torch.device | None = None, folder: Path = Path()) -> Estimated:
    """Estimate the cost of a recipe; seconds are those of a device, `folder` is where a run would be written.

    Without a device nothing is timed, and the seconds are 0.
    """
    sizes = {split: size_of(recipe.data.name, split, **recipe.arguments.data) for split in _splits(recipe)}
    train = sizes["train"]
    steps = math.ceil(train.samples / recipe.train.batch_size) * recipe.train.epochs
    with _without_numbers():
        model = _model(recipe, train)
        step, state = _step(recipe, model, train)
        parameters = sum(p.numel() for p in model.parameters())
        size = checkpoint_bytes(recipe, state, steps, train)
    works = [("training", steps, step), *_afterwards(recipe, train, sizes)]
    parts, measured = _in_seconds(works, device)
    writing = size / disk_speed(folder) if device is not None else 0.0
    return Estimated(
        recipe,
        parameters,
        steps,
        size,
        writing,
        _checkpoints(recipe, parts[0].seconds, writing),
        sum(s.samples * math.prod(s.shape) for s in sizes.values()),
        parts,
        measured,
    )


def _splits(recipe: Recipe) -> set[Split]:
    """Return the splits that a recipe uses."""
    validated: tuple[Split, ...] = ("val",) if recipe.train.validate_every else ()
    return {"train", *validated, *recipe.certify.splits}


def _in_seconds(
    works: list[tuple[str, int, Work]], device: torch.device | None
) -> tuple[tuple[Part, ...], float]:
    parts, seconds, measured = [], 0.0, 0.0
    for name, rounds, work in works:
        found = timed(work, device) if device is not None else None
        took = found.seconds * rounds if found is not None else 0.0
        parts.append(Part(name, rounds, work, work.peak + _PROCESS, took))
        seconds += took
        measured += took * found.measured if found is not None else 0.0
    return tuple(parts), measured / seconds if seconds else 0.0


def _checkpoints(recipe: Recipe, seconds: float, writing: float) -> int:
    """Count the checkpoints; `auto` writes as many as take their share of the time, and one at the end."""
    every, epochs = recipe.train.checkpoint_every, recipe.train.epochs
    if every != "auto":
        return -(-epochs // every)
    most = SHARE * seconds / writing if writing else epochs
    return max(1, min(epochs, int(most) + 1))


@contextmanager
def _without_numbers() -> Iterator[None]:
    """Make tensors on the meta device inside this context; torch's random state stays as it is."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        yield


def _model(recipe: Recipe, size: Size) -> nn.Module:
    names = tuple(map(str, range(size.classes)))
    card = ModelCard(recipe.model.name, size.classes, size.shape, recipe.arguments.model, names)
    return recipe.model_copy(update={"start": None}).make_model(card)


def _step(recipe: Recipe, model: nn.Module, size: Size) -> tuple[Work, dict[str, Any]]:
    """Count one step; also return the state that a checkpoint holds after it."""
    settings = recipe.train
    bounded = Bounded(model, size.shape, settings.iterations, settings.local, settings.estimate)
    optimizer = optimizer_for(bounded, recipe.make_optimizer(), recipe.optimizer.no_decay)
    for group in [optimizer.defaults, *optimizer.param_groups]:
        group.update({key: False for key in ("fused", "foreach") if key in group})
    one_step = _training_step(recipe, bounded, optimizer, size)
    with Pretending():
        one_step()  # the optimiser makes its state
    average = [torch.empty_like(p) for p in bounded.parameters()] if settings.ema is not None else None
    optimizer.zero_grad()
    before = [*bounded.state_dict().values(), *_tensors_of(optimizer), *(average or [])]
    with Pretending(*before) as counting:
        one_step()
    return counting.work, {"bounded": bounded, "optimizer": optimizer, "average": average}


def _tensors_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [t for state in optimizer.state.values() for t in state.values() if isinstance(t, Tensor)]


def _training_step(
    recipe: Recipe, bounded: Bounded, optimizer: torch.optim.Optimizer, size: Size
) -> Callable[[], None]:
    """Return a function that makes one step, as the engine makes it, without augmentation."""
    dtype = getattr(torch, recipe.train.dtype)
    loss = scheduled(recipe.make_loss(), recipe.make_schedules(), 0.5)
    pieces = [
        piece.shape[0] for piece in torch.empty(recipe.train.batch_size).tensor_split(recipe.train.accumulate)
    ]

    def step() -> None:
        optimizer.zero_grad()
        for i, piece in enumerate(pieces):
            x = torch.empty(piece, *size.shape, dtype=dtype)
            labels = torch.zeros(piece, dtype=torch.int64)
            logits, lip = bounded(x, first=i == 0, iterate=loss.uses_constants, turn=(0, recipe.train.turns))
            objective = loss(logits, labels, lip).mean() + loss.penalty(bounded.near(lip, labels))
            torch.autograd.backward(objective)
        optimizer.step()

    return step


def _afterwards(recipe: Recipe, size: Size, sizes: dict[Split, Size]) -> list[tuple[str, int, Work]]:
    """Count the proof, certificates and tightness, each of one round."""
    with _without_numbers(), fresh_proofs():
        model = _model(recipe, size).eval().double()
        program = trace(model, size.shape)  # which refuses modes that replace operations
        with pretending(), Pretending():
            samples = sum(sizes[split].samples for split in recipe.certify.splits)
            works = [("proof", 1, _proof(recipe, model, program))]
            works.append(("certificates", math.ceil(samples / _PIECE), _certificate(model, size, program)))
            if recipe.certify.tightness is not None:
                budget = BUDGETS[recipe.certify.tightness]
                rounds = math.ceil(budget.pairs / PAIRS_AT_ONCE) * (budget.steps + 1)
                works.append(("tightness", rounds, _tightness(recipe, model, size)))
    return works


def _proof(recipe: Recipe, model: nn.Module, program: Program) -> Work:
    """Count the proof of every layer; layers of one kind and shape are counted once."""
    total, known = Work(), dict[Any, Work]()
    for step in program.steps:
        key = _kind(step)
        if key not in known:
            if isinstance(step.module, Derived):
                step.module.forget()  # it made its weights when it was traced, which is part of the proof
            effort = layer_effort(recipe.certify.effort)
            with Pretending(*model.parameters()) as counting:
                step.rule.upper(step.module, step.input_shapes[0], effort)
            known[key] = counting.work
        total.add(known[key])
    # The model, its float64 copy, the weights that both keep and a record of all of them: in float64.
    total.peak += sum(3 * 8.0 * p.numel() for p in model.parameters())
    return total


def _kind(step: Step) -> Any:
    shapes = tuple((name, tuple(p.shape)) for name, p in step.module.named_parameters())
    plain = (int, float, str, tuple)
    settings = tuple((k, v) for k, v in sorted(vars(step.module).items()) if isinstance(v, plain))
    return plain_type(step.module), shapes, step.input_shapes, repr(settings)


def _certificate(model: nn.Module, size: Size, program: Program) -> Work:
    """Count the float64 certificate of one piece, with the errors of every layer."""
    layers = [LayerBound(s.name, s.path, "", s.shape, 1.0, "", 0.0) for s in program.steps]
    x = torch.empty(_PIECE, *size.shape, dtype=torch.float64)
    with torch.no_grad():
        evaluate(program, Bound(1.0, tuple(layers)), x, False)  # layers make their weights
        with Pretending(*model.parameters()) as counting:
            evaluate(program, Bound(1.0, tuple(layers)), x, False)
    work: Work = counting.work
    return work


def _tightness(recipe: Recipe, model: nn.Module, size: Size) -> Work:
    """Count one step of the search on all pairs that are searched at once."""
    dtype = getattr(torch, recipe.train.dtype)
    model = model.to(dtype).requires_grad_(False)
    a, b = (torch.empty(PAIRS_AT_ONCE, *size.shape, dtype=dtype).requires_grad_() for _ in range(2))
    model(a)
    with Pretending(*model.parameters()) as counting:
        values = quotients(model, a, b).amax(dim=1)
        torch.autograd.grad(-values.sum(), [a, b])
    work: Work = counting.work
    return work
