"""`PairLip`: every pair, from differences, without a B×D×N tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert import PairLip
from lipcert.types import MANY, farthest, pairwise_distance


def brute(lip: PairLip) -> Tensor:
    return lip.features * (lip.head[:, None] - lip.head).norm(dim=2)


@given(n=st.integers(2, 40), d=st.integers(1, 5), batch=st.integers(1, 60), seed=st.integers(0, 99))
def test_rows_and_max_are_those_of_the_whole_table(n: int, d: int, batch: int, seed: int) -> None:
    torch.manual_seed(seed)
    lip = PairLip(torch.tensor(1.7).double(), torch.randn(n, d).double())
    index = torch.randint(n, (batch,))
    torch.testing.assert_close(lip.rows(index), brute(lip)[index])
    torch.testing.assert_close(lip.max(), brute(lip).max())
    torch.testing.assert_close(lip.singles()[0], 1.7 * lip.head.norm(dim=1))


def test_local_constants_differ_by_sample() -> None:
    lip = PairLip(torch.tensor([1.0, 2.0]), torch.tensor([[0.0], [3.0]]))
    assert lip.rows(torch.tensor([0, 0])).tolist() == [[0, 3], [0, 6]]
    assert float(lip.max()) == 6


@pytest.mark.parametrize("n", [2, 30, 200])
def test_close_rows_do_not_cancel(n: int) -> None:
    """Where a² + b² − 2ab loses every digit."""
    head = (torch.ones(n, 64) * 100).float()
    head[1, 0] += 1e-3
    step = float(head[1, 0] - head[0, 0])
    lip = PairLip(torch.tensor(1.0), head)
    for index in (torch.tensor([1]), torch.ones(n + 1, dtype=torch.int64)):
        assert float(lip.rows(index)[0, 0]) == pytest.approx(step, rel=1e-6)
    assert float(lip.max()) == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_of_many_classes_the_rows_are_quick_and_nearly_right(offset: float) -> None:
    torch.manual_seed(0)
    head = (torch.randn(MANY + 50, 32) + offset).requires_grad_()
    index = torch.randint(len(head), (16,))
    lip = PairLip(torch.tensor(2.0), head)
    exact = 2 * pairwise_distance(head[index], head)
    quick = lip.rows(index)
    torch.testing.assert_close(quick, exact, rtol=1e-3, atol=1e-2)
    assert (quick.gather(1, index[:, None]) == 0).all()
    slope = torch.rand_like(exact)
    ours, theirs = (torch.autograd.grad(rows, head, slope)[0] for rows in (quick, exact))
    torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-2)


def test_a_maximum_over_some_pairs() -> None:
    torch.manual_seed(0)
    head = torch.randn(3000, 8).requires_grad_()
    lip = PairLip(torch.tensor(2.0), head)
    labels = torch.tensor([5, 17])
    among = brute(PairLip(lip.features, head.detach()))[labels].max()
    assert among <= lip.near(labels, torch.tensor([0, 1])).max().detach() <= lip.max().detach()
    worst = farthest(head, torch.arange(3000))
    torch.testing.assert_close(lip.near(labels, worst).max(), lip.max())
    (slope,) = torch.autograd.grad(lip.near(labels, worst).max(), head)
    assert slope.any(1).nonzero().flatten().tolist() == sorted(worst.tolist())


@pytest.mark.parametrize(("classes", "samples"), [(4, 6), (9, 5)])
def test_under_vmap_every_model_has_its_own(classes: int, samples: int) -> None:
    torch.manual_seed(0)
    models = [PairLip(torch.rand(()), torch.randn(classes, 3)) for _ in range(3)]
    stack = PairLip(*(torch.stack(part) for part in zip(*models, strict=True)))
    index = torch.randint(classes, (3, samples))
    rows = [model.rows(i) for model, i in zip(models, index, strict=True)]
    assert torch.equal(torch.vmap(PairLip.rows)(stack, index), torch.stack(rows))
    assert torch.equal(torch.vmap(PairLip.max)(stack), torch.stack([m.max() for m in models]))
    assert torch.equal(torch.vmap(PairLip.singles)(stack), torch.stack([m.singles() for m in models]))


def test_the_largest_pair_is_found_beyond_one_chunk() -> None:
    head = torch.zeros(3000, 2)
    head[2999, 0], head[17, 0] = 3.0, -2.0
    assert float(PairLip(torch.tensor(1.0), head).max()) == 5


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for t in torch.utils._pytree.tree_leaves(result):
            if isinstance(t, Tensor):
                self.numel = max(self.numel, t.numel())
        return result


@pytest.mark.parametrize(("batch", "classes"), [(32, 100), (300, 100)])
def test_no_tensor_of_batch_times_features_times_classes(batch: int, classes: int) -> None:
    lip = PairLip(torch.tensor(1.0), torch.randn(classes, 64, requires_grad=True))
    with LargestTensor() as largest:
        (lip.rows(torch.randint(classes, (batch,))).sum() + lip.max()).backward()
    assert largest.numel <= max(batch, classes) * max(classes, 64)


def test_equal_rows_have_a_finite_gradient() -> None:
    head = torch.ones(3, 4, requires_grad=True)
    PairLip(torch.tensor(1.0), head).rows(torch.tensor([0, 1])).sum().backward()
    assert torch.isfinite(head.grad).all()


def test_classes_are_picked_without_waiting_for_the_device() -> None:
    """The meta device has no values: whoever asks for one, as a wait for a GPU would be for, raises."""
    head, labels = torch.empty(3000, 4, device="meta"), torch.empty(5, dtype=torch.int64, device="meta")
    pair = farthest(head, labels)
    assert pair.shape == (2,)
    near = PairLip(torch.empty((), device="meta"), head).near(labels, pair)
    assert near.head.shape == (4, 4)
