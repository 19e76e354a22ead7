"""The laws of every model."""

from __future__ import annotations

import copy
import math
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.bounds.contract import rule_of
from lipcert.certificates.certificate import Certificate
from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load
from lipcert.laws.law import described, expect, laws_of_registry
from lipcert.losses import CLL
from lipcert.models import MODELS, create, save
from lipcert.nn.bases.derived import Built
from lipcert.selftest.probes import example_card
from lipcert.types import Shape

# How many classes a model may be asked for; one logit f stands for [0, f].
_CLASSES = (1, 2, 7)


class ModelExample:
    """A registered model with the arguments of its example."""

    def __init__(self, name: str) -> None:
        self.card = example_card(name)
        self.build()

    @property
    def shape(self) -> Shape:
        """Return the shape of one input."""
        return self.card.input_shape

    def build(self) -> nn.Module:
        """Make the model."""
        return self.card.build()

    def inputs(self, samples: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw inputs."""
        return torch.randn(samples, *self.shape, dtype=dtype)

    def trained(self) -> nn.Module:
        """Return a copy after some steps on random points, so that nothing is as initialised."""
        return copy.deepcopy(self._trained)

    @cached_property
    def _trained(self) -> nn.Module:
        torch.manual_seed(0)
        model = self.build()
        bounded = Bounded(model, self.shape)
        optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
        x, y = self.inputs(64), torch.randint(self.card.num_classes, (64,))
        loss = CLL(eps=0.1, slack=0.1, lam=1e-3)
        for _ in range(20):
            logits, lip = bounded(x)
            optimizer.zero_grad()
            torch.autograd.backward(loss(logits, y, lip).mean() + loss.penalty(lip))
            optimizer.step()
        return model.eval()


MODEL_LAWS = laws_of_registry("models", MODELS, ModelExample)


@MODEL_LAWS.add()
@torch.no_grad()
def the_same_input_has_the_same_logits(example: ModelExample) -> None:
    """Call it twice in evaluation mode, where nothing may be random or count calls."""
    model, x = example.build().eval(), example.inputs(4)
    first, second = model(x), model(x)
    right = isinstance(first, Tensor) and first.shape[:1] == (4,)
    expect(right, f"expected logits of 4 samples, found {described(first)}")
    expect(torch.equal(first, second), "two calls with the same input return other logits")


@MODEL_LAWS.add()
def training_steps_give_finite_weights(example: ModelExample) -> None:
    """Train it for 20 steps of CLL, which follow its constants."""
    weights = list(example.trained().named_parameters())
    expect(bool(weights), "expected parameters to train, found none")
    for path, p in weights:
        expect(torch.isfinite(p).all(), f"{path}: not finite after 20 steps of training")


@MODEL_LAWS.add()
def no_attack_lands_inside_a_radius(example: ModelExample) -> None:
    """Move points on the sphere of the radius towards the rival, by its gradient."""
    model, shape = example.trained(), example.shape
    x = example.inputs(128 if math.prod(shape) < 1000 else 24, torch.float64)
    certificate = certifier(model, shape)(x)
    expect((certificate.radius > 0).any(), "no sample of a trained model has a radius above 0")
    judge = model.double()
    radius = (0.9999 * certificate.radius).view(-1, *[1] * len(shape))
    y = x + radius * _directions(torch.randn_like(x))
    for _ in range(51):
        y = y.detach().requires_grad_()
        gradient = _towards_rival(judge, y, certificate)
        away = (y - x + 0.3 * radius * _directions(gradient)).detach()
        length = away.flatten(1).norm(dim=1).clamp_min(1e-30).view(radius.shape)
        y = x + away * (radius / length)


def _towards_rival(judge: nn.Module, y: Tensor, certificate: Certificate) -> Tensor:
    """Return the gradient of the rival's logit over the prediction's; raise if a prediction changed."""
    f = judge(y)
    broken = (f.argmax(dim=1) != certificate.prediction) & (certificate.radius > 0)
    expect(not broken.any(), f"{int(broken.sum())} samples have another prediction within their radius")
    gap = f.gather(1, certificate.rival[:, None]) - f.gather(1, certificate.prediction[:, None])
    (gradient,) = torch.autograd.grad(gap.sum(), y)
    return gradient


def _directions(x: Tensor) -> Tensor:
    return nn.functional.normalize(x.flatten(1), dim=1).view_as(x)


@MODEL_LAWS.add()
def the_estimate_is_below_the_proof_and_close(example: ModelExample) -> None:
    """Compare both; training takes 1 for layers that are built to have it, and some have a little less."""
    model = example.trained().double()
    estimate = float(Bounded(model, example.shape).converge().max().detach())
    prover = certifier(model, example.shape)
    modules = dict(model.named_modules())
    layers = [
        layer for layer in prover.proved.bound.layers if isinstance(rule_of(modules[layer.path]), Built)
    ]
    less = math.prod(min(layer.upper, 1.0) for layer in layers)
    said = f"training estimates the constant {estimate:g}, the proof says {prover.k_f:g}"
    expect(estimate <= prover.k_f / less * (1 + 1e-12), said)
    expect(estimate >= prover.k_f * (1 - 1e-3), said)


@MODEL_LAWS.add()
def it_survives_a_file(example: ModelExample) -> None:
    """Save it, and make it again from its name, its arguments and the file of weights."""
    model, x = example.trained(), example.inputs(4)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "weights.safetensors"
        save(model, example.card, file)
        again = load(file)
    expect(torch.equal(again(x), model(x)), "the model that was saved and loaded returns other logits")
    expect(not again.training, "the model that was loaded is in training mode")


@MODEL_LAWS.add()
def it_takes_any_number_of_classes(example: ModelExample) -> None:
    """Make it with other numbers of classes, as recipes do for other data."""
    card = example.card
    for classes in _CLASSES:
        model = create(card.name, num_classes=classes, input_shape=card.input_shape, **card.arguments)
        logits, lip = Bounded(model, card.input_shape)(example.inputs(3))
        expected = (3, max(classes, 2))
        expect(
            logits.shape == expected, f"{classes} classes: expected logits {expected}, found {logits.shape}"
        )
        rows = lip.head.shape[0]
        expect(
            rows == expected[1], f"{classes} classes: expected {expected[1]} rows of the head, found {rows}"
        )


@MODEL_LAWS.add()
def it_runs_on_the_meta_device(example: ModelExample) -> None:
    """Check that it does nothing that only a CPU can do, and reads no value."""
    with torch.device("meta"):
        bounded = Bounded(example.build(), example.shape)
        logits, lip = bounded(torch.empty(3, *example.shape))
    devices = {t.device.type for t in (logits, lip.head, lip.max())}
    expect(devices == {"meta"}, f"expected everything on the meta device, found {', '.join(sorted(devices))}")
    rows = lip.rows(torch.zeros(3, dtype=torch.int64, device="meta"))
    expect(rows.shape == (3, example.card.num_classes), f"constants: found {described(rows)}")


@MODEL_LAWS.add()
def it_can_be_made_without_memory(example: ModelExample) -> None:
    """Make it on the meta device, as an estimate of its costs does."""
    with torch.device("meta"):
        model = example.build()
    for path, p in model.named_parameters():
        expect(p.is_meta, f"{path}: made on {p.device}, not on the device of the context")


@MODEL_LAWS.add()
def an_empty_piece_has_no_gradient(example: ModelExample) -> None:
    """Train on no samples, as a process does whose share of a small batch is empty."""
    model, whole = example.build(), example.build()
    logits, lip = Bounded(model, example.shape)(example.inputs(0))
    expect(logits.shape == (0, example.card.num_classes), f"expected no logits, found {described(logits)}")
    expect(torch.isfinite(lip.max()), "the constants of an empty batch are not finite")
    logits.sum().backward()
    Bounded(whole, example.shape)(example.inputs(4))[0].sum().backward()
    for (path, mine), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        # Processes that share a step wait for the gradient of every weight that has one elsewhere.
        expect((mine.grad is None) == (theirs.grad is None), f"{path}: a gradient only of some batches")
        expect(
            mine.grad is None or (mine.grad == 0).all(), f"{path}: no samples give a gradient other than 0"
        )
