"""Local bounds: never above the global ones, and no point of the ball breaks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert import Bounded, InputError
from lipcert.bounds.proof import prove
from lipcert.bounds.provers.factorisation import gram_uppers
from lipcert.bounds.tracing.program import trace
from lipcert.certificates import local as by_balls
from lipcert.certificates.local import local_bound
from lipcert.commands.work.certify_model import verify_file
from lipcert.losses import CLL
from lipcert.nn import MinMax, Residual
from lipcert.recipes import execute, read_recipe


def clipped(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(4, 16),
        nn.ReLU(),
        nn.Linear(16, 12),
        nn.ReLU6(),
        nn.Linear(12, 8),
        nn.ReLU(),
        nn.Linear(8, 3),
    )


def convolutional(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1, padding_mode="replicate" if seed % 2 else "zeros"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, 10),
        nn.Hardtanh(),
        nn.Linear(10, 3),
    )


CASES = {"dense": (clipped, (4,)), "convolutional": (convolutional, (1, 4, 4))}


def on_ball(x: Tensor, radius: float, many: int) -> Tensor:
    """(many, B, …) points of every sample's ball, half of them on its border."""
    step = torch.randn(many, *x.shape, dtype=x.dtype)
    length = step.flatten(2).norm(dim=2)
    size = radius * torch.rand(many, len(x), dtype=x.dtype).pow(0.25)
    size[::2] = radius
    return x + step * (size / length).view(many, len(x), *[1] * (x.ndim - 1))


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(8))
@torch.no_grad()
def test_no_pair_of_points_of_a_ball_beats_its_bound(kind: str, seed: int) -> None:
    make, shape = CASES[kind]
    model, radius = make(seed).double(), 0.3
    x = torch.randn(12, *shape, dtype=torch.float64)
    program, _ = trace(model, shape).split_head()
    bound = prove(program)
    local = local_bound(program, bound, x, radius)
    features = model[:-1]
    points = on_ball(x, radius, 400)
    values = features(points.flatten(0, 1)).view(400, 12, -1)
    moved = (values[:200] - values[200:]).norm(dim=2)
    distance = (points[:200] - points[200:]).flatten(2).norm(dim=2)
    assert (moved <= local.constant * distance * (1 + 1e-12)).all()
    assert (local.constant <= bound.value).all()
    still = local.active == 0
    assert ((values - features(x)).abs().amax(0)[still] == 0).all()
    assert still.any() or kind == "convolutional"
    assert (local.constant < 0.999 * bound.value).any()


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_certificates_grow_and_hold(kind: str, seed: int) -> None:
    make, shape = CASES[kind]
    model = make(seed)
    x = torch.randn(64, *shape)
    certifier = lipcert.certifier(model, shape)
    everywhere = certifier(x)
    ball = 1.2 * float(everywhere.radius.median())
    here = certifier(x, local=ball)
    assert (here.radius >= everywhere.radius).all()
    grown = here.radius > everywhere.radius
    assert grown.any()
    assert (here.radius[grown] <= ball).all()
    model = model.double()
    points = x.double() + (on_ball(torch.zeros_like(x.double()), 1.0, 400)) * (
        0.9999 * here.radius.view(-1, *[1] * len(shape))
    )
    with torch.no_grad():
        found = model(points.flatten(0, 1)).argmax(1).view(400, 64)
    assert (found == here.prediction).all()


def test_the_best_of_several_balls_counts() -> None:
    torch.manual_seed(0)
    model, x = clipped(0), torch.randn(64, 4)
    certifier = lipcert.certifier(model, (4,))
    balls = (0.02, 0.05, 0.1)
    both = certifier(x, local=balls)
    single = torch.stack([certifier(x, local=ball).radius for ball in balls])
    assert torch.equal(both.radius, single.amax(0))
    assert both.balls == balls
    assert (both.radius > single).any(dim=1).all()  # none of them is the best for all samples


def test_a_large_ball_is_the_global_bound() -> None:
    model, x = clipped(0), torch.randn(8, 4)
    certifier = lipcert.certifier(model, (4,))
    torch.testing.assert_close(certifier(x, local=1e6).radius, certifier(x).radius, rtol=1e-12, atol=0)


def test_activations_without_constant_parts_keep_the_global_bound() -> None:
    model, x = nn.Sequential(nn.Linear(4, 8), MinMax(), nn.Linear(8, 3)), torch.randn(8, 4)
    certifier = lipcert.certifier(model, (4,))
    ball = float(certifier(x).radius.max())
    torch.testing.assert_close(certifier(x, local=ball).radius, certifier(x).radius)


