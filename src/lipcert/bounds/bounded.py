"""`Bounded`: a model whose forward also returns the Lipschitz constants of its logits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from lipcert.bounds.following import followers_in, one_step
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.local_ball import refuse_branches
from lipcert.bounds.local_estimate import local_estimate
from lipcert.bounds.precision import full_precision
from lipcert.bounds.tracing.program import Program, Step, trace
from lipcert.errors import InputError, LipcertWarning, UnknownBoundError
from lipcert.types import PairLip, farthest

# Iterations before the first step, because a cold start is too low.
_WARM_UP = 32

# The number of classes up to which a step looks at every pair, at a small part of the cost of the layers.
_ALL_PAIRS = 256


class Bounded(nn.Module):
    """The map x ↦ (logits, PairLip) for training, with estimated constants; see `bounds.upper` for proofs.

    The model is left untouched: the vectors of the norm estimates are buffers here, one per linear layer.
    In training mode every forward improves them by `iterations` products with WᵀW, without gradient. With
    `local` the constants are those of balls of that radius, one per sample.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        >>> logits, lip = Bounded(model, input_shape=(2,))(torch.zeros(5, 2))
        >>> logits.shape, lip.features.shape, lip.head.shape
        (torch.Size([5, 3]), torch.Size([]), torch.Size([3, 4]))
    """

    worst_pair: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        iterations: int = 5,
        local: float | None = None,
    ) -> None:
        super().__init__()
        if local is not None and not 0 < local < math.inf:
            raise InputError(f"local: expected a radius > 0, got {local}")
        self.local = local
        self.model = model
        self.iterations = iterations
        self._followers = followers_in(model)
        program = trace(model, input_shape)
        self.classes = checked_classes(program)
        self.program, head = program.split_head()
        if local is not None:
            refuse_branches(self.program)
        # In a tuple, because otherwise the head's weights would be registered here a second time.
        self._head = (head,)
        if head is None:
            warnings.warn(
                "the last layer is not linear: the bound of the whole model is used for every pair "
                "of classes, times √2, which is looser",
                LipcertWarning,
                stacklevel=2,
            )
        example = next(model.parameters(), torch.zeros(()))
        self._linear = [step for step in self.program.steps if step.rule.has_vector]
        for i, step in enumerate(self._linear):
            self.register_buffer(_name(step), first_vector(step.input_shapes[0], i, like=example))
        # With many classes, a step looks at those of its batch and at the pair that was farthest apart
        # before.
        many = self.classes > _ALL_PAIRS and head is not None
        self.register_buffer("worst_pair", torch.zeros(2, dtype=torch.int64) if many else None)
        self.iterate(_WARM_UP)
        self.find_worst_pair()

    def forward(
        self, x: Tensor, first: bool = True, iterate: bool = True, turn: tuple[int, int] = (0, 1)
    ) -> tuple[Tensor, PairLip]:
        """Return the logits (B, N) and their constants.

        In training mode the vectors are improved first. `first=False` is for further pieces of one batch,
        `iterate=False` for a loss that does not use the constants. With `turn=(k, n)` every n-th vector is
        improved, beginning with the k-th.
        """
        if self._followers and self.training:
            with one_step(self._followers, first):
                return self._logits_and_constants(x, first and iterate, turn)
        return self._logits_and_constants(x, first and iterate, turn)

    def _logits_and_constants(
        self, x: Tensor, iterate: bool, turn: tuple[int, int]
    ) -> tuple[Tensor, PairLip]:
        if self.local is None:
            logits = binary_as_two(self.model(x))
        with full_precision(x.device.type):
            if self.training and iterate:
                self.iterate(self.iterations, turn)
            if self.local is None:
                return logits, self.lip()
            return self._locally(x, self.local)

    def _locally(self, x: Tensor, radius: float) -> tuple[Tensor, PairLip]:
        """Return logits and constants layer by layer, as the constants need the values between layers."""
        vectors = {step.name: vector for step, vector in self.vectors().items()}
        features, constants = local_estimate(self.program, vectors, x, radius)
        logits = features if self.head is None else self.head(features)
        return binary_as_two(logits), PairLip(constants, self.head_rows())

    @property
    def head(self) -> nn.Linear | None:
        """Return the last layer, if it is dense."""
        return self._head[0]

    def vector(self, step: Step) -> Tensor | None:
        """Return the vector of a linear step, None for other steps."""
        return self._buffers.get(_name(step))

    def vectors(self) -> dict[Step, Tensor]:
        """Return the vectors of all linear steps."""
        return {step: self.get_buffer(_name(step)) for step in self._linear}

    def set_vectors(self, vectors: Mapping[Step, Tensor]) -> None:
        """Replace the vectors, not in place, because autograd may still hold the old ones."""
        self._buffers.update({_name(step): vector for step, vector in vectors.items()})

    def lip(self) -> PairLip:
        """Return the constants for the present vectors, with gradients to the weights."""
        estimates = {s.name: s.rule.estimate(s.module, self.vector(s)) for s in self.program.steps}
        return PairLip(self.program.constant(estimates, self._one()), self.head_rows())

    @torch.no_grad()
    def iterate(self, times: int, turn: tuple[int, int] = (0, 1)) -> None:
        """Improve every vector, or those selected by `turn`, by `times` products with WᵀW."""
        for step in self._linear[slice(turn[0], None, turn[1])]:
            self.improve(step, times)

    @torch.no_grad()
    def improve(self, step: Step, times: int) -> None:
        """Improve the vector of a step by `times` products with WᵀW."""
        vector = self.get_buffer(_name(step))
        self.set_vectors({step: step.rule.iterate(step.module, vector, times)})

    def find_worst_pair(self) -> None:
        """Search the worst pair among all pairs, where a step does not."""
        if self.worst_pair is not None:
            head = self.head_rows().detach()
            self.worst_pair = farthest(head, torch.arange(len(head), device=head.device))

    def near(self, lip: PairLip, labels: Tensor) -> PairLip:
        """Return the constants of the pairs whose `max` a step takes: all pairs if there are few classes."""
        return lip if self.worst_pair is None else lip.near(labels, self.worst_pair)

    @torch.no_grad()
    def converge(self, tolerance: float = 1e-9, most: int = 1000) -> PairLip:
        """Iterate until the feature constant changes by less than `tolerance`, relatively."""
        lip = self.lip()
        for _ in range(0, most, 10):
            before = float(lip.features)
            self.iterate(10)
            lip = self.lip()
            if abs(float(lip.features) - before) <= tolerance * before:
                break
        return lip

    def _one(self) -> Tensor:
        example = next(self.model.parameters(), torch.zeros(()))
        return torch.ones((), dtype=example.dtype, device=example.device)

    def head_rows(self) -> Tensor:
        """Return the rows of the head, (N, D), with gradients."""
        if self.head is None:
            one = self._one()
            return torch.eye(max(self.classes, 2), dtype=one.dtype, device=one.device)
        return binary_rows(self.head.weight)


def _name(step: Step) -> str:
    """Return the name of the buffer that holds a step's vector."""
    return f"vector_{step.name}"


def checked_classes(program: Program) -> int:
    """Return the number of logits, and raise unless they are one vector."""
    shape = {step.name: step.shape for step in program.steps}.get(program.result, ())
    if len(shape) != 1:
        raise UnknownBoundError(f"model: expected logits of shape (N,) per sample, got {shape}")
    return shape[0]


def binary_as_two(logits: Tensor) -> Tensor:
    """Turn a single logit f into the pair [0, f]."""
    return torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits


def binary_rows(head: Tensor) -> Tensor:
    """Turn a single head row w into the rows [0, w]."""
    # Never the parameter itself: wrappers add a hook to every output of forward, and hooks on a
    # parameter would accumulate with every step.
    return torch.cat([torch.zeros_like(head), head], dim=-2) if head.shape[-2] == 1 else head.view_as(head)
