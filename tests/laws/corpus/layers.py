"""Layers that are not what they say: stale geometry, own functions, hooks, old norms, strange weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

from lipcert import nn as lip
from tests.laws.corpus.registry import IMAGE, BatchNormNet, ConvNet, LeakyNet, Net, forward, mlp


def fresh(value: Any) -> Any:
    """A copy of a tensor of the tables below, so that no two models share it."""
    if isinstance(value, nn.Parameter):
        return nn.Parameter(value.detach().clone(), value.requires_grad)
    return value.clone() if isinstance(value, Tensor) else value


def conv(mode: str = "zeros", kernel: int = 3, built: int = 1, **changes: Any) -> nn.Conv2d:
    """A convolution of which attributes are set by hand, after its construction."""
    layer = nn.Conv2d(2, 3, kernel, padding=built, padding_mode=mode)
    for name, value in changes.items():
        setattr(layer, name, fresh(value))
    return layer


def aligned(layer: nn.Conv2d) -> ConvNet:
    """Around a convolution: weights that make its constant tight, so that any lower one is contradicted."""
    net = ConvNet(layer)
    net.act = nn.Identity()  # type: ignore[assignment]
    with torch.no_grad():
        layer.weight.fill_(1.0)
        net.head.weight.copy_(torch.tensor([[1.0], [0.0], [-1.0]]).expand_as(net.head.weight))
        net.head.bias.zero_()
        if layer.bias is not None:
            layer.bias.zero_()
    return net


for mode in ("circular", "reflect", "replicate"):
    # Torch pads as it was told at construction; `padding` is looked at by nobody afterwards.
    forward(f"padding-{mode}-smaller-than-built", shape=IMAGE)(
        lambda m=mode: aligned(conv(m, 1, built=5, padding=(0, 0)))
    )
    forward(f"padding-{mode}-larger-than-built", shape=IMAGE)(lambda m=mode: aligned(conv(m, padding=(2, 2))))
    forward(f"padding-{mode}-edges-set-by-hand", shape=IMAGE)(
        lambda m=mode: aligned(conv(m, 1, built=0, _reversed_padding_repeated_twice=[5, 5, 5, 5]))
    )
    forward(f"padding-mode-{mode}-set-by-hand", shape=IMAGE)(
        lambda m=mode: aligned(conv(built=2, padding_mode=m))
    )
for name, changes in {
    "integer-padding": {"padding": 1},
    "integer-stride": {"stride": 1},
    "integer-dilation": {"dilation": 1},
    "list-padding": {"padding": [1, 1]},
    "padding-of-one": {"padding": (1,)},
    "same-padding": {"padding": "same"},
    "no-padding": {"padding": (0, 0)},
    "wide-stride": {"stride": (2, 2)},
    "wide-dilation": {"dilation": (2, 2)},
    "kernel-size": {"kernel_size": (1, 1)},
    "integer-kernel-size": {"kernel_size": 3},
    "larger-kernel": {"weight": nn.Parameter(torch.ones(3, 2, 5, 5))},
    "smaller-kernel": {"weight": nn.Parameter(torch.ones(3, 2, 1, 1))},
    "other-channels": {"in_channels": 1, "out_channels": 1},
    "groups": {"groups": 2, "weight": nn.Parameter(torch.ones(4, 1, 3, 3)), "bias": None},
    "transposed-flag": {"transposed": True},
}.items():
    forward(f"convolution-{name}-set-by-hand", shape=IMAGE)(lambda c=changes: aligned(conv(**c)))
for name, changes in {
    "a-stale-width": {"weight": nn.Parameter(torch.ones(6, 4)), "in_features": 1},
    "a-stale-height": {"out_features": 1},
    "a-bias-of-one-number": {"bias": nn.Parameter(torch.ones(1))},
    "a-stale-bias": {"bias": nn.Parameter(100 * torch.ones(6))},
    "a-complex-weight": {"weight": nn.Parameter(torch.ones(6, 4, dtype=torch.complex64))},
    "a-half-weight": {"weight": nn.Parameter(torch.ones(6, 4, dtype=torch.float16))},
    "a-double-weight": {"weight": nn.Parameter(torch.ones(6, 4, dtype=torch.float64))},
    "a-sparse-weight": {"weight": nn.Parameter(torch.eye(6, 4).to_sparse(), requires_grad=False)},
    "a-meta-weight": {"weight": nn.Parameter(torch.ones(6, 4, device="meta"))},
    "a-weight-with-nan": {"weight": nn.Parameter(torch.full((6, 4), torch.nan))},
    "a-weight-with-infinity": {"weight": nn.Parameter(torch.full((6, 4), torch.inf))},
    "a-bias-with-nan": {"bias": nn.Parameter(torch.full((6,), torch.nan))},
    "an-overflowing-weight": {"weight": nn.Parameter(torch.full((6, 4), 3e38))},
    "a-weight-for-other-inputs": {"weight": nn.Parameter(torch.ones(6, 5))},
    "a-weight-of-three-dimensions": {"weight": nn.Parameter(torch.ones(2, 6, 4))},
    "no-weight": {"weight": None},
}.items():

    def _linear(changes: dict[str, Any] = changes) -> Callable[[], nn.Module]:
        def build() -> nn.Module:
            net = Net()
            for key, value in changes.items():
                setattr(net.l, key, fresh(value))
            return net

        return build

    forward(f"linear-with-{name}")(_linear())


def plain_weight(net: Net, factor: float = 1.0) -> Net:
    """Replace a parameter by a tensor that is registered nowhere."""
    weight = net.l.weight.detach() * factor
    del net.l.weight
    net.l.weight = weight
    return net


def hidden_weight(net: Net) -> Net:
    """Hide a parameter behind an attribute of the instance."""
    net.l.__dict__["weight"] = -20 * net.l.weight.detach()
    return net


forward("an-unregistered-weight")(lambda: plain_weight(Net()))
forward("an-unregistered-double-weight")(lambda: plain_weight(Net().double()))
forward("a-hidden-weight")(lambda: hidden_weight(Net()))
forward("a-hidden-double-weight")(lambda: hidden_weight(Net().double()))


@forward("a-weight-that-is-a-view")
def _() -> nn.Module:
    net = Net()
    flat = torch.randn(100)
    net.l.weight.data = flat[10:34].view(6, 4)
    net.head.weight.data = flat[20:38].view(3, 6)
    return net


@forward("a-lazy-layer")
def _() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.Linear(6, 3))


@forward("a-layer-with-its-own-conv-forward", shape=IMAGE)
def _() -> nn.Module:
    net = ConvNet()
    layer: Any = net.l
    layer._conv_forward = lambda x, w, b: F.conv2d(x, -20 * w, b, padding=1)
    return net


@forward("an-activation-with-its-own-forward")
def _() -> nn.Module:
    net = LeakyNet()
    net.act.forward = lambda h: -20 * h  # type: ignore[method-assign]
    return net


class SteepLinear(nn.Linear):
    """A subclass with another forward."""

    def forward(self, x: Tensor) -> Tensor:
        return -20 * super().forward(x)


class SteepConv(nn.Conv2d):
    """A subclass with another inner function."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super()._conv_forward(x, -20 * weight, bias)