@pytest.mark.parametrize("local", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bad_radius_is_named(local: float) -> None:
    with pytest.raises(InputError, match="local"):
        lipcert.certifier(clipped(0), (4,))(torch.randn(2, 4), local=local)


def test_what_has_no_local_bound_is_named() -> None:
    x = torch.randn(2, 4)
    with pytest.raises(InputError, match="float32"):
        lipcert.certifier(clipped(0), (4,))(x, rounding="float32", local=0.1)
    model = nn.Sequential(Residual(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2))
    with pytest.raises(InputError, match="sequence"):
        lipcert.certifier(model, (4,))(x, local=0.1)


def test_the_bounds_of_a_batch_are_those_of_its_matrices() -> None:
    a = (
        torch.rand(20, 6, 9, dtype=torch.float64)
        * torch.logspace(-8, 0, 20, dtype=torch.float64)[:, None, None]
    )
    a[3] = 0
    a[4, 2:] = 0
    found = gram_uppers(a @ a.mT, terms=9, absolute=a.norm(dim=(1, 2)) ** 2)
    truth = torch.linalg.matrix_norm(a, 2) ** 2
    assert (found >= truth * (1 - 1e-15)).all()
    assert (found <= truth * (1 + 1e-9) + 1e-290).all()


@pytest.mark.parametrize("kind", CASES)
def test_the_training_estimate_is_below_the_proof_by_balls_and_close(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_balls, "box_after", lambda step, before: None)  # a training follows no boxes
    make, shape = CASES[kind]
    model, x = make(0).double(), torch.randn(32, *shape, dtype=torch.float64)
    bounded = Bounded(model, shape, local=0.3)
    bounded.converge()
    logits, lip = bounded.eval()(x)
    torch.testing.assert_close(logits, model(x))
    program, _ = trace(model, shape).split_head()
    proof = local_bound(program, prove(program), x, 0.3)
    assert lip.features.shape == (32,)
    assert (lip.features <= proof.constant * (1 + 1e-9)).all()
    assert float((lip.features / proof.constant).median()) > 0.97
    loss = CLL(eps=0.3, slack=0.1, lam=1e-3, detach_constant=False)
    (loss(logits, torch.zeros(32, dtype=torch.long), lip).mean() + loss.penalty(lip)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_training_with_local_constants(tmp_path: Path) -> None:
    changes = [
        "train.local=0.15",
        "loss={name: gloro, eps: 0.15}",
        "schedule.loss.slack=null",
        "certify.local=true",
        "certify.radii=[0.05, 0.15]",
    ]
    run = execute(read_recipe("moons-cll", "smoke", changes), tmp_path / "run")
    found = json.loads(run.certificate.read_text())
    assert found["local"] == pytest.approx([0.05, 0.15])
    assert all(ball > radius for ball, radius in zip(found["local"], (0.05, 0.15), strict=True))
    assert all(check.holds is True for check in verify_file(str(run.path), None) if check.is_claim)


@pytest.mark.parametrize("local", [0.0, -1.0, float("nan")])
def test_a_bad_radius_in_training_is_named(local: float) -> None:
    with pytest.raises(InputError, match="local"):
        Bounded(clipped(0), (4,), local=local)


@pytest.mark.parametrize("scale", [1e-170, 1e-300, 1e305])
@torch.no_grad()
def test_weights_whose_squares_leave_the_floats_keep_their_units(scale: float) -> None:
    """A unit with tiny weights moves, if little: nothing near its edge may count as constant."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 2)).double()
    model[0].weight.mul_(scale)
    x = 1e-3 * torch.randn(6, 3, dtype=torch.float64)
    program, _ = trace(model, (3,)).split_head()
    bound = prove(program)
    local = local_bound(program, bound, x, 1.0)  # every unit changes sign on the ball
    assert (local.active == 1).all()
    assert torch.isfinite(local.constant).all()
    assert (local.constant > 0).all()
    assert (local.constant <= bound.value).all()


class Unused(nn.Module):
    """Computes something that it does not return."""

    def __init__(self, after: bool) -> None:
        super().__init__()
        self.a, self.b, self.head = (nn.Linear(2, 2, bias=False) for _ in range(3))
        self.relu, self.after = nn.ReLU(), after
        for layer, size in ((self.a, 1.0), (self.b, 1e-3), (self.head, 1.0)):
            layer.weight.data.copy_(size * torch.eye(2))

    def forward(self, x: Tensor) -> Tensor:
        u = self.a(x)
        if not self.after:
            self.b(x)
        y: Tensor = self.head(self.relu(u))
        if self.after:
            self.b(y)
        return y


@pytest.mark.parametrize("after", [False, True])
def test_what_is_not_returned_takes_no_part(after: bool) -> None:
    model, x = Unused(after), torch.tensor([[1.0, 0.9]])
    certifier = lipcert.certifier(model, (2,))
    assert float(certifier(x, local=5.0).radius) == pytest.approx(0.1 / 2**0.5, rel=1e-6)
    torch.testing.assert_close(Bounded(model, (2,), local=0.1)(x)[0], model(x))


def test_a_branch_is_refused_before_training() -> None:
    with pytest.raises(InputError, match="one sequence"):
        Bounded(nn.Sequential(Residual(nn.Linear(4, 4)), nn.Linear(4, 2)), (4,), local=0.1)
