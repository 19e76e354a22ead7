"""Ratios of times, measured fairly: the works take turns, medians and quartiles, one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of one work."""

    median: float
    low: float
    high: float


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int, warm: int = 2) -> dict[str, Timing]:
    """Every work once a round; the first `warm` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(warm + rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    found = {}
    for name, values in times.items():
        low, median, high = statistics.quantiles(values[warm:], n=4)
        found[name] = Timing(median, low, high)
    return found


def print_ratios(timings: Mapping[str, Timing], base: str) -> dict[str, float]:
    """A line a work, as a ratio to one of them; the ratios."""
    ratios = {name: t.median / timings[base].median for name, t in timings.items()}
    for name, t in timings.items():
        spread = f"({1e3 * t.low:.2f}-{1e3 * t.high:.2f})"
        print(f"{name:32} {1e3 * t.median:9.2f} ms {spread:20} {ratios[name]:6.3f} x {base}")
    return ratios
