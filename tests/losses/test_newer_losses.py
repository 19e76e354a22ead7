"""EMMA, logit annealing and HKR against what their papers say."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lipcert import PairLip
from lipcert.losses import AOL, EMMA, HKR, LMT, EMMAAnnealing, LogitAnnealing, emma_logits, transport


@pytest.fixture
def problem() -> tuple[Tensor, Tensor, PairLip]:
    torch.manual_seed(0)
    logits = torch.randn(8, 5).double()
    return logits, torch.randint(5, (8,)), PairLip(torch.tensor(2.0).double(), torch.randn(5, 4).double())


def test_emma_is_lmt_where_the_label_is_far_ahead(problem: tuple[Tensor, Tensor, PairLip]) -> None:
    logits, labels, lip = problem
    ahead = logits + 1000 * F.one_hot(labels, 5)
    torch.testing.assert_close(EMMA(0.1)(ahead, labels, lip), LMT(0.1)(ahead, labels, lip))


def test_emma_raises_no_rival_beyond_the_label(problem: tuple[Tensor, Tensor, PairLip]) -> None:
    logits, labels, lip = problem
    raised = emma_logits(logits, labels, lip, 10.0)
    own = logits.gather(1, labels[:, None])
    behind = logits < own - 0.01 * 10 * lip.rows(labels)  # those that the least part does not carry over
    assert behind.any()
    torch.testing.assert_close(raised[behind], own.expand_as(logits)[behind])


def test_the_part_of_eps_carries_no_gradient(problem: tuple[Tensor, Tensor, PairLip]) -> None:
    logits, labels, lip = problem
    f = logits.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(emma_logits(f, labels, lip, 10.0).sum(), f)
    assert torch.equal(gradient, torch.ones_like(f))


def test_annealing_as_printed(problem: tuple[Tensor, Tensor, PairLip]) -> None:
    logits, labels, lip = problem
    q = ((logits - 2.0 * F.one_hot(labels, 5)) / 0.75).softmax(1).gather(1, labels[:, None])[:, 0]
    expected = -0.75 * (1 - q) ** 5 * q.log()
    torch.testing.assert_close(LogitAnnealing()(logits, labels, lip), expected)
    raised = emma_logits(logits, labels, lip, 0.3)
    torch.testing.assert_close(EMMAAnnealing(0.3)(logits, labels, lip), LogitAnnealing()(raised, labels, lip))


def test_transport_is_a_difference_of_means(problem: tuple[Tensor, Tensor, PairLip]) -> None:
    logits, _, _ = problem
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    apart = [logits[labels == c, c].mean() - logits[labels != c, c].mean() for c in range(3)]
    apart += [-logits[:, c].mean() for c in (3, 4)]  # which have no sample
    torch.testing.assert_close(transport(logits, labels).mean(), sum(apart) / 5)


def test_hkr_by_hand() -> None:
    logits, labels = torch.tensor([[0.3, -1.0], [0.0, 0.6]]), torch.tensor([0, 1])
    lip = PairLip(torch.tensor(1.0), torch.eye(2))
    hinge = torch.tensor([(0.2 + 0.0) / 2, (0.5 + 0.0) / 2])
    moved = torch.tensor([(2 * 0.3 + 2 * 1.0) / 2, (0.0 + 2 * 0.6) / 2])
    torch.testing.assert_close(HKR(alpha=0.9)(logits, labels, lip), 0.9 * hinge - 0.1 * moved)


def test_one_class_in_a_batch_is_no_division_by_zero() -> None:
    lip = PairLip(torch.tensor(1.0), torch.eye(3))
    values = HKR()(torch.randn(4, 3), torch.zeros(4, dtype=torch.int64), lip)
    assert values.isfinite().all()


def test_a_temperature_is_part_of_the_loss_s_constant() -> None:
    assert AOL().whole_lipschitz(1.5) == 6.0  # as printed for SLL-XL on CIFAR-100
    assert LogitAnnealing(temperature=0.5).whole_lipschitz(1.0) == 2.0
    assert EMMAAnnealing(0.1, temperature=0.5).whole_lipschitz(3.0) == 6.0
