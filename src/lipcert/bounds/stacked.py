"""Several models of one architecture as one: dense layers by batched products, the rest model by model.

The calls of a step do not grow with the number of models as long as every layer with weights is dense and
small. What one model computes does not depend on the others, not in the last bit.
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
from lipcert.bounds.dense_norms import SMALL, DenseNorms
from lipcert.bounds.graph import Step
from lipcert.types import PairLip

Steps = tuple[Step, ...]  # the same step of every model


class Stacked:
    """x (M, B, …) ↦ logits (M, B, N) and constants, features (M,) and head (M, N, D), of M models.

    The models' dense weights become views of the stack's: whoever steps `parameters()` steps all models.

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
        self._small = [s for s in self._steps if id(s[0].module) in self._dense and _is_small(s[0])]
        others = [steps for steps in self._steps if steps not in self._small]
        estimates = {s[0].name: s[0].rule.estimate(s[0].module, members[0].vector(s[0])) for s in others}
        self._known = {name: value for name, value in estimates.items() if isinstance(value, float)}
        self._large = [steps for steps in others if steps[0].name not in self._known]
        weights = [self._dense[id(steps[0].module)].weight for steps in self._small]
        self._norms = DenseNorms(weights, self._vectors_of_members()) if weights else None
        self._one = next(self.parameters()).detach().new_ones(len(members))
        self._samples_last = self._can_be_last()
        self._maps = [self._map([step.module for step in steps]) for steps in self._steps]
        heads = [member.head for member in members if member.head is not None]
        self._head = self._map(heads) if heads else None

    def __call__(self, x: Tensor, iterations: int = 0) -> tuple[Tensor, PairLip]:
        """Logits and constants; the vectors are first improved by as many products with WᵀW."""
        values = {self._program.source: x.mT if self._samples_last else x}
        for step, apply in zip(self._program.steps, self._maps, strict=True):
            values[step.name] = apply(*[values[i] for i in step.inputs])
        features = values[self._program.result]
        logits = features if self._head is None else self._head(features)
        return binary_as_two(logits.mT if self._samples_last else logits), self.lip(iterations)

    def _can_be_last(self) -> bool:
        """Whether samples can be the last dimension: (M, channels, B) spares a dozen transpositions a step."""
        head = self.members[0].head
        return (
            len(self._program.steps[0].input_shapes[0]) == 1
            and all(
                id(s.module) in self._dense or isinstance(s.rule, Channelwise) for s in self._program.steps
            )
            and not any(
                step.module.state_dict() for step in self._program.steps if id(step.module) not in self._dense
            )
            and (head is None or id(head) in self._dense)
        )

    def _map(self, modules: Sequence[nn.Module]) -> Callable[..., Tensor]:
        """One layer of all models."""
        dense = self._dense.get(id(modules[0]))
        if dense is not None:
            return dense.last if self._samples_last else dense.first
        if self._samples_last:
            return modules[0]
        if modules[0].state_dict():
            return lambda *x: torch.stack([module(*own) for module, *own in zip(modules, *x, strict=True)])
        models = len(modules)
        return lambda *x: modules[0](*[y.flatten(0, 1) for y in x]).unflatten(0, (models, -1))

    def lip(self, iterations: int = 0) -> PairLip:
        """The constants, with gradients to the weights; the vectors are first improved as often."""
        if iterations:
            self._improve_large(iterations)
        rest = self._known | {steps[0].name: self._estimate(steps) for steps in self._large}
        if self._norms is None:
            features = self._program.constant(rest, self._one)
        elif self._program.is_chain:
            factors = (value for value in rest.values() if isinstance(value, Tensor) or value != 1)
            features = math.prod(factors, start=self._norms.product(iterations))
        else:
            names = [steps[0].name for steps in self._small]
            norms = dict(zip(names, self._norms(iterations).unbind(1), strict=True))
            features = self._program.constant(rest | norms, self._one)
        return PairLip(features, self._head_rows())

    def _estimate(self, steps: Steps) -> Tensor:
        """(M,)."""
        pairs = zip(steps, self.members, strict=True)
        return torch.stack([cast(Tensor, s.rule.estimate(s.module, m.vector(s))) for s, m in pairs])

    def _head_rows(self) -> Tensor:
        head = self.members[0].head
        if head is not None and id(head) in self._dense:
            return binary_rows(self._dense[id(head)].weight)
        return torch.stack([member.head_rows() for member in self.members])

    @torch.no_grad()
    def _improve_large(self, times: int) -> None:
        """The vectors of layers that are not small and dense, model by model."""
        for steps in (large for large in self._large if large[0].rule.has_vector):
            for step, member in zip(steps, self.members, strict=True):
                member.improve(step, times)

    def hand_out(self) -> None:
        """Give the models their vectors, as they do not share them with the stack."""
        if self._norms is None:
            return
        for steps, vectors in zip(self._small, self._norms.vectors(), strict=True):
            for step, member, vector in zip(steps, self.members, vectors, strict=True):
                member.set_vector(step, vector.clone())

    def take_back(self) -> None:
        """Take over the models' vectors, which may be better by now."""
        if self._norms is not None:
            self._norms.set_vectors(self._vectors_of_members())

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is to be stepped: the stack's where it has them, the models' elsewhere."""
        shared = dict(self.shared())
        yield from shared
        theirs = {id(p) for parameters in shared.values() for p in parameters}
        for member in self.members:
            yield from (p for p in member.parameters() if id(p) not in theirs)

    def shared(self) -> Iterator[tuple[nn.Parameter, list[nn.Parameter]]]:
        """The stack's parameters, each with those of the models that are views of it."""
        for dense in self._dense.values():
            yield dense.weight, [layer.weight for layer in dense.layers]
            if dense.bias is not None:
                yield dense.bias, [layer.bias for layer in dense.layers]

    def _dense_layers(self) -> Iterator[list[nn.Linear]]:
        """Plain dense layers, each once, whose weights no other layer has."""
        users = Counter(id(p) for m in self.members[0].modules() for p in m._parameters.values())
        everywhere = [[step.module for step in steps] for steps in self._steps]
        everywhere.append([member.head for member in self.members])
        for layers in {id(layers[0]): layers for layers in everywhere}.values():
            if type(layers[0]) is nn.Linear and all(users[id(p)] == 1 for p in layers[0].parameters()):
                yield cast(list[nn.Linear], layers)

    def _vectors_of_members(self) -> list[Tensor]:
        """(M, in) of every layer whose norm is followed here."""
        rows = ([m.vector(s) for s, m in zip(steps, self.members, strict=True)] for steps in self._small)
        return [torch.stack([v for v in row if v is not None]) for row in rows]


