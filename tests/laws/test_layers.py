"""What every module type with a rule obeys. A new rule is tested because it is registered."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lipcert.nn  # noqa: F401  registers lipcert's own layers
from lipcert.bounds import upper
from lipcert.bounds.contract import RULES, Rule, rule_of
from lipcert.bounds.following import followers_in, one_step
from lipcert.bounds.growth import growths
from lipcert.bounds.proof import prove
from lipcert.bounds.provers.rounding import U
from lipcert.bounds.tracing.program import trace
from lipcert.certificates.certifier import Certifier
from lipcert.errors import InputError
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.nn.bases.derived import Built, Derived

EXAMPLES = {
    f"{kind.__name__}-{i}": example
    for kind, registered in RULES.items()
    for i, example in enumerate(registered.examples)
}
every_layer = pytest.mark.parametrize("name", sorted(EXAMPLES))
every_layer_with_weights = pytest.mark.parametrize(
    "name", [name for name in sorted(EXAMPLES) if list(EXAMPLES[name]()[0].parameters())]
)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)

JOINS = {"Add", "Concatenate"}  # several inputs: their constants are in how they join


def make(name: str, dtype: torch.dtype = torch.float64) -> tuple[nn.Module, tuple[int, ...]]:
    torch.manual_seed(1)
    module, shape = EXAMPLES[name]()
    return module.to(dtype).eval(), shape


BUILT = [name for name in sorted(EXAMPLES) if isinstance(make(name)[0], Derived)]
every_built_layer = pytest.mark.parametrize("name", BUILT)


def rule_on(module: nn.Module, shape: tuple[int, ...]) -> Rule[Any]:
    """The rule as a traced model has it."""
    return rule_of(module).on(module, shape)


def proved(module: nn.Module, shape: tuple[int, ...]) -> float:
    return upper(module, shape).value


def norms(x: Tensor) -> Tensor:
    return x.flatten(1).double().norm(dim=1)


def worst_stretch(module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> float:
    """The largest ‖f(x) − f(y)‖/‖x − y‖ found: random pairs near and far, turned by gradient ascent.

    Less what rounding may have added to it: a few units of the values it is the difference of.
    """
    x = torch.randn(64, *shape, dtype=dtype)
    distance = torch.logspace(-2, 1, 64, dtype=dtype)
    unit = 64 * torch.finfo(dtype).eps
    move = torch.randn_like(x)
    worst = 0.0
    for _ in range(20):
        move = (
            (move * (distance / norms(move).to(dtype)).view(-1, *[1] * len(shape))).detach().requires_grad_()
        )
        here, there = module(x), module(x + move)
        stretch = (there - here).flatten(1).norm(dim=1) / norms((x + move) - x)
        doubt = unit * (norms(here) + norms(there) + norms(x)) / distance
        worst = max(worst, float((stretch - doubt).detach().max()))
        (gradient,) = torch.autograd.grad(stretch.sum(), move)
        length = norms(gradient).clamp_min(1e-30).to(dtype).view(-1, *[1] * len(shape))
        move = move + 0.3 * distance.view(length.shape) * gradient / length
    return worst


@every_dtype
@every_layer
def test_no_pair_of_points_beats_the_proved_bound(name: str, dtype: torch.dtype) -> None:
    module, shape = make(name, dtype)
    assert worst_stretch(module, shape, dtype) <= proved(module, shape)


@every_layer
def test_the_fast_bound_is_above_the_exact_one(name: str) -> None:
    module, shape = make(name)
    assert upper(module, shape, effort="fast").value >= upper(module, shape, effort="exact").value * (
        1 - 1e-9
    )


@every_layer_with_weights
def test_the_bound_follows_the_weights_it_executes(name: str) -> None:
    module, shape = make(name)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(7.0).add_(torch.randn_like(p))
    assert worst_stretch(module, shape, torch.float64) <= proved(module, shape)


@every_layer_with_weights
def test_the_bound_holds_after_training_steps_and_a_copy(name: str) -> None:
    module, shape = make(name)
    optimizer = torch.optim.SGD(module.train().parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.randn(8, *shape, dtype=torch.float64)).square().mean().backward()
        optimizer.step()
    module.eval()
    other, _ = make(name)
    other.load_state_dict(copy.deepcopy(module.state_dict()))
    assert worst_stretch(module, shape, torch.float64) <= proved(other, shape)
    assert proved(copy.deepcopy(module), shape) == proved(module, shape)


@every_layer
@torch.no_grad()
def test_the_estimate_converges_to_the_bound_from_below(name: str) -> None:
    module, shape = make(name)
    rule = rule_on(module, shape)
    vector = None
    if rule.has_vector:
        vector = torch.randn(shape, dtype=torch.float64)
        vector = rule.iterate(module, vector / vector.norm(), 2000)
        jacobian = torch.func.jacrev(lambda v: module(v[None])[0])(torch.zeros(shape, dtype=torch.float64))
        outputs = jacobian.numel() // vector.numel()
        truth = float(torch.linalg.matrix_norm(jacobian.reshape(outputs, -1), 2))
        assert float(rule.estimate(module, vector)) == pytest.approx(truth, rel=1e-6)
        assert float(rule.estimate(module, vector)) <= truth * (1 + 1e-12)
    fast = upper(module, shape, effort="fast").value
    if isinstance(rule, Built):
        assert float(rule.estimate(module, vector)) == 1
        assert fast <= 1 + 1e-3
        return
    assert float(rule.estimate(module, vector)) <= fast * (1 + 1e-12)


@every_layer
def test_rounding_stays_within_its_bound(name: str) -> None:
    """In float32, where the truth is at hand: the bound scales with the unit roundoff."""
    module, shape = make(name, torch.float32)
    exact = copy.deepcopy(module).double()
    for size in (1e-3, 1.0, 1e3):
        x = size * torch.randn(256, *shape)
        with torch.no_grad():
            error = norms(module(x).double() - exact(x.double()))
            bound = rule_on(exact, shape).roundoff(exact, [x.double()], exact(x.double()))
        assert bound.shape == (256,)
        assert (error <= bound * (2.0**-24 / U) + 1e-36).all()


@every_layer
def test_roundings_grow_no_faster_than_their_gain(name: str) -> None:
    module, shape = make(name)
    rule = rule_on(module, shape)
    x, dx = torch.randn(2, 256, *shape, dtype=torch.float64)
    x[::2] = 0  # from nothing, where sums of absolute values grow fastest
    with torch.no_grad():
        here, there = (rule.roundoff(module, [p], module(p)) / U for p in (x, x + dx))
    assert ((there - here).abs() <= rule.roundoff_gain(module) * norms(dx) * (1 + 1e-9)).all()


@every_layer
@torch.no_grad()
def test_the_length_of_an_input_bounds_its_roundings(name: str) -> None:
    module, shape = make(name)
    program = trace(nn.Sequential(module), shape)
    (growth,) = growths(program, prove(program))
    rule = rule_on(module, shape)
    if growth is None:  # exact
        assert rule.roundoff_gain(module) == 0
        return
    for size in (0.0, 1e-3, 1.0, 1e3):
        x = size * torch.randn(256, *shape, dtype=torch.float64)
        assert (rule.roundoff(module, [x], module(x)) <= growth(x)).all()


@every_built_layer
@torch.no_grad()
def test_so_does_it_in_an_exported_graph(name: str) -> None:
    """There layers compute in other ways."""
    module, shape = make(name)
    outputs = module(torch.zeros(1, *shape, dtype=torch.float64)).numel()
    model = nn.Sequential(module, nn.Flatten(), nn.Linear(outputs, 2)).double().eval()
    graph = CertifiedGraph(Certifier(model, shape))
    step, growth = graph._program.steps[0], graph._growths[0]
    x = torch.randn(64, *shape, dtype=torch.float64)
    assert growth is not None
    assert (step.rule.roundoff(step.module, [x], step.module(x)) <= growth(x)).all()


@every_layer
def test_it_runs_on_the_meta_device(name: str) -> None:
    module, shape = make(name, torch.float32)
    module = module.to("meta")
    rule = rule_on(module, shape)
    assert module(torch.empty(3, *shape, device="meta")).device.type == "meta"
    if rule.has_vector:
        vector = rule.iterate(module, torch.empty(shape, device="meta"), 5)
        assert vector.shape == shape
        assert torch.as_tensor(rule.estimate(module, vector)).device.type == "meta"


@every_layer
def test_no_sample_depends_on_another(name: str) -> None:
    module, shape = make(name)
    x = torch.randn(6, *shape, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(module(x)[2:4], module(x[2:4]))


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
