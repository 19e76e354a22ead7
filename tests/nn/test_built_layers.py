"""What each parametrisation promises beyond the laws: its equations, singular values, refusals."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import Tensor, nn

import lipcert
from lipcert import Bounded, InputError
from lipcert.bounds import upper
from lipcert.bounds.contract import rule_of
from lipcert.bounds.provers.convolution_norm import any_size_upper
from lipcert.nn import (
    AOLConv2d,
    AOLLinear,
    CPLConv2d,
    CPLLinear,
    LLNLinear,
    MinMax,
    SandwichConv2d,
    SandwichLinear,
    SLLConv2d,
    SLLLinear,
    SOCConv2d,
    SOCLinear,
)
from lipcert.nn.bases.derived import Derived
from lipcert.nn.sandwich import cayley
from lipcert.nn.soc import series_roundings, series_upper, unfoldings


def jacobian(module: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """Of the map at a random point, as a matrix."""
    x = torch.randn(shape, dtype=torch.float64)
    module(x[None])  # makes the weights
    found = torch.func.jacrev(lambda v: module(v[None])[0])(x)
    return found.reshape(-1, math.prod(shape))


def singular_values(module: nn.Module, shape: tuple[int, ...]) -> Tensor:
    return torch.linalg.svdvals(jacobian(module.double().eval(), shape))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(SOCConv2d(4, 4), (4, 6, 6)), (SOCConv2d(2, 8, stride=2), (2, 6, 6)), (SOCConv2d(3, 3, 1), (3, 2, 2))],
)
def test_soc_is_orthogonal_where_no_channel_is_added_or_left_out(
    layer: nn.Module, shape: tuple[int, ...]
) -> None:
    values = singular_values(layer, shape)
    assert float(values[0]) <= 1 + 1e-12
    assert float(values[-1]) >= 1 - 1e-6


def test_soc_leaves_out_two_unfoldings_that_have_the_norms_of_the_others() -> None:
    raw = torch.randn(4, 4, 3, 3, dtype=torch.float64)
    skew = raw - raw.transpose(0, 1).flip(2, 3)
    left_out = [skew.permute(0, 3, 1, 2).reshape(12, 12), skew.transpose(0, 1).reshape(4, 36)]
    for ours, other in zip(unfoldings(skew), left_out, strict=True):
        torch.testing.assert_close(torch.linalg.svdvals(ours), torch.linalg.svdvals(other))


def test_soc_with_fewer_terms_is_less_so() -> None:
    assert series_upper(2.1, terms=12) == 1.0
    assert 1.004 < series_upper(2.1, terms=5) < 1.005


@pytest.mark.parametrize("terms", [5, 12])
@pytest.mark.parametrize("norm", [0.0, 0.3, 1.0, 2.1, 3.379, 4.9, 5.1, 9.0])
def test_the_series_is_bounded(norm: float, terms: int) -> None:
    theta = np.linspace(0, norm, 20001)
    truth = abs(sum((1j * theta) ** j / math.factorial(j) for j in range(terms + 1))).max()
    bound = series_upper(norm, terms)
    assert bound >= truth * (1 - 1e-14)
    assert bound <= truth * 1.01 + 1e-4 or norm > 5


def test_a_large_norm_of_soc_has_no_finite_bound() -> None:
    assert series_upper(1e3, terms=12) == math.inf


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_nothing_on_the_way_through_the_series_is_larger_than_its_roundings_say(
    kernel_size: int, factor: float
) -> None:
    layer = SOCConv2d(6, 6, kernel_size, terms=(5, 8)).double().eval()
    (kernels,) = layer.weights()
    layer.weights = lambda: (factor * kernels,)  # type: ignore[method-assign]
    kernels = factor * kernels
    norm, absolute = layer.norms()
    conv = nn.Conv2d(6, 6, kernel_size, padding=kernel_size // 2, bias=False).double()
    for weight, claimed in ((kernels, norm), (kernels.abs(), absolute)):
        conv.weight.data = weight
        assert float(singular_values(conv, (6, 7, 7))[0].detach()) <= claimed
    x = torch.randn(50, 6, 7, 7, dtype=torch.float64)
    lengths, units = x.flatten(1).norm(dim=1), series_roundings(norm, absolute, layer.terms, products=62)
    total = x
    for j in range(layer.terms, 0, -1):
        sums = x.abs() + F.conv2d(total.abs(), kernels.abs(), padding=kernel_size // 2) / j
        assert (sums.flatten(1).norm(dim=1) <= units * lengths).all()
        total = x + F.conv2d(total, kernels, padding=kernel_size // 2) / j
    assert (total.flatten(1).norm(dim=1) <= units * lengths).all()


def test_roundings_of_a_series_that_are_counted_one_by_one() -> None:
    """Two terms: t = x + Ax/2, then x + At; with ‖A‖ = 3 and ‖|A|‖ = 5, and hardly any unit."""
    first, second = 1 + 5 / 2, 1 + 5 * (1 + 3 / 2)
    result = 1 + 3 * (1 + 3 / 2)
    assert series_roundings(3.0, 5.0, 2, 0) == pytest.approx(3 * first + second + result + 1)
    # float32 sees t rounded, which |A| multiplies: 2^-23 a product more.
    assert series_roundings(3.0, 5.0, 2, 2**23) == pytest.approx(2 * (8 * first + second) + result + 1)


@pytest.mark.parametrize("shape", [(5, 7), (6, 3), (1, 4)])
def test_cayley(shape: tuple[int, int]) -> None:
    n, m = shape
    for dtype in (torch.float64, torch.complex128):
        both = cayley(torch.randn(3, n, n + m, dtype=dtype))
        torch.testing.assert_close(both @ both.mH, torch.eye(n, dtype=dtype).expand(3, n, n))


def test_a_sandwich_convolution_is_one() -> None:
    """It commutes with a shift of the image around its border, and a 1×1 kernel mixes no pixels."""
    layer = SandwichConv2d(2, 3).double().eval()
    x = torch.randn(1, 2, 6, 5, dtype=torch.float64)
    torch.testing.assert_close(layer(x.roll((1, 2), (2, 3))), layer(x).roll((1, 2), (2, 3)))
    pointwise = SandwichConv2d(2, 3, kernel_size=1).double().eval()
    one = torch.zeros_like(x)
    one[:, :, 2, 2] = 1.0
    moved = (pointwise(one) - pointwise(torch.zeros_like(x))).abs().sum((0, 1)) > 1e-12
    assert moved.nonzero().tolist() == [[2, 2]]


def test_the_sandwich_of_a_linear_activation_is_orthogonal_in_theory() -> None:
    """2AᵀB with AAᵀ + BBᵀ = I has norm at most 1, and reaches it."""
    layer = SandwichLinear(6, 6, bias=False)
    assert float(upper(layer.eval(), (6,)).value) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_one_bound_for_images_of_every_size(kernel: int) -> None:
    for _ in range(4):
        conv = nn.Conv2d(3, 4, kernel, padding=kernel // 2, bias=False).double()
        bound = any_size_upper(conv.weight)
        found = [upper(conv, (3, n, n), effort="exact").value for n in (1, 4, 9, 14)]
        assert max(found) <= bound * (1 + 1e-6) <= 1.15 * max(found)
        if kernel % 2:
            assert upper(circular(conv), (3, 8, 8), effort="exact").value <= bound * (1 + 1e-6)


def circular(conv: nn.Conv2d) -> nn.Conv2d:
    """The same kernels on an image that wraps around."""
    other = nn.Conv2d(
        3, 4, conv.kernel_size, padding=conv.kernel_size[0] // 2, bias=False, padding_mode="circular"
    ).double()
    other.load_state_dict(conv.state_dict())
    return other


@pytest.mark.parametrize("make", [CPLLinear, SLLLinear, CPLConv2d, SLLConv2d])
def test_a_step_down_a_potential_keeps_most_directions(make) -> None:
    shape = (6,) if "Linear" in make.__name__ else (6, 4, 4)
    assert float(singular_values(make(6, 2), shape).detach()[0]) == pytest.approx(1, abs=1e-9)


def test_a_norm_five_percent_low_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = CPLLinear(8, 8).double().eval()
    weight, steps = layer.weights()
    monkeypatch.setattr(layer, "weights", lambda: (weight, steps / 0.95**2))
    assert 1.2 < rule_of(layer).upper(layer, (8,), "auto").value < 1.22


@pytest.mark.parametrize("make", [CPLLinear, SLLLinear, CPLConv2d, SLLConv2d, SandwichLinear, SandwichConv2d])
@pytest.mark.parametrize("activation", [MinMax(), nn.GELU(), nn.LeakyReLU(-0.5)], ids=str)
def test_activations_that_do_not_fit_are_refused(make, activation: nn.Module) -> None:
    with pytest.raises(InputError, match="elementwise"):
        make(4, 4, activation=activation)
    layer = make(4, 4)
    layer.activation = activation
    with pytest.raises(InputError, match="elementwise"):
        upper(layer.eval(), (4,) if "Linear" in make.__name__ else (4, 4, 4))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: AOLConv2d(2, 2, 3, groups=2), "groups"),
        (lambda: AOLConv2d(2, 2, 3, padding_mode="reflect"), "padding_mode"),
        (lambda: AOLConv2d(2, 2, 3, padding=2, padding_mode="circular"), "padding"),
        (lambda: AOLConv2d(0, 2, 3), "channels"),
        (lambda: SOCConv2d(2, 2, kernel_size=4), "kernel_size"),
        (lambda: SOCConv2d(2, 0), "channels"),
        (lambda: SOCConv2d(2, 2, stride=0), "stride"),
        (lambda: SOCConv2d(2, 2, stride=2)(torch.zeros(1, 2, 5, 4)), "divisible"),
        (lambda: SLLConv2d(2, 2, kernel_size=2), "kernel_size"),
        (lambda: CPLConv2d(2, 0), "inner"),
        (lambda: SLLLinear(0, 2), "features"),
        (lambda: SandwichLinear(0, 2), "features"),
        (lambda: SandwichConv2d(2, 0), "channels"),
        (lambda: SandwichConv2d(2, 2)(torch.zeros(1, 2, 2, 2)), "larger than the image"),
        (lambda: AOLConv2d(2, 2, 5)(torch.zeros(1, 2, 3, 3)), "larger than the padded image"),
        (lambda: upper(nn.PixelUnshuffle(2), (1, 5, 5)), "divisible by 2: pad or crop"),
        (lambda: SandwichConv2d(2, 2, stride=2)(torch.zeros(1, 2, 5, 4)), "divisible"),
        (lambda: SandwichConv2d(2, 2).half()(torch.zeros(1, 2, 4, 4).half()), "half precision"),
    ],
)
def test_bad_input_is_named(make, named: str) -> None:
    with pytest.raises(InputError, match=named):
        make()


def test_weights_are_made_again_when_anything_changed() -> None:
    layer = AOLLinear(4, 3).eval()
    x = torch.randn(2, 4)
    before = layer(x)
    with torch.no_grad():
        layer.raw.add_(torch.randn_like(layer.raw))
    changed = layer(x)
    assert not torch.equal(before, changed)
    layer.raw = nn.Parameter(layer.raw.detach() * torch.tensor([[2.0], [1.0], [0.5]]))
    assert not torch.equal(changed, layer(x))
    other = copy.deepcopy(layer)
    assert other._kept is None
    assert torch.equal(other(x), layer(x))
    assert layer.double()(x.double()).dtype == torch.float64


def test_a_head_with_rows_of_length_one_is_a_linear_head() -> None:
    """Pairs of logits get the distance of their rows, in training and in certificates."""
    model = nn.Sequential(AOLLinear(4, 6), MinMax(), LLNLinear(6, 3))
    _, lip = Bounded(model, (4,))(torch.randn(2, 4))
    torch.testing.assert_close(lip.head.norm(dim=1), torch.ones(3))
    assert float(lip.features) == 1
    certifier = lipcert.certifier(model.eval(), (4,))
    rows = model[2].double().weight
    found = torch.as_tensor(certifier.proved.pairs) / certifier.proved.bound.value
    torch.testing.assert_close(found, torch.cdist(rows, rows))


def test_a_deep_stack_certifies() -> None:
    """All kinds in one network, in float64 and float32."""
    torch.manual_seed(0)
    model = nn.Sequential(
        SOCConv2d(3, 8, stride=2),
        MinMax(),
        AOLConv2d(8, 8, 3, padding=1),
        MinMax(halves=True),
        CPLConv2d(8, 4),
        SLLConv2d(8, 4),
        SandwichConv2d(8, 8),
        nn.Flatten(),
        SLLLinear(128, 16),
        SandwichLinear(128, 16),
        LLNLinear(16, 5),
    ).eval()
    certifier = lipcert.certifier(model, (3, 8, 8))
    assert certifier.proved.bound.value <= 1 + 1e-5
    x = torch.rand(8, 3, 8, 8)
    assert (certifier(x).radius > 0).all()
    assert (certifier(x, rounding="float32").radius <= certifier(x).radius).all()
    assert len([m for m in model if isinstance(m, Derived)]) == 8


@pytest.mark.parametrize("write", ["data", "fused"])
def test_training_forgets_what_evaluation_kept(write: str) -> None:
    """Writing through `.data`, or by a fused optimiser, may leave no trace on a tensor's version."""
    torch.manual_seed(0)
    layer, x = AOLLinear(5, 4), torch.randn(3, 5)
    before = layer.eval()(x)
    layer.train()
    if write == "data":
        next(layer.parameters()).data.neg_()
    else:
        layer(x).sum().backward()
        torch.optim.Adam(layer.parameters(), lr=0.1, fused=True).step()
    after = layer.eval()(x)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, copy.deepcopy(layer)(x))


