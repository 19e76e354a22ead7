"""Ratios of times, measured fairly: the works take turns, medians, one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """The median over the rounds and its quartiles."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f}–{self.high:.3f})"

    def __truediv__(self, number: float) -> Ratio:
        return Ratio(self.low / number, self.median / number, self.high / number)

    def __sub__(self, number: float) -> Ratio:
        return Ratio(self.low - number, self.median - number, self.high - number)


@dataclass(frozen=True)
class Timing:
    """Seconds of one work, a value a round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio(self, base: Timing) -> Ratio:
        """Round by round: what slows the machine for a while slows both."""
        found = [a / b for a, b in zip(self.seconds, base.seconds, strict=True)]
        return Ratio(*statistics.quantiles(found, n=4))


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int, warm: int = 2) -> dict[str, Timing]:
    """Every work once a round; the first `warm` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(warm + rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(seconds[warm:])) for name, seconds in times.items()}


def in_turns(works: Mapping[str, Sequence[str]], rounds: int, warm: int = 2) -> dict[str, Timing]:
    """As `interleaved`, each work in a process of its own: arguments of this script, which calls `serve`."""
    processes = {
        name: subprocess.Popen(
            [sys.executable, sys.argv[0], *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for name, arguments in works.items()
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(warm + rounds):
        for name, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            print("go", file=process.stdin, flush=True)
            times[name].append(float(process.stdout.readline()))
    for process in processes.values():
        process.communicate()
    return {name: Timing(tuple(seconds[warm:])) for name, seconds in times.items()}


def serve(work: Callable[[], object]) -> None:
    """Do the work for every line of the input, and say how long it took."""
    for _ in sys.stdin:
        start = time.perf_counter()
        work()
        print(time.perf_counter() - start, flush=True)


def print_ratios(timings: Mapping[str, Timing], base: str) -> dict[str, Ratio]:
    """A line a work, as a ratio to one of them; the ratios."""
    ratios = {name: timing.ratio(timings[base]) for name, timing in timings.items()}
    for name, timing in timings.items():
        low, median, high = (1e3 * quartile for quartile in statistics.quantiles(timing.seconds, n=4))
        print(f"{name:32} {median:9.2f} ms {f'({low:.2f}–{high:.2f})':20} {ratios[name]} x {base}")
    return ratios
