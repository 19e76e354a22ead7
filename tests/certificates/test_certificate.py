"""Certificates: strict, over all rivals, never by accident, and true in exact arithmetic."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest
import torch
from scipy.stats import binom, binomtest
from torch import Tensor, nn

from lipcert import InputError, StaleBoundError, certified_accuracy, certifier, certify
from lipcert.bounds.contract import RULES, Constant, Registered
from lipcert.certificates.certificate import Certificate, Rounding, binomial_interval
from lipcert.errors import LipcertWarning, UnknownBoundError
from lipcert.nn import MinMax


def linear(rows: list[list[float]], bias: list[float] | None = None) -> nn.Linear:
    layer = nn.Linear(len(rows[0]), len(rows), bias=bias is not None)
    layer.weight.data = torch.tensor(rows)
    if bias is not None:
        layer.bias.data = torch.tensor(bias)
    return layer


def test_the_radius_of_a_linear_classifier_is_its_distance_to_the_boundary() -> None:
    model = linear([[3.0, 0.0], [0.0, 4.0]])
    certificate = certify(model, torch.tensor([[5.0, 1.0]]))
    truth = (15 - 4) / 5
    assert certificate.prediction.tolist() == [0]
    assert certificate.rival.tolist() == [1]
    assert truth * (1 - 1e-12) <= float(certificate.radius) <= truth


def test_all_rivals_count_not_the_runner_up_alone() -> None:
    """The runner-up shares the winner's direction; a weaker rival is nearer in input space."""
    model = linear([[1.0, 0.0], [0.99, 0.0], [-30.0, 0.0]], bias=[0.0, 0.0, 0.0])
    x = torch.tensor([[1.0, 0.0]])
    logits = model(x)[0]
    assert int(logits.argsort(descending=True)[1]) == 1
    certificate = certify(model, x)
    assert float(certificate.radius) <= 1.0 + 1e-9
    assert certificate.rival.tolist() in ([1], [2])
    runner_up_only = certify(linear([[1.0, 0.0], [0.5, 0.0], [0.0, 9.0]], [0.0, 0.0, 0.4]), x)
    assert runner_up_only.rival.tolist() == [2]


def test_certified_is_strict() -> None:
    certificate = Certificate(torch.tensor([0]), torch.tensor([0.5]), torch.tensor([1]), "float64")
    assert certificate.at(0.4999).tolist() == [True]
    assert certificate.at(0.5).tolist() == [False]


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (linear([[1.0], [1.0]]), 2.0),  # identical rows, a tie everywhere
        (linear([[1.0], [-1.0]]), 0.0),  # on the boundary
        (linear([[0.0], [0.0]], [1.0, 1.0]), 1.0),  # constant and tied
        (linear([[1.0], [-1.0]], [math.nan, 0.0]), 1.0),
        (linear([[1.0], [-1.0]], [math.inf, 0.0]), 1.0),
        (linear([[1.0], [-1.0]]), math.nan),
        (linear([[1.0], [-1.0]]), math.inf),
        (linear([[1.0], [-1.0]]), -math.inf),
    ],
)
def test_ties_and_numbers_that_are_not_finite_are_never_certified(model: nn.Module, x: float) -> None:
    for rounding in ("float64", "ignored"):
        certificate = certify(model, torch.tensor([[x]]), rounding)  # type: ignore[arg-type]
        assert certificate.radius.tolist() == [0.0]
        assert not certificate.at(0.0).any()


def test_equal_rows_tie_however_they_are_rounded() -> None:
    """A matrix product may round two equal rows differently; a tie stays a tie."""
    layer = nn.Linear(100, 17).double()
    with torch.no_grad():
        layer.weight[16] = layer.weight[0]
        layer.bias[16] = layer.bias[0]
    x = 30 * torch.nn.functional.normalize(layer.weight[:1].detach()) + torch.randn(400, 100).double()
    for rounding in ("float64", "ignored"):
        certificate = certify(layer, x, rounding)  # type: ignore[arg-type]
        tied = (certificate.prediction == 0) | (certificate.prediction == 16)
        assert tied.any()
        assert (certificate.radius[tied] == 0).all()


