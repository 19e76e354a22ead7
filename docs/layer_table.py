"""The table of layers in docs/layers.md: what each keeps, takes, costs, how it is proved, who else has it.

Nothing is written by hand but the names of other packages, which stand in the file of a layer ("Also in …").
The rest is read off its arguments, measured on its examples, or taken from results/*.json.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import RULES, Registered
from lipcert.registry import citation_of, import_files
from lipcert.report.recorded import RecordedTable
from lipcert.tables.kinds import NOTHING

ROOT = Path(__file__).parents[1]
TITLES = ["layer", "keeps lengths", "takes", "proof", "training step", "inference", "also in", "paper"]

# How close to 1 singular values are where lengths are kept: some layers have a ridge.
_KEPT = 2e-3

# The rows of the benchmarks: a layer's file, kind and label.
_COSTS = {
    "AOCConv2d": ("reshaped-layers", "convolution", "AOC, stride 2"),
    "AOCConvTranspose2d": ("reshaped-layers", "convolution", "AOC, transposed"),
    "AOLConv2d": ("layers", "convolution", "AOL"),
    "AOLLinear": ("layers", "dense", "AOL"),
    "BCOPConv2d": ("reshaped-layers", "convolution", "BCOP"),
    "BROConv2d": ("layers", "convolution", "BRO"),
    "BROLinear": ("layers", "dense", "BRO"),
    "BatchCentering": ("reshaped-layers", "convolution", "batch centering"),
    "BjorckConv2d": ("reshaped-layers", "convolution", "Björck"),
    "BjorckLinear": ("reshaped-layers", "dense", "Björck"),
    "CPLConv2d": ("layers", "convolution", "CPL"),
    "CPLLinear": ("layers", "dense", "CPL"),
    "CayleyConv2d": ("layers", "convolution", "Cayley"),
    "CayleyLinear": ("layers", "dense", "Cayley"),
    "CholeskyLinear": ("layers", "dense", "Cholesky"),
    "FrobeniusConv2d": ("reshaped-layers", "convolution", "Frobenius"),
    "FrobeniusLinear": ("reshaped-layers", "dense", "Frobenius"),
    "LLNLinear": ("layers", "dense", "normalised head"),
    "LOTConv2d": ("layers", "convolution", "LOT"),
    "LOTLinear": ("layers", "dense", "LOT"),
    "LayerCentering": ("reshaped-layers", "convolution", "layer centering"),
    "LinearResidualConv2d": ("layers", "convolution", "linear residual"),
    "RKOConv2d": ("reshaped-layers", "convolution", "RKO"),
    "SLLConv2d": ("layers", "convolution", "SLL"),
    "SLLLinear": ("layers", "dense", "SLL"),
    "SOCConv2d": ("layers", "convolution", "SOC (5 and 12 terms)"),
    "SOCLinear": ("layers", "dense", "SOC"),
    "SandwichConv2d": ("layers", "convolution", "Sandwich"),
    "SandwichLinear": ("layers", "dense", "Sandwich"),
    "ShiftMix": ("layers", "convolution", "shift and mix"),
}


def layer_rows() -> list[list[str]]:
    """One row per layer of lipcert, in the order of their files."""
    import_files("lipcert.nn")
    own = [(t, r) for t, r in RULES.items() if t.__module__.startswith("lipcert.nn.")]
    with torch.random.fork_rng(devices=[]):
        return [
            row(t, known) for t, known in sorted(own, key=lambda pair: (pair[0].__module__, pair[0].__name__))
        ]


def row(kind: type[nn.Module], known: Registered) -> list[str]:
    """The row of one layer."""
    torch.manual_seed(0)
    made = [example() for example in known.examples]
    training, inference = costs(kind.__name__)
    return [
        f"`{kind.__name__}`",
        kept([(module.double().eval(), shape) for module, shape in made]),
        taken(made[0][0]) or NOTHING,
        proofs(known, made),
        training,
        inference,
        also_in(kind) or NOTHING,
        citation_of(kind) or NOTHING,
    ]


def kept(made: list[tuple[nn.Module, tuple[int, ...]]]) -> str:
    """Whether all singular values of the Jacobian are 1 at a point: on every example, on one, or on none."""
    shares = [is_isometry(module, shape) for module, shape in made]
    if all(shares):
        return "orthogonal"
    return "orthogonal or bounded" if any(shares) else "bounded"


def is_isometry(module: nn.Module, shape: tuple[int, ...]) -> bool:
    """Whether the Jacobian at a random point has orthonormal rows or columns."""
    x = torch.randn(shape, dtype=torch.float64)

    def of_one(v: Tensor) -> Tensor:
        found: Tensor = module(v[None])[0]
        return found

    of_one(x)  # makes the weights
    found = torch.func.jacrev(of_one)(x)
    jacobian = found.reshape(-1, x.numel())
    values = torch.linalg.svdvals(jacobian.detach())
    return bool((values - 1).abs().max() < _KEPT)


def taken(module: nn.Module) -> str:
    """The arguments of a convolution that it takes besides channels and kernel."""
    names: set[str] = set()
    for base in type(module).__mro__:
        names |= set(inspect.signature(base.__init__).parameters)
        if "arguments" not in names or base.__name__.startswith("Derived"):  # which pass on to the next class
            break
    if not {"stride", "kernel_size"} & names:
        return ""
    names -= {"groups"} if not getattr(module, "takes_groups", "output_padding" in names) else set()
    given = [n for n in ("stride", "groups", "dilation", "padding", "output_padding") if n in names]
    if "padding" not in names and hasattr(module, "pads"):
        given.append("zeros around" if module.pads else "circular")
    if "padding_mode" in names:
        given.append("zeros or circular")
    return ", ".join(name.replace("_", " ") for name in given)


def proofs(known: Registered, made: list[tuple[nn.Module, tuple[int, ...]]]) -> str:
    """The provers that its examples take; the rule is asked alone, which rehearses no model."""
    provers = {known.rule.upper(m.double().eval(), shape, "auto").prover for m, shape in made}
    return ", ".join(sorted(provers))


def also_in(kind: type[nn.Module]) -> str:
    """The packages that the docstring of its file names."""
    text = " ".join((inspect.getdoc(inspect.getmodule(kind)) or "").split())
    found = re.search(r"Also in ([^.]+)\.", text)
    return found[1] if found else ""


def costs(name: str) -> tuple[str, str]:
    """The times of a training step and of inference, as multiples of a plain layer's."""
    if name not in _COSTS:
        return NOTHING, NOTHING
    result, kind, label = _COSTS[name]
    (cells,) = [row for row in recorded(result) if row[:2] == [kind, label]]
    return f"{float(cells[2].split()[0]):.2f} ×", f"{float(cells[-1].split()[0]):.2f} ×"


@cache
def recorded(name: str) -> list[list[str]]:
    """The rows of a benchmark."""
    found = RecordedTable.read(ROOT / "results" / f"{name}.json")
    assert found is not None
    return [list(row) for row in found.cells]
