"""Logits, constants, loss and penalty of a training step are one graph for torch.compile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from lipcert import Bounded
from lipcert.losses import CLL, LOSSES, Loss
from lipcert.models import MODELS, ModelCard
from lipcert.waiting import as_on_an_accelerator

pytestmark = pytest.mark.slow

PAPER = ("mlp", "4c3f", "6c2f", "8c2f", "lipconv", "cpl", "sll", "sandwich")


def check(model: nn.Module, shape: tuple[int, ...], classes: int, loss: Loss, backend: str) -> None:
    """Compare the objective, its gradients and the vectors that follow the weights with an eager step's."""
    torch._dynamo.reset()
    x, y = torch.rand(6, *shape), torch.arange(6) % classes
    bounded = Bounded(model, shape, estimate="block")
    state = {name: value.clone() for name, value in bounded.state_dict().items()}

    def objective(x: Tensor, y: Tensor) -> Tensor:
        logits, lip = bounded(x, turn=(0, 2))
        return loss(logits, y, lip).mean() + loss.penalty(bounded.near(lip, y))

    found = []
    for step in (objective, torch.compile(objective, backend=backend, fullgraph=True)):
        bounded.load_state_dict(state)
        bounded.zero_grad()
        value = step(x, y)
        value.backward()  # type: ignore[no-untyped-call]
        vectors = [buffer.clone() for buffer in bounded.buffers() if buffer.is_floating_point()]
        found.append([value.detach(), *(p.grad for p in model.parameters() if p.grad is not None), *vectors])
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-3, atol=1e-5)


@pytest.fixture(autouse=True)
def _as_on_an_accelerator() -> Iterator[None]:
    with as_on_an_accelerator():
        yield


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_is_one_graph(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    check(model, (3, 8, 8), 5, LOSSES.example(name), "aot_eager")


@pytest.mark.parametrize("name", PAPER)
def test_models_of_the_paper_are_one_graph(name: str) -> None:
    arguments = dict(MODELS[name].example)
    classes, shape = arguments.pop("num_classes", 3), tuple(arguments.pop("input_shape", (2,)))
    torch.manual_seed(0)
    model = ModelCard(name, classes, shape, arguments).build()
    check(model, shape, classes, CLL(eps=0.1, slack=0.1, lam=1e-3), "aot_eager")
