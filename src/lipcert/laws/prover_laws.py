"""The laws of every prover of the norm of a convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.convolutions.base import Prover
from lipcert.bounds.provers.geometry import Geometry
from lipcert.laws.law import expect, laws_of_registry

PROVER_LAWS = laws_of_registry("provers", PROVERS, PROVERS.example)

_Pair = tuple[int, int]


def _geometry(
    size: _Pair, kernel: _Pair, stride: _Pair, pad: _Pair, dilation: _Pair, groups: int, mode: str
) -> Geometry:
    padding = ((pad[0], pad[0]), (pad[1], pad[1]))
    return Geometry(size, kernel, stride, padding, dilation, groups, mode)


GEOMETRIES = {
    "plain": _geometry((6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 1, "zeros"),
    "stride": _geometry((8, 7), (4, 3), (2, 2), (1, 1), (1, 1), 1, "zeros"),
    "dilation and groups": _geometry((7, 9), (3, 2), (1, 3), (0, 0), (2, 1), 2, "zeros"),
    "one pixel": _geometry((1, 1), (5, 5), (1, 1), (2, 2), (1, 1), 1, "zeros"),
    "circular": _geometry((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1, "circular"),
    "circular, stride": _geometry((6, 5), (3, 3), (2, 2), (1, 1), (1, 1), 2, "circular"),
    "reflect": _geometry((4, 4), (3, 3), (2, 2), (1, 1), (1, 1), 1, "reflect"),
    "replicate": _geometry((4, 5), (3, 3), (1, 1), (2, 2), (1, 1), 1, "replicate"),
}
_KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": torch.randn_like,
    "constant": torch.ones_like,
    "sparse": lambda w: torch.randn_like(w).relu(),
}


def kernels(g: Geometry, kind: str = "normal") -> Tensor:
    """Draw kernels as provers are given them: float64, at most 1 in absolute value."""
    weight = _KERNELS[kind](torch.empty(2 * g.groups, 3, *g.kernel, dtype=torch.float64))
    return weight / weight.abs().max()


def _norm(weight: Tensor, g: Geometry) -> float:
    """Return the norm of the dense matrix."""
    inputs = weight.shape[1] * g.groups
    units = torch.eye(inputs * g.size[0] * g.size[1], dtype=torch.float64).view(-1, inputs, *g.size)
    return float(torch.linalg.matrix_norm(g.convolve(units, weight).flatten(1), 2))


def _triangle(weight: Tensor, g: Geometry) -> float:
    """Return the sum of the norms of all taps, times that of the padding."""
    return math.sqrt(g.copies) * float(torch.linalg.matrix_norm(weight.permute(2, 3, 0, 1), 2).sum())


def _cases(prover: Prover) -> Iterator[tuple[str, Tensor, Geometry]]:
    """Yield kernels of every kind for the geometries that it can prove; it is never asked about others."""
    for where, g in GEOMETRIES.items():
        if prover.can_prove(g):
            for kind in _KERNELS:
                yield f"{kind} kernels, {where}", kernels(g, kind), g


@PROVER_LAWS.add()
def it_can_prove_something(prover: Prover) -> None:
    """Check that it takes at least one of the common kinds of convolutions."""
    able = [where for where, g in GEOMETRIES.items() if prover.can_prove(g)]
    expect(bool(able), f"can_prove: expected one of {'; '.join(GEOMETRIES)}, found none")


@PROVER_LAWS.add()
def the_bound_is_never_below_the_norm(prover: Prover) -> None:
    """Compare it with the norm of the dense matrix, by a singular value decomposition."""
    for where, weight, g in _cases(prover):
        norm, bound = _norm(weight, g), prover.upper(weight, g)
        expect(bound >= norm * (1 - 1e-12), f"{where}: the bound {bound:.12g} is below the norm {norm:.12g}")


@PROVER_LAWS.add()
def the_bound_is_no_larger_than_the_triangle_inequality_gives(prover: Prover) -> None:
    """Compare it with the simplest bound, the sum of the norms of all taps."""
    for where, weight, g in _cases(prover):
        most, bound = _triangle(weight, g), prover.upper(weight, g)
        expect(
            bound <= most * (1 + 1e-6), f"{where}: the bound {bound:g} is above {most:g}, the sum of all taps"
        )


@PROVER_LAWS.add()
def no_other_prover_has_its_looseness(prover: Prover) -> None:
    """Compare it with all others: the least loose prover is taken, so there has to be one."""
    others = (PROVERS.example(name) for name in PROVERS)
    equal = [
        type(o).__name__ for o in others if o.looseness == prover.looseness and type(o) is not type(prover)
    ]
    expect(not equal, f"looseness: {prover.looseness} is that of {', '.join(equal)}, too")
