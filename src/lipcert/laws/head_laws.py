"""The laws of every head, as the last layer of a small network."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.bounds.fidelity.snapshot import frozen_copy
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.export import plain
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.laws.law import DTYPES, described, expect, expect_close, laws_of_registry
from lipcert.losses import CLL
from lipcert.models.heads import HEADS, make_head
from lipcert.types import pairwise_distance

# The inputs of the network.
INPUTS = 8

_CLASSES = (1, 2, 3, 7)


class HeadExample:
    """A registered head with the arguments of its example."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.features = int(HEADS[name].example["features"])
        self.build()

    def build(self) -> nn.Module:
        """Make the head."""
        return HEADS.example(self.name)

    def network(self, *between: nn.Module) -> nn.Sequential:
        """Return a dense layer and the head, with random numbers in all parameters."""
        torch.manual_seed(1)
        head = self.build()
        return moved(nn.Sequential(nn.Linear(INPUTS, self.features), *between, head))


HEAD_LAWS = laws_of_registry("heads", HEADS, HeadExample)


def moved(model: nn.Sequential) -> nn.Sequential:
    """Change every parameter, so that nothing is as initialised."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return model.eval()


def rows(head: nn.Module, features: int) -> Tensor:
    """Return the matrix that a head executes, from its outputs alone."""
    zero = torch.zeros(features, dtype=torch.float64)
    matrix: Tensor = torch.func.jacrev(lambda v: head(v[None])[0])(zero)
    return matrix


@HEAD_LAWS.add()
def the_proved_constants_are_those_of_a_dense_oracle(example: HeadExample) -> None:
    """Compare constants with rows that are read from the head's outputs."""
    model = example.network().double()
    prover = certifier(model, (INPUTS,))
    dense = rows(model[-1], example.features).detach()
    first = cast(nn.Linear, model[0]).weight.detach()
    truth = torch.linalg.matrix_norm(first, 2) * pairwise_distance(dense, dense)
    off = ~torch.eye(len(truth), dtype=torch.bool)
    found = prover.proved.pairs
    expect_close(found[off], truth[off], "constants of pairs are not those of the rows", rtol=1e-9, atol=0.0)
    above = (found[off] >= truth[off] * (1 - 1e-14)).all()  # the oracle itself is rounded
    expect(above, "a proved constant is below the distance of two rows")


@HEAD_LAWS.add()
def no_pair_of_points_beats_the_proved_constants(example: HeadExample) -> None:
    """Search the steepest slopes, in either precision; they come close to the largest constant."""
    for dtype in DTYPES:
        model = example.network(nn.LeakyReLU(0.9)).to(dtype)
        nn.init.orthogonal_(cast(nn.Linear, model[0]).weight)  # so that the constants can nearly be reached
        constants = certifier(model, (INPUTS,)).proved.pairs  # (N, N)
        worst = _worst_slopes(model, constants)
        above = worst / constants.clamp_min(1e-300)
        held = (worst <= constants * (1 + 1e-14)).all()  # the slopes themselves are rounded
        expect(held, f"a slope of {dtype} is {float(above.max()):g} times the proved constant")
        part = float(worst.max() / constants.max())
        expect(part >= 0.95, f"the steepest slope found is only {part:g} of the proved constant")


def _worst_slopes(model: nn.Sequential, constants: Tensor) -> Tensor:
    """Search the steepest slope of every difference of two logits: (N, N)."""
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
    return worst


@HEAD_LAWS.add()
def training_carries_gradients_through_it(example: HeadExample) -> None:
    """Check the gradient of every parameter before it and in it."""
    model = example.network(nn.LeakyReLU(0.3)).train()
    bounded, loss = Bounded(model, (INPUTS,)), CLL(eps=0.1, slack=0.1, lam=1e-3)
    logits, lip = bounded(torch.randn(16, INPUTS))
    torch.autograd.backward(loss(logits, torch.arange(16) % 3, lip).mean() + loss.penalty(lip))
    for path, p in model.named_parameters():
        good = p.grad is not None and bool(p.grad.isfinite().all()) and float(p.grad.abs().max()) > 0
        expect(good, f"{path}: expected a finite gradient that is not 0")


