"""What every registered model obeys."""

from __future__ import annotations

import copy
import math
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from lipcert import Bounded, InputError, certifier
from lipcert.bounds.contract import rule_of
from lipcert.certificates.loading import load
from lipcert.losses import CLL
from lipcert.models import MODELS, ModelCard, create, save
from lipcert.nn.bases.derived import Built

every_model = pytest.mark.parametrize("name", list(MODELS))


def card(name: str) -> ModelCard:
    arguments = dict(MODELS[name].example)
    classes = arguments.pop("num_classes", 3)
    return ModelCard(name, classes, tuple(arguments.pop("input_shape", (2,))), arguments)


def trained(name: str) -> nn.Module:
    """A copy of the model after a few steps of CLL on random points, so that nothing is as initialised."""
    return copy.deepcopy(_trained(name))


@cache
def _trained(name: str) -> nn.Module:
    torch.manual_seed(0)
    about = card(name)
    model = about.build()
    bounded = Bounded(model, about.input_shape)
    optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
    x, y = torch.randn(64, *about.input_shape), torch.randint(about.num_classes, (64,))
    loss = CLL(eps=0.1, slack=0.1, lam=1e-3)
    for _ in range(20):
        logits, lip = bounded(x)
        optimizer.zero_grad()
        (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    return model.eval()


@every_model
def test_no_attack_lands_inside_a_radius(name: str) -> None:
    model, about = trained(name), card(name)
    samples = 128 if math.prod(about.input_shape) < 1000 else 24
    x = torch.randn(samples, *about.input_shape, dtype=torch.float64)
    certificate = certifier(model, about.input_shape)(x)
    assert (certificate.radius > 0).any()
    judge = model.double()
    radius = (0.9999 * certificate.radius).view(-1, *[1] * len(about.input_shape))
    y = x + radius * nn.functional.normalize(torch.randn_like(x).flatten(1), dim=1).view_as(x)
    for _ in range(51):  # towards the rival, on the sphere of the radius
        y = y.detach().requires_grad_()
        f = judge(y)
        broken = f.argmax(dim=1) != certificate.prediction
        assert not (broken & (certificate.radius > 0)).any()
        gap = f.gather(1, certificate.rival[:, None]) - f.gather(1, certificate.prediction[:, None])
        (gradient,) = torch.autograd.grad(gap.sum(), y)
        away = (
            y - x + 0.3 * radius * nn.functional.normalize(gradient.flatten(1), dim=1).view_as(x)
        ).detach()
        length = away.flatten(1).norm(dim=1).clamp_min(1e-30).view(radius.shape)
        y = x + away * (radius / length)


@every_model
def test_the_estimate_is_below_the_proof_and_close(name: str) -> None:
    model, about = trained(name).double(), card(name)
    estimate = float(Bounded(model, about.input_shape).converge().max())
    prover = certifier(model, about.input_shape)
    # Training takes 1 for layers that are built to have it; some have a little less.
    modules = dict(model.named_modules())
    layers = [
        layer for layer in prover.proved.bound.layers if isinstance(rule_of(modules[layer.path]), Built)
    ]
    less = math.prod(min(layer.upper, 1.0) for layer in layers)
    assert estimate <= prover.k_f / less * (1 + 1e-12)
    assert estimate >= prover.k_f * (1 - 1e-3)


@every_model
def test_it_survives_a_file(name: str, tmp_path: Path) -> None:
    model, about = trained(name), card(name)
    save(model, about, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    x = torch.randn(4, *about.input_shape)
    assert torch.equal(again(x), model(x))
    assert not again.training


@every_model
@pytest.mark.parametrize("classes", [1, 2, 7])
def test_any_number_of_classes(name: str, classes: int) -> None:
    about = card(name)
    model = create(name, num_classes=classes, input_shape=about.input_shape, **about.arguments)
    logits, lip = Bounded(model, about.input_shape)(torch.randn(3, *about.input_shape))
    assert logits.shape == (3, max(classes, 2))
    assert lip.head.shape[0] == max(classes, 2)


@every_model
def test_it_runs_on_the_meta_device(name: str) -> None:
    about = card(name)
    with torch.device("meta"):
        model = about.build()
        bounded = Bounded(model, about.input_shape)
        logits, lip = bounded(torch.empty(3, *about.input_shape))
    assert logits.device.type == lip.head.device.type == lip.max().device.type == "meta"
    assert lip.rows(torch.zeros(3, dtype=torch.int64, device="meta")).shape == (3, about.num_classes)


@every_model
def test_it_can_be_made_without_memory(name: str) -> None:
    about = card(name)
    with torch.device("meta"):
        model = about.build()
    assert all(p.is_meta for p in model.parameters())


@every_model
@pytest.mark.parametrize("shape", [(), (0, 8, 8), (1, 0, 8), (-1,)])
def test_an_input_without_size_is_named(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="input_shape"):
        create(name, num_classes=2, input_shape=shape)


@every_model
def test_an_empty_piece_has_no_gradient(name: str) -> None:
    """A process gets no sample of a batch that is smaller than the number of processes."""
    about = card(name)
    model = about.build()
    logits, lip = Bounded(model, about.input_shape)(torch.randn(0, *about.input_shape))
    assert logits.shape == (0, about.num_classes)
    assert torch.isfinite(lip.max())
    logits.sum().backward()
    whole = about.build()
    Bounded(whole, about.input_shape)(torch.randn(4, *about.input_shape))[0].sum().backward()
    for (name, mine), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        # Processes that share a step wait for the gradient of every weight that has one elsewhere.
        assert (mine.grad is None) == (theirs.grad is None), name
        assert mine.grad is None or (mine.grad == 0).all(), name