def test_an_infinite_input_is_not_certified_by_a_layer_that_clips() -> None:
    model = nn.Sequential(nn.Hardtanh(), linear([[1.0, 0.0], [0.0, 1.0]]))
    assert certify(model, torch.tensor([[math.inf, -math.inf]])).radius.tolist() == [0.0]


def test_logits_that_are_not_numbers_are_right_about_nothing() -> None:
    certificate = certify(linear([[1.0], [-1.0]], [math.nan, 0.0]), torch.tensor([[1.0]]))
    assert certificate.prediction.tolist() == [-1]
    assert certified_accuracy(certificate, torch.tensor([0]), [0.0])[0].count == 0


def test_tiny_weights_do_not_vanish_in_a_square() -> None:
    close = linear([[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0]).double()
    close.weight.data[1, 1] = 1e-170
    close.bias.data[0] = 1e-150
    assert float(certify(close, torch.zeros(1, 2)).radius) <= 1e20 * (1 + 1e-9)
    shrink, grow = nn.Linear(3, 1, bias=False).double(), nn.Linear(1, 2, bias=False).double()
    shrink.weight.data.fill_(2.0**-600)
    grow.weight.data = torch.tensor([[2.0**600], [-(2.0**600)]]).double()
    x = torch.tensor([[1.0, 2.0**-54, -1.0]], dtype=torch.float64)  # its sum is 2^-54, or 0 if rounded
    assert certify(nn.Sequential(shrink, grow), x).radius.tolist() == [0.0]


def test_the_callers_input_is_not_overwritten() -> None:
    model = nn.Sequential(nn.Hardtanh(inplace=True), linear([[1.0, 0.0], [0.0, 1.0]]).double())
    x = torch.tensor([[5.0, -3.0]], dtype=torch.float64)
    certify(model, x)
    assert x.tolist() == [[5.0, -3.0]]


class Overwriting(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.last = how, linear([[1.0, 0.0], [0.0, 1.0]])

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "relu":
            return self.last(nn.functional.relu(x, inplace=True))
        x += self.last(x)
        return self.last(x)


@pytest.mark.parametrize("how", ["relu", "sum"])
@pytest.mark.parametrize("rounding", ["float64", "ignored"])
def test_nor_by_the_code_of_a_forward(how: str, rounding: Rounding) -> None:
    x = torch.tensor([[5.0, -3.0]])
    certifier(Overwriting(how), (2,))(x, rounding)
    assert x.tolist() == [[5.0, -3.0]]


def test_a_radius_is_not_asked_for_below_zero() -> None:
    certificate = certify(linear([[1.0], [-1.0]]), torch.tensor([[1.0]]))
    for eps in (-1.0, math.nan):
        with pytest.raises(InputError, match="eps"):
            certificate.at(eps)


def test_a_constant_that_overflows_certifies_nothing() -> None:
    model = nn.Sequential(*[linear([[1e30, 0.0], [0.0, 1e30]]) for _ in range(12)])
    assert certifier(model, (2,)).k_f == math.inf
    assert certify(model, torch.tensor([[1e-300, 0.0]], dtype=torch.float64)).radius.tolist() == [0.0]


def test_a_constant_that_underflows_is_not_taken_for_zero() -> None:
    model = nn.Sequential(*[linear([[1e-30, 0.0], [0.0, 1e-30]]) for _ in range(12)])
    assert certifier(model, (2,)).k_f > 0


def test_a_constant_classifier_is_certified_everywhere() -> None:
    certificate = certify(linear([[0.0], [0.0]], [1.0, 0.0]), torch.tensor([[5.0]]))
    assert certificate.radius.tolist() == [math.inf]


def test_one_logit_is_a_binary_classifier() -> None:
    certificate = certify(linear([[2.0]], [1.0]), torch.tensor([[1.0], [-1.0]]))
    assert certificate.prediction.tolist() == [1, 0]
    assert certificate.radius.tolist() == pytest.approx([1.5, 0.5])


def test_a_head_that_is_not_linear_costs_root_two() -> None:
    model = nn.Sequential(linear([[1.0, 0.0], [0.0, 1.0]]), nn.Tanh())
    with pytest.warns(LipcertWarning, match="√2"):
        certificate = certify(model, torch.tensor([[1.0, -1.0]]))
    assert float(certificate.radius) == pytest.approx(2 * math.tanh(1) / math.sqrt(2))


def exact_logits(model: nn.Sequential, x: Tensor) -> list[Fraction]:
    """The network in rational arithmetic."""
    values = [Fraction(float(v)) for v in x]
    for layer in model:
        if isinstance(layer, nn.Linear):
            values = [
                sum((Fraction(float(w)) * v for w, v in zip(row, values, strict=True)), Fraction(float(b)))
                for row, b in zip(layer.weight, layer.bias, strict=True)
            ]
        elif isinstance(layer, nn.ReLU):
            values = [max(v, Fraction(0)) for v in values]
        else:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [v for pair in pairs for v in sorted(pair)]
    return values


def test_the_margin_less_its_error_is_below_the_exact_margin() -> None:
    """Inputs are placed where two logits cancel, so that rounding decides."""
    false_without_rounding_terms = 0
    for size, seed in product([1e-6, 1.0, 1e6], range(12)):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 8), MinMax(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)).double()
        model.requires_grad_(False)
        prover = certifier(model, (3,))
        x = near_boundary(model, size * torch.randn(2, 3, dtype=torch.float64))
        exact = exact_logits(model, x)
        certificate, careless = prover(x[None]), prover(x[None], rounding="ignored")
        top = int(certificate.prediction)
        for j in {0, 1, 2} - {top}:
            gap = (exact[top] - exact[j]) / Fraction(float(prover.proved.pairs[top, j]))
            assert Fraction(float(certificate.radius)) <= max(gap, Fraction(0))
            false_without_rounding_terms += float(careless.radius) > 0 and gap <= 0
    assert false_without_rounding_terms > 0  # so the inputs do test something


