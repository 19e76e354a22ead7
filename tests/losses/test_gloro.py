"""GloRo against its paper."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lipcert import InputError, PairLip
from lipcert.losses import CrossEntropy, GloRo, GloRoTrades, gloro_logits


def test_it_is_cross_entropy_plus_a_softplus_of_the_bottom_logit() -> None:
    logits, labels = torch.randn(20, 5).double(), torch.randint(5, (20,))
    lip = PairLip(torch.tensor(1.3).double(), torch.randn(5, 4).double())
    bottom = gloro_logits(logits, lip, 0.2)[:, -1]
    regulariser = F.softplus(bottom - logits.logsumexp(dim=1))
    expected = F.cross_entropy(logits, labels, reduction="none") + regulariser
    torch.testing.assert_close(GloRo(0.2)(logits, labels, lip), expected)


def test_bottom_wins_exactly_when_not_certified() -> None:
    logits = torch.randn(500, 4).double()
    lip = PairLip(torch.tensor(1.0).double(), torch.randn(4, 3).double())
    top = logits.argmax(dim=1)
    margin = logits.gather(1, top[:, None]) - logits - 0.3 * lip.rows(top)
    certified = (margin > 0).scatter(1, top[:, None], True).all(dim=1)
    assert 0 < certified.sum() < 500
    assert torch.equal(gloro_logits(logits, lip, 0.3).argmax(dim=1) != 4, certified)


def test_temperature_scales_all_logits() -> None:
    logits, labels = torch.randn(6, 3), torch.randint(3, (6,))
    lip = PairLip(torch.tensor(1.0), torch.randn(3, 2))
    expected = F.cross_entropy(4 * gloro_logits(logits, lip, 0.1), labels, reduction="none")
    torch.testing.assert_close(GloRo(0.1, temperature=4.0)(logits, labels, lip), expected)
    assert GloRo(0.1, temperature=4.0).whole_lipschitz(2.0) == 8


def test_the_gradient_reaches_the_constants() -> None:
    features = torch.tensor(1.0, requires_grad=True)
    lip = PairLip(features, torch.randn(3, 2))
    GloRo(0.1)(torch.randn(6, 3), torch.randint(3, (6,)), lip).sum().backward()
    assert features.grad > 0


@pytest.mark.parametrize("arguments", [{"eps": 0.0}, {"eps": -1.0}, {"eps": 0.1, "temperature": 0.0}])
def test_impossible_values_are_named(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError, match=list(arguments)[-1]):
        GloRo(**arguments)


@pytest.mark.parametrize(("form", "weight"), [("original", 3.0), ("added", 4.0)])
def test_trades_weighs_what_gloro_adds_to_cross_entropy(form: str, weight: float) -> None:
    logits, labels = torch.randn(20, 5).double(), torch.randint(5, (20,))
    lip = PairLip(torch.tensor(1.3).double(), torch.randn(5, 4).double())
    plain = CrossEntropy()(logits, labels, lip)
    added = GloRo(0.2)(logits, labels, lip) - plain
    trades = GloRoTrades(0.2, mu=3.0, form=form)(logits, labels, lip)  # type: ignore[arg-type]
    torch.testing.assert_close(trades, plain + weight * added)
    torch.testing.assert_close(GloRoTrades(0.2, mu=1.0)(logits, labels, lip), GloRo(0.2)(logits, labels, lip))
