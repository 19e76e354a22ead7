"""Names that a shell completes, without importing anything heavy: the shell waits for them.

A test compares the names written here with those registered.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

KINDS = (
    "recipes",
    "reproductions",
    "losses",
    "layers",
    "models",
    "trained",
    "data",
    "schedules",
    "optimizers",
)
REPRODUCTIONS = (
    *("moons-demo", "moons", "moons-slack", "moons-soc", "moons-teaser"),
    *("table-tiny-imagenet", "table-cifar10", "table-cifar100"),
    *("table-seeds", "table-epsilon-slack", "table-soc-gamma"),
    *("fig-slack", "fig-epsilon", "fig-lambda", "fig-offset", "fig-temperature", "fig-convergence", "pareto"),
    "grid",
)
DATA_SETS = ("cifar10", "cifar100", "tiny-imagenet")


def recipes(incomplete: str) -> list[str]:
    """Complete packaged recipes."""
    names = (file.name for file in (files("lipcert") / "recipes" / "library").iterdir())
    return _beginning(incomplete, (n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def models(incomplete: str) -> list[str]:
    """Complete pretrained models; the shell itself finds run directories."""
    return _beginning(incomplete, (f.name for f in (files("lipcert") / "models" / "weights").iterdir()))


def reproductions(incomplete: str) -> list[str]:
    """Complete tables and figures."""
    return _beginning(incomplete, REPRODUCTIONS)


def kinds(incomplete: str) -> list[str]:
    """Complete the kinds of things to list."""
    return _beginning(incomplete, KINDS)


def data_sets(incomplete: str) -> list[str]:
    """Complete the data sets that can be fetched."""
    return _beginning(incomplete, DATA_SETS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