def near_boundary(model: nn.Sequential, ends: Tensor) -> Tensor:
    """Bisect between two inputs to the last bit at which the float prediction still changes."""
    a, b = ends
    for _ in range(50):
        if model(a[None]).argmax() != model(b[None]).argmax():
            break
        b = 3 * torch.randn_like(b) * ends.abs().max()
    for _ in range(80):
        middle = (a + b) / 2
        same = model(middle[None]).argmax() == model(a[None]).argmax()
        a, b = (middle, b) if same else (a, middle)
    return a


@pytest.mark.parametrize(("count", "total"), [(0, 7), (7, 7), (3, 7), (6123, 10000), (1, 1)])
def test_intervals_are_those_of_scipy(count: int, total: int) -> None:
    expected = binomtest(count, total).proportion_ci(method="exact")
    assert binomial_interval(count, total) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_rounding_costs_next_to_nothing() -> None:
    model = nn.Sequential(nn.Linear(20, 64), MinMax(), nn.Linear(64, 64), MinMax(), nn.Linear(64, 10))
    x = torch.randn(200, 20)
    prover = certifier(model, (20,))
    careful, quick = prover(x), prover(x, rounding="ignored")
    torch.testing.assert_close(careful.radius, quick.radius, rtol=1e-4, atol=1e-6)  # evaluated in float32
    assert torch.equal(careful.prediction, quick.prediction)
    prover = certifier(model.double(), (20,))
    careful, quick = prover(x), prover(x, rounding="ignored")
    assert (careful.radius <= quick.radius).all()
    torch.testing.assert_close(careful.radius, quick.radius, rtol=1e-6, atol=1e-9)


def test_where_rounding_is_ignored_the_model_that_runs_is_the_proved_one() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)).eval()
    prover = certifier(model, (64,))
    x = torch.randn(5, 64)
    kept = x.clone()
    prover(x, "ignored")
    assert torch.equal(x, kept)  # although the model writes into its input
    x[0] = -torch.inf
    assert prover(x, "ignored").radius[0] == 0
    for rounding in ("ignored", "float64"):
        with pytest.raises(UnknownBoundError, match="hooks"), _hooked(model[1]):
            prover(kept, rounding)
    model[1].weight.data.neg_()  # every sign bit, and no other
    with pytest.raises(StaleBoundError):
        prover(kept, "ignored")
    huge = nn.Sequential(nn.Linear(1, 2, bias=False))
    huge[0].weight.data = torch.tensor([[3e38], [-3e38]])
    assert certifier(huge, (1,))(torch.ones(1, 1), "ignored").radius.item() <= 1


