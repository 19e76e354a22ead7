"""Private copies, and a record that notices every change and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lipcert import InputError, UnknownBoundError
from lipcert.bounds import upper
from lipcert.bounds.fidelity.snapshot import Snapshot, frozen_copy
from lipcert.nn import SOCConv2d
from tests.laws.test_layers import EXAMPLES


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_calling_a_registered_layer_changes_nothing(name: str) -> None:
    layer, shape = EXAMPLES[name]()
    layer.eval()
    x = torch.randn(3, *shape)
    layer(x)
    before = Snapshot(layer)
    layer(2 * x)
    assert before.change_in(layer) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int8, torch.bool])
@pytest.mark.parametrize("size", [1, 3, 8, 1000])
def test_every_bit_counts(dtype: torch.dtype, size: int) -> None:
    model = nn.Module()
    model.register_buffer("numbers", torch.randint(0, 2, (size,)).to(dtype))
    before = Snapshot(model)
    assert before.change_in(model) is None
    numbers: Any = model.numbers
    numbers.view(torch.uint8)[-1] ^= 1
    assert before.change_in(model) == "numbers"


def test_the_sign_of_zero_and_what_kind_of_nan_it_is_count() -> None:
    for value, bits in ((0.0, 0x80000000), (float("nan"), 1)):
        model = nn.Linear(2, 2)
        model.weight.data.fill_(value)
        before = Snapshot(model)
        assert before.change_in(model) is None
        model.weight.data.view(torch.int32)[0, 0] ^= bits - (1 << 32 if bits >> 31 else 0)
        assert before.change_in(model) == "weight"


def test_views_and_large_tensors_are_compared_whole() -> None:
    storage = torch.randn(3_000_001)
    model = nn.Module()
    model.register_buffer("part", storage[1:])  # no multiple of eight bytes into its storage
    model.register_buffer("across", storage[:100].view(10, 10).T)
    model.register_buffer("whole", torch.randn(3_000_001))
    before = Snapshot(model)
    assert before.change_in(model) is None
    for name, index in (("part", -1), ("across", (9, 9)), ("whole", 1_500_000)):
        tensor: Any = getattr(model, name)
        kept = tensor[index].clone()
        tensor[index] += 1
        assert before.change_in(model) is not None
        tensor[index] = kept
        assert before.change_in(model) is None


class WithHelpers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.factors, self._secret = nn.Linear(2, 2), [1.0, {"a": (2, 3)}], "x"
        self.function = lambda x: x + self.factors[0]
        self.kept = {"tensor": torch.zeros(3)}

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda m: m.factors.append(1), "factors"),
        (lambda m: m.factors[1].update(a=(2, 4)), "factors[1]['a'][1]"),
        (lambda m: setattr(m, "_secret", "y"), "_secret"),
        (lambda m: setattr(m, "function", lambda x: -x), "function"),
        (lambda m: m.kept["tensor"].add_(1), "kept['tensor']"),
        (lambda m: m.layer.train(False), "layer.training"),
        (lambda m: m.add_module("more", nn.Identity()), "model"),
        (lambda m: m.layer.register_buffer("late", torch.zeros(1)), "layer"),
    ],
)
def test_what_changed_is_named(change: Any, place: str) -> None:
    model = WithHelpers()
    before = Snapshot(model)
    assert before.change_in(model) is None
    change(model)
    found = before.change_in(model)
    assert found is not None
    assert found.startswith(place) or place == "model"


def test_what_a_layer_keeps_for_itself_is_compared_by_what_it_executes() -> None:
    layer = SOCConv2d(2, 2).eval()
    layer(torch.randn(1, 2, 4, 4))
    before = Snapshot(layer)
    layer.forget()  # made anew, the same
    assert before.change_in(layer) is None
    layer._kept.weights[0].mul_(2)  # type: ignore[union-attr]
    assert before.change_in(layer) is not None


def test_a_copy_does_not_touch_its_original() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))).eval()
    before = Snapshot(model)
    frozen = frozen_copy(model)
    assert before.change_in(model) is None
    assert all(p.dtype == torch.float64 for p in frozen.parameters())
    assert {p.data_ptr() for p in frozen.parameters()}.isdisjoint(p.data_ptr() for p in model.parameters())


def test_a_copy_with_other_numbers_is_refused() -> None:
    class Nearly(nn.Linear):
        def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
            other = nn.Linear(2, 2)
            other.load_state_dict({k: v * (1 + 2.0**-23) for k, v in self.state_dict().items()})
            return other

    with pytest.raises(UnknownBoundError, match="hold different numbers"):
        upper(nn.Sequential(Nearly(2, 2)), (2,))


def test_what_cannot_be_copied_is_refused_in_one_line() -> None:
    class Stubborn(nn.Linear):
        def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
            raise RuntimeError("no\nway")

    class Shared(nn.Linear):
        def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
            return self

    for model, message in ((Stubborn(2, 2), "cannot be copied: no$"), (Shared(2, 2), "shares this tensor")):
        with pytest.raises(UnknownBoundError, match=message):
            frozen_copy(nn.Sequential(model))
        assert model.weight.dtype == torch.float32
    for model, message in ((nn.LazyLinear(2), "no numbers"), (nn.Linear(2, 2, device="meta"), "no numbers")):
        with pytest.raises(InputError, match=message):
            frozen_copy(model)
    sparse = nn.Linear(2, 2)
    sparse.weight = nn.Parameter(copy.deepcopy(sparse.weight.data).to_sparse())
    with pytest.raises(InputError, match="dense"):
        frozen_copy(sparse)
