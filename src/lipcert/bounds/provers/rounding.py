"""Float arithmetic whose result never lies below the exact one.

Python floats are IEEE doubles and every operation is correctly rounded. So one step towards
infinity after each operation is an upper bound. Arguments are never negative here.
"""

from __future__ import annotations

import math

U = 2.0**-53  # unit roundoff of float64

# Covers the rounding error of a sum or product of fewer than 1e9 rounded terms.
SAFETY = 1.0 + 1e-6

# Underflow loses far less than this in one operation on numbers near 1.
TINY = 2.0**-1000

# The same for a norm, whose squares underflow long before the norm does.
TINY_ROOT = 2.0**-530

# The loss of one float32 operation to underflow, flushed to zero or not; and that of a float32 norm.
TINY32 = 2.0**-126
TINY32_ROOT = 2.0**-63

# A Python float in a float32 module is rounded to float32 first, which may enlarge it by this factor.
SCALAR = 1.0 + 2.0**-23


def gamma(k: int) -> float:
    """Return γ_k = ku / (1 − ku): the relative error of k rounded operations (Higham, Lemma 3.1)."""
    return k * U / (1 - k * U)


def up(x: float) -> float:
    """Return the next float above."""
    return math.nextafter(x, math.inf)


def mul_up(a: float, b: float) -> float:
    """Return at least a·b; exactly 0 if a factor is 0."""
    return 0.0 if a == 0 or b == 0 else up(a * b)


def sum_up(*terms: float) -> float:
    """Return at least the sum."""
    return up(math.fsum(terms)) if any(terms) else 0.0


def hypot_up(*terms: float) -> float:
    """Return at least √Σt²."""
    # math.hypot is accurate to one unit in the last place: two steps are enough.
    return up(up(math.hypot(*terms))) if any(terms) else 0.0


def sqrt_up(x: float) -> float:
    """Return at least √x."""
    return up(math.sqrt(x)) if x else 0.0


def ldexp_up(x: float, exponent: int) -> float:
    """Return at least x·2^exponent, also where the result is subnormal or overflows."""
    try:
        return up(math.ldexp(x, exponent)) if x else 0.0
    except OverflowError:
        return math.inf
