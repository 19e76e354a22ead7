"""Gram iteration: the largest norm of many complex matrices, by squaring their Gram matrices repeatedly.

The Frobenius norm of $G^{2^t}$, $G = BB^*$, is at least $\\|G\\|^{2^t}$, and its root approaches
$\\|G\\| = \\|B\\|^2$ from above. All matrices are squared together, and those that turn out to lie below
another are left out. Where squaring does not tell them apart, as with orthogonal matrices, theorem 1
proves those that remain. See docs/proofs.md, theorem 8.

Delattre, Barthélemy, Araujo, Allauzen. Efficient Bound of Lipschitz Constant for Convolutional Layers by Gram
Iteration. ICML 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.provers.factorisation import gram_upper
from lipcert.bounds.provers.fourier import Parts
from lipcert.bounds.provers.rounding import SAFETY, TINY, TINY_ROOT, U, gamma, sqrt_up

# Numbers in the matrices that are squared at once.
_CHUNK = 1 << 19

# Squarings per matrix after which theorem 1 is quicker; none for sides from which a factorisation runs at
# full speed.
_BUDGET = 5
_LARGE_SIDE = 128

# If a squaring leaves this much of the number of eigenvalues that share the norm, many are equal and more
# squarings are in vain. Below the second number one stands out, and the next squarings show it.
_STALLED = 0.75
_ISOLATED = 1.5

# Matrices of a smaller norm count as if they had this one, so that no division overflows.
_SMALLEST = 2.0**-400


@dataclass(frozen=True)
class Powers:
    """Hermitian matrices G^(2^t), each divided by a power of two, as they were computed.

    A complex matrix S + iK is kept as [S; K], the first half of the real matrix [[S, −K], [K, S]].
    """

    halves: Tensor  # (F, 2p, p)
    norms: Tensor  # (F,) bounds of their Frobenius norms, at most 1 or so
    errors: Tensor  # (F,) bounds of their distances from the exact matrices, in the Frobenius norm
    scales: tuple[Tensor, ...]  # (F,) each: the powers of two that were taken out, from the first on

    @classmethod
    def of(cls, halves: Tensor, norms: Tensor, errors: Tensor, scales: tuple[Tensor, ...] = ()) -> Powers:
        """Take out powers of two that bring the norms to between ½ and 1; that rounds nothing."""
        norms = norms.clamp_min(_SMALLEST)
        scale = norms / torch.frexp(norms).mantissa  # the quotient is a power of two, hence exact
        errors = SAFETY * errors / scale + TINY
        return cls(halves / scale[:, None, None], norms / scale, errors, (*scales, scale))

    def __getitem__(self, chosen: Tensor) -> Powers:
        scales = tuple(scale[chosen] for scale in self.scales)
        return Powers(self.halves[chosen], self.norms[chosen], self.errors[chosen], scales)

    def squared(self) -> Powers:
        """Square every matrix once more."""
        product = whole(self.halves) @ self.halves
        norms = frobenius(product)
        rounding = gamma(self.halves.shape[1]) * math.sqrt(2) * self.norms**2 + TINY
        # ‖G‖ is the root of ‖G²‖, which lies below the Frobenius norm of the product and all its errors.
        root = torch.sqrt(norms + 2 * self.errors * self.norms + self.errors**2 + SAFETY * rounding)
        spectral = torch.minimum(root, self.norms + self.errors)
        return Powers.of(product, norms, 2 * self.errors * spectral + self.errors**2 + rounding, self.scales)

    def uppers(self) -> Tensor:
        """Bound ‖G‖ from above for every matrix: (F,)."""
        return self._roots((self.norms + self.errors) * (1 + 4 * U))

    def spread(self, before: Powers) -> float:
        """Return among how many eigenvalues the norms before the last squaring were shared, in the mean."""
        return float(((before.norms**2 / (self.scales[-1] * self.norms)) ** 2).mean())

    def lowers(self, before: Powers) -> Tensor:
        """Estimate ‖G‖ from below by what the last squaring added to the Frobenius norms: (F,)."""
        return before._roots(self.scales[-1] * self.norms / before.norms)

    def _roots(self, sizes: Tensor) -> Tensor:
        """Return sizes of these matrices with squarings and scalings undone, rounded up."""
        first, *others = self.scales
        for scale in reversed(others):
            sizes = torch.sqrt(scale * sizes) * (1 + 4 * U)
        rooted: Tensor = first * sizes
        return rooted


def frobenius(halves: Tensor) -> Tensor:
    """Bound the Frobenius norm of every matrix of a batch: (F,)."""
    rows, columns = halves.shape[1:]
    norms: Tensor = torch.linalg.vector_norm(halves, dim=(1, 2))
    return norms * (1 + gamma(rows * columns + 8)) + rows * columns * TINY_ROOT


def whole(halves: Tensor) -> Tensor:
    """Return [[S, −K], [K, S]] for [S; K]: (F, 2p, 2p)."""
    side = halves.shape[-1]
    real, imag = halves[:, :side], halves[:, side:]
    return torch.cat([halves, torch.cat([-imag, real], dim=1)], dim=2)


def largest_by_squaring(parts: Parts, frequencies: Tensor, rows: int, columns: int) -> float:
    """Bound the norms of complex (rows, columns) matrices, made for some frequencies at a time."""
    largest = 0.0
    for chunk in torch.split(frequencies, max(1, _CHUNK // (4 * rows * columns))):
        real, imag = parts(chunk)
        if rows > columns:
            real, imag = real.mT, imag.mT  # the transposed matrix has the same norm
        largest = square_upper(real, imag, floor=largest)
    return sqrt_up(largest)


def square_upper(real: Tensor, imag: Tensor, floor: float = 0.0) -> float:
    """Bound the largest ‖B‖² of complex (F, p, q) matrices with p ≤ q, or return the floor if that is larger.

    The scale of the matrices is near 1.
    """
    side, length = real.shape[1:]
    wide = torch.cat([real, -imag], dim=2)  # (F, p, 2q)
    gram = torch.cat([wide, torch.cat([imag, real], dim=2)], dim=1) @ wide.mT  # (F, 2p, p)
    energy = torch.linalg.vector_norm(wide, dim=(1, 2)) ** 2  # the sum of the eigenvalues of G
    trace = energy.clamp_min(_SMALLEST)
    absolute = SAFETY * trace
    powers = Powers.of(gram, frobenius(gram), gamma(2 * length) * math.sqrt(2) * absolute + TINY)
    norms = powers.scales[0] * powers.norms
    closeness = (side + 4) * length * U
    found, left = _iterate(powers, floor, float((trace / norms).square().mean()), closeness)
    if len(left) == 0:
        return found
    # The floor is a guess, and not the last bound: the errors of equal matrices in many chunks would add up.
    # Where all eigenvalues are equal, ‖G‖_F²/tr G is one of them; what was added to ‖G‖_F is taken off again.
    equal = float((norms**2 / trace).max()) * (1 + (16 - 4 * side) * side * U)
    guess = max(equal, found * (1 - 8 * closeness))
    largest = 2 * float(absolute[left].max())
    return max(found, gram_upper(whole(gram[left]), terms=2 * length, absolute=largest, floor=guess))


def _iterate(powers: Powers, found: float, spread: float, closeness: float) -> tuple[float, Tensor]:
    """Square until one matrix is proved to be the largest; or return a floor and those that are left.

    `found` is at first a floor, then the best estimate from below as well. Matrices whose bounds lie below it
    are left out, so the result has to be at least `found`, whatever number that is.
    """
    side, count = powers.halves.shape[-1], len(powers.halves)
    left = torch.arange(count, device=powers.halves.device)
    budget, before = (_BUDGET * (count + 1) if side < _LARGE_SIDE else 0), math.inf
    while True:
        uppers = powers.uppers()
        chosen = _indices(~(uppers <= found))
        if len(chosen) == 0:
            return found, chosen
        highest = float(uppers.max())
        is_one = before < math.inf and spread <= 1 + 8 * closeness  # nothing but rounding error is left
        if is_one or highest <= max(found * (1 + closeness / 2), _SMALLEST):
            return highest, chosen[:0]
        left, powers = left[chosen], powers[chosen]
        budget -= len(left)
        if budget < 0 or spread > max(_STALLED * min(before, side), _ISOLATED):
            return found, left
        last, powers = powers, powers.squared()
        found = max(found, float(powers.lowers(last).max()))
        before, spread = spread, powers.spread(last)


def _indices(mask: Tensor) -> Tensor:
    """Return where a mask is true; everywhere if there are no numbers and costs are being counted."""
    return torch.arange(len(mask), device=mask.device) if mask.is_meta else mask.nonzero().flatten()
