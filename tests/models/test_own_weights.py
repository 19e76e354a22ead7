"""Weights of other people's files: read without executing anything, and refused unless they fit exactly."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from lipcert.errors import InputError
from lipcert.models.own_weights import load_weights
from lipcert.models.python_files import is_python, load_python, own_name


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def wrapped(model: nn.Module) -> dict[str, Any]:
    return {"epoch": 3, "state_dict": nn.DataParallel(model).state_dict()}


WAYS: dict[str, Callable[[nn.Module, Path], object]] = {
    "net.pt": lambda model, path: torch.save(model.state_dict(), path),
    "old.pth": lambda model, path: torch.save(model.state_dict(), path, _use_new_zipfile_serialization=False),
    "wrapped.ckpt": lambda model, path: torch.save(wrapped(model), path),
    "nested.pt": lambda model, path: torch.save({"model": model.state_dict()}, path),
    "net.safetensors": lambda model, path: safetensors.torch.save_file(model.state_dict(), path),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_weight_is_that_of_the_file(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    theirs, mine = network(), network()
    WAYS[name](theirs, tmp_path / name)
    load_weights(mine, tmp_path / name)
    for key, value in theirs.state_dict().items():
        assert torch.equal(mine.state_dict()[key], value), key


def test_half_precision_is_a_way_to_store_float32_weights(tmp_path: Path) -> None:
    model = network()
    half = {k: v.half() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    torch.save(half, tmp_path / "half.pt")
    load_weights(model, tmp_path / "half.pt")
    assert torch.equal(model.state_dict()["0.weight"], half["0.weight"].float())


class Trap:
    """A pickle of this makes a file where it is loaded."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.place),)


def test_a_pickle_is_never_executed(tmp_path: Path) -> None:
    torch.save({"0.weight": Trap(tmp_path / "sprung")}, tmp_path / "trap.pt")
    with pytest.raises(InputError, match="found other objects"):
        load_weights(network(), tmp_path / "trap.pt")
    assert not (tmp_path / "sprung").exists()
    torch.load(tmp_path / "trap.pt", weights_only=False)  # the trap would have worked
    assert (tmp_path / "sprung").exists()


def refused(content: Any) -> str:
    """The error for a file with this content, or these bytes."""
    path = Path("odd.pt")
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    model = network()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with warnings.catch_warnings(action="error"), pytest.raises(InputError) as error:
        load_weights(model, path)
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = network().state_dict()
    assert "3.bias is only in the model" in refused({k: v for k, v in state.items() if k != "3.bias"})
    assert "head is only in the file" in refused({**state, "head": torch.zeros(2)})
    assert "0.bias is (5,) in the file and (4,) in the model" in refused({**state, "0.bias": torch.zeros(5)})
    assert "which would round it" in refused({**state, "0.bias": torch.zeros(4, dtype=torch.float64)})
    assert "and 6 more" in refused({key: torch.zeros(9) for key in state})
    assert "found a list" in refused([torch.zeros(2)])
    assert "found a dict of epoch" in refused({"epoch": 3})
    assert "found other objects" in refused(network())
    assert "found other objects" in refused(b"a poem")
    assert "found other objects" in refused(b"")
    torch.save(state, "whole.pt")
    assert "found other objects" in refused(Path("whole.pt").read_bytes()[:900])


def test_a_file_that_is_cut_or_missing(tmp_path: Path) -> None:
    (tmp_path / "cut.safetensors").write_bytes(b"x")
    for name, said in (("cut.safetensors", "cut short"), ("gone.pt", "no such file"), ("", "no such file")):
        with pytest.raises(InputError, match=said):
            load_weights(network(), tmp_path / name)


def test_a_python_model_is_told_from_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_python("a/my.py:net")
    assert is_python("my_package.nets:net")
    assert not any(map(is_python, ("moons-cll", "runs/a", "net.safetensors", "C:\\runs\\a", "C:/runs/a")))
    Path("run:1").mkdir()
    assert not is_python("run:1")
    assert own_name("a/my.py:net") == "my.py:net"


def test_a_model_of_an_installed_module() -> None:
    assert isinstance(load_python("torch.nn:Identity"), nn.Identity)
    with pytest.raises(InputError, match=r"torch.nn:Linear: TypeError: .*missing 2 required"):
        load_python("torch.nn:Linear")
    with pytest.raises(InputError, match="returns one, got float"):
        load_python("time:time")
    with pytest.raises(InputError, match=r"no.such.place: no such module"):
        load_python("no.such.place:net")
