"""A validation estimates the norms of layers such as CPL; it proves nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lipcert import InputError
from lipcert.certificates.certifier import certifier
from lipcert.losses import CLL
from lipcert.models import create
from lipcert.nn import cpl
from lipcert.nn.bases.derived import estimated_weights
from lipcert.runs import Run
from lipcert.selftest.works import images, plan
from lipcert.train import fit

SHAPE = (3, 16, 16)


def model() -> torch.nn.Module:
    return create("cpl", num_classes=3, input_shape=SHAPE, width=4, convolutions=1, dense=1, inner=8)


def test_no_norm_is_proved_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpl, "proved_norm", lambda weight: pytest.fail("a norm was proved"))
    run = Run(tmp_path / "run")
    run.start({"name": "validation"}, resume=False, overwrite=False)
    val = images().subset(torch.arange(48))
    fit(
        replace(plan(), model=model(), loss=CLL(0.1, 0.1), val=val, epochs=2, validate_every=1),
        run,
        bar=False,
    )
    assert all(row.validation is not None for row in run.metrics())


def test_estimates_are_close_to_what_is_proved_and_are_not_kept() -> None:
    network = model().eval()
    layers = [layer for layer in network.modules() if isinstance(layer, cpl.CPLConv2d | cpl.CPLLinear)]
    proved = [layer.weights()[1] for layer in layers]
    with estimated_weights(network):
        estimated = [layer.weights()[1] for layer in layers]
    for layer, before, during in zip(layers, proved, estimated, strict=True):
        assert torch.equal(layer.weights()[1], before)
        assert 1 < float((during / before).max()) < 1.5  # a norm from below makes a longer step


def test_estimated_weights_are_never_certified() -> None:
    network = model().eval()
    with estimated_weights(network), pytest.raises(InputError, match="estimated norms"):
        certifier(network, SHAPE)
