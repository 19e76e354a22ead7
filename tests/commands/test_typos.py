"""Mistyped names: wherever one is typed, the line names the one that was meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lipcert
from lipcert.commands.support import completion
from lipcert.models.heads import make_head

Cli = Callable[..., tuple[int, str, str]]

MOONS = ["train", "moons-cll", "--budget", "smoke", "--set"]
IMAGES = ["train", "cifar10-4c3f-cll", "--set"]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["train", "moon-cll"], "moons-cll"),
        (["sweep", "moons-cl", "--over", "seed=1"], "moons-cll"),
        (["trian", "moons-cll"], "'train'"),
        (["train", "moons-cll", "--budget", "smoek"], "smoke"),
        (["certify", "moons-cl"], "moons-cll"),
        (["reproduce", "mooons"], "moons"),
        (["data", "fetch", "cifar-10"], "cifar10"),
        (["list", "losess"], "losses"),
        (["list", "losses", "glorro"], "gloro"),
        (["list", "recipes", "moon-cll"], "moons-cll"),
        (["list", "layers", "MinMaxx"], "MinMax"),
        (["certify", "moons-cll", "--split", "tets"], "test"),
        (["certify", "moons-cll", "--effort", "exakt"], "exact"),
        (["attack", "moons-cll", "--budget", "smok"], "smoke"),
        ([*MOONS, "los.eps=1"], "loss.eps"),
        ([*MOONS, "los=null"], "loss"),
        ([*MOONS, "epochs=1"], "train.epochs"),
        ([*MOONS, "lr=1"], "optimizer.lr"),
        ([*MOONS, "train.epoch=1"], "train.epochs"),
        ([*MOONS, "certify.radi=[1]"], "certify.radii"),
        ([*MOONS, "loss.epss=1"], "loss.eps"),
        ([*MOONS, "data.noize=1"], "data.noise"),
        ([*MOONS, "loss.name=cl"], "cll"),
        ([*MOONS, "model.name=mpl"], "mlp"),
        ([*MOONS, "data.name=moon"], "moons"),
        ([*MOONS, "optimizer.name=adma"], "adam"),
        ([*MOONS, "schedule.loss.eps.name=liner"], "linear"),
        ([*MOONS, "schedule.loss.ep={name: linear, end: 1}"], "loss.eps"),
        ([*IMAGES, "train.augment.name=standart"], "standard"),
        (["sweep", "moons-cll", "--over", "los.eps=1,2"], "loss.eps"),
        (["train", "moons-cll", "--stack", "sed=1,2"], "seed"),
        (["train", "moons-cll", "--accelerator", "cpuu"], "cpu"),
    ],
)
def test_the_line_asks_for_what_was_meant(arguments: list[str], meant: str, cli: Cli, tmp_path: Path) -> None:
    status, _, err = cli(*arguments)
    assert status == 2
    assert f"id you mean {meant}?" in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_head() -> None:
    with pytest.raises(lipcert.InputError, match=r"\(did you mean orthogonal\?\)"):
        make_head("orthogonl", 4, 2)


def test_a_key_that_is_like_none_gets_no_suggestion(cli: Cli) -> None:
    status, _, err = cli(*MOONS, "zzz=1")
    assert (status, err) == (2, "lipcert: --set zzz=1: zzz: unknown key\n")


def test_a_mistyped_key_of_a_file(cli: Cli) -> None:
    Path("mine.yaml").write_text("extends: moons-cll\ntrian: {epochs: 3}\n", encoding="utf-8")
    status, _, err = cli("train", "mine.yaml")
    assert (status, err) == (2, "lipcert: mine.yaml: trian: unknown key (did you mean train.epochs?)\n")


def test_list_alone_lists_the_kinds(cli: Cli) -> None:
    status, out, err = cli("list")
    assert status == 0, err
    first_words = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [word for word in first_words if word in completion.NAMES] == list(completion.NAMES)


def test_the_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"lipcert {lipcert.__version__}\n", "")
    done = subprocess.run(
        [sys.executable, "-m", "lipcert", "--version"], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout) == (0, f"lipcert {lipcert.__version__}\n")