@pytest.mark.parametrize("make", [lambda: SOCConv2d(2, 3), lambda: CPLConv2d(2, 4)])
@pytest.mark.parametrize("fused", [False, True])
def test_vectors_follow_once_per_step(make: Callable[[], Derived], fused: bool) -> None:
    """All pieces of a batch have the same weights; the next step has others."""
    torch.manual_seed(0)
    layer, x = make(), torch.randn(2, 2, 4, 4)
    bounded = Bounded(
        nn.Sequential(layer, nn.Flatten(), nn.Linear(16 * layer(x).shape[1], 2)), (2, 4, 4)
    ).train()
    optimizer = torch.optim.Adam(bounded.parameters(), lr=0.1, fused=fused)
    outputs = [bounded(x, first=first)[0] for first in (True, False, False)]
    assert torch.equal(outputs[0], outputs[2])
    followed = {name: value.clone() for name, value in layer.named_buffers()}
    outputs[0].square().sum().backward()
    optimizer.step()
    bounded(x)
    assert all(not torch.equal(value, followed[name]) for name, value in layer.named_buffers())


def test_a_layer_without_bounded_follows_by_itself() -> None:
    torch.manual_seed(0)
    layer, x = CPLConv2d(2, 4).train(), torch.randn(2, 2, 4, 4)
    with torch.no_grad():
        layer.weight.copy_(torch.randn_like(layer.weight))
    outputs = [layer(x) for _ in range(30)]
    moved = [float((a - b).abs().max().detach()) for a, b in pairwise(outputs)]
    assert moved[0] > 0
    assert moved[-1] < 1e-3 * moved[0] + 1e-6


