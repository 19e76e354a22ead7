"""Products of float matrices with a bound of their rounding error, and the norm of the exact product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.provers.factorisation import nu, spectral_norm_upper
from lipcert.bounds.provers.rounding import SAFETY, TINY, gamma, mul_up, sqrt_up, sum_up

# Beyond this size, underflow could count.
_LARGEST = 2.0**100


@dataclass(frozen=True)
class Approximate:
    """A matrix that differs from an exact one by at most γ_terms·M, entry by entry, where |exact| ≤ M too."""

    value: Tensor
    size: float  # at least ‖M‖₂
    terms: int = 0

    @classmethod
    def of(cls, value: Tensor, terms: int = 0) -> Approximate:
        """Take a matrix as it is, or with a few rounding errors of each entry itself."""
        return cls(value, norm_of_sizes(value), terms)

    def __matmul__(self, other: Approximate) -> Approximate:
        """Multiply: sums of k products have k more rounding errors."""
        size = mul_up(self.size, other.size)
        inner = self.value.shape[1]
        return Approximate(self.value @ other.value, size, self.terms + other.terms + inner)

    @property
    def error(self) -> float:
        """Bound the norm of the difference to the exact matrix; infinite where underflow could count."""
        if not self.size <= _LARGEST:
            return torch.inf
        return sum_up(SAFETY * gamma(self.terms + 2) * self.size, TINY * (self.terms + 2) ** 2)

    def norm_upper(self) -> float:
        """Bound ‖exact‖₂ from above."""
        if not torch.isfinite(self.value).all() or self.error == torch.inf:
            return torch.inf
        return sum_up(spectral_norm_upper(self.value), self.error)

    def from_identity(self) -> float:
        """Bound ‖I − exact‖₂ from above."""
        apart = self.value.clone()
        apart.diagonal().sub_(1.0)
        # One more rounding, on a diagonal that is at most 1 larger.
        more = Approximate(apart, sum_up(self.size, 1.0), self.terms + 1)
        found = sum_up(norm_of_sizes(apart), more.error)
        return found if found < torch.inf else torch.inf  # NaN is no bound


def norm_of_sizes(value: Tensor) -> float:
    """Bound ‖|value|‖₂ from above."""
    if not torch.isfinite(value).all():
        return torch.inf
    return sum_up(sqrt_up(SAFETY * nu(value)), TINY) if value.numel() else 0.0
