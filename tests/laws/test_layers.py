"""What every module type with a rule obeys; most of it is in `lipcert.laws.layer_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from lipcert.bounds import upper
from lipcert.bounds.contract import RULES, Example, rule_of
from lipcert.bounds.following import followers_in, one_step
from lipcert.bounds.provers.rounding import U
from lipcert.certificates.certifier import Certifier
from lipcert.errors import InputError
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.laws import Law
from lipcert.laws.layer_laws import LAYER_LAWS, made, norms, proved, rule_on, without_gain, worst_stretch
from lipcert.nn.bases.derived import Built, Derived
from lipcert.types import Shape
from tests.laws.obeyed import every_law

EXAMPLES = {
    f"{kind.__name__}-{i}": example
    for kind, registered in RULES.items()
    for i, example in enumerate(registered.examples)
}
every_layer = pytest.mark.parametrize("name", sorted(EXAMPLES))
JOINS = {"Add", "Concatenate"}  # several inputs: their constants are in how they join


def make(name: str, dtype: torch.dtype = torch.float64) -> tuple[nn.Module, Shape]:
    return made(EXAMPLES[name], dtype)


BUILT = [name for name in sorted(EXAMPLES) if isinstance(make(name)[0], Derived)]
every_built_layer = pytest.mark.parametrize("name", BUILT)


@every_law(LAYER_LAWS)
def test_law(law: Law[Example], make: Callable[[], Example]) -> None:
    law(make())


@every_layer
def test_its_rule_bounds_rounding_error(name: str) -> None:
    """Rules of other code may leave that out."""
    assert not without_gain(EXAMPLES[name])


@every_built_layer
@torch.no_grad()
def test_the_length_of_an_input_bounds_its_rounding_error_in_an_exported_graph(name: str) -> None:
    """There layers compute in other ways."""
    module, shape = make(name)
    outputs = module(torch.zeros(1, *shape, dtype=torch.float64)).numel()
    model = nn.Sequential(module, nn.Flatten(), nn.Linear(outputs, 2)).double().eval()
    graph = CertifiedGraph(Certifier(model, shape))
    step, growth = graph._program.steps[0], graph._growths[0]
    x = torch.randn(64, *shape, dtype=torch.float64)
    assert growth is not None
    assert (step.rule.roundoff(step.module, [x], step.module(x)) <= growth(x)).all()


@pytest.mark.parametrize("name", [n for n in sorted(EXAMPLES) if n.partition("-")[0] in JOINS])
def test_joins_add_up(name: str) -> None:
    """Two inputs that both move: the joined constant is the largest stretch there can be."""
    module, shape = make(name)
    rule = rule_on(module, shape)
    x, dx = torch.randn(2, 64, *shape, dtype=torch.float64)
    a, b = 3.0, 4.0
    stretch = norms(module(a * (x + dx), b * (x + dx)) - module(a * x, b * x)) / norms(dx)
    constant = rule.join_upper([a, b])
    assert float(stretch.max()) <= constant * (1 + 1e-14)  # the stretch itself is rounded
    assert float(stretch.max()) >= constant * (1 - 1e-12)
    estimate = rule.join_estimate([torch.tensor(a).double(), torch.tensor(b).double()])
    assert float(estimate) == pytest.approx(constant)
    inputs = [torch.randn(256, *shape), torch.randn(256, *shape)]
    error = norms(module(*inputs).double() - module(*[i.double() for i in inputs]))
    bound = rule.roundoff(module, [i.double() for i in inputs], module(*[i.double() for i in inputs]))
    assert (error <= bound * (2.0**-24 / U)).all()


@every_built_layer
def test_the_proof_is_about_the_weights_it_executes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that says 1 whatever its weights is caught."""
    module, shape = make(name)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p))
    module(torch.zeros(1, *shape, dtype=torch.float64))  # some weights are made for the size of the image
    larger = tuple(30 * weight for weight in module.weights())
    monkeypatch.setattr(module, "weights", lambda: larger)
    stretch = worst_stretch(module, shape, torch.float64)
    assert stretch > 1.2
    assert stretch <= rule_of(module).upper(module, shape, "auto").value


@every_built_layer
@pytest.mark.parametrize("factor", [0.0, 1e-12, 1e12])
def test_zero_tiny_and_huge_weights(name: str, factor: float) -> None:
    module, shape = make(name)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(factor)
    assert module(torch.randn(4, *shape, dtype=torch.float64)).isfinite().all()
    bound = proved(module, shape)
    assert worst_stretch(module, shape, torch.float64) <= bound
    # A Cayley transform of huge matrices is not quite orthogonal in floating point; the proof notices.
    if isinstance(rule_of(module), Built) and not (factor > 1 and "Sandwich" in name):
        assert bound <= 1 + 1e-3


@every_built_layer
def test_training_carries_gradients_and_evaluation_makes_weights_once(name: str) -> None:
    module, shape = make(name)
    x = torch.randn(4, *shape, dtype=torch.float64)
    module(x)
    made = module.weights()
    module(x)
    assert all(a is b for a, b in zip(made, module.weights(), strict=True))
    module.train()(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    made = module.eval().weights()
    with torch.no_grad():
        next(module.parameters()).mul_(0.5)
    assert not all(a is b for a, b in zip(made, module.weights(), strict=True))


@every_built_layer
def test_nothing_is_proved_of_weights_in_training(name: str) -> None:
    module, shape = make(name)
    with pytest.raises(InputError, match="eval"):
        upper(module.train(), shape)


@pytest.mark.parametrize("training", [False, True], ids=["evaluated", "trained"])
@pytest.mark.parametrize(
    "name", [name for name in sorted(EXAMPLES) if isinstance(EXAMPLES[name]()[0], Derived)]
)
def test_a_transform_leaves_nothing_behind(name: str, training: bool) -> None:
    """Weights that are kept outlive the derivative during which they were made."""
    module, shape = make(name)
    x = torch.randn(2, *shape, dtype=torch.float64)
    module.train(training)
    with one_step(followers_in(module), first=True):  # or each call would improve the weights a little
        for _ in range(2):
            value, _ = torch.func.jvp(module, (x,), (torch.ones_like(x),))
        torch.testing.assert_close(module(x), value)
    torch.func.jvp(module, (x,), (torch.ones_like(x),))
    assert torch.isfinite(module(x)).all()