class GettingLinear(nn.Linear):
    """A subclass whose weight is computed when it is asked for."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return -20 * found.detach() if name == "weight" else found


class SteepSequential(nn.Sequential):
    """A container with another forward."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flip(1)) if isinstance(x, Tensor) else super().forward(x)


forward("a-subclass-of-linear")(lambda: nn.Sequential(SteepLinear(4, 6), nn.ReLU(), nn.Linear(6, 3)))
forward("a-subclass-of-a-convolution", shape=IMAGE)(lambda: ConvNet(SteepConv(2, 3, 3, padding=1)))
forward("a-subclass-with-a-computed-weight")(lambda: nn.Sequential(GettingLinear(4, 6), nn.Linear(6, 3)))
forward("a-subclass-of-sequential")(lambda: SteepSequential(*mlp()))


@forward("an-old-weight-norm", accepted=None)
def _() -> nn.Module:
    net = Net()
    weight_norm(net.l)
    return net


@forward("an-old-weight-norm-with-a-stale-weight")
def _() -> nn.Module:
    net = Net()
    weight_norm(net.l)
    net.l.weight_g.data *= -20  # type: ignore[operator]
    return net


@forward("an-old-spectral-norm")
def _() -> nn.Module:
    net = Net()
    spectral_norm(net.l)
    net.l.weight_orig.data *= -20  # type: ignore[operator]
    return net


