"""Everything registered works with all its tensors on another device, where a stray CPU tensor fails."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.accelerators.cpu import CPUAccelerator
from lightning_fabric.strategies.single_device import SingleDeviceStrategy
from torch import Tensor, nn

from lipcert.attack import attack
from lipcert.attack.base import ATTACKS
from lipcert.attack.target import Target
from lipcert.bounds import Bounded
from lipcert.bounds.contract import RULES
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.proof import prove
from lipcert.bounds.witness import search
from lipcert.certificates.certifier import certifier
from lipcert.losses import CLL, LOSSES
from lipcert.models import MODELS, create
from lipcert.nn import MinMax
from lipcert.runs import Run
from lipcert.selftest.deviation import deviation
from lipcert.selftest.probes import Probe, example_card, probes
from lipcert.selftest.works import images, plan, small_model
from lipcert.train import Plan, fit
from tests.strange_device import NAME, strange_device

pytestmark = pytest.mark.device  # it changes torch for the whole process

PROBES = list(probes())

# What the fast suite takes: the first example of every layer, small models, one loss with its training.
SMALL = ("mlp", "soc-mlp", "cpl")


def marked(name: str, is_quick: bool) -> Any:
    return pytest.param(name, marks=[] if is_quick else [pytest.mark.slow])


def probe_parameter(probe: Probe) -> Any:
    is_quick = (
        probe.name.endswith("-0") if probe.kind == "layer" else probe.kind != "model" or probe.name in SMALL
    )
    marks = [] if is_quick else [pytest.mark.slow]
    return pytest.param(probe, id=f"{probe.kind}-{probe.name}", marks=marks)


# Our own attacks; the others are foreign code, which the self-test runs on real devices.
OWN_ATTACKS = ("margin", "rounding")


@pytest.fixture(scope="module")
def device() -> torch.device:
    return strange_device()


def test_a_stray_tensor_fails(device: torch.device) -> None:
    with pytest.raises(RuntimeError, match="expected tensors on strange"):
        torch.ones(2, device=device) + torch.ones(2)
    assert (torch.ones(2, device=device) + torch.tensor(1.0)).device.type == NAME


@pytest.mark.parametrize("probe", map(probe_parameter, PROBES))
def test_it_computes_there_what_it_computes_on_the_cpu(probe: Probe, device: torch.device) -> None:
    found, expected = (probe(where, torch.float32) for where in (device, torch.device("cpu")))
    assert deviation(found, expected) <= 1e-5


def _layer() -> Probe:
    return next(probe for probe in PROBES if probe.name == "MinMax-0")


def test_a_planted_stray_tensor_is_noticed_in_a_layer(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = MinMax.forward
    monkeypatch.setattr(MinMax, "forward", lambda self, x: forward(self, x) + torch.zeros(1))
    _layer()(torch.device("cpu"), torch.float32)
    with pytest.raises(RuntimeError, match="on the CPU"):
        _layer()(device, torch.float32)


def test_a_planted_stray_tensor_is_noticed_in_a_loss(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = CLL.__call__
    monkeypatch.setattr(
        CLL, "__call__", lambda self, logits, y, lip: call(self, logits, y, lip) + torch.zeros(len(y))
    )
    (probe,) = (probe for probe in PROBES if (probe.kind, probe.name) == ("loss", "cll"))
    with pytest.raises(RuntimeError, match="on the CPU"):
        probe(device, torch.float32)


class Anywhere(CPUAccelerator):
    """An accelerator of Fabric that takes any device."""

    def setup_device(self, device: torch.device) -> None:
        """Do nothing."""


def fabric_on(device: torch.device) -> Fabric:
    strategy = SingleDeviceStrategy(device=device, accelerator=Anywhere())
    return Fabric(strategy=strategy, devices=1)


def trained(changed: Plan, folder: Path, device: torch.device) -> list[Tensor]:
    run = Run(folder)
    run.start({"name": "device"}, resume=False, overwrite=False)
    fit(changed, run, fabric_on(device), bar=False)
    assert all(p.device.type == device.type for p in changed.model.parameters())
    return [p.detach().cpu() for p in changed.model.parameters()]


def short(loss: Any) -> Plan:
    """Return two steps of training on images, with augmentation and averaged weights."""
    return replace(plan(), loss=loss, epochs=1, batch_size=96, val=images().subset(torch.arange(32)))


@pytest.mark.parametrize("name", [marked(name, name == "cll") for name in sorted(LOSSES)])
def test_a_training_with_validation(
    name: str, device: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Run, "save_checkpoint", lambda *_: None
    )  # this device has no storage that torch can save
    both = [
        trained(short(LOSSES.example(name)), tmp_path / where.type, where)
        for where in (device, torch.device("cpu"))
    ]
    assert deviation(*both) <= 1e-4


@pytest.mark.parametrize("name", [marked(name, name in SMALL) for name in sorted(MODELS)])
def test_a_certificate(name: str, device: torch.device) -> None:
    card = example_card(name)
    model = card.build().eval()
    x = torch.rand(3, *card.input_shape)
    here = certifier(model, card.input_shape)
    there = certifier(copy.deepcopy(model).to(device), card.input_shape)
    assert there.proved.where.type == NAME
    assert there.k_f == pytest.approx(here.k_f, rel=1e-10)
    assert torch.allclose(there(x.to(device)).radius, here(x).radius, rtol=1e-8)
    assert torch.allclose(there(x).radius, here(x).radius, rtol=1e-8)  # inputs may be anywhere
    assert there.logits(x).device == there.rival_radii(x).device == torch.device("cpu")


@pytest.mark.slow
@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_a_proof_of_a_layer(kind: type[nn.Module], device: torch.device) -> None:
    for example in RULES[kind].examples:
        module, shape = example()
        module = module.eval()
        here = prove(Followed.of(module, shape).program).value
        there = prove(Followed.of(module, shape, device).program).value
        assert there == pytest.approx(here, rel=1e-9)


def test_local_bounds(device: torch.device) -> None:
    model, x = create("mlp", num_classes=2, input_shape=(2,)).eval(), torch.rand(5, 2)
    here, there = certifier(model, (2,)), certifier(model, (2,), device=device)
    assert torch.allclose(there(x, local=[0.1]).radius, here(x, local=[0.1]).radius, rtol=1e-8)


@pytest.mark.parametrize("name", [marked(name, name == "margin") for name in OWN_ATTACKS])
def test_an_attack(name: str, device: torch.device) -> None:
    assert name in ATTACKS
    model = small_model().eval()
    bands = [
        attack(moved, certifier(moved, (3, 16, 16)), images(), [0.1, 3.0], "smoke", attacks=[name])
        for moved in (model, copy.deepcopy(model).to(device))
    ]
    assert not bands[1].broken
    assert torch.allclose(bands[0].nearest, bands[1].nearest, rtol=1e-6)


def test_successes_of_an_attack_count_only_if_the_cpu_agrees(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = copy.deepcopy(small_model()).to(device).eval()
    prover = certifier(model, (3, 16, 16))
    honest = attack(model, prover, images(), [0.1], "smoke", attacks=["margin"])

    def wrong(self: Target, points: Tensor) -> Tensor:
        return torch.ones(len(points), dtype=torch.bool, device=device)

    monkeypatch.setattr("lipcert.attack.target.Target.flipped", wrong)
    found = attack(model, prover, images(), [0.1], "smoke", attacks=["margin"])
    assert not found.broken
    assert torch.allclose(found.nearest, honest.nearest, rtol=1e-6)


def test_a_search_for_tightness(device: torch.device) -> None:
    model = create("mlp", num_classes=2, input_shape=(2,)).eval()
    x1, x2 = torch.rand(2, 4, 2)
    here = search(model, x1, x2, steps=5, lr=1e-2)
    there = search(copy.deepcopy(model).to(device), x1.to(device), x2.to(device), steps=5, lr=1e-2)
    assert there.lower == pytest.approx(here.lower, rel=1e-4)
    assert there.x1.device == there.x2.device == torch.device("cpu")


def test_estimates_converge(device: torch.device) -> None:
    here, there = (Bounded(small_model().to(where), (3, 16, 16)) for where in (torch.device("cpu"), device))
    found, expected = (float(bounded.converge().max().detach()) for bounded in (there, here))
    assert found == pytest.approx(expected, rel=1e-4)
