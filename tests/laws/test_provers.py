"""What every registered prover of the norm of a convolution obeys."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lipcert.bounds.provers.convolution_norm import choose_prover
from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.geometry import Geometry

Pair = tuple[int, int]

every_prover = pytest.mark.parametrize("name", list(PROVERS))


def geometry(
    size: Pair, kernel: Pair, stride: Pair, pad: Pair, dilation: Pair, groups: int, mode: str
) -> Geometry:
    padding = ((pad[0], pad[0]), (pad[1], pad[1]))
    return Geometry(size, kernel, stride, padding, dilation, groups, mode)


GEOMETRIES = {
    "plain": geometry((6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 1, "zeros"),
    "stride": geometry((8, 7), (4, 3), (2, 2), (1, 1), (1, 1), 1, "zeros"),
    "dilation and groups": geometry((7, 9), (3, 2), (1, 3), (0, 0), (2, 1), 2, "zeros"),
    "one pixel": geometry((1, 1), (5, 5), (1, 1), (2, 2), (1, 1), 1, "zeros"),
    "circular": geometry((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1, "circular"),
    "circular, stride": geometry((6, 5), (3, 3), (2, 2), (1, 1), (1, 1), 2, "circular"),
    "reflect": geometry((4, 4), (3, 3), (2, 2), (1, 1), (1, 1), 1, "reflect"),
    "replicate": geometry((4, 5), (3, 3), (1, 1), (2, 2), (1, 1), 1, "replicate"),
}
KERNELS = {
    "normal": torch.randn_like,
    "constant": torch.ones_like,
    "sparse": lambda w: torch.randn_like(w).relu(),
}

every_geometry = pytest.mark.parametrize("where", GEOMETRIES)


def weights(g: Geometry, kind: str) -> Tensor:
    """Kernels as provers are given them: float64, at most 1 in absolute value."""
    weight = KERNELS[kind](torch.empty(2 * g.groups, 3, *g.kernel, dtype=torch.float64))
    return weight / weight.abs().max()


def truth(weight: Tensor, g: Geometry) -> float:
    inputs = weight.shape[1] * g.groups
    units = torch.eye(inputs * g.size[0] * g.size[1], dtype=torch.float64).view(-1, inputs, *g.size)
    return float(torch.linalg.matrix_norm(g.convolve(units, weight).flatten(1), 2))


def triangle(weight: Tensor, g: Geometry) -> float:
    """Return the sum of the norms of all taps, times that of the padding."""
    return math.sqrt(g.copies) * float(torch.linalg.matrix_norm(weight.permute(2, 3, 0, 1), 2).sum())


@every_prover
@every_geometry
@pytest.mark.parametrize("kind", KERNELS)
def test_the_bound_lies_between_the_norm_and_the_triangle_inequality(
    name: str, where: str, kind: str
) -> None:
    prover, g = PROVERS.create(name), GEOMETRIES[where]
    if not prover.can_prove(g):
        return  # it is never asked
    weight = weights(g, kind)
    norm, bound = truth(weight, g), prover.upper(weight, g)
    assert bound >= norm * (1 - 1e-12)
    assert bound <= triangle(weight, g) * (1 + 1e-6)


@every_geometry
@pytest.mark.parametrize("effort", ["exact", "auto", "fast"])
def test_every_convolution_has_a_prover(where: str, effort: str) -> None:
    g = GEOMETRIES[where]
    name, prover = choose_prover(weights(g, "normal"), g, effort)
    assert prover.can_prove(g)
    assert type(prover) is PROVERS[name].constructor
    assert effort != "exact" or name == "gram"


def test_the_tighter_comes_first() -> None:
    ranks = [PROVERS.create(name).looseness for name in PROVERS]
    assert len(set(ranks)) == len(ranks)