@forward("a-pruned-layer")
def _() -> nn.Module:
    net = Net()
    prune.random_unstructured(net.l, "weight", amount=0.5)
    net.l.weight_orig.data *= -20  # type: ignore[operator]
    return net


class Noisy(nn.Module):
    """A parametrisation that draws."""

    def forward(self, w: Tensor) -> Tensor:
        return 20 * torch.randn_like(w)


class Turning(nn.Module):
    """A parametrisation with a turn."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def forward(self, w: Tensor) -> Tensor:
        self._turn += 1
        return w if self._turn % 2 else -20 * w


class Larger(nn.Module):
    """A parametrisation by a factor."""

    def forward(self, w: Tensor) -> Tensor:
        return -20 * w


for name, kind in {"noise": Noisy, "a-turn": Turning, "a-factor": Larger}.items():

    def _parametrised(kind: Callable[[], nn.Module] = kind) -> Callable[[], nn.Module]:
        def build() -> nn.Module:
            net = Net()
            parametrize.register_parametrization(net.l, "weight", kind())
            return net

        return build

    forward(f"parametrised-by-{name}")(_parametrised())


@forward("parametrised-in-training", eval=False)
def _() -> nn.Module:
    net = Net()
    parametrizations.spectral_norm(net.l)
    return net


@forward("a-batch-norm-in-training", shape=IMAGE, eval=False)
def _() -> nn.Module:
    return BatchNormNet()


for name, changes in {
    "no-running-mean": {"running_mean": None, "running_var": None},
    "no-running-mean-but-a-variance": {"running_mean": None},
    "tracking-switched-off": {"track_running_stats": False},
    "a-negative-variance": {"running_var": -torch.ones(3)},
    "a-zero-variance": {"running_var": torch.zeros(3)},
    "a-negative-eps": {"eps": -0.49},
    "no-weight": {"weight": None},
    "no-bias": {"bias": None},
    "an-affine-flag": {"affine": False},
}.items():

    def _normed(changes: dict[str, Any] = changes) -> Callable[[], nn.Module]:
        def build() -> nn.Module:
            net = BatchNormNet()
            for key, value in changes.items():
                setattr(net.bn, key, fresh(value))
            return net

        return build

    forward(f"batch-norm-with-{name}", shape=IMAGE)(_normed())

for name, layer in {
    "a-nan-slope": lambda: nn.LeakyReLU(float("nan")),
    "an-infinite-slope": lambda: nn.LeakyReLU(float("inf")),
    "a-text-slope": lambda: nn.LeakyReLU("0.1"),  # type: ignore[arg-type]
    "a-tensor-slope": lambda: nn.LeakyReLU(torch.tensor(-20.0)),  # type: ignore[arg-type]
    "a-negative-alpha": lambda: nn.ELU(-20.0),
    "a-steep-prelu": lambda: nn.PReLU(init=-20.0),
    "a-prelu-per-channel": lambda: nn.PReLU(6, init=-20.0),
    "swapped-limits": lambda: nn.Hardtanh(-1.0, 1.0),
    "softmax": lambda: nn.Softmax(1),
    "softplus": lambda: nn.Softplus(20.0),
    "layer-norm": lambda: nn.LayerNorm(6),
    "attention": lambda: nn.TransformerEncoderLayer(6, 1, 6, batch_first=True),
    "an-embedding": lambda: nn.Embedding(6, 6),
    "a-scale": lambda: lip.Scale(-20.0),
}.items():
    forward(f"activation-with-{name}")(lambda layer=layer: mlp(layer()))


@forward("limits-swapped-by-hand")
def _() -> nn.Module:
    layer = nn.Hardtanh()
    layer.min_val, layer.max_val = 5.0, -5.0
    return mlp(layer)


@forward("a-lipcert-layer-with-its-own-weights", shape=IMAGE)
def _() -> nn.Module:
    net = ConvNet(lip.AOLConv2d(2, 3, 3, padding=1))
    layer: Any = net.l
    made = tuple(-20 * w.detach() for w in layer.eval().weights())
    layer.weights = lambda: made
    return net


@forward("a-lipcert-layer-with-a-changed-source")
def _() -> nn.Module:
    layer: Any = lip.AOLLinear(4, 6).eval()
    layer(torch.zeros(1, 4))
    layer.raw.data = -20 * layer.raw.data
    return nn.Sequential(layer, nn.Linear(6, 3))
