"""Variants of one training over some seeds, two at a time; what is finished is kept."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from speedrun import found

from lipcert.commands.support.sweep_worker import carry_out
from lipcert.sweeps import Trial

# One per variant and seed.
Maker = Callable[[str, int], Trial]


def path_of(folder: str, name: str, seed: int) -> Path:
    """In ASCII."""
    return Path("runs") / folder / "-".join([*re.findall(r"[\w.]+", name, re.ASCII), f"seed{seed}"])


def work(make: Maker, name: str, seed: int) -> None:
    """In a process of its own, which registers what the file of `make` registers."""
    one = make(name, seed)
    if not one.is_finished():
        carry_out({str(one.path): one.tree})


def train_all(make: Maker, names: Iterable[str], seeds: Sequence[int]) -> None:
    """The first seed of all of them first."""
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        pool.starmap(work, [(make, name, seed) for seed in seeds for name in names], chunksize=1)


def means(make: Maker, name: str, seeds: Sequence[int]) -> list[str]:
    """Clean, CRA at three radii and K_f: means with half the range."""
    numbers = zip(*(map(float, found(make(name, seed).run)) for seed in seeds), strict=True)
    return [f"{fmean(n):.1f} ± {(max(n) - min(n)) / 2:.1f}" for n in numbers]
