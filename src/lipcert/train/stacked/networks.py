"""Several models of one architecture as one: dense layers by batched products, the rest model by model.

The number of calls per step does not grow with the number of models if every layer with weights is dense
and small. The results of one model do not depend on the others, to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import Bounded, binary_as_two, binary_rows
from lipcert.bounds.contract import Channelwise
from lipcert.bounds.gram_iteration import SMALL
from lipcert.bounds.tracing.program import Step
from lipcert.train.stacked.dense_norms import DenseNorms
from lipcert.types import PairLip

Steps = tuple[Step, ...]  # the same step of every model

# A row of weights is a multiple of this many numbers long. So an optimiser's vector instructions process the
# same numbers together at any position, and round them in the same way.
_ALIGNED = 64


class Stacked:
    """The map x (M, B, …) ↦ logits (M, B, N) and constants, features (M,) and head (M, N, D), of M models.

    The models' dense weights become views of `flat`, one row per model: stepping `parameters()` steps all
    models.

    Example:
        >>> models = [nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)) for _ in range(5)]
        >>> stack = Stacked([Bounded(model, input_shape=(2,)) for model in models])
        >>> logits, lip = stack(torch.zeros(5, 7, 2))
        >>> logits.shape, lip.features.shape, lip.head.shape
        (torch.Size([5, 7, 3]), torch.Size([5]), torch.Size([5, 3, 4]))
    """

    def __init__(self, members: Sequence[Bounded]) -> None:
        self.members = list(members)
        self._program = members[0].program
        self._steps: list[Steps] = list(zip(*(member.program.steps for member in members), strict=True))
        self._dense = {id(layers[0]): _Dense(layers) for layers in self._dense_layers()}
        self.flat, self._sizes = self._flatten()
        self._small = [s for s in self._steps if id(s[0].module) in self._dense and _is_small(s[0])]
        others = [steps for steps in self._steps if steps not in self._small]
        estimates = {s[0].name: s[0].rule.estimate(s[0].module, members[0].vector(s[0])) for s in others}
        self._known = {name: value for name, value in estimates.items() if not isinstance(value, Tensor)}
        self._large = [steps for steps in others if steps[0].name not in self._known]
        self._norms = DenseNorms(self._vectors_of_members(), self._small_weights()) if self._small else None
        self._one = next(self.parameters()).detach().new_ones(len(members))
        self._samples_last = self._can_be_last()
        self._maps = [self._map([step.module for step in steps]) for steps in self._steps]
        heads = [member.head for member in members if member.head is not None]
        self._head = self._map(heads) if heads else None

    def __call__(
        self, x: Tensor, iterations: int = 0, turn: tuple[int, int] = (0, 1)
    ) -> tuple[Tensor, PairLip]:
        """Return logits and constants, after improving the vectors by `iterations` products with WᵀW.

        Layers that are not both dense and small take turns, as in `Bounded`.
        """
        self._unpack()
        values = {self._program.source: x.mT if self._samples_last else x}
        for step, apply in zip(self._program.steps, self._maps, strict=True):
            values[step.name] = apply(*[values[i] for i in step.inputs])
        features = values[self._program.result]
        logits = features if self._head is None else self._head(features)
        # One layout for any number of models, because otherwise sums would round differently.
        logits = logits.mT.contiguous() if self._samples_last else logits
        return binary_as_two(logits), self._constants(iterations, turn)

    def lip(self, iterations: int = 0) -> PairLip:
        """Return the constants alone, with gradients to the weights."""
        self._unpack()
        return self._constants(iterations)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters to step: `flat`, and those that the models keep."""
        if self._dense:
            yield self.flat
        for i in range(len(self.members)):
            yield from self.own(i)

    def own(self, index: int) -> list[nn.Parameter]:
        """Return the parameters that one model keeps."""
        shared = {id(p) for p, _ in self.shared(index)}
        return [p for p in self.members[index].parameters() if id(p) not in shared]

    def shared(self, index: int) -> Iterator[tuple[nn.Parameter, slice]]:
        """Yield the parameters of a model that are parts of its row of `flat`, with their slices."""
        start = 0
        for dense in self._dense.values():
            for p in dense.layers[index].parameters():
                yield p, slice(start, start + p.numel())
                start += p.numel()

    def hand_out(self) -> None:
        """Copy the stack's vectors to the models."""
        if self._norms is None:
            return
        for steps, vectors in zip(self._small, self._norms.vectors(), strict=True):
            for step, member, vector in zip(steps, self.members, vectors, strict=True):
                member.set_vectors({step: vector.clone()})

    def take_back(self) -> None:
        """Take over the models' vectors, which may have improved."""
        if self._norms is not None:
            self._norms.set_vectors(self._vectors_of_members())

    def release(self) -> None:
        """Give the models their weights and vectors back; the stack cannot be used afterwards."""
        self.hand_out()
        for i in range(len(self.members)):
            for p, _ in self.shared(i):
                p.data = p.data.clone()

    def _flatten(self) -> tuple[nn.Parameter, list[int]]:
        """Move all dense weights into rows, one per model, which the models view; return the sizes too."""
        rows = [[p for p, _ in self.shared(i)] for i in range(len(self.members))]
        sizes = [p.numel() for p in rows[0]]
        example = next(self.members[0].parameters())
        values = example.detach().new_zeros(len(rows), -(-sum(sizes) // _ALIGNED) * _ALIGNED)
        for row, parameters in zip(values, rows, strict=True):
            for p, part in zip(parameters, row[: sum(sizes)].split(sizes), strict=True):
                part.copy_(p.detach().flatten())
                p.data = part.view(p.shape)
        return nn.Parameter(values), [*sizes, values.shape[1] - sum(sizes)]

    def _unpack(self) -> None:
        """Set the layers' weights to parts of `flat`, with gradients to it."""
        parts = iter(torch.split(self.flat, self._sizes, dim=1))
        for dense in self._dense.values():
            dense.take(parts)

    def _dense_layers(self) -> Iterator[list[nn.Linear]]:
        """Yield plain trained dense layers, each once, whose weights no other layer has."""
        users = Counter(id(p) for m in self.members[0].modules() for p in m._parameters.values())
        everywhere: list[list[nn.Module | None]] = [[step.module for step in steps] for steps in self._steps]
        everywhere.append([member.head for member in self.members])
        for layers in {id(layers[0]): layers for layers in everywhere}.values():
            if type(layers[0]) is nn.Linear and all(
                users[id(p)] == 1 and p.requires_grad for p in layers[0].parameters()
            ):
                yield cast(list[nn.Linear], layers)

    def _can_be_last(self) -> bool:
        """Return whether samples can come last: (M, channels, B) saves many transpositions per step."""
        modules = [step.module for step in self._program.steps if id(step.module) not in self._dense]
        rules = [step.rule for step in self._program.steps if id(step.module) not in self._dense]
        head = self.members[0].head
        return (
            all(len(step.input_shapes[0]) == 1 for step in self._program.steps)
            and all(isinstance(rule, Channelwise) for rule in rules)
            and not any(module.state_dict() for module in modules)
            and (head is None or id(head) in self._dense)
        )

    def _map(self, modules: Sequence[nn.Module]) -> Callable[..., Tensor]:
        """Return one layer of all models."""
        dense = self._dense.get(id(modules[0]))
        if dense is not None:
            return dense.last if self._samples_last else dense.first
        if self._samples_last:
            return modules[0]
        if modules[0].state_dict():
            return lambda *x: torch.stack([module(*own) for module, *own in zip(modules, *x, strict=True)])
        models = len(modules)
        return lambda *x: modules[0](*[y.flatten(0, 1) for y in x]).unflatten(0, (models, -1))

    def _constants(self, iterations: int, turn: tuple[int, int] = (0, 1)) -> PairLip:
        if iterations:
            self._improve_large(iterations, turn)
        rest = self._known | {steps[0].name: self._estimate(steps) for steps in self._large}
        if self._norms is None:
            features = self._program.constant(rest, self._one)
        elif self._program.is_chain:
            factors = (value for value in rest.values() if isinstance(value, Tensor) or value != 1)
            norms = self._norms.product(self._small_weights(), iterations)
            features = cast(Tensor, math.prod(factors, start=norms))
        else:
            names = [steps[0].name for steps in self._small]
            each = self._norms(self._small_weights(), iterations).unbind(1)
            features = self._program.constant(rest | dict(zip(names, each, strict=True)), self._one)
        return PairLip(features, self._head_rows())

    def _estimate(self, steps: Steps) -> Tensor:
        """Estimate the constants (M,) of a layer that is not both dense and small."""
        vectors = [member.vector(step) for step, member in zip(steps, self.members, strict=True)]
        dense = self._dense.get(id(steps[0].module))
        if dense is None:
            pairs = zip(steps, vectors, strict=True)
            return torch.stack([cast(Tensor, step.rule.estimate(step.module, v)) for step, v in pairs])
        # One by one: a product with one vector is rounded differently from one with many.
        columns = (v.view(-1, v.shape[-1]).mT for v in vectors if v is not None)
        images = [weight @ v for weight, v in zip(dense.weight, columns, strict=True)]
        return torch.stack([torch.linalg.vector_norm(image) for image in images])

    def _head_rows(self) -> Tensor:
        head = self.members[0].head
        if head is not None and id(head) in self._dense:
            return binary_rows(self._dense[id(head)].weight)
        return torch.stack([member.head_rows() for member in self.members])

    @torch.no_grad()
    def _improve_large(self, times: int, turn: tuple[int, int]) -> None:
        """Improve the vectors of layers that are not both dense and small, model by model."""
        linear = [steps for steps in self._steps if steps[0].rule.has_vector]
        for steps in (s for s in linear[slice(turn[0], None, turn[1])] if s in self._large):
            for step, member in zip(steps, self.members, strict=True):
                member.improve(step, times)

    def _small_weights(self) -> list[Tensor]:
        return [self._dense[id(steps[0].module)].weight for steps in self._small]

    def _vectors_of_members(self) -> list[Tensor]:
        """Return the vectors (M, in) of every layer that is dense and small."""
        rows = ([m.vector(s) for s, m in zip(steps, self.members, strict=True)] for steps in self._small)
        return [torch.stack([v for v in row if v is not None]) for row in rows]


class _Dense:
    """A dense layer of every model, applied by one batched product."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = list(layers)
        self.weight: Tensor = torch.stack([layer.weight.detach() for layer in layers])  # (M, out, in)
        self.bias: Tensor | None = None  # (M, out, 1)

    def take(self, parts: Iterator[Tensor]) -> None:
        """Take weight and bias from the next parts."""
        self.weight = next(parts).view(self.weight.shape)
        self.bias = None if self.layers[0].bias is None else next(parts)[..., None]

    def first(self, x: Tensor) -> Tensor:
        """Map (M, B, …, in) to (M, B, …, out)."""
        flat, weight = x.flatten(1, -2), self.weight.mT
        y = flat @ weight if self.bias is None else torch.baddbmm(self.bias.mT, flat, weight)
        return y.view(*x.shape[:-1], y.shape[-1])

    def last(self, x: Tensor) -> Tensor:
        """Map (M, in, B) to (M, out, B)."""
        return self.weight @ x if self.bias is None else torch.baddbmm(self.bias, self.weight, x)


def is_dense(bounded: Bounded) -> bool:
    """Return whether every layer with weights is a plain dense one: an MLP."""
    modules = [*(step.module for step in bounded.program.steps), bounded.head]
    return all(type(m) is nn.Linear for m in modules if m is not None and m.state_dict())


def _is_small(step: Step) -> bool:
    return len(step.input_shapes[0]) == 1 and max(*step.input_shapes[0], *step.shape) <= SMALL