@contextlib.contextmanager
def _hooked(module: nn.Module) -> Iterator[None]:
    handle = module.register_forward_hook(lambda module, inputs, output: 100 * output)
    try:
        yield
    finally:
        handle.remove()


def test_where_rounding_is_ignored_what_is_not_finite_is_not_certified() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU6(), nn.Linear(4, 3)).eval()
    x = torch.randn(4, 3)
    x[1, 0], x[2, 1], x[3] = torch.inf, torch.nan, 3e38
    careful, quick = (certifier(model, (3,))(x, rounding) for rounding in ("float64", "ignored"))
    assert quick.prediction.tolist()[:3] == careful.prediction.tolist()[:3]
    assert (quick.radius[1:3] == 0).all()
    assert quick.radius[0] > 0
    with torch.no_grad():  # rows that agree: the biases decide for all inputs
        model[2].weight[1] = model[2].weight[0]
        model[2].bias[0], model[2].bias[1] = 9.0, 8.0
    both = [certifier(model, (3,))(x[:1], rounding).radius for rounding in ("float64", "ignored")]
    torch.testing.assert_close(*both, rtol=1e-4, atol=0)


@pytest.mark.parametrize("how", ["in place", "data", "order", "replaced", "buffer", "layer", "mode"])
def test_changed_weights_are_noticed(how: str) -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    prover = certifier(model, (2,))
    prover(torch.randn(3, 2))
    with torch.no_grad():
        if how == "in place":
            model[0].weight.add_(1e-6)
        elif how == "data":
            model[0].weight.data.view(torch.int32)[0, 0] ^= 1  # the last bit, behind autograd's back
        elif how == "replaced":
            model[0].weight = nn.Parameter(model[0].weight + 1)
        elif how == "order":
            model[0].weight.data = model[0].weight.data.flip(0)
        elif how == "layer":
            model[1] = nn.ReLU()
        elif how == "mode":
            model.train()
        else:
            model[1].running_var.mul_(2)
    with pytest.raises(StaleBoundError, match="new certifier"):
        prover(torch.randn(3, 2))


def test_the_model_is_not_changed() -> None:
    model = nn.Sequential(nn.Linear(2, 4), MinMax(), nn.Linear(4, 2))
    certify(model, torch.randn(3, 2))
    assert model[0].weight.dtype == torch.float32
    assert model.training


def test_half_precision_and_autocast_are_refused() -> None:
    with pytest.raises(InputError, match="bfloat16"):
        certifier(nn.Linear(2, 2).bfloat16(), (2,))
    with torch.autocast("cpu"), pytest.raises(InputError, match="autocast"):
        certifier(nn.Linear(2, 2), (2,))
    prover = certifier(nn.Linear(2, 2), (2,))
    with torch.autocast("cpu"), pytest.raises(InputError, match="autocast"):
        prover(torch.zeros(1, 2))


def test_newer_settings_of_shorter_floats_are_refused() -> None:
    program = (
        "import torch, lipcert\n"
        "torch.backends.mkldnn.{kind}.fp32_precision = 'bf16'\n"
        "certifier = lipcert.certifier(torch.nn.Linear(2, 2), (2,))\n"
        "assert certifier(torch.ones(1, 2)).radius > 0\n"
        "try: certifier(torch.ones(1, 2), 'float32')\n"
        "except lipcert.InputError as error: print(error)"
    )
    for kind in ("conv", "matmul"):  # in processes of their own: torch does not forget
        command = [sys.executable, "-c", program.format(kind=kind)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "TF32" in done.stdout


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_of_fewer_bits_are_refused_for_claims_about_float32(precision: str) -> None:
    x = torch.ones(1, 2)
    try:
        torch.set_float32_matmul_precision(precision)
        prover = certifier(nn.Linear(2, 2), (2,))
        for rounding in ("float32", "ignored"):
            with pytest.raises(InputError, match="TF32"):
                prover(x, rounding)  # type: ignore[arg-type]
        assert prover(x).radius > 0  # computed in float64
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3, 5), r"expected shape \(B, 2\)"),
        (torch.zeros(0, 2), "at least one"),
        (torch.zeros(3, 2, dtype=torch.int64), "floating-point"),
    ],
)
def test_inputs_that_do_not_fit_are_named(x: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        certifier(nn.Linear(2, 2), (2,))(x)


class Flat(nn.Module):
    """As anyone might write it: a view needs channels first."""

    def forward(self, x: Tensor) -> Tensor:
        return x.view(len(x), -1)


def test_layers_of_others_get_the_layout_they_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, Flat, Registered(Constant(), ()))
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), Flat(), nn.Linear(32, 3))
    x = torch.rand(5, 1, 6, 6)
    same = nn.Sequential(*model[:2], nn.Flatten(), model[3])
    torch.testing.assert_close(certify(model, x).radius, certify(same, x).radius)


