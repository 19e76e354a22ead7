r"""The computation of a certifier as one module that can be traced: x → logits, class, radius.

In float64 it is the certifier's own formula, with three times the error of a margin. Two evaluations differ
by at most twice that error, so the radius is never above the library's, for any order of summation.

In float32 the margin is that of the float32 logits, minus their error, minus the error of float32 anywhere in
the ball (docs/proofs.md, theorem 5, evaluated in float32 and enlarged by its own rounding error):

$$ r = \min_j \frac{f_i - f_j - e_{ij} - a_{ij}}{K_{ij} + b_{ij}} $$
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Proof, Rule
from lipcert.bounds.evaluation import DOUBLE, SINGLE, evaluate
from lipcert.bounds.growth import growths
from lipcert.bounds.tracing.program import Program, Step
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.head import Head
from lipcert.certificates.radius import rival_radii
from lipcert.nn.bases.derived import Derived
from lipcert.types import Effort, Shape


class _Settled(Rule[Any]):
    """A rule whose numbers were computed beforehand, because traced code must not look at weights."""

    def __init__(self, rule: Rule[Any], module: nn.Module) -> None:
        self._rule = rule
        self._gain = rule.roundoff_gain(module)
        self._underflow = rule.float32_underflow(module)
        self._jump = rule.jump(module)

    def upper(self, module: nn.Module, shape: Shape, effort: Effort) -> Proof:
        return self._rule.upper(module, shape, effort)

    def estimate(self, module: nn.Module, vector: Tensor | None) -> Tensor | float:
        return self._rule.estimate(module, vector)

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        return self._rule.roundoff(module, inputs, output)

    def roundoff_gain(self, module: nn.Module) -> float:
        return self._gain

    def products(self, module: nn.Module) -> int:
        return self._rule.products(module)

    def float32_underflow(self, module: nn.Module) -> float:
        return self._underflow

    def jump(self, module: nn.Module) -> float:
        return self._jump

    def join_upper(self, constants: Sequence[float]) -> float:
        return self._rule.join_upper(constants)

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        return self._rule.join_errors(errors)


class CertifiedGraph(nn.Module):
    """The network of a certifier with its proved constants; float64, or float32 as deployed."""

    def __init__(self, prover: Certifier, float32: bool = False) -> None:
        super().__init__()
        self._float32, self._own = float32, SINGLE if float32 else DOUBLE
        self._program, self._head = _copied(prover.proved.features, prover.proved.head, float32)
        self._bound = prover.proved.bound
        # Not the certifier's own: a graph has products with matrices where layers have FFTs.
        self._growths = [] if float32 else growths(self._program, self._bound)
        self.register_buffer("_pairs", _narrowed(prover.proved.pairs, float32))
        # Registered, so that tracing finds their tensors.
        self.layers = nn.ModuleList([step.module for step in self._program.steps])
        self.last = self._head.layer
        for name in ("rows", "bias", "spread", "lengths"):
            self.register_buffer(name, getattr(self._head, name))
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits (B, N), class (B,), −1 where a logit is not finite, and certified radius (B,)."""
        own, head = self._own, self._head
        at_x = evaluate(self._program, self._bound, x, self._float32, own, self._growths)
        logits = head(at_x.features)
        top = logits.argmax(dim=1)
        margin, constants = head.margin(logits, top), self.get_buffer("_pairs")[top]
        error = head.margin_error(at_x, top, margin, own)
        if at_x.deployed is None:
            margin = margin - 3.01 * error
        else:
            lost, growing = head.float32_error(at_x, at_x.deployed, top, own)
            margin, constants = margin - error - lost, constants + growing
        radius = rival_radii(margin, constants, top, rounded_down).amin(dim=1).clamp_min(0.0)
        if at_x.deployed is not None:
            radius = torch.minimum(radius, head.float32_limit(at_x, at_x.deployed).clamp_min(0.0))
        finite = _finite(logits)
        trusted = finite & _finite(x.flatten(1)) & _finite(margin) & _finite(constants)
        return logits, torch.where(finite, top, -1), torch.where(trusted, radius, torch.zeros_like(radius))


def rounded_down(ratio: Tensor) -> Tensor:
    """Round down without nextafter, which ONNX lacks; only a constant difference has a radius without end."""
    kind = torch.finfo(ratio.dtype)
    return ((1 - 8 * kind.eps) * ratio).clamp_max(kind.max)


def _finite(x: Tensor) -> Tensor:
    """Return whether every number of a sample is finite: (B,). NaN is not below anything."""
    largest = torch.finfo(x.dtype).max
    return (x.abs() <= largest).all(dim=1)


def _copied(program: Program, head: Head, float32: bool) -> tuple[Program, Head]:
    """Copy a program for tracing, with derived weights as buffers and other numbers computed."""
    steps, layer = copy.deepcopy(([(step.name, step.module) for step in program.steps], head.layer))
    modules = dict(steps)
    for module in (*modules.values(), layer):
        for part in module.modules():
            if isinstance(part, Derived):
                part.eval().fix()
    settled = tuple(_settled(step, modules[step.name]) for step in program.steps)
    if float32:
        for module in (*modules.values(), layer):
            module.float()
    head = dataclasses.replace(
        head,
        rows=_narrowed(head.rows, float32),
        bias=_narrowed(head.bias, float32),
        spread=_narrowed(head.spread, float32),
        lengths=_narrowed(head.lengths, float32),
        layer=layer,
    )
    return dataclasses.replace(program, steps=settled), head


def _settled(step: Step, module: nn.Module) -> Step:
    return dataclasses.replace(step, module=module, rule=_Settled(step.rule, module))


def _narrowed(x: Tensor, float32: bool) -> Tensor:
    """Return the numbers, rounded away from zero where float32 does not represent them."""
    if not float32:
        return x.detach().clone()
    single = x.detach().float()
    away = torch.nextafter(single, x.detach().sign().float() * torch.inf)  # a tiny number narrows to 0
    return torch.where(single.double().abs() < x.detach().abs(), away, single)
