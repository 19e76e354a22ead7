"""Plain copies: the same outputs from ordinary layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lipcert.bounds.contract import RULES
from lipcert.export import plain
from lipcert.nn import AOLLinear, MinMax, ShiftMix, SOCConv2d
from lipcert.nn.bases.derived import Derived
from lipcert.nn.bases.spectral import Spectral

DERIVED = {
    f"{kind.__name__}-{i}": example
    for kind, registered in RULES.items()
    for i, example in enumerate(registered.examples)
    if issubclass(kind, Derived)
}
KEPT = (SOCConv2d, Spectral, ShiftMix)  # no small kernel computes the same


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_outputs_agree(name: str) -> None:
    module, shape = DERIVED[name]()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn_like(p))
    copy = plain(module)
    x = torch.randn(8, *shape)
    torch.testing.assert_close(copy(x), module.eval()(x), atol=1e-6, rtol=1e-6)
    kept = any(isinstance(m, Derived) for m in copy.modules())
    assert kept == isinstance(module, KEPT)


def test_nested_models_and_shared_structure() -> None:
    model = nn.Sequential(nn.Sequential(AOLLinear(4, 6), MinMax()), nn.Linear(6, 3))
    copy = plain(model)
    assert type(copy[0][0]) is nn.Linear
    x = torch.randn(5, 4)
    torch.testing.assert_close(copy(x), model.eval()(x))
    assert type(model[0][0]) is AOLLinear  # the model itself is untouched


def test_what_cannot_collapse_keeps_its_weights() -> None:
    copy = plain(nn.Sequential(SOCConv2d(2, 2)))
    x = torch.randn(1, 2, 4, 4)
    copy(x)
    kept = copy[0].weights()
    copy(x)
    assert copy[0].weights()[0] is kept[0]


def test_a_layer_that_is_used_twice_stays_one() -> None:
    layer = AOLLinear(4, 4)
    found = plain(nn.Sequential(layer, nn.ReLU(), layer))
    assert type(found[0]) is nn.Linear
    assert found[0] is found[2]
