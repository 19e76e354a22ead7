r"""The proof of tighter K_ij: norms of layers in other coordinates, which multiply as ever.

In its coordinates, an activation takes a step x to one with entries $s_kx_k$, $|s_k - c_k| \le \rho_k$.
That is $Ey$ with $E = [cL, \rho\tau]$ and $y = (L^{-1}x_A, r/\tau)$, $|r_k| \le |x_k|$, for every
invertible L and every τ > 0. y is not longer than $Nx$, N = [L⁻¹ on A; 1/τ on B], hence

$$ K_{ij} \le K \cdot \|N_1W_1\| \cdot \|N_2W_2E_1\| \cdots \|(w_i - w_j)E_L\|. $$

Which L and τ these are decides only how small the product is. docs/proofs.md, theorem 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.provers.factorisation import scale_to_one
from lipcert.bounds.provers.rounding import ldexp_up, mul_up, up
from lipcert.certificates.head import pairs_upper
from lipcert.certificates.tails.approximate import Approximate, norm_of_sizes
from lipcert.certificates.tails.dense_tail import DenseTail
from lipcert.certificates.tails.sector import Sector

# An approximate inverse farther than this from the inverse proves nothing.
_NEAR = 0.5


@dataclass(frozen=True)
class Metric:
    """The coordinates in which the values around an activation are measured."""

    lower: Tensor  # L on the passing coordinates, invertible
    width: Tensor  # τ of the unsure ones, positive

    def inward(self) -> tuple[Approximate, float]:
        """Return an approximation X of N for (x_A, x_B), and a bound of ‖N X⁻¹‖."""
        eye = torch.eye(len(self.lower), dtype=torch.float64)
        inverse = torch.linalg.solve_triangular(self.lower, eye, upper=False)
        near = _blocks(inverse, 1 / self.width)
        exact = _blocks(self.lower, self.width)
        delta = (Approximate.of(near) @ Approximate.of(exact)).from_identity()
        return Approximate.of(near), factor_of_inverse(delta)

    def outward(self, sector: Sector) -> Approximate:
        """Return E, in the coordinates of the activation."""
        a, b = sector.passing, sector.unsure
        e = self.lower.new_zeros(len(sector.centre), len(a) + len(b))
        e[a, : len(a)] = sector.centre[a, None] * self.lower
        e[b, len(a) + torch.arange(len(b))] = sector.reach[b] * self.width
        return Approximate.of(e, terms=1)


def _blocks(full: Tensor, diagonal: Tensor) -> Tensor:
    """Return the block diagonal matrix of a matrix and a diagonal one."""
    joined: Tensor = torch.block_diag(full, torch.diag(diagonal))  # type: ignore[no-untyped-call]
    return joined


def factor_of_inverse(delta: float) -> float:
    """Return a bound of ‖A⁻¹‖ for a matrix within delta of I; infinite where delta is not small."""
    return up(1 / (1 - up(delta))) if delta < _NEAR else torch.inf


class TailProver:
    """Proves K_ij of a dense tail for any metrics. The first matrix, often the widest, is reduced once."""

    def __init__(self, tail: DenseTail) -> None:
        self.tail = tail
        scaled = [scale_to_one(weight) for weight in tail.weights]
        pairs = zip(tail.weights, scaled, strict=True)
        weights = [torch.zeros_like(w) if s is None else s for w, (s, _) in pairs]
        exponent = sum(exponent for _, exponent in scaled)
        first, reduced = _reduced(weights[0])
        self.rows = [first, *weights[1:]]
        self.factor = mul_up(ldexp_up(tail.entry, exponent), reduced)

    def upper(self, metrics: Sequence[Metric]) -> Tensor:
        """Return K_ij from above for all pairs of classes: (N, N)."""
        factor, before = self.factor, None
        for weight, sector, metric in zip(self.rows, self.tail.sectors, metrics, strict=True):
            inward, inverse = metric.inward()
            link = inward @ _picked(_turned(sector, weight, before and before[0]), sector)
            link = link if before is None else link @ before[1]
            factor = mul_up(factor, mul_up(link.norm_upper(), inverse))
            before = sector, metric.outward(sector)
        assert before is not None  # a tail has layers
        head = self.tail.head
        logits = Approximate(before[0].turned_back(head), norm_of_sizes(head), 1) @ before[1]
        # Each row is off by at most the error of the whole.
        return _times(pairs_upper(logits.value) + 2 * up(logits.error), factor)


def _turned(sector: Sector, weight: Tensor, before: Sector | None) -> Approximate:
    """Return a layer between the coordinates of two activations, for sums and differences H·W·½Hᵀ.

    ‖|H|‖ = 2 and ‖½|H|ᵀ‖ = 1.
    """
    size = norm_of_sizes(weight)
    return Approximate(link(sector, weight, before), 2 * size if sector.turns else size, 2)


def link(sector: Sector, weight: Tensor, before: Sector | None) -> Tensor:
    """Return a layer between the coordinates of two activations, each entry rounded twice."""
    return sector.turned(weight if before is None else before.turned_back(weight))


def _picked(turned: Approximate, sector: Sector) -> Approximate:
    """Return the rows of the passing coordinates, then those of the unsure ones."""
    rows = turned.value[torch.cat([sector.passing, sector.unsure])]
    return Approximate(rows, 2 * turned.size, turned.terms)  # a row may come twice


def _reduced(weight: Tensor) -> tuple[Tensor, float]:
    """Return a matrix with fewer columns in place of a wide W, and a factor that makes up for it."""
    rows, columns = weight.shape
    if columns <= rows:
        return weight, 1.0
    gram = weight @ weight.T
    gram.diagonal().add_(1e-12 * float(gram.diagonal().max()))
    root, failed = torch.linalg.cholesky_ex(gram)
    if failed:
        return weight, 1.0
    inverse = torch.linalg.solve_triangular(root, torch.eye(rows, dtype=torch.float64), upper=False)
    delta = (Approximate.of(inverse) @ Approximate.of(root)).from_identity()
    length = (Approximate.of(inverse) @ Approximate.of(weight)).norm_upper()
    factor = mul_up(length, factor_of_inverse(delta))
    return (root, factor) if factor < 1 + 1e-6 else (weight, 1.0)


def _times(spread: Tensor, factor: float) -> Tensor:
    found = torch.nextafter(spread * factor, spread.new_tensor(torch.inf))
    return torch.where(torch.isnan(found), torch.inf, found)