@HEAD_LAWS.add()
def the_estimate_of_training_is_the_proved_constant(example: HeadExample) -> None:
    """Compare both, up to the error of a converged power iteration."""
    model = example.network()
    estimate = float(Bounded(model, (INPUTS,)).converge().max().detach())
    truth = certifier(model, (INPUTS,)).k_f
    close = abs(estimate - truth) <= 1e-5 * truth
    expect(close, f"training estimates the constant {estimate:g}, the proof says {truth:g}")


@HEAD_LAWS.add()
@torch.no_grad()
def the_graph_of_an_export_gives_no_larger_radius(example: HeadExample) -> None:
    """Compare graph and certificate in float64 and in float32."""
    for rounding in DTYPES:
        float32 = rounding == torch.float32
        prover, x = Certifier(example.network(), (INPUTS,)), torch.randn(50, INPUTS)
        logits, labels, radius = CertifiedGraph(prover, float32).eval()(x.to(rounding))
        certificate = prover(x, "float32" if float32 else "float64")
        said = f"the exported graph of {rounding}"
        expect_close(logits.double(), prover.logits(x), f"{said} has other logits", rtol=1e-4, atol=1e-5)
        expect(torch.equal(labels, certificate.prediction), f"{said} has other predictions")
        expect((radius <= certificate.radius).all(), f"{said} gives a larger radius than the certificate")
        expect((radius > 0).any(), f"{said} gives no radius above 0")


@HEAD_LAWS.add()
@torch.no_grad()
def a_plain_copy_has_an_ordinary_layer(example: HeadExample) -> None:
    """Check that the copy ends in an nn.Linear with the same outputs."""
    model, x = example.network(), torch.randn(50, INPUTS)
    copy = plain(model)
    last = type(cast(nn.Sequential, copy)[-1])
    expect(last is nn.Linear, f"expected the plain copy to end in nn.Linear, found {last.__name__}")
    expect_close(copy(x), model(x), "the plain copy has other outputs")


@HEAD_LAWS.add()
def it_takes_any_number_of_classes_up_to_the_features(example: HeadExample) -> None:
    """Make it for other numbers of classes; one logit f stands for [0, f]."""
    for classes in _CLASSES:
        model = nn.Sequential(nn.Linear(INPUTS, 7), make_head(example.name, 7, classes))
        logits, lip = Bounded(model, (INPUTS,))(torch.randn(3, INPUTS))
        expected = (3, max(classes, 2))
        expect(
            logits.shape == expected, f"{classes} classes: expected logits {expected}, found {logits.shape}"
        )
        expect(lip.head.shape == (expected[1], 7), f"{classes} classes: rows are {described(lip.head)}")
        certificate = certifier(model.eval(), (INPUTS,))(torch.randn(20, INPUTS))
        expect((certificate.radius > 0).any(), f"{classes} classes: no sample has a radius above 0")


@HEAD_LAWS.add()
def it_can_be_made_without_memory(example: HeadExample) -> None:
    """Make it on the meta device, as an estimate of its costs does."""
    with torch.device("meta"):
        head = example.build()
        head(torch.empty(2, example.features))
    for t in [*head.parameters(), *head.buffers()]:
        expect(t.is_meta, f"a tensor is made on {t.device}, not on the device of the context")


@HEAD_LAWS.add()
def it_has_a_docstring_and_an_example_of_three_classes(example: HeadExample) -> None:
    """Check what tables show, and what families are tested with."""
    expect(bool(HEADS[example.name].summary), "expected a docstring, found none")
    classes = HEADS[example.name].example.get("num_classes")
    expect(classes == 3, f"expected an example with num_classes=3, found {classes!r}")
