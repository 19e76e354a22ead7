"""The matrix of a dense layer is taken from its rule only if the rule computes with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds.rules.linear import LinearRule, executed_matrix
from lipcert.bounds.tracing.program import trace
from lipcert.nn import AOLLinear


class Doubled(nn.Linear):
    """Twice what its weights say."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class DoubledRule(LinearRule):
    """Says so, and keeps everything else."""

    def apply(self, module: nn.Linear, v: Tensor) -> Tensor:
        return 2 * super().apply(module, v)


def test_a_rule_with_a_map_of_its_own_has_no_matrix() -> None:
    layer = Doubled(3, 2)
    assert executed_matrix(DoubledRule(), layer) is None
    assert executed_matrix(object(), layer) is None


def rule_of(layer: nn.Module) -> object:
    (step,) = trace(layer, (4,)).steps
    return step.rule


def test_the_matrix_is_the_one_that_runs() -> None:
    layer = AOLLinear(4, 3, bias=False).eval()
    found = executed_matrix(rule_of(layer), layer)
    assert found is not None
    torch.testing.assert_close(layer(torch.eye(4)).T, found)