class _Dense:
    """A dense layer of every model, applied by one batched product."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = list(layers)
        self.weight = _share([layer.weight for layer in layers])  # (M, out, in)
        self.bias = None if layers[0].bias is None else _share([layer.bias for layer in layers], column=True)

    def first(self, x: Tensor) -> Tensor:
        """(M, B, …, in) ↦ (M, B, …, out)."""
        flat, weight = x.flatten(1, -2), self.weight.mT
        y = flat @ weight if self.bias is None else torch.baddbmm(self.bias.mT, flat, weight)
        return y.view(*x.shape[:-1], y.shape[-1])

    def last(self, x: Tensor) -> Tensor:
        """(M, in, B) ↦ (M, out, B)."""
        return self.weight @ x if self.bias is None else torch.baddbmm(self.bias, self.weight, x)


def _share(parameters: Sequence[nn.Parameter], column: bool = False) -> nn.Parameter:
    """Their values in one parameter, of which they become views; a vector may become a column."""
    values = torch.stack([p.detach() for p in parameters])
    for p, part in zip(parameters, values, strict=True):
        p.data = part
    return nn.Parameter(values[..., None] if column else values, requires_grad=parameters[0].requires_grad)


def _is_small(step: Step) -> bool:
    return len(step.input_shapes[0]) == 1 and max(*step.input_shapes[0], *step.shape) <= SMALL
