"""The laws of every layer with a rule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

import lipcert.nn  # noqa: F401  registers lipcert's own layers
from lipcert.bounds import upper
from lipcert.bounds.contract import RULES, Example, Registered, Rule, rule_of
from lipcert.bounds.growth import growths
from lipcert.bounds.proof import prove
from lipcert.bounds.provers.rounding import U
from lipcert.bounds.rule_options import Rounding
from lipcert.bounds.tracing.program import trace
from lipcert.laws.law import DTYPES, Laws, Registration, described, expect, expect_close
from lipcert.laws.loss_laws import gradient_error
from lipcert.nn.bases.derived import Built
from lipcert.types import Shape

# float64's unit roundoff, in which rules count, over that of float32, in which errors can be measured.
_FLOAT32 = 2.0**-24 / U


def _registrations() -> list[Registration[Example]]:
    return [_registration(kind, registered) for kind, registered in RULES.items()]


def _registration(kind: type[nn.Module], registered: Registered) -> Registration[Example]:
    """Describe a rule; its code is in the module, the rule or the examples."""
    places = (kind, type(registered.rule), *registered.given)

    def examples() -> dict[str, Callable[[], Example]]:
        return {
            f"{kind.__name__}-{i}": partial(_tried, example) for i, example in enumerate(registered.examples)
        }

    return Registration(kind.__name__, registered, frozenset(p.__module__ for p in places), examples)


def _tried(example: Example) -> Example:
    """Return the example once it was made, so that one that cannot be made fails as such."""
    example()
    return example


LAYER_LAWS: Laws[Example] = Laws("layers", _registrations)


def made(example: Example, dtype: torch.dtype = torch.float64) -> tuple[nn.Module, Shape]:
    """Make the layer in evaluation mode, always with the same random numbers."""
    torch.manual_seed(1)
    module, shape = example()
    return module.to(dtype).eval(), shape


def rule_on(module: nn.Module, shape: Shape) -> Rule[nn.Module]:
    """Return the rule as a traced model has it."""
    return rule_of(module).on(module, shape)


def proved(module: nn.Module, shape: Shape) -> float:
    """Return the proved constant."""
    return upper(module, shape).value


def norms(x: Tensor) -> Tensor:
    """Return the length of every sample, in float64: (B,)."""
    lengths: Tensor = torch.linalg.vector_norm(x.flatten(1).double(), dim=1)
    return lengths


def worst_stretch(module: nn.Module, shape: Shape, dtype: torch.dtype = torch.float64) -> float:
    """Return the largest ‖f(x) − f(y)‖/‖x − y‖ found: pairs near and far, turned by gradient ascent.

    Less what rounding may have added to it: a few units of the values it is the difference of.
    """
    x = torch.randn(64, *shape, dtype=dtype)
    distance = torch.logspace(-2, 1, 64, dtype=dtype)
    unit = 64 * torch.finfo(dtype).eps
    move = torch.randn_like(x)
    worst = 0.0
    for _ in range(20):
        scaled = move * (distance / norms(move).to(dtype)).view(-1, *[1] * len(shape))
        move = scaled.detach().requires_grad_()
        here, there = module(x), module(x + move)
        stretch = (there - here).flatten(1).norm(dim=1) / norms((x + move) - x)
        doubt = unit * (norms(here) + norms(there) + norms(x)) / distance
        worst = max(worst, float((stretch - doubt).detach().max()))
        (gradient,) = torch.autograd.grad(stretch.sum(), move)
        length = norms(gradient).clamp_min(1e-30).to(dtype).view(-1, *[1] * len(shape))
        move = move + 0.3 * distance.view(length.shape) * gradient / length
    return worst


def _expect_bounded(module: nn.Module, shape: Shape, bound: float, dtype: torch.dtype, when: str) -> None:
    stretch = worst_stretch(module, shape, dtype)
    expect(
        stretch <= bound,
        f"two points {when}are stretched by {stretch:.12g} in {dtype}, the proved constant is {bound:.12g}",
    )


def _without_weights(example: Example) -> str:
    return "" if list(example()[0].parameters()) else "it has no weights"


def without_roundoff(example: Example) -> str:
    """Say so if the rule does not bound rounding error."""
    rule = type(rule_of(example()[0]))
    if rule.roundoff is Rounding.roundoff:
        return f"{rule.__name__} says no `roundoff`: certificates of such a layer ignore rounding error"
    return ""


def without_gain(example: Example) -> str:
    """Say so if the rule does not bound how rounding error grows."""
    rule = type(rule_of(example()[0]))
    if rule.roundoff_gain is Rounding.roundoff_gain:
        return f"{rule.__name__} says no `roundoff_gain`, which float32 certificates need"
    return without_roundoff(example)


@LAYER_LAWS.add()
def no_pair_of_points_beats_the_proved_bound(example: Example) -> None:
    """Search pairs of points that are stretched most, in either precision."""
    for dtype in DTYPES:
        module, shape = made(example, dtype)
        _expect_bounded(module, shape, proved(module, shape), dtype, "")


@LAYER_LAWS.add()
def the_fast_bound_is_above_the_exact_one(example: Example) -> None:
    """Compare the efforts: the smaller one may prove no less."""
    module, shape = made(example)
    fast, exact = (upper(module, shape, effort=effort).value for effort in ("fast", "exact"))
    expect(fast >= exact * (1 - 1e-9), f"effort fast proves {fast:g}, below {exact:g} of effort exact")


@LAYER_LAWS.add(exempt=_without_weights)
def the_bound_follows_the_weights_it_executes(example: Example) -> None:
    """Change the weights, and search again."""
    module, shape = made(example)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(7.0).add_(torch.randn_like(p))
    _expect_bounded(module, shape, proved(module, shape), torch.float64, "after a change of the weights ")


@LAYER_LAWS.add(exempt=_without_weights)
def the_bound_holds_after_training_steps_and_a_copy(example: Example) -> None:
    """Train the layer, load its state into a new one, and search again."""
    module, shape = made(example)
    optimizer = torch.optim.SGD(module.train().parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.randn(8, *shape, dtype=torch.float64)).square().mean().backward()
        optimizer.step()
    module.eval()
    other, _ = made(example)
    other.load_state_dict(copy.deepcopy(module.state_dict()))
    _expect_bounded(module, shape, proved(other, shape), torch.float64, "after training steps ")
    same = proved(copy.deepcopy(module), shape) == proved(module, shape)
    expect(same, "a copy of the layer has another proved constant")


@LAYER_LAWS.add()
@torch.no_grad()
def the_estimate_converges_to_the_bound_from_below(example: Example) -> None:
    """Compare estimates with the norm of a linear map, and with the fast bound."""
    module, shape = made(example)
    rule = rule_on(module, shape)
    vector = None
    if rule.has_vector:
        vector = torch.randn(shape, dtype=torch.float64)
        vector = rule.iterate(module, vector / vector.norm(), 2000)
        _expect_norm(float(rule.estimate(module, vector)), _norm(module, shape))
    estimate = float(rule.estimate(module, vector))
    fast = upper(module, shape, effort="fast").value
    if isinstance(rule, Built):
        expect(estimate == 1, f"a layer built for the constant 1 estimates {estimate:g}")
        expect(fast <= 1 + 1e-3, f"a layer built for the constant 1 has the bound {fast:g}")
        return
    expect(estimate <= fast * (1 + 1e-12), f"the estimate {estimate:g} is above the proved {fast:g}")


def _norm(module: nn.Module, shape: Shape) -> float:
    """Return the norm of the Jacobian at 0."""
    jacobian = torch.func.jacrev(lambda v: module(v[None])[0])(torch.zeros(shape, dtype=torch.float64))
    outputs = jacobian.numel() // torch.Size(shape).numel()
    return float(torch.linalg.matrix_norm(jacobian.reshape(outputs, -1), 2))


def _expect_norm(estimate: float, truth: float) -> None:
    close = abs(estimate - truth) <= 1e-6 * truth and estimate <= truth * (1 + 1e-12)
    expect(close, f"2000 iterations estimate {estimate:.9g}, the norm is {truth:.9g}")


@LAYER_LAWS.add(exempt=without_roundoff)
@torch.no_grad()
def rounding_error_stays_within_its_bound(example: Example) -> None:
    """Measure it in float32, where the truth is at hand: the bound scales with the unit roundoff."""
    module, shape = made(example, torch.float32)
    exact = copy.deepcopy(module).double()
    for size in (1e-3, 1.0, 1e3):
        x = size * torch.randn(256, *shape)
        error = norms(module(x).double() - exact(x.double()))
        bound = rule_on(exact, shape).roundoff(exact, [x.double()], exact(x.double()))
        expect(bound.shape == (256,), f"roundoff: expected shape (256,), found {described(bound)}")
        allowed = bound * _FLOAT32 + 1e-36
        part = float((error / allowed).max())
        expect(part <= 1, f"float32 rounding error is {part:g} times as large as `roundoff` says")


@LAYER_LAWS.add(exempt=without_gain)
@torch.no_grad()
def rounding_error_grows_no_faster_than_its_gain(example: Example) -> None:
    """Check that `roundoff_gain` is a Lipschitz constant of `roundoff`."""
    module, shape = made(example)
    rule = rule_on(module, shape)
    x, dx = torch.randn(2, 256, *shape, dtype=torch.float64)
    x[::2] = 0  # from nothing, where sums of absolute values grow fastest
    here, there = (rule.roundoff(module, [p], module(p)) / U for p in (x, x + dx))
    gain = rule.roundoff_gain(module)
    found = float(((there - here).abs() / norms(dx)).max())
    expect(found <= gain * (1 + 1e-9), f"`roundoff` grows by {found:g} u, `roundoff_gain` says {gain:g}")


@LAYER_LAWS.add(exempt=without_gain)
@torch.no_grad()
def the_length_of_an_input_bounds_its_rounding_error(example: Example) -> None:
    """Compare `roundoff` with the bound by the length; a layer without one computes exactly."""
    module, shape = made(example)
    program = trace(nn.Sequential(module), shape)
    (growth,) = growths(program, prove(program))
    rule = rule_on(module, shape)
    if growth is None:
        gain = rule.roundoff_gain(module)
        expect(gain == 0, f"`roundoff_gain` is {gain:g}, but nothing bounds rounding error by the length")
        return
    for size in (0.0, 1e-3, 1.0, 1e3):
        x = size * torch.randn(256, *shape, dtype=torch.float64)
        inside = (rule.roundoff(module, [x], module(x)) <= growth(x)).all()
        expect(inside, f"inputs of size {size:g} have a larger `roundoff` than their length allows")


@LAYER_LAWS.add()
def it_runs_on_the_meta_device(example: Example) -> None:
    """Check that it does nothing that only a CPU can do, and reads no value."""
    module, shape = made(example, torch.float32)
    module = module.to("meta")
    rule = rule_on(module, shape)
    found = module(torch.empty(3, *shape, device="meta")).device.type
    expect(found == "meta", f"expected an output on the meta device, found {found}")
    if rule.has_vector:
        vector = rule.iterate(module, torch.empty(shape, device="meta"), 5)
        expect(vector.shape == shape, f"vector: expected shape {shape}, found {described(vector)}")
        device = torch.as_tensor(rule.estimate(module, vector)).device.type
        expect(device == "meta", f"expected an estimate on the meta device, found {device}")


@LAYER_LAWS.add()
@torch.no_grad()
def no_sample_depends_on_another(example: Example) -> None:
    """Compare a part of a batch with the whole, in evaluation mode."""
    module, shape = made(example)
    x = torch.randn(6, *shape, dtype=torch.float64)
    whole = module(x)
    expect_close(module(x[2:4]), whole[2:4], "the output of a sample changes with the other samples")


@LAYER_LAWS.add()
def the_gradient_is_that_of_the_outputs(example: Example) -> None:
    """Compare the gradient to the inputs with finite differences."""
    module, shape = made(example)
    x = torch.randn(4, *shape, dtype=torch.float64)
    towards = torch.randn_like(module(x))
    error = gradient_error(lambda point: (module(point) * towards).sum(), x)
    expect(not error, f"the gradient to the inputs {error}")
