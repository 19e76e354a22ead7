"""Certificates of the float32 network as it runs: errors within their bound, classes within their radius."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from lipcert import InputError, certifier
from lipcert.bounds.evaluation import evaluate
from lipcert.bounds.proof import prove
from lipcert.bounds.tracing.program import trace
from lipcert.nn import Branches, Householder, L2NormPool2d, MinMax, Residual, Scale


def networks() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    torch.manual_seed(0)
    normed = nn.BatchNorm1d(12)
    nn.init.normal_(normed.weight)
    return {
        "mlp": (nn.Sequential(nn.Linear(6, 40), MinMax(), nn.Linear(40, 30), nn.ReLU()), (6,)),
        "deep": (nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(8, 8), nn.Tanh())]), (8,)),
        "blocks": (
            nn.Sequential(
                Residual(nn.Linear(6, 6), nn.GELU()),
                Branches(nn.Linear(6, 5), nn.Linear(6, 7)),
                normed,
                Scale(3.3),
                Householder(12),
            ).eval(),
            (6,),
        ),
        "conv": (
            nn.Sequential(
                nn.Conv2d(2, 8, 3, padding=1),
                MinMax(),
                nn.Conv2d(8, 6, 4, stride=2, padding=1, padding_mode="circular"),
                nn.AvgPool2d(2),
                nn.Flatten(),
                nn.Linear(24, 10),
            ),
            (2, 8, 8),
        ),
    }


@pytest.mark.parametrize("name", ["mlp", "deep", "blocks", "conv"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 100.0])
def test_float32_features_stay_within_their_bound_all_over_the_ball(name: str, scale: float) -> None:
    """Measured against float64, whose own error is a billion times smaller."""
    model, shape = networks()[name]
    exact = copy.deepcopy(model).double()
    program = trace(exact, shape)
    x = (scale * torch.randn(64, *shape)).double()
    with torch.no_grad():
        found = evaluate(program, prove(program), x, float32=True)
        assert found.deployed is not None
        for r in (0.0, 0.1 * scale, scale):
            step = torch.randn(64, *shape)
            step *= r / step.flatten(1).norm(dim=1).view(-1, *[1] * len(shape))
            near = (x.float() + step).float()
            distance = (near.double() - x).flatten(1).norm(dim=1)
            error = (model(near).double() - exact(near.double())).flatten(1).norm(dim=1)
            assert (error <= found.deployed.a + found.deployed.b * distance).all()
            assert (error > 0).any()


def trained(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 16), MinMax(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 3))


def near_boundary(model: nn.Module, a: Tensor, b: Tensor) -> Tensor:
    """Bisect in float32 until two neighbouring inputs are told apart."""
    for _ in range(60):
        middle = (a + b) / 2
        same = (model(middle).argmax(1) == model(a).argmax(1))[:, None]
        a, b = torch.where(same, middle, a), torch.where(same, b, middle)
    return a


def test_the_float32_network_keeps_its_class_within_the_radius() -> None:
    """On random points, and a few last bits from the boundary, where float32 decides by chance."""
    fooled = 0
    for seed in range(15):
        model = trained(seed).requires_grad_(False)
        ends = torch.randn(2, 256, 4)
        x = torch.cat([ends[0], near_boundary(model, ends[0], ends[1])])
        prover = certifier(model, (4,))
        certificate, careless = prover(x, rounding="float32"), prover(x)
        assert (certificate.radius <= careless.radius).all()
        for shrink in (0.0, 0.5, 0.999):
            step = torch.randn_like(x)
            step *= (shrink * certificate.radius / step.norm(dim=1))[:, None].float()
            near = x + step
            inside = (near.double() - x.double()).norm(dim=1) < certificate.radius
            assert (model(near).argmax(1) == certificate.prediction)[inside].all()
        here = model(x).argmax(1) != careless.prediction
        fooled += int((here & (careless.radius > 0)).sum())
    assert fooled > 0  # float32 does disagree with what float64 certifies, so the difference is real


def test_it_costs_little_where_margins_are_not_tiny() -> None:
    prover = certifier(trained(0), (4,))
    x = torch.randn(500, 4)
    careful, usual = prover(x, rounding="float32").radius, prover(x).radius
    assert (careful <= usual).all()
    assert float((usual - careful).max()) < 1e-4


def test_other_weights_than_float32_are_refused() -> None:
    with pytest.raises(InputError, match="float32 weights"):
        certifier(trained(0).double(), (4,))(torch.randn(2, 4), rounding="float32")


def test_sums_too_long_for_float32_are_refused() -> None:
    model = nn.Sequential(nn.Linear(140_000, 2), nn.Linear(2, 2))
    with pytest.raises(InputError, match="0: float32 sums of more than"):
        certifier(model, (140_000,))(torch.randn(1, 140_000), rounding="float32")


def test_networks_that_overflow_float32_are_not_certified_for_it() -> None:
    layers = [nn.Linear(2, 2, bias=False) for _ in range(4)]
    for layer, size in zip(layers, (1e30, 1e30, 1e-30, 1e-30), strict=True):
        layer.weight.data.copy_(size * torch.eye(2))
    model, x = nn.Sequential(*layers), torch.tensor([[1.0, 0.3], [0.1, 0.9]])
    assert not model(x).isfinite().all()
    prover = certifier(model, (2,))
    assert (prover(x).radius > 0.4).all()  # in exact arithmetic it is a fine network
    assert (prover(x, "float32").radius == 0).all()


def test_a_certificate_ends_where_float32_may_overflow() -> None:
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 2, bias=False))
    model[0].weight.data.fill_(1.0)
    model[1].weight.data.copy_(torch.tensor([[1.0], [0.0]]))
    x = torch.tensor([[1e30]])
    prover = certifier(model, (1,))
    assert float(prover(x).radius) > 1e29
    assert float(prover(x, "float32").radius) == 0
    near = torch.tensor([[1e17]])
    assert 1e16 < float(prover(near, "float32").radius) <= 1.2e18


def test_squares_that_underflow_float32_are_not_certified_for_it() -> None:
    model = nn.Sequential(L2NormPool2d(), nn.Flatten(), nn.Linear(1, 2))
    model[2].weight.data.copy_(torch.tensor([[1.0], [0.0]]))
    model[2].bias.data.copy_(torch.tensor([0.0, 1e-24]))
    x = torch.full((1, 1, 2, 2), 5e-24)
    prover = certifier(model, (1, 2, 2))
    assert int(model(x).argmax()) != int(prover(x).prediction)
    assert float(prover(x, "float32").radius) == 0
