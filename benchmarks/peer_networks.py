"""Networks of 4C3F's shape in three libraries, each with the loss its own documentation recommends.

Needs deel-torchlip and orthogonium beside lipcert; benchmarks/peers.py makes such an environment. `plain`
gives a network's executed weights as torch's own layers, so that one certifier proves them all. lipcert's
MinMax sorts pairs in all networks; the peers' own does the same with channels in another order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from deel import torchlip
from deel.torchlip.modules.module import LipschitzModule
from orthogonium.layers import AdaptiveOrthoConv2d, OrthoLinear, UnitNormLinear
from orthogonium.losses import LossXent
from torch import Tensor, nn

from lipcert import Bounded
from lipcert.losses import CLL
from lipcert.models import create
from lipcert.nn import MinMax, Standardise
from lipcert.train.optimizers.muon import muon

SHAPE, CLASSES = (3, 32, 32), 10
# Channels, kernel and stride of 4C3F's convolutions; each has one pixel of padding.
CONVOLUTIONS = ((32, 3, 1), (32, 4, 2), (64, 3, 1), (64, 4, 2))
FEATURES = (512, 512)
# Nearly the mean of CIFAR-10; a shift changes no Lipschitz constant.
MEAN = 0.473

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Entry:
    """One library in the race: the error of a batch, an optimiser for a rate, and rates to choose from."""

    model: nn.Module
    error: Loss
    optimizer: Callable[[float], torch.optim.Optimizer]
    rates: tuple[float, ...]


def convolutional(
    convolution: Callable[..., nn.Module],
    dense: Callable[[int, int], nn.Module],
    head: Callable[[int, int], nn.Module],
) -> list[nn.Module]:
    """Return the layers of 4C3F, made of these parts."""
    layers: list[nn.Module] = [Standardise([MEAN] * 3, 1.0)]
    channels, side = SHAPE[0], SHAPE[1]
    for width, kernel, stride in CONVOLUTIONS:
        layers += [convolution(channels, width, kernel, stride=stride, padding=1), MinMax()]
        channels, side = width, side // stride
    size = channels * side * side
    layers.append(nn.Flatten())
    for width in FEATURES:
        layers += [dense(size, width), MinMax()]
        size = width
    return [*layers, head(size, CLASSES)]


def lipcert_entry() -> Entry:
    """Make the recipe cifar10-4c3f-fast: CLL, Muon."""
    model = create(
        "4c3f", num_classes=CLASSES, input_shape=SHAPE, gain=0.8, normalise=[[MEAN] * 3, [1.0] * 3]
    )
    bounded = Bounded(model, SHAPE)
    cll = CLL(eps=0.15, slack=0.25, lam=1e-3, detach_constant=False)

    def error(x: Tensor, y: Tensor) -> Tensor:
        logits, lip = bounded(x)
        loss: Tensor = cll(logits, y, lip).mean() + cll.penalty(lip)
        return loss

    def optimizer(rate: float) -> torch.optim.Optimizer:
        head = list(model[-1].parameters())
        return muon(list(model.parameters()), head, lr=rate, momentum=0.9, adam_lr=rate / 5)

    return Entry(model, error, optimizer, (0.02,))


def adam_entry(model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> Entry:
    """Train with Adam; the rate is chosen by short trainings."""
    return Entry(
        model,
        lambda x, y: loss(model(x), y),
        lambda rate: torch.optim.Adam(model.parameters(), rate, fused=True),
        (1e-3, 3e-3, 1e-2),
    )


def torchlip_model() -> nn.Module:
    """Make spectral layers and a head with rows of length 1, as deel-torchlip's tutorials have them."""
    layers = convolutional(torchlip.SpectralConv2d, torchlip.SpectralLinear, torchlip.FrobeniusLinear)
    return nn.Sequential(*layers)


def hkr_entry() -> Entry:
    """Make deel-torchlip with HKR, settings of its multiclass tutorial."""
    loss = torchlip.HKRMulticlassLoss(alpha=100 / 101, min_margin=0.25)
    return adam_entry(torchlip_model(), lambda logits, y: loss(logits, nn.functional.one_hot(y, CLASSES)))


def temperature_entry(tau: float = 20.0) -> Entry:
    """Make deel-torchlip with its temperature cross-entropy."""
    return adam_entry(torchlip_model(), torchlip.TauCrossEntropyLoss(tau=tau))


def orthogonium_entry() -> Entry:
    """Make orthogonium's adaptive orthogonal convolutions with its cross-entropy for margins."""
    layers = convolutional(AdaptiveOrthoConv2d, OrthoLinear, UnitNormLinear)
    return adam_entry(nn.Sequential(*layers), LossXent(CLASSES))


ENTRIES: dict[str, Callable[[], Entry]] = {
    "lipcert, CLL": lipcert_entry,
    "deel-torchlip, HKR": hkr_entry,
    "deel-torchlip, temperature": temperature_entry,
    "orthogonium, AOC": orthogonium_entry,
}


def plain(model: nn.Module) -> nn.Module:
    """Return the network that runs in evaluation, in torch's layers and lipcert's; ours is one already."""
    is_ours = not any(isinstance(layer, OrthoLinear | LipschitzModule) for layer in model.modules())
    return model if is_ours else nn.Sequential(*map(_plain_layer, model.eval()))


def _plain_layer(layer: nn.Module) -> nn.Module:
    if not isinstance(layer, nn.Linear | nn.Conv2d):
        return layer
    if isinstance(layer, nn.Linear):
        made: nn.Module = nn.Linear(layer.in_features, layer.out_features)
    else:
        kept = {"stride": layer.stride, "padding": layer.padding, "padding_mode": layer.padding_mode}
        made = nn.Conv2d(layer.in_channels, layer.out_channels, layer.kernel_size, **kept)
    made.load_state_dict({"weight": layer.weight.detach(), "bias": layer.bias.detach()})
    return made
