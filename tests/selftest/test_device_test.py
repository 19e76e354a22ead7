"""A device that computes something else is found out; one that does not passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from lipcert.cli import app
from lipcert.errors import InputError
from lipcert.nn import MinMax
from lipcert.selftest import SelfTest, device_test, run_self_test
from lipcert.selftest.probes import Probe, probes
from lipcert.selftest.works import Work

KINDS = {"layer", "loss", "model", "augmentation", "optimizer"}


def some(*names: str) -> list[Probe]:
    return [probe for probe in probes() if probe.name in names]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One probe of each kind and no trainings."""
    chosen = some("MinMax-0", "cll", "mlp", "standard", "muon")
    assert {probe.kind for probe in chosen} == KINDS
    monkeypatch.setattr(device_test, "probes", lambda: iter(chosen))
    monkeypatch.setattr(device_test, "works", lambda device: iter(()))


def test_every_kind_has_probes() -> None:
    assert {probe.kind for probe in probes()} == KINDS


@pytest.mark.usefixtures("small")
def test_the_cpu_agrees_with_itself() -> None:
    found = run_self_test("cpu")
    assert len(found.checks) == 10
    assert not found.failed
    assert all(check.deviation == 0 for check in found.checks if check.precision == "float64")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("part", "noticed"), [(1e-2, {"float32"}), (1e-6, set())])
def test_a_planted_deviation_is_noticed(
    part: float, noticed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = MinMax.forward
    wrong = lambda self, x: forward(self, x) * (1 + part * (x.dtype == torch.float32))  # noqa: E731
    monkeypatch.setattr(MinMax, "forward", wrong)
    found = run_self_test("cpu")
    assert {check.precision for check in found.failed if check.name == "MinMax-0"} == noticed


@pytest.mark.usefixtures("small")
def test_an_exception_is_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: nn.Module, x: Tensor) -> Tensor:
        if x.dtype == torch.float32:
            raise NotImplementedError("aten::sort has no kernel")
        return x

    monkeypatch.setattr(MinMax, "forward", fails)
    notes = {check.note for check in run_self_test("cpu").failed}
    assert "NotImplementedError: aten::sort has no kernel" in notes


@pytest.mark.usefixtures("small")
def test_the_command_prints_a_table_and_writes_every_check(tmp_path: Path) -> None:
    path = tmp_path / "selftest.json"
    done = CliRunner().invoke(app, ["doctor", "--selftest", "--output", str(path)])
    assert done.exit_code == 0, done.output
    assert "all 10 checks passed on cpu" in done.output
    written = SelfTest.model_validate(json.loads(path.read_text(encoding="utf-8")))
    assert len(written.checks) == 10


def test_a_failed_check_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def works(device: torch.device) -> Iterator[Work]:
        yield Work("training", "planted", "float32", 0.1, lambda: 0.2)
        yield Work("training", "not a number", "float32", 0.1, lambda: float("nan"))

    monkeypatch.setattr(device_test, "probes", lambda: iter(()))
    monkeypatch.setattr(device_test, "works", works)
    done = CliRunner().invoke(app, ["doctor", "--selftest"])
    assert "2 of 2 checks failed on cpu" in str(done.exception)


@pytest.mark.parametrize("name", ["cuda:99", "nowhere"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"--device: expected a device of this machine"):
        run_self_test(name)


@pytest.mark.slow
def test_the_whole_self_test_passes_on_the_cpu() -> None:
    found = run_self_test("cpu")
    assert not found.failed, found.failed
    assert {"training", "proof", "certificate", "attack"} <= {check.kind for check in found.checks}
