"""Norms of all layers from below, followed together in blocks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lipcert import Bounded, PairLip
from lipcert.bounds.subspace import BLOCK
from lipcert.losses import CLL

SHAPE = (3, 8, 8)


def network(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 4, stride=2, padding=1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 5)).to(dtype)


def features(bounded: Bounded) -> float:
    return float(bounded.lip().features.detach())


def test_the_constant_and_its_gradient_are_those_of_single_layers() -> None:
    model = network(torch.float64)
    together, single = Bounded(model, SHAPE, estimate="block"), Bounded(model, SHAPE)
    single.set_vectors(dict(zip(single.vectors(), together.vectors().values(), strict=True)))
    found = []
    for bounded in (together, single):
        model.zero_grad()
        lip = bounded.lip()
        lip.features.backward()  # type: ignore[no-untyped-call]
        weights = [p for p in model.parameters() if p.grad is not None]
        found.append([lip.features.detach(), *(p.grad for p in weights if p.grad is not None)])
    assert len(found[0]) == 4
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_rounds_converge_from_below_to_the_norms() -> None:
    model = network(torch.float64)
    bounded, truth = Bounded(model, SHAPE, estimate="block"), Bounded(model, SHAPE)
    exact = float(truth.converge(1e-12, 3000).features.detach())
    generator = torch.Generator().manual_seed(1)
    fresh = [torch.randn(v.shape, generator=generator, dtype=v.dtype) for v in bounded.vectors().values()]
    bounded.set_vectors({s: v / v.norm() for s, v in zip(bounded.vectors(), fresh, strict=True)})
    before = features(bounded)
    bounded.iterate(60)
    assert before < 0.7 * exact
    assert exact * (1 - 1e-4) <= features(bounded) <= exact * (1 + 1e-9)


def test_a_round_follows_weights_closer_than_a_power_iteration() -> None:
    model = network(torch.float64)
    block = Bounded(model, SHAPE, estimate="block")
    power = Bounded(model, SHAPE, iterations=2, estimate="power")
    truth, ratios = Bounded(model, SHAPE), []
    generator = torch.Generator().manual_seed(2)
    for _ in range(10):
        with torch.no_grad():
            for p in model.parameters():
                p += 0.05 * p.std() * torch.randn(p.shape, generator=generator, dtype=p.dtype)
        block.iterate(1)
        power.iterate(2)
        exact = float(truth.converge(1e-9, 300).features.detach())
        ratios.append((1 - features(block) / exact, 1 - features(power) / exact))
    assert sum(a for a, _ in ratios) < sum(b for _, b in ratios)


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e25, torch.nan, torch.inf])
def test_odd_weights_leave_unit_vectors_and_are_forgotten(value: float) -> None:
    model = network()
    bounded = Bounded(model, SHAPE, estimate="block")
    kept = [p.detach().clone() for p in model.parameters()]
    before = features(bounded)
    for fill in (lambda p, _: p.fill_(value), lambda p, old: p.copy_(old)):
        with torch.no_grad():
            for p, old in zip(model.parameters(), kept, strict=True):
                fill(p, old)
        bounded.iterate(3)
        for vector in bounded.vectors().values():
            assert float(torch.linalg.vector_norm(vector)) == pytest.approx(1, abs=1e-5)
    assert features(bounded) > 0.9 * before


def test_models_with_branches_and_without_linear_layers() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.head(x + self.inner(x))
            return y

    torch.manual_seed(0)
    model = Residual()
    bounded, single = Bounded(model, (4,), estimate="block"), Bounded(model, (4,))
    assert features(bounded) == pytest.approx(features(single), rel=1e-5)
    plain = Bounded(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), (4,), estimate="block")
    _, lip = plain(torch.randn(2, 4))
    assert isinstance(lip, PairLip)
    assert float(lip.features) == 1


def test_the_space_is_part_of_the_state() -> None:
    model = network()
    bounded = Bounded(model, SHAPE, estimate="block")
    other = Bounded(network(), SHAPE, estimate="block")
    x, y, loss = torch.randn(8, *SHAPE), torch.arange(8) % 5, CLL(eps=0.1, slack=0.1, lam=1e-3)
    logits, lip = bounded(x)
    (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
    other.load_state_dict(bounded.state_dict())
    assert bounded.space is not None
    assert bounded.space.shape[1] == 3 * BLOCK
    bounded.iterate(2)
    other.iterate(2)
    assert torch.equal(bounded.lip().features, other.lip().features)
    assert "zeros" not in bounded.state_dict()
