"""Models that cannot fit in memory are refused with what they would need, before it is allocated."""

from __future__ import annotations

import resource

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.models import MODELS, create, memory


def peak() -> int:
    """The most memory that this process ever held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(
    ("widths", "needed"),
    [
        ([1_000_000_000], r"20\.0 GB of memory, and training or certifying them 80\.0 GB"),
        ([1_000_000_000] * 2, r"4\.0 EB"),
        ([10_000_000_000] * 2, "more memory than 64 bits can address"),
        ([10**30], "more memory than 64 bits can address"),
        ([20_000] * 100, r"158\.4 GB"),
    ],
    ids=["wide", "square", "overflow", "beyond", "deep"],
)
def test_absurd_sizes(widths: list[int], needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 10**9)
    before = peak()
    with pytest.raises(InputError, match=needed) as error:
        create("mlp", num_classes=2, input_shape=(2,), widths=widths)
    assert "\n" not in str(error.value)
    assert peak() - before < 2 * 10**9  # a quarter of what is available, and Python


@pytest.mark.parametrize("width", [1e9, 1e30, 1.7e308])
def test_absurd_factors(width: float) -> None:
    with pytest.raises(InputError, match="more memory than 64 bits can address"):
        create("4c3f", num_classes=2, input_shape=(3, 8, 8), width=width)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_check_changes_no_weight(name: str) -> None:
    arguments = dict(MODELS[name].example)
    arguments.setdefault("num_classes", 2)
    arguments.setdefault("input_shape", (2,))
    torch.manual_seed(3)
    plain = MODELS.create(name, **arguments)
    expected, after = plain.state_dict(), torch.get_rng_state()
    torch.manual_seed(3)
    checked = create(name, **arguments).state_dict()
    assert torch.equal(after, torch.get_rng_state())
    assert expected.keys() == checked.keys()
    assert all(torch.equal(value, checked[key]) for key, value in expected.items())


def test_what_is_only_temporary_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 10_000)

    def build() -> nn.Module:
        torch.zeros(5_000)
        return nn.Linear(2, 2)

    assert isinstance(memory.built(build), nn.Linear)


def test_wrong_arguments_are_reported_as_before() -> None:
    with pytest.raises(InputError, match="widths: expected even numbers"):
        create("mlp", num_classes=2, input_shape=(2,), widths=[3])


def test_available_memory_is_a_part_of_all() -> None:
    found = memory.available_memory()
    assert found is None or 10**6 < found < 10**15


def test_a_model_on_the_meta_device_needs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with torch.device("meta"):
        assert sum(p.numel() for p in create("mlp", num_classes=2, input_shape=(2,)).parameters()) == 3782
    with pytest.raises(InputError, match="are available"):
        create("mlp", num_classes=2, input_shape=(2,))