def test_batches_make_no_difference() -> None:
    prover = certifier(nn.Linear(2, 3), (2,))
    x = torch.randn(10, 2)
    with pytest.raises(InputError, match="batch_size"):
        prover(x, batch_size=0)
    whole, parts = prover(x), prover(x, batch_size=3)
    assert torch.equal(whole.prediction, parts.prediction)
    torch.testing.assert_close(whole.radius, parts.radius)


@pytest.mark.parametrize("rounding", ["float64", "float32", "ignored"])
@pytest.mark.parametrize("shape", [(2,), (3, 6, 5)])
def test_nor_do_the_pieces_of_one(rounding: Rounding, shape: tuple[int, ...]) -> None:
    stem = [nn.Conv2d(3, 4, 3, stride=2), MinMax(), nn.Flatten()] if len(shape) == 3 else []
    model = nn.Sequential(*stem, nn.Linear(2 if not stem else 16, 3))
    prover, x = certifier(model, shape), torch.randn(10, *shape)
    whole, logits = prover(x, rounding), prover.logits(x)
    prover.float64.piece = 3
    parts = prover(x, rounding)
    assert torch.equal(whole.prediction, parts.prediction)
    assert torch.equal(whole.rival, parts.rival)
    torch.testing.assert_close(whole.radius, parts.radius)
    torch.testing.assert_close(logits, prover.logits(x))


def test_certified_accuracy_counts_and_brackets() -> None:
    certificate = Certificate(
        torch.tensor([0, 1, 1, 0]), torch.tensor([0.3, 0.2, 0.5, 0.0]), torch.tensor([1, 0, 0, 1]), "float64"
    )
    labels = torch.tensor([0, 1, 0, 0])
    clean, low, high = certified_accuracy(certificate, labels, radii=[0.0, 0.1, 0.25])
    assert (clean.count, low.count, high.count) == (3, 2, 1)
    assert low.value == 0.5
    # Clopper-Pearson: each end leaves 2.5 % beyond the count.
    assert binom.sf(1, 4, low.interval[0]) == pytest.approx(0.025, rel=1e-6)
    assert binom.cdf(2, 4, low.interval[1]) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize(
    ("labels", "radii"),
    [(torch.tensor([0, 1, 2]), [0.1]), (torch.tensor([0]), [-0.1]), (torch.tensor([0]), [math.nan])],
)
def test_certified_accuracy_names_bad_arguments(labels: Tensor, radii: list[float]) -> None:
    certificate = Certificate(torch.tensor([0]), torch.tensor([0.5]), torch.tensor([1]), "float64")
    with pytest.raises(InputError):
        certified_accuracy(certificate, labels, radii)


@pytest.mark.parametrize("how", ["orthogonal", "spectral_norm", "weight_norm"])
def test_a_parametrised_weight_is_certified_as_it_runs(how: str) -> None:
    """In float32 it is computed with float32 rounding errors, and that is the weight of the network."""
    torch.manual_seed(0)
    wrap = getattr(nn.utils.parametrizations, how)
    model, x = nn.Sequential(wrap(nn.Linear(6, 6)), nn.Linear(6, 2)).eval(), torch.randn(3, 6)
    before = model(x)
    prover = certifier(model, (6,))
    assert torch.equal(model(x), before)  # the model itself stays as it was
    executed = torch.linalg.svdvals(model[0].weight.detach().double())[0]
    assert prover.proved.bound.value == pytest.approx(float(executed), rel=1e-13)
    assert prover(x).radius.shape == (3,)
