"""Norms from below by small Krylov spaces."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from lipcert.bounds.contract import rule_of
from lipcert.bounds.krylov import first_vector
from lipcert.waiting import as_on_an_accelerator

CASES = {
    "convolution": (nn.Conv2d(8, 16, 3, padding=1), (8, 9, 9)),
    "strided": (nn.Conv2d(4, 8, 4, stride=2, padding=1), (4, 10, 10)),
    "dense": (nn.Linear(300, 200), (300,)),
}


@torch.no_grad()
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("products", [2, 3, 5, 8])
def test_a_krylov_space_is_never_worse_than_power_iteration(name: str, products: int) -> None:
    module, shape = CASES[name]
    module = module.double()
    rule = rule_of(module)
    start = first_vector(shape, 0, like=torch.zeros((), dtype=torch.float64))
    estimates = [
        float(rule.estimate(module, vector))
        for vector in (
            rule.power(module, start, products),
            rule.iterate(module, start, products),
            rule.iterate(module, start, 400),
        )
    ]
    assert estimates == sorted(estimates)
    assert estimates[1] > estimates[0] * (1 + 1e-4)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "fill",
    [
        lambda w: w.zero_(),
        lambda w: w.fill_(1e-30),
        lambda w: w.fill_(1e25),
        lambda w: w.fill_(torch.nan),
        lambda w: w.fill_(torch.inf),
        lambda w: w.copy_(torch.ones_like(w)),  # rank one: the space ends at once
    ],
    ids=["zero", "tiny", "huge", "nan", "inf", "rank one"],
)
def test_odd_weights_leave_a_unit_vector(fill, dtype: torch.dtype) -> None:
    for module, shape in ((nn.Conv2d(2, 3, 3, padding=1), (2, 5, 5)), (nn.Linear(100, 90), (100,))):
        module = module.to(dtype)
        fill(module.weight)
        rule = rule_of(module)
        vector = rule.iterate(module, first_vector(shape, 0, like=module.weight), 20)
        assert vector.isfinite().all()
        assert float(torch.linalg.vector_norm(vector)) == pytest.approx(1, abs=1e-5)


@torch.no_grad()
def test_a_space_larger_than_the_layer() -> None:
    conv = nn.Conv2d(1, 2, 1).double()
    vector = rule_of(conv).iterate(conv, first_vector((1, 1, 3), 0, like=conv.weight), 8)
    assert float(rule_of(conv).estimate(conv, vector)) == pytest.approx(float(conv.weight.norm()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squaring_finds_what_the_solver_finds(dtype: torch.dtype) -> None:
    for module, shape in CASES.values():
        module, found = module.to(dtype), []
        for place in (contextlib.nullcontext, as_on_an_accelerator):
            rule = rule_of(module)
            with torch.no_grad(), place():
                vector = rule.iterate(module, first_vector(shape, 0, like=module.weight), 16)
                found.append(float(rule.estimate(module, vector)))
        assert found[1] == pytest.approx(found[0], rel=1e-3)
