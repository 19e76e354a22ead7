"""Layers as they are meant to be used: accepted, and sound."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, remove_weight_norm, weight_norm

from lipcert import nn as lip
from tests.laws.corpus.registry import IMAGE, BatchNormNet, ConvNet, Net, forward, mlp

for mode in ("zeros", "circular", "reflect", "replicate"):
    forward(f"a-convolution-with-{mode}", shape=IMAGE, accepted=True)(
        lambda mode=mode: ConvNet(nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode))
    )
for name, make in {
    "stride": lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1),
    "groups": lambda: nn.Conv2d(2, 4, 3, padding=1, groups=2),
    "dilation": lambda: nn.Conv2d(2, 3, 3, dilation=2),
    "same-padding": lambda: nn.Conv2d(2, 3, 4, padding="same"),
    "valid-padding": lambda: nn.Conv2d(2, 3, 3, padding="valid"),
    "one-by-one": lambda: nn.Conv2d(2, 5, 1),
    "transposed": lambda: nn.ConvTranspose2d(2, 3, 3, padding=1),
    "aol": lambda: lip.AOLConv2d(2, 3, 3, padding=1),
    "soc": lambda: lip.SOCConv2d(2, 3, 3),
    "bjorck": lambda: lip.BjorckConv2d(2, 3, 3, padding=1),
    "rko": lambda: lip.RKOConv2d(2, 3, 3, stride=2),
    "bcop": lambda: lip.BCOPConv2d(2, 4, 3, padding=1, padding_mode="circular"),
    "aoc": lambda: lip.AOCConv2d(2, 3, 3, stride=2, padding=1),
    "aoc-transposed": lambda: lip.AOCConvTranspose2d(2, 3, 3, padding=1),
    "frobenius": lambda: lip.FrobeniusConv2d(2, 3, 3),
    "double": lambda: nn.Conv2d(2, 3, 3, padding=1).double(),
}.items():
    forward(f"a-convolution-{name}", shape=IMAGE, accepted=True)(
        lambda make=make: ConvNet(make()).to(next(make().parameters()).dtype)
    )
for name, layer in {
    "max-pool": lambda: nn.MaxPool2d(2),
    "average-pool": lambda: nn.AvgPool2d(2),
    "adaptive-pool": lambda: nn.AdaptiveAvgPool2d((4, 5)),
    "global-pool": lambda: nn.AdaptiveAvgPool2d(1),
    "overlapping-average-pool": lambda: nn.AvgPool2d(3, stride=1, padding=1),
    "pixel-unshuffle": lambda: nn.PixelUnshuffle(2),
    "zero-pad": lambda: nn.ZeroPad2d(1),
    "channel-shuffle": lambda: nn.ChannelShuffle(3),
    "minmax": lambda: nn.Sequential(nn.Conv2d(3, 4, 1), lip.MinMax()),
    "dropout2d": lambda: nn.Dropout2d(0.5),
    "full-sort": lambda: lip.FullSort(),
    "n-activation": lambda: lip.NActivation(3),
    "linear-spline": lambda: lip.LinearSpline(3),
    "layer-centering": lambda: lip.LayerCentering(3),
    "batch-centering": lambda: lip.BatchCentering(3),
    "scaled-adaptive-pool": lambda: lip.ScaledAdaptiveAvgPool2d((4, 5)),
}.items():
    forward(f"an-image-layer-{name}", shape=IMAGE, accepted=True)(
        lambda layer=layer: nn.Sequential(
            first := nn.Conv2d(2, 3, 3, padding=1),
            then := layer(),
            nn.Flatten(),
            nn.Linear(then(first(torch.zeros(1, *IMAGE))).numel(), 3),
        )
    )
for kind in (
    nn.Tanh,
    nn.Sigmoid,
    nn.SiLU,
    nn.GELU,
    nn.ELU,
    nn.LeakyReLU,
    nn.PReLU,
    nn.ReLU6,
    nn.Hardtanh,
    nn.Hardswish,
    nn.Mish,
    nn.Softplus,
    lip.MinMax,
):
    forward(f"activation-{kind.__name__}", accepted=True)(lambda kind=kind: mlp(kind()))

forward("batch-norm-of-images", shape=IMAGE, accepted=True)(lambda: BatchNormNet())
forward("batch-norm-of-vectors", accepted=True)(lambda: mlp(nn.BatchNorm1d(6), nn.ReLU()))
forward("batch-norm-without-affine", accepted=True)(lambda: mlp(nn.BatchNorm1d(6, affine=False), nn.ReLU()))
forward("a-one-dimensional-convolution", shape=(2, 7), accepted=True)(
    lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(6, 3))
)
forward("a-layer-on-the-last-dimension", shape=(3, 4), accepted=True)(
    lambda: nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(6, 3))
)
forward("lipcert-residual", accepted=True)(
    lambda: nn.Sequential(lip.Residual(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 3))
)
forward("lipcert-branches", accepted=True)(
    lambda: nn.Sequential(lip.Branches(nn.Linear(4, 2), nn.Linear(4, 3)), nn.Linear(5, 3))
)
forward("lipcert-dense-layers", accepted=True)(
    lambda: nn.Sequential(
        lip.AOLLinear(4, 6), lip.MinMax(), lip.SOCLinear(6, 6), lip.GroupSort(3), nn.Linear(6, 3)
    )
)
forward("lipcert-last-layer", accepted=True)(
    lambda: nn.Sequential(lip.CayleyLinear(4, 6), lip.Householder(6), lip.LLNLinear(6, 3))
)
forward("lipcert-standardise", shape=IMAGE, accepted=True)(
    lambda: nn.Sequential(lip.Standardise([0.1, -0.2], 0.3), ConvNet())
)


def parametrised(function: object, **settings: object) -> Net:
    net = Net()
    function(net.l, **settings)  # type: ignore[operator]
    net(torch.randn(8, 4))
    return net


forward("parametrised-weight-norm", accepted=True)(lambda: parametrised(parametrizations.weight_norm))
forward("parametrised-spectral-norm", accepted=True)(lambda: parametrised(parametrizations.spectral_norm))
forward("parametrised-orthogonal", accepted=True)(lambda: parametrised(parametrizations.orthogonal))


@forward("weight-norm-removed", accepted=True)
def _() -> nn.Module:
    net = Net()
    remove_weight_norm(weight_norm(net.l))
    return net


@forward("pruned-for-good", accepted=True)
def _() -> nn.Module:
    net = Net()
    prune.l1_unstructured(net.l, "weight", amount=0.5)
    prune.remove(net.l, "weight")
    return net