def test_a_checkpointed_layer_is_rerun_with_the_same_weights() -> None:
    torch.manual_seed(0)
    layer, x = CPLConv2d(2, 4).train(), torch.randn(2, 2, 4, 4, requires_grad=True)
    kept = copy.deepcopy(layer)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).square().sum().backward()
    kept(x).square().sum().backward()
    torch.testing.assert_close(layer.weight.grad, kept.weight.grad, rtol=0, atol=0)


def test_a_compiled_layer_is_not_compiled_anew_at_every_step() -> None:
    torch.manual_seed(0)
    layer, x = CPLConv2d(2, 4), torch.randn(2, 2, 4, 4)
    compiled = torch.compile(layer, backend="eager")
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1, fused=True)
    for step in range(6):
        optimizer.zero_grad()
        compiled(x).square().sum().backward()
        optimizer.step()
        if step == 1:
            torch._dynamo.utils.counters.clear()
    assert not torch._dynamo.utils.counters["stats"].get("unique_graphs")


def test_the_certificate_is_about_the_weights_of_its_precision() -> None:
    """A float32 layer runs weights that were rounded to float32, and they are what is proved."""
    torch.manual_seed(0)
    model = nn.Sequential(SOCLinear(6, 6, bias=False), MinMax(), nn.Linear(6, 2)).eval()
    prover = lipcert.certifier(model, (6,))
    executed = torch.linalg.svdvals(model[0].weight.detach().double())[0]
    assert prover.proved.bound.layers[0].upper == pytest.approx(float(executed), rel=1e-12)
    assert prover.proved.bound.layers[0].upper == pytest.approx(upper(model[0], (6,)).value, rel=1e-15)
    x = torch.randn(5, 6)
    with torch.no_grad():
        expected = model[2].double()(model[1](nn.functional.linear(x.double(), model[0].weight.double())))
    model.float()
    torch.testing.assert_close(prover.logits(x), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("head", [LLNLinear(8, 4), AOLLinear(8, 4), SOCLinear(8, 4)])
def test_a_head_in_training_is_refused(head: nn.Module) -> None:
    with pytest.raises(InputError, match="eval"):
        lipcert.certifier(nn.Sequential(nn.Linear(8, 8), MinMax(), head.train()), (8,))


def test_what_is_certified_is_what_runs_whoever_wrote_to_it() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(AOLLinear(4, 4), nn.Linear(4, 2)).eval(), torch.randn(64, 4)
    model(x)
    model[0].raw.data.copy_(torch.randn(4, 4))
    found = lipcert.certify(model, x)
    assert torch.equal(found.prediction[found.radius > 0], model(x).argmax(1)[found.radius > 0])


def test_inference_mode_leaves_no_trace() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(AOLLinear(4, 4), nn.Linear(4, 2)).eval(), torch.randn(3, 4)
    with torch.inference_mode():
        first = model(x)
        inside = lipcert.certify(model, x)
    x.requires_grad_()
    again = model(x)
    again.sum().backward()
    torch.testing.assert_close(first.clone(), again.detach())
    assert torch.equal(inside.radius.clone(), lipcert.certify(model, x).radius)


def test_soc_recovers_from_weights_of_zero() -> None:
    torch.manual_seed(0)
    layer, x = SOCConv2d(2, 2).train(), torch.randn(1, 2, 4, 4)
    before = layer.raw.detach().clone()
    with torch.no_grad():
        layer.raw.zero_()
        layer(x)
        layer.raw.copy_(before)
    layer(x).square().sum().backward()
    assert (layer.weights()[0].abs() > 0).any()
    assert (layer.raw.grad.abs() > 0).any()


def test_settings_that_are_not_printed_are_noticed() -> None:
    model = nn.Sequential(nn.AvgPool2d(2, divisor_override=2), nn.Flatten(), nn.Linear(4, 2))
    prover = lipcert.certifier(model, (1, 4, 4))
    model[0].divisor_override = 1
    with pytest.raises(lipcert.StaleBoundError):
        prover(torch.zeros(1, 1, 4, 4))


def test_a_square_kernel_may_be_a_pair() -> None:
    assert CPLConv2d(2, 3, kernel_size=(3, 3)).kernel_size == SOCConv2d(2, 2, (3, 3)).kernel_size == 3
    with pytest.raises(InputError, match="both sides"):
        SLLConv2d(2, 3, kernel_size=(3, 5))
