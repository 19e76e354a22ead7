"""Probes: small computations of everything registered, the same on every device up to rounding error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

import lipcert.nn  # noqa: F401  registers lipcert's own layers
from lipcert.bounds import Bounded
from lipcert.bounds.contract import RULES
from lipcert.data.augmentations import AUGMENTATIONS
from lipcert.losses import CLL, LOSSES
from lipcert.models import MODELS, ModelCard
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for
from lipcert.types import PairLip, Shape
from lipcert.waiting import as_on_an_accelerator

_BATCH, _CLASSES, _FEATURES = 6, 5, 4


@dataclass(frozen=True)
class Probe:
    """Something to compute with random numbers that depend on nothing but its kind and name."""

    kind: str
    name: str
    compute: Callable[[torch.device, torch.dtype], Sequence[Tensor | None]]

    def __call__(self, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        """Return what was computed, in float64 on the CPU."""
        with torch.random.fork_rng(devices=[]), as_on_an_accelerator():
            torch.manual_seed(1)
            found = self.compute(device, dtype)
        return [value.detach().to("cpu", torch.float64) for value in found if value is not None]


def probes() -> Iterator[Probe]:
    """Yield a probe of every registered layer, loss, model, augmentation and optimiser."""
    for kind, registered in RULES.items():
        for i, example in enumerate(registered.examples):
            yield Probe("layer", f"{kind.__name__}-{i}", partial(_layer, example))
    for name in LOSSES:
        yield Probe("loss", name, partial(_loss, name))
    for name in MODELS:
        yield Probe("model", name, partial(_model, name))
    for name in AUGMENTATIONS:
        yield Probe("augmentation", name, partial(_augmentation, name))
    for name in OPTIMIZERS:
        yield Probe("optimizer", name, partial(_optimizer, name))


def _noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def _layer(
    example: Callable[[], tuple[nn.Module, Shape]], device: torch.device, dtype: torch.dtype
) -> Sequence[Tensor | None]:
    """Compute outputs and gradients of a layer."""
    module, shape = example()
    module = module.to(device, dtype).eval()
    x = _noise(_BATCH, *shape).to(device, dtype).requires_grad_()
    y = module(x)
    weights = [p for p in module.parameters() if p.requires_grad]
    towards = _noise(*y.shape).to(device, dtype)
    return [y, *torch.autograd.grad((y * towards).sum(), [x, *weights], allow_unused=True)]


def _loss(name: str, device: torch.device, dtype: torch.dtype) -> Sequence[Tensor | None]:
    """Compute values, penalty and gradients of a loss."""
    logits, rows = (_noise(n, _CLASSES) for n in (_BATCH, _FEATURES))
    inputs = [t.to(device, dtype).requires_grad_() for t in (logits, rows.T, torch.tensor(2.0))]
    labels = torch.randint(_CLASSES, (_BATCH,)).to(device)
    lip, loss = PairLip(inputs[2], inputs[1]), LOSSES.example(name)
    values, penalty = loss(inputs[0], labels, lip), loss.penalty(lip)
    total = values.mean() + penalty
    return [values, penalty, *torch.autograd.grad(total, inputs, allow_unused=True)]


def example_card(name: str) -> ModelCard:
    """Return the card of a registered model's example."""
    arguments = dict(MODELS[name].example)
    classes = arguments.pop("num_classes", 3)
    return ModelCard(name, classes, tuple(arguments.pop("input_shape", (2,))), arguments)


def _model(name: str, device: torch.device, dtype: torch.dtype) -> Sequence[Tensor | None]:
    """Compute logits, constants and gradients of a model."""
    card = example_card(name)
    bounded = Bounded(card.build().to(device, dtype), card.input_shape)
    x = torch.rand(_BATCH, *card.input_shape, dtype=torch.float64).to(device, dtype)
    labels = torch.randint(card.num_classes, (_BATCH,)).to(device)
    bounded.converge(1e-9, 500)
    bounded.eval()
    logits, lip = bounded(x)
    loss = CLL(eps=0.1, slack=0.1, lam=1e-3)
    total = loss(logits, labels, lip).mean() + loss.penalty(lip)
    weights = [p for p in bounded.parameters() if p.requires_grad]
    return [logits, lip.features, lip.head, *torch.autograd.grad(total, weights, allow_unused=True)]


def _augmentation(name: str, device: torch.device, dtype: torch.dtype) -> Sequence[Tensor | None]:
    """Change images; an augmentation computes in float32 always."""
    augmentation = AUGMENTATIONS.example(name)
    images = torch.randint(0, 256, (_BATCH, 3, 16, 16), dtype=torch.uint8)
    return [augmentation(images.to(device), augmentation.draws(_BATCH, 1, 1).to(device))]


def _optimizer(name: str, device: torch.device, dtype: torch.dtype) -> Sequence[Tensor | None]:
    """Make five steps of an optimiser."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device, dtype)
    bounded = Bounded(model, (6,))
    optimizer = optimizer_for(bounded, partial(OPTIMIZERS[name].constructor, **OPTIMIZERS[name].example))
    x = _noise(32, 6).to(device, dtype)
    for _ in range(5):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return list(model.parameters())
