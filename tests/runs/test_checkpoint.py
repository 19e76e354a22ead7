"""Checkpoints: nothing in them is executed, and a bad one is named."""

from __future__ import annotations

import os
import pickle
import tracemalloc
from pathlib import Path

import pytest
import torch

from lipcert import InputError
from lipcert.certificates.loading import load
from lipcert.models import ModelCard, create, save
from lipcert.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint


def checkpoint() -> Checkpoint:
    return Checkpoint(
        step=3,
        seconds=1.0,
        model={"w": torch.ones(2)},
        optimizer={"state": {}, "param_groups": []},
        average=None,
        random={"cpu": torch.get_rng_state()},
        scaler={},
        losses=torch.zeros(2),
        correct=1,
    )


class Malice:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_a_checkpoint_survives_the_disk(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "last.ckpt", checkpoint())
    again = load_checkpoint(tmp_path / "last.ckpt")
    assert again["step"] == 3
    assert torch.equal(again["model"]["w"], torch.ones(2))
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]


def test_no_copy_of_the_state_is_made_in_memory(tmp_path: Path) -> None:
    large = Checkpoint(**{**checkpoint(), "model": {"w": torch.ones(2_000_000)}})
    tracemalloc.start()
    try:
        save_checkpoint(tmp_path / "last.ckpt", large)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "last.ckpt").stat().st_size > 8_000_000 > 4 * peak


def test_a_checkpoint_from_before_the_scaler_is_read(tmp_path: Path) -> None:
    now = checkpoint()
    old = {key: value for key, value in now.items() if key != "scaler"} | {"random": now["random"]["cpu"]}
    torch.save(old, tmp_path / "last.ckpt")
    again = load_checkpoint(tmp_path / "last.ckpt")
    assert torch.equal(again["random"]["cpu"], now["random"]["cpu"])
    assert again["scaler"] == {}


@pytest.mark.parametrize("kept", [0, 1, 100, 500, -1])
def test_a_truncated_checkpoint_is_named(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    save_checkpoint(path, checkpoint())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"last\.ckpt: cut short, or not"):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [{"w": torch.ones(2)}, torch.ones(2), {"step": 1}])
def test_a_foreign_checkpoint_is_named(content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "foreign.ckpt")
    with pytest.raises(InputError, match="expected a lipcert checkpoint"):
        load_checkpoint(tmp_path / "foreign.ckpt")


@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_malicious_checkpoint_is_not_executed(how: str, tmp_path: Path) -> None:
    path, target = tmp_path / "last.ckpt", tmp_path / "executed"
    if how == "pickle":
        path.write_bytes(pickle.dumps(Malice(target)))
    else:
        torch.save({**checkpoint(), "optimizer": Malice(target)}, path)
    with pytest.raises(InputError, match="cut short, or not"):
        load_checkpoint(path)
    assert not target.exists()
    pickle.loads(pickle.dumps(Malice(target)))  # it does what it should have done, were it run
    assert target.exists()


def test_a_malicious_or_foreign_model_file_is_not_executed(tmp_path: Path) -> None:
    target = tmp_path / "executed"
    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Malice(target)))
    with pytest.raises(InputError, match="not a safetensors file"):
        load(path)
    torch.save({"w": Malice(target)}, path)
    with pytest.raises(InputError, match="not a safetensors file"):
        load(path)
    assert not target.exists()


def test_model_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    card = ModelCard("mlp", 2, (2,), {"widths": [4]})
    save(card.build(), card, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(InputError, match="cut short"):
        load(path)
    path.write_bytes(whole.replace(b"mlp", b"mlq"))
    with pytest.raises(InputError, match="unknown model 'mlq'"):
        load(path)
    save(create("mlp", num_classes=3, input_shape=(2,), widths=[4]), card, path)
    with pytest.raises(InputError, match="do not fit a mlp: 2"):
        load(path)
    from safetensors.torch import save_file

    save_file({"w": torch.ones(1)}, path)
    with pytest.raises(InputError, match="found no model card"):
        load(path)
    with pytest.raises(InputError, match="no such run"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        load(make_empty(tmp_path / "empty"))


def make_empty(path: Path) -> Path:
    path.mkdir()
    return path
