"""Constants K_ij of a model with a dense tail, for `effort="tight"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lipcert.certificates.tails.dense_tail import DenseTail
from lipcert.certificates.tails.multipliers import Layer, first_multipliers, minimise, path
from lipcert.certificates.tails.tail_prover import Metric, TailProver, link
from lipcert.progress import tracked

# Up to this many pairs of classes, every pair has multipliers of its own; more pairs share them.
_PAIRS = 64

# Weights of the barrier, relative to the objective: on the way to multipliers from which those of a pair are
# near, to those that all pairs share, and to those of a pair. Smaller ones gain a little for many more steps.
_TO_START, _TO_SHARE, _OF_A_PAIR = (0.5, 0.1, 0.02), (0.005,), (0.02,)

# The most steps for each of these.
_STEPS, _STEPS_OF_A_PAIR = 25, 12

# Layers wider than this take too long.
_WIDEST = 1024

# Added to a matrix before it is factorised, relative to its largest entry: it may be singular.
_RIDGE = 1e-10


def tight_pairs(tail: DenseTail) -> Tensor:
    """Return K_ij from above for all pairs of classes, infinite where nothing was proved: (N, N)."""
    best = tail.head.new_full((len(tail.head), len(tail.head)), torch.inf)
    if tail.widest > _WIDEST or not all(weight.any() for weight in (*tail.weights, tail.head)):
        return best
    prover = TailProver(tail)
    layers = _layers(tail, prover.rows)
    for multipliers in _found(layers, tail.sectors[-1].turned_back(tail.head)):
        best = torch.minimum(best, prover.upper(_metrics(layers, multipliers)))
    return best.fill_diagonal_(0.0)


def _layers(tail: DenseTail, rows: Sequence[Tensor]) -> list[Layer]:
    """Return the layers in the coordinates of their activations, each scaled to norm 1."""
    befores = [None, *tail.sectors[:-1]]
    links = [link(s, w, b) for s, w, b in zip(tail.sectors, rows, befores, strict=True)]
    norms = [torch.linalg.matrix_norm(one, 2) for one in links]
    return [Layer(one / norm, s) for one, norm, s in zip(links, norms, tail.sectors, strict=True)]


def _found(layers: Sequence[Layer], head: Tensor) -> Iterator[list[Tensor]]:
    """Find multipliers that suit all pairs of classes together, then those of every pair if these are few."""
    centred = head - head.mean(0)
    start = first_multipliers(layers)
    if start is None or not centred.any():
        return
    start = minimise(layers, _target(centred), start, _TO_START, _STEPS)
    yield minimise(layers, _target(centred), start, _TO_SHARE, _STEPS)
    pairs = torch.combinations(torch.arange(len(head)))
    if len(pairs) > _PAIRS:
        return
    for i, j in tracked(pairs.tolist(), "tightening", quiet=len(pairs) < 4):
        if (head[i] != head[j]).any():
            yield minimise(layers, _target(head[i, None] - head[j]), start, _OF_A_PAIR, _STEPS_OF_A_PAIR)


def _target(rows: Tensor) -> Tensor:
    """Return the sum of vvᵀ over the rows, scaled to trace 1."""
    rows = rows / rows.abs().max()
    return rows.T @ rows / (rows**2).sum()


def _metrics(layers: Sequence[Layer], multipliers: Sequence[Tensor]) -> list[Metric]:
    """Return the coordinates in which the ellipsoids of these multipliers are balls."""
    found = path(layers, multipliers)
    if found is None:
        raise ArithmeticError("expected multipliers that every layer allows")
    return [Metric(_root(e.passed), d.sqrt()) for e, d in zip(found[0], multipliers, strict=True)]


def _root(matrix: Tensor) -> Tensor:
    """Return a lower triangular L with LLᵀ close to a matrix that may be singular."""
    ridge = _RIDGE * float(matrix.diagonal().max()) if len(matrix) else 0.0
    root: Tensor = torch.linalg.cholesky_ex(matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype))[0]
    return root
