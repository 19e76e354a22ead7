"""Layers of other packages, of the shapes that benchmarks/layers.py and reshaped_layers.py measure.

orthogonium's dense Cayley layer is left out: it can only be made on a GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from torch import nn

BATCH, CHANNELS, SIDE, FEATURES = 64, 64, 16, 1024


def peer(path: str, name: str, *arguments: object, **settings: object) -> Callable[[], nn.Module] | None:
    """A layer of a package that may not be there."""
    try:
        kind = getattr(importlib.import_module(path), name)
    except ImportError:
        return None
    return lambda: kind(*arguments, **settings)


def installed(peers: dict[str, Callable[[], nn.Module] | None]) -> dict[str, Callable[[], nn.Module]]:
    """Those that are there; the others are named."""
    for name in (name for name, make in peers.items() if make is None):
        print(f"{name}: not installed")
    return {name: make for name, make in peers.items() if make is not None}


def soc_peer(terms: int) -> Callable[[], nn.Module] | None:
    """Its whole series is one large kernel, which ignores the border between two terms."""
    path = f"{_CONV}.adaptiveSOC.fast_skew_ortho_conv"
    settings = peer(path, "ExpParams", terms)
    if settings is None:
        return None
    return peer(path, "FastSOC", CHANNELS, CHANNELS, 3, padding_mode="zeros", exp_params=settings())


def dense_peer(kind: str) -> Callable[[], nn.Module] | None:
    """Its orthogonal dense layer with a reparametrisation of this name."""
    try:
        settings = getattr(importlib.import_module("orthogonium.reparametrizers"), f"{kind}_ORTHO_PARAMS")
    except ImportError:
        return None
    path = "orthogonium.layers.linear.ortho_linear"
    return peer(path, "OrthoLinear", FEATURES, FEATURES, ortho_params=settings)


_CONV = "orthogonium.layers.conv"
PEER_CONVOLUTIONS = {
    "AOL, orthogonium": peer(f"{_CONV}.AOL.aol", "AOLConv2D", CHANNELS, CHANNELS, 3, padding=1),
    "SOC (5 terms), orthogonium": soc_peer(5),
    "SOC (3 terms), orthogonium": soc_peer(3),
    "SLL, orthogonium": peer(f"{_CONV}.SLL.sll_layer", "SDPBasedLipschitzResBlock", CHANNELS, 1),
    "Cayley, orthogonium": peer("orthogonium.legacy.cayley_ortho_conv", "Cayley", CHANNELS, CHANNELS, 3),
}
PEER_DENSE = {
    "SLL, orthogonium": peer(
        f"{_CONV}.SLL.sll_layer", "SDPBasedLipschitzDense", FEATURES, FEATURES, FEATURES
    ),
    "SOC (12 terms), orthogonium": dense_peer("EXP"),
    "Cholesky, orthogonium": dense_peer("CHOLESKY"),
    "normalised head, orthogonium": peer(
        "orthogonium.layers.linear.ortho_linear", "UnitNormLinear", FEATURES, FEATURES
    ),
    "normalised head, deel-torchlip": peer("deel.torchlip", "FrobeniusLinear", FEATURES, FEATURES),
}

# The peers of the layers with a kernel of their own: benchmarks/reshaped_layers.py. Padding as there.
_SAME = {"padding": 1, "padding_mode": "zeros"}
PEER_KERNELS = {
    "Björck, deel-torchlip": peer("deel.torchlip", "SpectralConv2d", CHANNELS, CHANNELS, 3, padding=1),
    "Frobenius, deel-torchlip": peer("deel.torchlip", "FrobeniusConv2d", CHANNELS, CHANNELS, 3, padding=1),
    "RKO, orthogonium": peer(f"{_CONV}.AOC.rko_conv", "RKOConv2d", CHANNELS, CHANNELS, 3, **_SAME),
    "BCOP, orthogonium": peer(
        f"{_CONV}.AOC.fast_block_ortho_conv", "FastBlockConv2d", CHANNELS, CHANNELS, 3, **_SAME
    ),
    "AOC, stride 2, orthogonium": peer(
        f"{_CONV}.AOC.bcop_x_rko_conv", "BcopRkoConv2d", CHANNELS, 2 * CHANNELS, 4, stride=2, **_SAME
    ),
    "AOC, transposed, orthogonium": peer(
        f"{_CONV}.AOC.bcop_x_rko_conv",
        "BcopRkoConvTranspose2d",
        CHANNELS,
        CHANNELS // 2,
        4,
        stride=2,
        padding=1,
    ),
    "batch centering, deel-torchlip": peer("deel.torchlip", "BatchCentering", CHANNELS),
    "layer centering, deel-torchlip": peer("deel.torchlip", "LayerCentering", CHANNELS),
}
PEER_MATRICES = {
    "Björck, deel-torchlip": peer("deel.torchlip", "SpectralLinear", FEATURES, FEATURES),
    "Björck, orthogonium": peer("orthogonium.layers.linear.ortho_linear", "OrthoLinear", FEATURES, FEATURES),
    "Frobenius, deel-torchlip": peer(
        "deel.torchlip", "FrobeniusLinear", FEATURES, FEATURES, disjoint_neurons=False
    ),
}
