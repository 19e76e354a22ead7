"""`Bounded`: a model whose forward also returns the Lipschitz constants of its logits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from lipcert.bounds.arguments import checked_count, checked_model, checked_tensor, wrong_shape
from lipcert.bounds.following import followers_in, one_step
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.local_ball import refuse_branches
from lipcert.bounds.local_estimate import local_estimate
from lipcert.bounds.precision import full_precision
from lipcert.bounds.small_pieces import LEAST, batch_norms_in, stand_in, statistics_for
from lipcert.bounds.subspace import Subspaces
from lipcert.bounds.tracing.program import Program, Step, checked_shape, trace
from lipcert.errors import InputError, LipcertWarning, UnknownBoundError
from lipcert.suggestions import expected_one_of
from lipcert.types import PairLip, farthest

# How vectors are improved: by the best one of a small Krylov space per layer, by power iteration as others
# do, or all layers together in blocks, which takes the fewest kernels.
Estimate = Literal["krylov", "power", "block"]

# Iterations before the first step, because a cold start is too low.
_WARM_UP = 32

# The number of classes up to which a step looks at every pair, at a small part of the cost of the layers.
_ALL_PAIRS = 256


class Bounded(nn.Module):
    """The map x ↦ (logits, PairLip) for training, with estimated constants; see `bounds.upper` for proofs.

    The model is left untouched: the vectors of the norm estimates are buffers here, one per linear layer.
    In training mode every forward improves them by `iterations` products with WᵀW (5; 1 for blocks),
    without gradient: to the best vector of the Krylov space, or with `estimate="power"` by plain power
    iteration. With `estimate="block"` all layers are improved together, in `iterations` rounds with one
    product each. With `turns=n` a forward improves every n-th layer only, in turn, which costs less and
    follows the weights less closely; `converge` improves all of them. With `local` the constants are those of
    balls of that radius, one per sample.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        >>> logits, lip = Bounded(model, input_shape=(2,))(torch.zeros(5, 2))
        >>> logits.shape, lip.features.shape, lip.head.shape
        (torch.Size([5, 3]), torch.Size([]), torch.Size([3, 4]))
    """

    worst_pair: Tensor | None
    space: Tensor | None  # for estimate="block", of all layers
    zeros: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        iterations: int | None = None,
        local: float | None = None,
        estimate: Estimate = "krylov",
        turns: int = 1,
    ) -> None:
        super().__init__()
        if estimate not in get_args(Estimate):
            raise InputError(f"estimate: {expected_one_of(get_args(Estimate), estimate)}")
        if local is not None and not (isinstance(local, Real) and 0 < local < math.inf):
            raise InputError(f"local: expected a radius > 0, got {local!r}")
        self.local = local
        self.estimate = estimate
        self.model = checked_model(model)
        usual = usual_iterations(estimate)
        self.iterations = checked_count("iterations", usual if iterations is None else iterations, least=0)
        self.turns = checked_count("turns", turns)
        check_turns(estimate, self.turns)
        self._next_turn = 0  # below `turns`, as a compiled forward is compiled again for every value
        self._followers = followers_in(model)
        self._norms = (batch_norms_in(model),)  # in a tuple, because they are modules of the model already
        program = trace(model, input_shape)
        self._shape = checked_shape(input_shape)
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
        self._subspaces = Subspaces(self._linear)
        blocks = estimate == "block" and bool(self._linear)
        self.register_buffer("space", self._subspaces.first_space(example) if blocks else None)
        zeros = self._subspaces.zeros(example) if blocks else None
        self.register_buffer("zeros", zeros, persistent=False)
        # With many classes, a step looks at those of its batch and at the pair that was farthest apart
        # before.
        many = self.classes > _ALL_PAIRS and head is not None
        self.register_buffer("worst_pair", torch.zeros(2, dtype=torch.int64) if many else None)
        self._improve_each(_WARM_UP, "power" if estimate == "power" else "krylov")
        self.find_worst_pair()

    def forward(
        self, x: Tensor, first: bool = True, iterate: bool = True, turn: tuple[int, int] | None = None
    ) -> tuple[Tensor, PairLip]:
        """Return the logits (B, N) and their constants.

        In training mode the vectors are improved first. `first=False` is for further pieces of one batch,
        `iterate=False` for a loss that does not use the constants. With `turn=(k, n)` every n-th vector is
        improved, beginning with the k-th; blocks are improved if k is 0. Without it, `turns` says n, and k
        counts the forwards that improve. The piece may be empty; batch norm uses its running statistics if
        there is one sample or none.
        """
        if not isinstance(x, Tensor):
            checked_tensor("x", x)  # which says what to do
        if x.shape[1:] != self._shape:
            raise InputError(wrong_shape(x, self._shape))
        if turn is None:
            turn = self._take_turn(first and iterate)
        if len(x) < LEAST:
            return self._few(x, first, iterate, turn)
        return self._stepped(x, first, iterate, turn)

    def _take_turn(self, is_step: bool) -> tuple[int, int]:
        """Return whose turn it is; only a forward that improves vectors uses it up."""
        turn = self._next_turn
        if self.training and is_step:
            self._next_turn = (turn + 1) % self.turns
        return turn, self.turns

    def _few(self, x: Tensor, first: bool, iterate: bool, turn: tuple[int, int]) -> tuple[Tensor, PairLip]:
        with statistics_for(len(x), self._norms[0]):
            logits, lip = self._stepped(x if len(x) else stand_in(x), first, iterate, turn)
        features = lip.features if self.local is None else lip.features[: len(x)]
        return logits[: len(x)], PairLip(features, lip.head)

    def _stepped(
        self, x: Tensor, first: bool, iterate: bool, turn: tuple[int, int]
    ) -> tuple[Tensor, PairLip]:
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
        if self.zeros is not None:
            return PairLip(self._together(self.zeros), self.head_rows())
        estimates = {s.name: s.rule.estimate(s.module, self.vector(s)) for s in self.program.steps}
        return PairLip(self.program.constant(estimates, self._one()), self.head_rows())

    def _together(self, zeros: Tensor) -> Tensor:
        """Return the constant of the features, with the norms of all linear layers in a few kernels."""
        vectors = list(self.vectors().values())
        others = {
            s.name: s.rule.estimate(s.module, None) for s in self.program.steps if not s.rule.has_vector
        }
        if not self.program.is_chain:
            norms = self._subspaces.norms(vectors, zeros).unbind()
            linear = dict(zip([step.name for step in self._linear], norms, strict=True))
            return self.program.constant({**others, **linear}, self._one())
        constant = self._subspaces.product(vectors, zeros)
        for estimate in others.values():
            constant = constant if not isinstance(estimate, Tensor) and estimate == 1 else constant * estimate
        return constant

    @torch.no_grad()
    def iterate(self, times: int, turn: tuple[int, int] = (0, 1)) -> None:
        """Improve every vector, or those selected by `turn`, by `times` products with WᵀW."""
        if self.space is None or self.zeros is None:
            self._improve_each(times, self.estimate, turn)
            return
        if turn[0] == 0:
            for _ in range(times):
                vectors = list(self.vectors().values())
                vectors, space = self._subspaces.improve(vectors, self.space, self.zeros)
                self.set_vectors(dict(zip(self._linear, vectors, strict=True)))
                self.space = space

    def _improve_each(self, times: int, estimate: Estimate, turn: tuple[int, int] = (0, 1)) -> None:
        for step in self._linear[slice(turn[0], None, turn[1])]:
            self.improve(step, times, estimate)

    @torch.no_grad()
    def improve(self, step: Step, times: int, estimate: Estimate | None = None) -> None:
        """Improve the vector of a step by `times` products with WᵀW."""
        improve = step.rule.power if (estimate or self.estimate) == "power" else step.rule.iterate
        self.set_vectors({step: improve(step.module, self.get_buffer(_name(step)), times)})

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
        """Iterate until the feature constant changes by less than `tolerance`, relatively.

        Always in Krylov spaces: a report needs the best estimate, and power iteration may stop far below it.
        """
        lip = self.lip()
        for _ in range(0, most, 10):
            before = float(lip.features)
            for step in self._linear:
                self.improve(step, 10, "krylov")
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


def usual_iterations(estimate: str) -> int:
    """Return the number of products per step, unless another one is given."""
    return 1 if estimate == "block" else 5


def check_turns(estimate: Estimate, turns: int) -> None:
    """Raise if power iterations are to take turns: they follow the weights too slowly for that."""
    if estimate == "power" and turns != 1:
        raise InputError(f"turns: expected 1 with estimate: power, got {turns}")


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
