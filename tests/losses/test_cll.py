"""CLL against the paper: its definitions, its printed constants, its limits."""

from __future__ import annotations

import math

import flint
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert import Bounded, InputError, PairLip
from lipcert.losses import CLL, calibrated_scale
from lipcert.report.published import published


def binary_cll(f: Tensor, y: Tensor, k: Tensor, eps: float, slack: float, lam: float = 0.0) -> Tensor:
    """Definition 1 as printed, y in {-1, 1}, from the log-probability of the label."""
    scale = eps / math.log((1 - slack) / slack)
    return -F.logsigmoid(y * ((-y * eps + f / k) / scale)) + lam * k**2


def printed_rows() -> list[tuple[float, float, float, float]]:
    """(ε, p, printed K_hf, tolerance) of every CLL row and cell of the paper."""
    found = published()
    rows = [
        (row.epsilon, row.slack, row.k_hf, 0.06)
        for table in found.tables.values()
        for row in table
        if row.method == "CLL" and row.k_hf and row.slack and row.epsilon
    ]
    matrix = found.figures.epsilon_slack_matrix_8c2f_tiny_imagenet
    rows += [
        (eps, slack, k_hf, 0.08)
        for slack, line in zip(matrix.slack, matrix.k_hf, strict=True)
        for eps, k_hf in zip(matrix.epsilon, line, strict=True)
    ]
    return rows


def test_the_scale_reproduces_every_printed_constant() -> None:
    rows = printed_rows()
    assert len(rows) >= 33
    for eps, slack, k_hf, tolerance in rows:
        assert CLL(eps, slack).whole_lipschitz(k_f=123.0) == pytest.approx(k_hf, abs=tolerance)


@pytest.mark.parametrize("p", [1e-300, 1e-12, 0.01, 0.2499, 0.25, 0.2501, 0.4, 0.4999999, 0.5 - 2**-53])
def test_the_scale_is_exact_for_any_slack(p: float) -> None:
    flint.ctx.prec = 400
    truth = float(((1 - flint.arb(p)) / flint.arb(p)).log())
    assert 1 / float(calibrated_scale(1.0, p)) == pytest.approx(truth, rel=1e-15)
    tensor = calibrated_scale(1.0, torch.tensor(p, dtype=torch.float64))
    assert 1 / float(tensor) == pytest.approx(truth, rel=1e-15)


def test_the_scale_has_a_finite_gradient_in_slack() -> None:
    for p in (1e-300, 0.1, 0.25, 0.4):
        slack = torch.tensor(p, dtype=torch.float64, requires_grad=True)
        calibrated_scale(1.0, slack).backward()  # type: ignore[union-attr]
        assert torch.isfinite(slack.grad)


@pytest.mark.parametrize("slack", [0.3, 0.01, 1e-12, 1e-300])
@pytest.mark.parametrize("logits", [1, 2])
def test_one_side_with_two_classes_is_definition_1(slack: float, logits: int) -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, logits)).double()
    bounded = Bounded(model, (3,)).eval()
    x, labels = torch.randn(50, 3, dtype=torch.float64), torch.randint(2, (50,))
    f2, lip = bounded(x)
    f = f2[:, 1] - f2[:, 0]  # the scalar logit of the binary form
    y = 2 * labels.double() - 1
    loss = CLL(eps=0.15, slack=slack, lam=0.01, sides="one")
    ours = loss(f2, labels, lip) + loss.penalty(lip)
    torch.testing.assert_close(ours, binary_cll(f, y, lip.max(), 0.15, slack, 0.01), rtol=1e-13, atol=1e-13)


def test_two_sides_are_definition_2_as_printed() -> None:
    logits, labels = torch.randn(6, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 1, 2])
    lip = PairLip(torch.tensor(1.5).double(), torch.randn(4, 3).double())
    loss = CLL(eps=0.2, slack=0.1, beta=0.5)
    scale = float(loss.scale)
    for b, y in enumerate(labels.tolist()):
        z = []
        for i in range(4):
            if i == y:
                z.append(-0.2 / scale)
            else:
                k = float(1.5 * (lip.head[i] - lip.head[y]).norm())
                z.append(0.2 / scale + float(logits[b, i] - logits[b, y]) / (scale * 0.5 * k))
        expected = math.log(sum(math.exp(v) for v in z)) - z[y]
        assert float(loss(logits, labels, lip)[b]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("sides", "distance"), [("one", 1.0), ("two", 2.0)])
