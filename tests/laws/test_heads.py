"""What every registered head obeys, in networks of every family that takes one."""

from __future__ import annotations

import contextlib
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lipcert import Bounded, InputError, certifier
from lipcert.bounds.fidelity.snapshot import frozen_copy
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.loading import load
from lipcert.export import export_onnx, plain
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.losses import CLL
from lipcert.models import MODELS, ModelCard, save
from lipcert.models.heads import HEADS, make_head
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for
from lipcert.train.stacked.networks import Stacked
from lipcert.types import pairwise_distance
from tests.export.test_onnx_file import check

every_head = pytest.mark.parametrize("name", list(HEADS))

INPUTS = 8

# Heads that need not have orthogonal rows, so they take fewer features than classes.
ANY_WIDTH = {"linear", "lln"}

# Every architecture with an argument `head`.
FAMILIES = [name for name in MODELS if "head" in inspect.signature(MODELS[name].constructor).parameters]


def network(name: str, *between: nn.Module) -> nn.Sequential:
    """A dense layer and the head's example, with random numbers in all parameters."""
    torch.manual_seed(1)
    head = HEADS.example(name)
    return moved(nn.Sequential(nn.Linear(INPUTS, HEADS[name].example["features"]), *between, head))


def moved(model: nn.Sequential) -> nn.Sequential:
    """Change every parameter, so that nothing is as initialised."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return model.eval()


def rows(head: nn.Module, features: int) -> Tensor:
    """The matrix that a head executes, from its outputs alone."""
    zero = torch.zeros(features, dtype=torch.float64)
    return torch.func.jacrev(lambda v: head(v[None])[0])(zero)


def moons_like(name: str) -> tuple[nn.Module, ModelCard]:
    """A small network of a registered family, which a file can describe."""
    card = ModelCard("soc-mlp", 3, (2,), {"widths": [4, 8], "head": name})
    return moved(card.build()), card


@every_head
def test_the_proved_constants_are_those_of_a_dense_oracle(name: str) -> None:
    model = network(name).double()
    prover = certifier(model, (INPUTS,))
    dense = rows(model[-1], model[0].out_features).detach()
    truth = torch.linalg.matrix_norm(model[0].weight.detach(), 2) * pairwise_distance(dense, dense)
    off = ~torch.eye(len(truth), dtype=torch.bool)
    torch.testing.assert_close(prover.proved.pairs[off], truth[off], rtol=1e-9, atol=0)
    assert (prover.proved.pairs[off] >= truth[off] * (1 - 1e-14)).all()  # the oracle itself is rounded


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_head
def test_no_pair_of_points_beats_the_proved_constants(name: str, dtype: torch.dtype) -> None:
    model = network(name, nn.LeakyReLU(0.9)).to(dtype)
    nn.init.orthogonal_(model[0].weight)  # so that the constants can nearly be reached
    constants = certifier(model, (INPUTS,)).proved.pairs  # (N, N)
    exact = frozen_copy(model)  # the executed weights in float64, where differences hardly round
    x, move = torch.randn(2, 256, INPUTS, dtype=torch.float64)
    worst = torch.zeros_like(constants)
    for _ in range(30):
        move = move.detach().requires_grad_()
        change = exact(x + move) - exact(x)  # (B, N)
        slope = (change[:, :, None] - change[:, None]).abs() / move.norm(dim=1)[:, None, None]
        worst = torch.maximum(worst, slope.detach().amax(0))
        (gradient,) = torch.autograd.grad(slope.amax(dim=(1, 2)).sum(), move)
        move = move + nn.functional.normalize(gradient, dim=1)
    assert (worst <= constants * (1 + 1e-14)).all()  # the slopes themselves are rounded
    assert worst.max() >= 0.95 * constants.max()  # the search is worth something


@every_head
def test_training_carries_gradients_through_it(name: str) -> None:
    model = network(name, nn.LeakyReLU(0.3)).train()
    bounded, loss = Bounded(model, (INPUTS,)), CLL(eps=0.1, slack=0.1, lam=1e-3)
    logits, lip = bounded(torch.randn(16, INPUTS))
    (loss(logits, torch.arange(16) % 3, lip).mean() + loss.penalty(lip)).backward()
    for path, p in model.named_parameters():
        assert p.grad is not None, path
        assert p.grad.isfinite().all(), path
        assert p.grad.abs().max() > 0, path


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@every_head
def test_every_optimiser_trains_it(name: str, optimizer: str) -> None:
    bounded, loss = Bounded(network(name).train(), (INPUTS,)), CLL(eps=0.1, slack=0.1, lam=1e-3)
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
def test_the_estimate_of_training_is_the_proved_constant(name: str) -> None:
    model = network(name)
    estimate = float(Bounded(model, (INPUTS,)).converge().max().detach())
    assert estimate == pytest.approx(certifier(model, (INPUTS,)).k_f, rel=1e-5)


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
    prover = Certifier(network(name), (INPUTS,))
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


@pytest.mark.parametrize("float32", [False, True])
@every_head
def test_the_graph_of_an_export_gives_no_larger_radius(name: str, float32: bool) -> None:
    prover, x = Certifier(network(name), (INPUTS,)), torch.randn(50, INPUTS)
    logits, labels, radius = CertifiedGraph(prover, float32).eval()(x if float32 else x.double())
    certificate = prover(x, "float32" if float32 else "float64")
    torch.testing.assert_close(logits.double(), prover.logits(x), rtol=1e-4, atol=1e-5)
    assert torch.equal(labels, certificate.prediction)
    assert (radius <= certificate.radius).all()
    assert (radius > 0).any()


@every_head
def test_a_plain_copy_has_an_ordinary_layer(name: str) -> None:
    model, x = network(name), torch.randn(50, INPUTS)
    copy = plain(model)
    assert type(copy[-1]) is nn.Linear
    torch.testing.assert_close(copy(x), model(x))


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
@every_head
def test_any_number_of_classes_up_to_the_features(name: str, classes: int) -> None:
    model = nn.Sequential(nn.Linear(INPUTS, 7), make_head(name, 7, classes))
    logits, lip = Bounded(model, (INPUTS,))(torch.randn(3, INPUTS))
    assert logits.shape == (3, max(classes, 2))  # one logit f stands for [0, f]
    assert lip.head.shape == (max(classes, 2), 7)
    certificate = certifier(model.eval(), (INPUTS,))(torch.randn(20, INPUTS))
    assert (certificate.radius > 0).any()


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


@every_head
def test_it_can_be_made_without_memory(name: str) -> None:
    with torch.device("meta"):
        head = HEADS.example(name)
        assert head(torch.empty(2, HEADS[name].example["features"])).shape == (2, 3)
    assert all(t.is_meta for t in [*head.parameters(), *head.buffers()])


@every_head
def test_it_has_a_docstring_and_an_example_of_three_classes(name: str) -> None:
    assert HEADS[name].summary
    assert HEADS[name].example["num_classes"] == 3
