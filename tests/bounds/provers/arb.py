"""The spectral norm in ball arithmetic (Arb): what the proofs are judged by."""

from __future__ import annotations

import math

import flint
import torch
from torch import Tensor


def arb_norm(a: Tensor) -> flint.arb:
    """A ball that contains ‖a‖₂: the largest eigenvalue of the exact Gram matrix, in 300 bits."""
    flint.ctx.prec = 300
    matrix = flint.arb_mat(a.shape[0], a.shape[1], [flint.arb(float(v)) for v in a.flatten()])
    gram = matrix * matrix.transpose() if a.shape[0] <= a.shape[1] else matrix.transpose() * matrix
    # The eigenvalues of a symmetric matrix are real: only their real parts are asked for.
    values = [v.real for v in flint.acb_mat(gram).eig(algorithm="approx")]
    top = values[0].mid()
    for value in values[1:]:  # not by float: the squares of denormals are below any
        top = value.mid() if value.mid() > top else top
    return certified_largest(gram, top).sqrt()


def arb_lower(a: Tensor) -> flint.arb:
    """The lower end of ‖a·v‖/‖v‖ in ball arithmetic, v the singular vector as float64 finds it.

    Whatever v is, this is at most ‖a‖; an error δ in v costs only δ², so it is about as good as the truth.
    """
    flint.ctx.prec = 200
    peak = float(a.abs().max())
    if peak == 0:
        return flint.arb(0)
    half = math.frexp(peak)[1] // 2  # in two steps: the power of two itself may overflow
    scaled = a.double() * 2.0**-half * 2.0 ** (half - math.frexp(peak)[1])
    v = torch.linalg.svd(scaled, full_matrices=False).Vh[0]
    vector = flint.arb_mat(len(v), 1, v.tolist())
    image = flint.arb_mat(a.shape[0], a.shape[1], a.double().flatten().tolist()) * vector
    return (squares(image) / squares(vector)).sqrt().lower()


def squares(column: flint.arb_mat) -> flint.arb:
    """‖column‖²."""
    return (column.transpose() * column)[0, 0]


def certified_largest(gram: flint.arb_mat, approx: flint.arb) -> flint.arb:
    """Balls for λ_max: Rayleigh-free, by definiteness of t·I − gram on both sides of `approx`."""
    n = gram.nrows()
    identity = flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
    width = abs(approx) * flint.arb(2) ** -150 + flint.arb(2) ** -3000
    above = approx + width
    assert positive_definite(above * identity - gram)
    assert not positive_definite((approx - width) * identity - gram)
    return (approx - width).union(above)


def positive_definite(matrix: flint.arb_mat) -> bool:
    """By LDLᵀ in ball arithmetic, every pivot certainly positive."""
    n = matrix.nrows()
    a = [[matrix[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        if not a[k][k] > 0:
            return False
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k + 1, i + 1):
                a[i][j] = a[j][i] = a[i][j] - factor * a[j][k]
    return True