def test_probability_is_one_half_at_the_margin(sides: str, distance: float) -> None:
    lip = PairLip(torch.tensor(1.0), torch.tensor([[0.0], [1.0]]))
    loss = CLL(eps=0.3, slack=0.05, sides=sides)  # type: ignore[arg-type]
    value = loss(torch.tensor([[0.0, 0.3 * distance]]), torch.tensor([1]), lip)
    assert math.exp(-float(value)) == pytest.approx(0.5, abs=1e-6)


def test_the_offset_replaces_eps_in_the_margin_only() -> None:
    lip = PairLip(torch.tensor(1.0), torch.tensor([[0.0], [1.0]]))
    loss = CLL(eps=0.3, slack=0.05, offset=0.1, sides="one")
    assert float(loss.scale) == float(CLL(eps=0.3, slack=0.05).scale)
    value = loss(torch.tensor([[0.0, 0.1]]), torch.tensor([1]), lip)
    assert math.exp(-float(value)) == pytest.approx(0.5, abs=1e-6)


def test_the_logit_normaliser_divides_each_logit_by_its_own_constant() -> None:
    logits = torch.tensor([[2.0, 3.0, -1.0]]).double()
    lip = PairLip(torch.tensor(2.0).double(), torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]).double())
    loss = CLL(eps=0.2, slack=0.1, normaliser="logit")
    scale = float(loss.scale)
    quotients, side = torch.tensor([[2 / 2, 3 / 4, -1 / 10], [0.2, -0.2, 0.2]], dtype=torch.float64)
    z = (quotients + side) / scale
    expected = F.cross_entropy(z[None], torch.tensor([1]))
    assert float(loss(logits, torch.tensor([1]), lip)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("detach", [True, False])
def test_the_constant_carries_a_gradient_only_when_asked(detach: bool) -> None:
    head = torch.randn(3, 4, requires_grad=True)
    loss = CLL(eps=0.2, slack=0.1, lam=0.1, detach_constant=detach)
    lip = PairLip(torch.tensor(1.0), head)
    value = loss(torch.randn(5, 3, requires_grad=True), torch.randint(3, (5,)), lip).mean()
    (gradient,) = torch.autograd.grad(value, head, allow_unused=True)
    assert (gradient is None) == detach
    (gradient,) = torch.autograd.grad(loss.penalty(lip), head)
    assert gradient.abs().sum() > 0


def test_the_label_is_recognised_by_index_not_by_value() -> None:
    """Equal logits and equal head rows are still rivals."""
    lip = PairLip(torch.tensor(1.0), torch.ones(3, 2))
    value = CLL(eps=0.2, slack=0.1, sides="one")(torch.zeros(1, 3), torch.tensor([0]), lip)
    away = 0.2 / float(CLL(eps=0.2, slack=0.1).scale)
    assert float(value) == pytest.approx(math.log(1 + 2 * math.exp(away)), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slack": 0.5}, r"slack: expected between 0 and 0\.5, got 0\.5 .*halve"),
        ({"slack": 0.75}, "slack.*prints twice"),
        ({"slack": 0.0}, "slack"),
        ({"slack": math.nan}, "slack"),
        ({"eps": 0.0}, r"eps: expected a number > 0, got 0\.0"),
        ({"eps": -0.1}, "eps"),
        ({"eps": math.inf}, "eps"),
        ({"eps": "0.1"}, "eps"),
        ({"slack": "0.1"}, "slack"),
        ({"lam": -1.0}, "lam"),
        ({"lam": math.nan}, "lam"),
        ({"beta": 0.0}, "beta"),
        ({"offset": math.nan}, "offset"),
        ({"sides": "three"}, "sides: expected one of one, two"),
        ({"normaliser": "none"}, "normaliser"),
    ],
)
def test_impossible_values_are_named(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CLL(**{"eps": 0.1, "slack": 0.1, **arguments})  # type: ignore[arg-type]
