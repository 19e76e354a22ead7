"""A run directory: what it takes for the same recipe, and what it refuses to read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from lipcert.certificates.loading import load
from lipcert.errors import InputError
from lipcert.models import ModelCard
from lipcert.models.model_names import model_place
from lipcert.runs import Run
from lipcert.runs.metrics import Metrics, Validation


def test_a_claim_is_words_and_may_change(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.start({"claim": "61 %", "seed": 1}, resume=False, overwrite=False)
    run.check({"claim": "60 %", "seed": 1}, resume=True, overwrite=False)
    run.certificate.write_text("{}")
    assert run.holds({"claim": "60 %", "seed": 1})
    assert not run.holds({"claim": "61 %", "seed": 2})
    with pytest.raises(InputError, match="differs in seed"):
        run.check({"claim": "61 %", "seed": 2}, resume=True, overwrite=False)


def test_metrics_come_back_as_they_were_written(tmp_path: Path) -> None:
    run = Run(tmp_path)
    plain = Metrics(1, 4, 0.1 + 0.2, 0.5, 1 / 3, 0.25)
    whole = Metrics(2, 8, 0.1, 0.75, 2.0, 0.5, {"loss.eps": 0.15}, Validation(0.5, 0.25, 2.5))
    run.metrics_file.write_text(plain.line + whole.line + whole.line[:9])  # the last one is torn
    assert run.metrics() == [plain, whole]
    assert run.last_metrics() == whole
    assert list(whole.numbers)[-4:] == ["loss.eps", "val_accuracy", "val_cra_estimate", "k_f_converged"]
    run.rewind_metrics(4)
    assert run.metrics_file.read_text() == plain.line


@pytest.mark.parametrize(
    "line", ["{}", "[1]", "5", "{", json.dumps({"epoch": 1, "step": 4, "val_accuracy": 1})]
)
def test_a_line_that_is_no_metrics_is_named(line: str, tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.metrics_file.write_text(line + "\n")
    for read in (run.metrics, run.last_metrics):
        with pytest.raises(InputError, match=r"metrics\.jsonl: cannot be read"):
            read()


def test_the_certificate_of_a_run_tells_of_its_training(tmp_path: Path) -> None:
    shutil.copytree(model_place("moons-cll"), tmp_path / "run")
    run = Run(tmp_path / "run")
    assert run.statement().loss.name == "cll"
    found = json.loads(run.certificate.read_text())
    untrained = {key: value for key, value in found.items() if key not in ("recipe", "seed", "loss", "k_hf")}
    run.certificate.write_text(json.dumps(untrained))
    with pytest.raises(InputError, match=r"not a lipcert certificate \(recipe: missing\)"):
        run.statement()
    run.certificate.write_text(json.dumps({**found, "format": 1}))
    with pytest.raises(InputError, match=r"of format 1, expected 2; remove it"):
        run.statement()
    run.certificate.unlink()
    with pytest.raises(InputError, match=r"is the run finished\?"):
        run.statement()


@pytest.mark.parametrize("content", ["{}", '{"lower": 1.0}', "[]", '{"tightness": NaN}'])
def test_a_tightness_that_lipcert_did_not_write_is_named(content: str, tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.tightness() is None
    run.tightness_file.write_text(content)
    with pytest.raises(InputError, match=r"tightness\.json"):
        run.tightness()


def test_a_log_of_metrics_goes_on_after_the_step_of_a_checkpoint(tmp_path: Path) -> None:
    run = Run(tmp_path)
    first, second = (Metrics(n, 10 * n, 0.5, 0.9, 1.0, 1.0) for n in (1, 2))
    for metrics in (first, second):
        log = run.metrics_log(metrics.step - 1)
        log.append(metrics)
        assert run.last_metrics() == metrics  # while it is open
        log.close()
    assert run.metrics() == [first, second]
    run.metrics_log(10).close()
    assert run.metrics() == [first]


def test_a_run_keeps_a_model_that_can_be_loaded(tmp_path: Path) -> None:
    card = ModelCard("mlp", 2, (2,), {"widths": [4]})
    model = card.build()
    Run(tmp_path).save_model(model, card)
    again = load(tmp_path)
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)
