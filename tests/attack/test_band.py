"""Attacks on certified networks: they find nothing inside a radius, and would if there were something."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lipcert import InputError, certifier
from lipcert.attack import ATTACKS, Band, attack
from lipcert.attack.margin import towards_rival
from lipcert.attack.rounding import among_rounding_errors
from lipcert.attack.target import Target
from lipcert.certificates import local as local_bound
from lipcert.certificates import proved_model
from lipcert.data import Dataset
from lipcert.laws.model_laws import ModelExample
from lipcert.nn import MinMax
from lipcert.recipes import execute, read_recipe

# Brendel-Bethge compiles for a minute; it has a test of its own.
QUICK = tuple(name for name in ATTACKS if name != "brendel-bethge")
WIDE = (-100.0, 100.0)


def images(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3))


NETWORKS = {
    "linear": lambda: (nn.Linear(6, 3), (6,)),
    "dense": lambda: (nn.Sequential(nn.Linear(6, 16), MinMax(), nn.Linear(16, 3)), (6,)),
    "five classes": lambda: (nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5)), (6,)),
    "one logit": lambda: (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)), (6,)),
    "convolution": lambda: (images(nn.Conv2d(2, 4, 3, 2, 1), MinMax(), nn.AvgPool2d(2)), (2, 6, 6)),
    "trained": lambda: (ModelExample("mlp").trained(), (2,)),
}


def dataset(model: nn.Module, shape: tuple[int, ...], samples: int = 24) -> Dataset:
    x = torch.rand(samples, *shape)
    with torch.no_grad():
        model(x)  # lazy layers settle
    return Dataset(x, torch.arange(samples) % 2, tuple("abcde"))


def attacked(name: str, rounding: str, attacks: tuple[str, ...]) -> Band:
    model, shape = NETWORKS[name]()
    data = dataset(model, shape)
    return attack(model, certifier(model, shape), data, [0.05, 0.3], "smoke", rounding, attacks)  # type: ignore[arg-type]


@pytest.mark.parametrize("rounding", ["float64", "float32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_attack_breaks_a_certificate(name: str, rounding: str) -> None:
    band = attacked(name, rounding, QUICK)
    assert band.broken == []
    assert (band.radius > 0).any()
    assert (band.nearest > band.radius).all()
    assert len(band.correct) == 16
    for eps in (0.0, 0.05, 0.3):
        assert band.certified(eps) <= band.empirical(eps) <= band.clean()


@pytest.mark.parametrize("seed", range(3))
def test_no_attack_breaks_a_local_certificate(seed: int) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU6(), nn.Linear(16, 3))
    data, prover = dataset(model, (6,)), certifier(model, (6,))
    everywhere = attack(model, prover, data, [0.05], "smoke", "float64", ("margin",))
    balls = [q * float(everywhere.radius.median()) for q in (0.5, 1.2, 2.0)]
    band = attack(model, prover, data, [0.05], "smoke", "float64", QUICK, local=balls)
    assert band.broken == []
    assert (band.radius > everywhere.radius).any()
    assert (band.nearest > band.radius).all()


def test_local_constants_that_are_too_small_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = local_bound.masked_norm
    monkeypatch.setattr(local_bound, "masked_norm", lambda *given: real(*given) / 3)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
    data, prover = dataset(model, (6,)), certifier(model, (6,))
    assert attack(model, prover, data, [0.05], "smoke", "float64", ("margin",), local=[5.0]).broken


@pytest.mark.slow
def test_brendel_bethge_comes_close_to_the_truth_of_a_linear_network() -> None:
    band = attacked("linear", "float64", ("deepfool", "brendel-bethge"))
    assert band.broken == []
    reached = torch.isfinite(band.nearest)
    assert reached.any()
    inside = reached & (band.nearest < 0.3)  # others may lie beyond the bounds of the inputs
    assert (band.nearest[inside] <= 1.5 * band.radius[inside]).any()


def test_half_the_constants_are_caught_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real = proved_model._product_up
    monkeypatch.setattr(proved_model, "_product_up", lambda spread, k: real(spread, k) / 2)
    for name in ("linear", "dense"):
        assert attacked(name, "float64", ("margin",)).broken


def tight(rounding: str) -> tuple[nn.Module, Tensor]:
    """A linear network, whose certified radius is the distance to its boundary."""
    torch.manual_seed(3)
    return nn.Linear(12, 4), torch.rand(256, 12)


def claims_broken(target: Target) -> int:
    broken = torch.zeros(len(target), dtype=torch.bool)
    for points in among_rounding_errors(target, steps=60, tries=64):
        broken |= target.broken(points)
    return int(broken.sum())


def test_the_search_among_rounding_errors_breaks_certificates_that_ignore_them() -> None:
    model, x = tight("float32")
    prover = certifier(model, (12,))
    sound = Target.of(model, prover, x, "float32", WIDE)
    assert claims_broken(sound) == 0
    # The radius of the exact network, claimed for the float32 one.
    assert claims_broken(replace(sound, radius=prover(x, "float64").radius)) > 0


@pytest.mark.slow
def test_a_radius_a_little_too_large_is_broken_in_float64() -> None:
    model, x = tight("float64")
    sound = Target.of(model, certifier(model, (12,)), x, "float64", WIDE)
    assert claims_broken(sound) == 0
    assert claims_broken(replace(sound, radius=sound.radius * (1 + 1e-12))) > 0


def test_distances_are_compared_exactly() -> None:
    model = nn.Linear(2, 2).double()
    model.weight.data = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()
    model.bias.data.zero_()
    x = torch.tensor([[1.0, 0.0]]).double()
    target = Target.of(model, certifier(model, (2,)), x, "ignored", WIDE)
    beyond = torch.tensor([[-0.1, 0.0]]).double()
    distance = target.distance(beyond)
    assert target.broken(beyond).tolist() == [False]
    assert replace(target, radius=distance).broken(beyond).tolist() == [True]
    less = torch.nextafter(distance, torch.zeros(1).double())
    assert replace(target, radius=less).broken(beyond).tolist() == [False]


def test_what_is_not_certified_cannot_be_broken() -> None:
    """float32 ties where float64 does not: radius 0 claims nothing."""
    model = nn.Linear(2, 2, bias=False)
    model.weight.data = torch.tensor([[1.0, 0.0], [1.0, 2.0**-30]])
    x = torch.ones(4, 2)
    target = Target.of(model, certifier(model, (2,)), x, "float32", WIDE)
    assert target.radius.tolist() == [0.0] * 4
    assert target.flipped(x).any()
    assert not target.broken(x).any()


def test_the_margin_attack_reaches_the_boundary_of_a_linear_network() -> None:
    model, x = tight("float64")
    target = Target.of(model, certifier(model, (12,)), x, "float64", WIDE)
    assert target.flipped(towards_rival(target, 1.001 * target.radius, steps=50)).float().mean() > 0.99


def test_a_constant_network_has_nothing_to_attack() -> None:
    model = nn.Linear(3, 2)
    nn.init.zeros_(model.weight)
    model.bias.data = torch.tensor([1.0, 0.0])
    data = Dataset(torch.randn(8, 3), torch.arange(8) % 2, ("a", "b"))
    band = attack(model, certifier(model, (3,)), data, [0.1], "smoke", attacks=("margin", "rounding", "pgd"))
    assert torch.isinf(band.radius).all()
    assert band.broken == []


def test_logits_that_are_not_finite_are_an_error() -> None:
    model = nn.Linear(3, 2).double()
    nn.init.constant_(model.weight, 1e308)
    data = Dataset(torch.full((2, 3), 1e10).double(), torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(InputError, match="not finite"):
        attack(model, certifier(model, (3,)), data, [0.1], "smoke")


@pytest.mark.parametrize(
    ("package", "name"), [("foolbox", "deepfool"), ("numba", "pgd"), ("pyautoattack.autopgd_base", "apgd-t")]
)
def test_without_a_package_the_extra_is_named(
    package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"pip install 'lipcert\[attack\]'"):
        attacked("linear", "float64", (name,))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("attack") / "run"
    execute(read_recipe("moons-cll", budget="smoke"), path)
    return path


def test_the_command_writes_the_band_and_says_when_a_certificate_breaks(
    run: Path, cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(ATTACKS._entries, "brendel-bethge")
    command = ["attack", str(run), "--budget", "smoke", "--split", "val"]
    status, said, _ = cli(*command)
    assert status == 0
    assert "no certificate broken" in " ".join(said.split())
    assert {p.name for p in tmp_path.iterdir()} == {"attack.json", "attack.png"}

    real = proved_model._product_up
    monkeypatch.setattr(proved_model, "_product_up", lambda spread, k: real(spread, k) / 10)
    status, said, _ = cli(*command)
    assert status == 1
    assert "BROKEN" in said
