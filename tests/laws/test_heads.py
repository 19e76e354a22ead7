"""What every registered head obeys; in one network in `lipcert.laws.head_laws`, here in every family."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lipcert import Bounded, InputError, certifier
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.loading import load
from lipcert.export import export_onnx
from lipcert.laws import Law
from lipcert.laws.head_laws import HEAD_LAWS, INPUTS, HeadExample, moved
from lipcert.losses import CLL
from lipcert.models import MODELS, ModelCard, save
from lipcert.models.heads import HEADS, make_head
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for
from lipcert.train.stacked.networks import Stacked
from tests.export.test_onnx_file import check
from tests.laws.obeyed import every_law

every_head = pytest.mark.parametrize("name", list(HEADS))

# Heads that need not have orthogonal rows, so they take fewer features than classes.
ANY_WIDTH = {"linear", "lln"}

# Every architecture with an argument `head`.
FAMILIES = [name for name in MODELS if "head" in inspect.signature(MODELS[name].constructor).parameters]


@every_law(HEAD_LAWS)
def test_law(law: Law[HeadExample], make: Callable[[], HeadExample]) -> None:
    law(make())


def moons_like(name: str) -> tuple[nn.Module, ModelCard]:
    """A small network of a registered family, which a file can describe."""
    card = ModelCard("soc-mlp", 3, (2,), {"widths": [4, 8], "head": name})
    return moved(card.build()), card


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@every_head
def test_every_optimiser_trains_it(name: str, optimizer: str) -> None:
    bounded, loss = Bounded(HeadExample(name).network().train(), (INPUTS,)), CLL(eps=0.1, slack=0.1, lam=1e-3)
    steps = optimizer_for(bounded, OPTIMIZERS[optimizer].constructor)
    before = [p.detach().clone() for p in bounded.parameters()]
    x, y = torch.randn(16, INPUTS), torch.arange(16) % 3
    for _ in range(2):
        steps.zero_grad()
        logits, lip = bounded(x)
        (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
        steps.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, bounded.parameters(), strict=True))
    assert all(p.isfinite().all() for p in bounded.parameters())


@every_head
def test_it_survives_a_file(name: str, tmp_path: Path) -> None:
    model, card = moons_like(name)
    save(model, card, tmp_path / "model.safetensors")
    again, x = load(tmp_path / "model.safetensors"), torch.randn(20, 2)
    assert torch.equal(again(x), model(x))
    assert torch.equal(certifier(again, (2,))(x).radius, certifier(model, (2,))(x).radius)


@pytest.mark.parametrize("float32", [False, pytest.param(True, marks=pytest.mark.slow)])
@every_head
def test_it_is_exported_with_the_radius(name: str, float32: bool, tmp_path: Path) -> None:
    prover = Certifier(HeadExample(name).network(), (INPUTS,))
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


@every_head
def test_more_classes_than_features_are_taken_or_refused_by_name(name: str) -> None:
    refused = pytest.raises(InputError, match=f"{name} .* 4 features for 6 classes")
    with refused if name not in ANY_WIDTH else contextlib.nullcontext():
        model = nn.Sequential(nn.Linear(INPUTS, 4), make_head(name, 4, 6)).eval()
        assert certifier(model, (INPUTS,))(torch.randn(3, INPUTS)).radius.shape == (3,)


@pytest.mark.parametrize("family", FAMILIES)
@every_head
def test_every_family_takes_it(name: str, family: str) -> None:
    example: dict[str, Any] = {**MODELS[family].example, "head": name}
    model, shape = MODELS.create(family, **example), example.get("input_shape", (2,))
    logits, lip = Bounded(model, shape)(torch.randn(2, *shape))
    assert logits.shape == (2, 3)
    assert lip.max().isfinite()
    assert type(model[-1]) is type(HEADS.example(name))
    assert certifier(model.eval(), shape, effort="fast").k_f < torch.inf


@every_head
def test_a_stack_of_models_gives_what_each_gives(name: str) -> None:
    members = [Bounded(moons_like(name)[0], (2,)) for _ in range(2)]
    x = torch.randn(2, 6, 2)
    with torch.no_grad():
        expected = [member(own) for member, own in zip(members, x, strict=True)]
        logits, lip = Stacked(members)(x)
    for i, (own, constants) in enumerate(expected):
        torch.testing.assert_close(logits[i], own)
        torch.testing.assert_close(lip.head[i], constants.head)
