"""Fit the confidence of predictions to their accuracy, on samples that were held out of the training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from lipcert.estimator.scaling import Floats

# The smallest table of which a part is held out, and the part: a tenth, but no more than this.
SMALLEST_TABLE, _LARGEST_PART = 10_000, 5_000

# The range of log t.
_RANGE = (-5.0, 5.0)


def held_out(samples: int, seed: int) -> NDArray[np.bool_]:
    """Choose samples to hold out, none of a small table: (B,)."""
    chosen = np.zeros(samples, dtype=bool)
    if samples >= SMALLEST_TABLE:
        part = min(samples // 10, _LARGEST_PART)
        chosen[np.random.default_rng(seed).choice(samples, part, replace=False)] = True
    return chosen


def fitted_temperature(scaled: Floats, labels: NDArray[np.int64], weights: Floats | None = None) -> float:
    r"""Return the t for which the mean confidence of softmax(scaled/t) is the share of correct predictions.

    $$ \frac1B\sum_b \max_i \mathrm{softmax}(s_b/t)_i = \frac{\text{right} + 1}{B + 2} $$

    The most likely t is no better: with labels that are wrong at random it makes all confidence too low.

    Example:
        >>> logits = np.array([[4.0, 0.0]] * 400)
        >>> t = fitted_temperature(logits, np.repeat([0, 1], [300, 100]))
        >>> print(round(1 / (1 + np.exp(-4 / t)), 2))
        0.75
    """
    correct = np.average(scaled.argmax(axis=1) == labels, weights=weights)
    share = (correct * len(labels) + 1) / (len(labels) + 2)

    def excess(log_t: float) -> float:
        largest = softmax(scaled * np.exp(-log_t), axis=1).max(axis=1)
        return float(np.average(largest, weights=weights) - share)

    low, high = _RANGE
    if excess(low) <= 0 or excess(high) >= 0:  # confidence falls with t
        return float(np.exp(low if excess(low) <= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)))
