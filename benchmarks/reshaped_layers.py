"""Björck, RKO, BCOP, AOC and Frobenius layers and centering against plain layers and their peers.

64 → 64 channels, 3×3 kernels, 16×16 images, batch 64; with stride 2 4×4 kernels; dense layers of 1024. Peers
are found if they are installed (`pip install orthogonium einops deel-torchlip`). Björck's iteration stops
early near an orthogonal matrix, where it begins. So everything is measured with noise on the weights, too: a
tenth of the length of an orthogonal matrix. `--short` makes few rounds. Writes results/reshaped-layers.json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from layers import inference, training_step
from peer_layers import BATCH, CHANNELS, FEATURES, PEER_KERNELS, PEER_MATRICES, SIDE, installed
from timing import interleaved
from torch import Tensor, nn

from lipcert.export import plain
from lipcert.nn import (
    AOCConv2d,
    AOCConvTranspose2d,
    BatchCentering,
    BCOPConv2d,
    BjorckConv2d,
    BjorckLinear,
    FrobeniusConv2d,
    FrobeniusLinear,
    LayerCentering,
    RKOConv2d,
)
from lipcert.nn.bases.derived import Derived
from results import write_table

KERNELS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    "Björck": lambda: BjorckConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "RKO": lambda: RKOConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "BCOP": lambda: BCOPConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "AOC, stride 2": lambda: AOCConv2d(CHANNELS, 2 * CHANNELS, 4, stride=2, padding=1),
    "AOC, transposed": lambda: AOCConvTranspose2d(CHANNELS, CHANNELS // 2, 4, stride=2, padding=1),
    "Frobenius": lambda: FrobeniusConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "batch centering": lambda: BatchCentering(CHANNELS),
    "layer centering": lambda: LayerCentering(CHANNELS),
}
MATRICES: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Linear(FEATURES, FEATURES),
    "Björck": lambda: BjorckLinear(FEATURES, FEATURES),
    "Frobenius": lambda: FrobeniusLinear(FEATURES, FEATURES),
}


def noisy(layer: nn.Module) -> nn.Module:
    """The layer with noise on its weights: a tenth of the length of an orthonormal matrix."""
    torch.manual_seed(1)
    with torch.no_grad():
        for p in (p for p in layer.parameters() if p.ndim > 1):
            columns = p[0].numel() if p.ndim == 4 and not hasattr(layer, "factors") else p.shape[-1]
            p.add_(0.1 * max(columns, p.shape[-2]) ** -0.5 * torch.randn_like(p))
    return layer


def measure(kind: str, makers: dict[str, Callable[[], nn.Module]], x: Tensor, rounds: int) -> list[list[str]]:
    torch.manual_seed(0)
    start = {name: training_step(make(), x) for name, make in makers.items()}
    moved = {name: training_step(noisy(make()), x) for name, make in makers.items()}
    layers = {name: make() for name, make in makers.items()}
    calls = {name: inference(layer, x) for name, layer in layers.items()}
    for name, layer in layers.items():
        if isinstance(layer, Derived):
            calls[f"{name}, plain copy"] = inference(plain(layer), x)
    tables = [interleaved(works, rounds) for works in (start, moved, calls)]
    found = [
        [kind, name, *(str(t[name].ratio(t["plain"])) if name in t else "–" for t in tables)]
        for name in calls
    ]
    for row in found:
        print(*row, sep="  ", flush=True)
    return found


def main() -> None:
    torch.set_num_threads(1)
    rounds = 5 if "--short" in sys.argv else 30
    images, vectors = torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.randn(BATCH, FEATURES)
    table = measure("convolution", KERNELS | installed(PEER_KERNELS), images, rounds)
    table += measure("dense", MATRICES | installed(PEER_MATRICES), vectors, rounds)
    note = f"ratios to nn.Conv2d and nn.Linear, batch {BATCH}, one thread, medians of {rounds} rounds"
    titles = ["kind", "layer", "training step, first weights", "with noise", "inference"]
    write_table("reshaped-layers", note, titles, table)


if __name__ == "__main__":
    main()
