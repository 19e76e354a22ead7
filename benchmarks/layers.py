"""Every layer against a plain one of the same shape, in training and in inference, and against its peers.

64 → 64 channels, 3×3 kernels, 16×16 images, batch 64; dense layers of 1024, batch 64. Peers are found if they
are installed (`pip install orthogonium einops deel-torchlip`). Writes results/layers.json.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from peer_layers import BATCH, CHANNELS, FEATURES, PEER_CONVOLUTIONS, PEER_DENSE, SIDE, installed
from timing import interleaved, print_ratios
from torch import Tensor, nn

from lipcert.export import plain
from lipcert.nn import (
    AOLConv2d,
    AOLLinear,
    BROConv2d,
    BROLinear,
    CayleyConv2d,
    CayleyLinear,
    CholeskyLinear,
    CPLConv2d,
    CPLLinear,
    LinearResidualConv2d,
    LLNLinear,
    LOTConv2d,
    LOTLinear,
    SandwichConv2d,
    SandwichLinear,
    ShiftMix,
    SLLConv2d,
    SLLLinear,
    SOCConv2d,
    SOCLinear,
)
from lipcert.nn.bases.derived import Derived
from results import write_table

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    "AOL": lambda: AOLConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "SOC (5 and 12 terms)": lambda: SOCConv2d(CHANNELS, CHANNELS),
    "SOC (5 terms)": lambda: SOCConv2d(CHANNELS, CHANNELS, terms=(5, 5)),
    "SOC (3 terms)": lambda: SOCConv2d(CHANNELS, CHANNELS, terms=(3, 3)),
    "CPL": lambda: CPLConv2d(CHANNELS, CHANNELS),
    "SLL": lambda: SLLConv2d(CHANNELS, CHANNELS),
    "Sandwich": lambda: SandwichConv2d(CHANNELS, CHANNELS),
    "Cayley": lambda: CayleyConv2d(CHANNELS, CHANNELS),
    "LOT": lambda: LOTConv2d(CHANNELS, CHANNELS),
    "BRO": lambda: BROConv2d(CHANNELS, CHANNELS),
    "linear residual": lambda: LinearResidualConv2d(CHANNELS),
    "shift and mix": lambda: ShiftMix(CHANNELS, (SIDE, SIDE)),
}
DENSE: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Linear(FEATURES, FEATURES),
    "AOL": lambda: AOLLinear(FEATURES, FEATURES),
    "SOC": lambda: SOCLinear(FEATURES, FEATURES),
    "CPL": lambda: CPLLinear(FEATURES, FEATURES),
    "SLL": lambda: SLLLinear(FEATURES, FEATURES),
    "Sandwich": lambda: SandwichLinear(FEATURES, FEATURES),
    "Cayley": lambda: CayleyLinear(FEATURES, FEATURES),
    "LOT": lambda: LOTLinear(FEATURES, FEATURES),
    "BRO": lambda: BROLinear(FEATURES, FEATURES),
    "Cholesky": lambda: CholeskyLinear(FEATURES, FEATURES),
    "normalised head": lambda: LLNLinear(FEATURES, FEATURES),
}


def training_step(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward and backward, to the weights and to the input."""
    x = x.clone().requires_grad_()
    layer.train()

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        if isinstance(layer, Derived):
            layer.forget()  # as after every step of an optimiser: norms are followed once more
        layer(x).sum().backward()

    return step


def inference(layer: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    layer.eval()

    def call() -> Tensor:
        with torch.no_grad():
            found: Tensor = layer(x)
        return found

    return call


def measure(kind: str, makers: dict[str, Callable[[], nn.Module]], x: Tensor) -> list[list[str]]:
    torch.manual_seed(0)
    training = {name: training_step(make(), x) for name, make in makers.items()}
    layers = {name: make() for name, make in makers.items()}
    calls = {name: inference(layer, x) for name, layer in layers.items()}
    collapsed = {
        f"{name}, plain copy": inference(plain(layer), x)
        for name, layer in layers.items()
        if "," not in name and type(plain(layer)) is not type(layer)
    }
    slow = print_ratios(interleaved(training, rounds=30), "plain")
    quick = print_ratios(interleaved(calls | collapsed, rounds=60), "plain")
    return [[kind, name, str(slow[name]) if name in slow else "–", str(quick[name])] for name in quick]


def main() -> None:
    torch.set_num_threads(2)
    images, vectors = torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.randn(BATCH, FEATURES)
    table = measure("convolution", CONVOLUTIONS | installed(PEER_CONVOLUTIONS), images)
    table += measure("dense", DENSE | installed(PEER_DENSE), vectors)
    note = f"ratios to nn.Conv2d and nn.Linear, batch {BATCH}, two threads, medians of interleaved rounds"
    write_table("layers", note, ["kind", "layer", "training step", "inference"], table)


if __name__ == "__main__":
    main()
