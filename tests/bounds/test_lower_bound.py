"""Lower bounds of layers: never above the proved ones, nor above exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

from lipcert.bounds.contract import RULES, rule_of
from lipcert.bounds.fidelity.snapshot import frozen_copy
from lipcert.bounds.lower_bound import lower_of, stretch, witness
from lipcert.bounds.tracing.program import Step, trace
from lipcert.commands.work.inspection import estimate_of
from lipcert.report.layer_table import LayerRow, head_row, layer_table, spread_lower

EXAMPLES = {
    f"{kind.__name__}-{i}": example
    for kind, known in RULES.items()
    for i, example in enumerate(known.examples)
}


def step_of(module: nn.Module, shape: tuple[int, ...]) -> Step:
    (step,) = trace(frozen_copy(module.eval()), shape).steps
    return step


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_layer_is_said_to_stretch_more_than_is_proved(name: str) -> None:
    torch.manual_seed(1)
    step = step_of(*EXAMPLES[name]())
    lower = lower_of(step)
    assert lower is not None
    assert 0 <= lower <= rule_of(step.module).upper(step.module, step.input_shapes[0], "auto").value
    if step.rule.has_vector:
        assert lower >= 0.9999 * estimate_of(step)


@pytest.mark.parametrize("module", [nn.ReLU(), nn.ReLU(inplace=True), nn.Flatten(), nn.MaxPool2d(2)])
def test_moved_entries_are_exactly_as_long(module: nn.Module) -> None:
    assert lower_of(step_of(module, (2, 4, 4))) == 1.0


def exact_square(vector: Tensor) -> Fraction:
    return sum((Fraction(x) ** 2 for x in vector.flatten().tolist()), Fraction(0))


@pytest.mark.parametrize("seed", range(40))
def test_exact_arithmetic_finds_at_least_as_much(seed: int) -> None:
    torch.manual_seed(seed)
    inputs, outputs = 1 + seed % 3, 1 + seed % 2
    layer = nn.Linear(inputs, outputs, bias=seed % 5 == 0).double()
    step = step_of(layer, (inputs,))
    v = witness(step)
    products = [
        sum((Fraction(w) * Fraction(x) for w, x in zip(row, v[0].tolist(), strict=True)), Fraction(0))
        for row in layer.weight.tolist()
    ]
    lower = Fraction(stretch(step, v))
    square = sum((p**2 for p in products), Fraction(0)) / exact_square(v)
    assert square * (1 - Fraction(1, 10**9)) <= lower**2 <= square


@pytest.mark.parametrize("seed", range(40))
def test_the_head_is_not_wider_than_exact_arithmetic_says(seed: int) -> None:
    torch.manual_seed(seed)
    rows = torch.randn(2, 1 + seed % 4, dtype=torch.float64)
    exact = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*rows.tolist(), strict=True)), Fraction(0))
    assert exact * (1 - Fraction(1, 10**9)) <= Fraction(spread_lower(rows)) ** 2 <= exact


def test_what_overflows_is_no_lower_bound() -> None:
    layer = nn.Linear(2, 2, bias=False).double()
    nn.init.constant_(layer.weight, 1e200)
    assert lower_of(step_of(layer, (2,))) == 0.0
    assert spread_lower(torch.tensor([[1e200], [-1e200]], dtype=torch.float64)) == 0.0


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + self.inner(x))


def cells_of(row: LayerRow) -> list[str]:
    """As printed."""
    return layer_table([row], "").cells[0]


def test_a_sum_has_no_constant_of_its_own_and_the_head_comes_last() -> None:
    model = Residual()
    model.head.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    program = trace(frozen_copy(model.eval()), (2,))
    features, head = program.split_head()
    assert [lower_of(step) is None for step in features.steps] == [False, True]
    assert cells_of(head_row(program, head)) == [
        "head (head)",
        "Linear",
        "2",
        "4.99999",
        "5",
        "5.00001",
        "pairs",
    ]
    bare = trace(frozen_copy(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval()), (2,))
    assert bare.split_head()[1] is None
    assert cells_of(head_row(bare, None)) == [
        "– (head)",
        "Identity",
        "3",
        "1.41421",
        "1.41421",
        "1.41422",
        "pairs",
    ]
