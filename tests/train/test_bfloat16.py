"""A CPU trains in bfloat16 when asked for it, unless a trial in a process of its own fails."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from lipcert.errors import InputError
from lipcert.recipes import read_recipe
from lipcert.runs import Run
from lipcert.train import Hardware, bfloat16, fit
from lipcert.train.bfloat16 import check_bfloat16
from tests.train.test_loop import plan, start, weights


@pytest.fixture(autouse=True)
def fresh_trial() -> None:
    check_bfloat16.cache_clear()


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", r"exit status -4\); train in 32"),
        ("raise RuntimeError('no such instruction')", r"RuntimeError: no such instruction\); train in 32"),
    ],
)
def test_a_failed_trial_is_an_error_before_training(
    trial: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfloat16, "_TRIAL", trial)
    with pytest.raises(InputError, match=said):
        Hardware("cpu", precision="bf16-mixed").launch()


def test_a_training_in_bfloat16_ends_near_one_in_full_precision(tmp_path: Path) -> None:
    try:
        check_bfloat16()
    except InputError as error:
        pytest.skip(str(error))
    full, half = plan(), plan()
    fit(full, start(tmp_path / "full"), Hardware("cpu").launch(), bar=False)
    fit(half, start(tmp_path / "half"), Hardware("cpu", precision="bf16-mixed").launch(), bar=False)
    ends = [torch.cat([p.flatten() for p in weights(p)]) for p in (full, half)]
    assert all(end.dtype == torch.float32 for end in ends)
    assert 0 < (ends[0] - ends[1]).norm() < 0.1 * ends[0].norm()


def test_the_recipe_keeps_the_precision(tmp_path: Path, cli) -> None:
    try:
        check_bfloat16()
    except InputError as error:
        pytest.skip(str(error))
    place = str(tmp_path / "run")
    train = ("train", "moons-cll", "--budget", "smoke", "--output", place)
    assert cli(*train, "--precision", "bf16-mixed")[0] == 0
    assert Run(place).recipe.read_text(encoding="utf-8").count("precision: bf16-mixed") == 1
    status, _, error = cli(*train, "--resume")
    assert status == 2
    assert "train.precision" in error


@pytest.mark.parametrize("value", ["32", "64"])
def test_only_known_precisions_are_in_a_recipe(value: str) -> None:
    read = partial(read_recipe, "moons-cll", "smoke", [f"train.precision={value}"])
    if value == "32":
        assert read().train.precision == "32"
    else:
        with pytest.raises(InputError, match="precision"):
            read()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["train.dtype=float64"], "expected 32 with dtype float64"),
        (["--stack", "seed=1..2"], "--stack: trains in full precision"),
    ],
)
def test_where_mixed_precision_does_not_fit(settings: list[str], said: str, cli) -> None:
    more = settings if len(settings) > 1 else ["--set", *settings]
    status, _, error = cli(
        "train", "moons-cll", "--budget", "smoke", "--set", "train.precision=bf16-mixed", *more
    )
    assert status == 2
    assert said in error
