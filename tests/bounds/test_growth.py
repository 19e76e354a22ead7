"""Every rounding term of theorems 3 to 5 is in the code: each is made to stand out, and must be there."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lipcert.bounds.provers.fourier as fourier
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.evaluation import FLOAT32, LARGEST32, Deployed, Evaluation, _deployed, evaluate
from lipcert.bounds.growth import Growth, growths
from lipcert.bounds.proof import prove
from lipcert.bounds.provers.rounding import SAFETY, TINY, TINY32, U, gamma
from lipcert.bounds.provers.strips import Strip, strip_norm_upper
from lipcert.bounds.rules.linear import LinearRule, dot_roundoff
from lipcert.bounds.tracing.program import Program, trace
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.head import Head


def there(found: float | Tensor, formula: float) -> None:
    """At least the formula in full, and no more than a little above it."""
    assert formula <= float(torch.as_tensor(found).detach()) <= formula * (1 + 1e-5) + 1e-290


def column(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


def test_the_norm_of_a_sample_covers_squares_that_underflow() -> None:
    assert float(sample_norm(torch.full((1, 4), 1e-200).double())) >= 2e-200
    assert float(sample_norm(torch.zeros(1, 4).double())) >= 4 * 2.0**-530


def test_a_sum_of_products() -> None:
    there(dot_roundoff(torch.tensor([[3.0, 4.0]]).double(), terms=9), 5 * gamma(10))
    # Products that underflow, each by half of the smallest number.
    assert float(dot_roundoff(torch.zeros(1, 2).double(), terms=9)) >= 2 * 10 * 2.0**-1074


def standing_out(part: str) -> Program:
    """A dense layer whose weights, or biases, are large beside the others."""
    layer = nn.Linear(3, 2).double()
    for name, parameter in layer.named_parameters():
        nn.init.constant_(parameter, -1e6 if name == part else 1e-6)
    return trace(nn.Sequential(layer), (3,))


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_dense_layer_counts_weights_and_biases(part: str) -> None:
    program = standing_out(part)
    x = torch.tensor([[1.0, -1.0, 2.0]]).double()
    size = 4e6 if part == "weight" else 1e6
    there(evaluate(program, prove(program), x, float32=False).error, gamma(4) * size * math.sqrt(2))


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_the_length_of_an_input_counts_weights_and_biases(part: str) -> None:
    program = standing_out(part)
    (growth,) = growths(program, prove(program))
    assert growth is not None
    x = torch.tensor([[1.0, -2.0, 2.0]]).double()
    # ‖|W|‖ is √6 of its entries; m + 2 units instead of γ of m + 1.
    there(growth(x), 5 * U * 3 * 1e6 * math.sqrt(6) if part == "weight" else gamma(4) * 1e6 * math.sqrt(2))
    found = evaluate(program, prove(program), x, float32=False, growths=[growth]).error
    assert torch.equal(found, SAFETY * growth(x))


def test_layers_are_looked_at_where_the_length_of_their_input_says_too_little() -> None:
    program = trace(nn.Sequential(nn.Linear(2, 2).double()), (2,))
    bound = prove(program)
    for upper, is_known in (
        (bound.value, True),
        (1e-9, False),
    ):  # rounding errors of 1e-15 are much beside that
        (growth,) = growths(program, replace(bound, layers=(replace(bound.layers[0], upper=upper),)))
        assert (growth is not None) is is_known


def test_a_rule_without_a_gain_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LinearRule, "roundoff_gain")
    program = trace(nn.Sequential(nn.Linear(2, 2).double()), (2,))
    bound, x = prove(program), torch.randn(3, 2).double()
    assert growths(program, bound) == [None]
    found, looked = (evaluate(program, bound, x, False, growths=g) for g in (growths(program, bound), ()))
    assert torch.equal(found.error, looked.error)


def test_a_rule_for_certificates_that_ignore_rounding_needs_no_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("roundoff", "roundoff_gain"):
        monkeypatch.delattr(LinearRule, name)
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    assert float(Certifier(model, (2,))(torch.ones(1, 2), rounding="ignored").radius) >= 0


def test_squares_of_weights_that_underflow_bound_nothing() -> None:
    layer = nn.Linear(300, 300, bias=False).double()
    nn.init.constant_(layer.weight, 1.5e-162)
    program = trace(nn.Sequential(layer), (300,))
    assert growths(program, prove(program)) == [None]


def test_roundings_of_what_may_have_overflowed_are_infinite() -> None:
    x = torch.tensor([[1e150], [1e100]], dtype=torch.float64)
    assert Growth(still=0.0, slope=1e130)(x).isinf().tolist() == [True, False]
    assert Growth(still=0.0, slope=1.0)(x.fill_(torch.nan)).isinf().all()


def test_the_error_of_a_layer_is_carried_by_the_next() -> None:
    first, second = nn.Linear(1, 1).double(), nn.Linear(1, 1, bias=False).double()
    for parameter, value in ((first.weight, 0.0), (first.bias, 1.0), (second.weight, 1e3)):
        nn.init.constant_(parameter, value)
    program = trace(nn.Sequential(first, second), (1,))
    bound = prove(program)
    found = evaluate(program, bound, column(0.0)[:, None], float32=False)
    there(found.error, 1e3 * gamma(2) + 1e3 * gamma(2))


def head(weight: float, bias: float) -> Head:
    layer = nn.Linear(2, 2).double()
    layer.weight.data = torch.tensor([[weight, 0.0], [0.0, weight]]).double()
    layer.bias.data = torch.tensor([bias, -bias]).double()
    return Head.linear(layer)


TOP = torch.tensor([0])


@pytest.mark.parametrize(
    ("weight", "bias", "features", "error", "margin", "formula"),
    [
        (1.0, 0.0, 0.0, 1e6, 0.0, math.sqrt(2) * 1e6),  # the features' error
        (1.0, 0.0, 1e6, 0.0, 0.0, gamma(4) * 2e6),  # products
        (1e-9, 1e6, 0.0, 0.0, 0.0, gamma(4) * 2e6),  # biases
        (1e-9, 0.0, 0.0, 0.0, 1e6, 4 * U * 1e6),  # differences
        (0.0, 0.0, 0.0, 0.0, 0.0, 3 * TINY),  # underflow
    ],
)
def test_a_margin(
    weight: float, bias: float, features: float, error: float, margin: float, formula: float
) -> None:
    at_x = Evaluation(torch.full((1, 2), features).double(), column(error))
    found = head(weight, bias).margin_error(at_x, TOP, torch.tensor([[0.0, margin]]).double())[0, 1]
    assert formula * (1 - 1e-15) <= float(found) <= formula * (1 + 1e-5)


G32 = FLOAT32 * gamma(4)
NOTHING = Deployed(column(0.0), column(0.0), 0.0, column(math.inf))


@pytest.mark.parametrize(
    ("features", "bias", "error", "deployed", "lost", "growing"),
    [
        (0.0, 0.0, 0.0, replace(NOTHING, a=column(1e6)), math.sqrt(2) * 1e6 + G32 * 2e6, 0.0),
        (1e6, 0.0, 0.0, NOTHING, G32 * 2e6, 0.0),
        (0.0, 1e6, 0.0, NOTHING, G32 * 2e6, 0.0),
        (0.0, 0.0, 1e6, NOTHING, G32 * 2e6, 0.0),
        (0.0, 0.0, 0.0, replace(NOTHING, b=column(1e6)), 6 * TINY32, math.sqrt(2) * 1e6 + G32 * 2e6),
        (0.0, 0.0, 0.0, replace(NOTHING, lipschitz=1e6), 6 * TINY32, G32 * 2e6),
    ],
)
def test_a_float32_margin(
    features: float, bias: float, error: float, deployed: Deployed, lost: float, growing: float
) -> None:
    at_x = Evaluation(torch.full((1, 2), features).double(), column(error))
    found, grows = (part[0, 1] for part in head(1.0, bias).float32_error(at_x, deployed, TOP))
    for value, formula in ((found, lost), (grows, growing)):
        assert formula * (1 - 1e-12) <= float(value) <= formula * (1 + 1e-5) + 1e-30


def test_a_float32_margin_of_equal_rows_is_all_rounding() -> None:
    equal = nn.Linear(2, 2).double()
    equal.weight.data = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double()
    at_x = Evaluation(torch.zeros(1, 2).double(), column(0.0))
    found = Head.linear(equal).float32_error(at_x, replace(NOTHING, a=column(1e6), b=column(1e6)), TOP)
    for value in found:
        assert float(value[0, 1]) == pytest.approx(G32 * 2e6, rel=1e-4)


def layer(**parts: Any) -> Any:
    """A step whose rounding errors are what the test says."""
    rule = SimpleNamespace(
        join_errors=lambda errors: errors[0],
        join_upper=lambda constants: constants[0],
        roundoff_gain=lambda module: parts.get("gain", 0.0) / U,
        products=lambda module: 7,
        float32_underflow=lambda module: 9 * TINY32,
    )
    return SimpleNamespace(rule=rule, module=None, path="it", shape=(5,), departure=0.0)


@pytest.mark.parametrize(
    ("parts", "a", "b"),
    [
        ({"upper": 3.0, "before_a": 1e6}, 3e6, 0.0),
        ({"upper": 3.0, "before_b": 1e6}, 0.0, 3e6),
        ({"roundoff": 1e6}, FLOAT32 * 1e6, 0.0),
        ({"gain": 2.0, "error": 1e6}, FLOAT32 * 2e6, 0.0),
        ({"gain": 2.0, "before_a": 1e6}, FLOAT32 * 2e6, 0.0),
        ({"gain": 2.0, "lipschitz": 1e6}, 0.0, FLOAT32 * 2e6),
        ({"gain": 2.0, "before_b": 1e6}, 0.0, FLOAT32 * 2e6),
        ({}, 5 * 9 * TINY32, 0.0),
    ],
)
def test_a_float32_layer(parts: dict[str, float], a: float, b: float) -> None:
    a0, b0 = column(parts.get("before_a", 0.0)), column(parts.get("before_b", 0.0))
    before = replace(NOTHING, a=a0, b=b0, lipschitz=parts.get("lipschitz", 0.0))
    roundoff, error = column(parts.get("roundoff", 0.0)), column(parts.get("error", 0.0))
    after = _deployed(layer(**parts), parts.get("upper", 0.0), roundoff, error, [before])
    for value, formula in ((after.a, a), (after.b, b)):
        assert formula * (1 - 1e-12) <= float(value) <= formula * (1 + 1e-5) + 1e-30


@pytest.mark.parametrize(
    ("parts", "limit"),
    [
        ({"roundoff": U * LARGEST32}, -1.0),
        ({"gain": U, "error": LARGEST32}, -1.0),
        ({"gain": U, "before_a": LARGEST32}, -1.0),
        ({"gain": U, "lipschitz": 4.0}, LARGEST32 / 4),
        ({"gain": U, "before_b": 4.0}, LARGEST32 / 4),
        ({"gain": U, "lipschitz": 4.0, "roundoff": U * LARGEST32 / 2}, LARGEST32 / 8),
        ({}, math.inf),
        ({"gain": U, "before_a": math.inf, "before_b": math.inf}, -1.0),
    ],
)
def test_where_float32_may_overflow(parts: dict[str, float], limit: float) -> None:
    a, b = column(parts.get("before_a", 0.0)), column(parts.get("before_b", 0.0))
    before = replace(NOTHING, a=a, b=b, lipschitz=parts.get("lipschitz", 0.0))
    roundoff, error = column(parts.get("roundoff", 0.0)), column(parts.get("error", 0.0))
    after = float(_deployed(layer(**parts), 1.0, roundoff, error, [before]).limit)
    assert (after < 0) if limit < 0 else after == pytest.approx(limit, rel=1e-5)
    kept = _deployed(layer(), 1.0, column(0.0), column(0.0), [replace(NOTHING, limit=column(7.0))])
    assert float(kept.limit) == 7


def test_the_symbol_of_a_convolution_may_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 4: the Frobenius norm of (γ_{4k²+8} + 16u)Σ|w| comes on top of the norm of the symbol."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(fourier, "gram_upper", lambda gram, **settings: seen.append(settings) or 0.0)
    weight = torch.full((2, 3, 3, 3), -0.5).double()
    strip = Strip(axis=0, first=0, last=4, outputs=5, circle=5)
    by_factors = fourier.largest_norm_upper
    for bound in (fourier.circular_norm_upper(weight, (5, 5)), strip_norm_upper(weight, strip, by_factors)):
        there(bound, (gamma(4 * 9 + 8) + 16 * U) * 4.5 * math.sqrt(6))
    # A Gram matrix sums 2·max(o, i) products, in a strip those of 5 cells; their rounding counts.
    assert {settings["terms"] for settings in seen} == {6, 30}
    assert all(settings["absolute"] > 0 for settings in seen)
