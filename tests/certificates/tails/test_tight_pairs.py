"""Constants of pairs from several dense layers together: sound, at most the product, and really smaller."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.bounds.provers.factorisation import spectral_norm_upper
from lipcert.certificates.head import pairs_upper
from lipcert.certificates.tails import approximate, tail_prover
from lipcert.certificates.tails import tight_pairs as pairs
from lipcert.certificates.tails.approximate import Approximate
from lipcert.certificates.tails.dense_tail import DenseTail
from lipcert.certificates.tails.multipliers import Layer, first_multipliers, gradient_and_steps, path, value
from lipcert.certificates.tails.sector import Sector
from lipcert.certificates.tails.tail_prover import Metric, TailProver, factor_of_inverse
from lipcert.certificates.tails.tight_pairs import tight_pairs
from lipcert.nn import MinMax

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "minmax": MinMax,
    "halves": lambda: MinMax(halves=True),
    "relu": nn.ReLU,
    "leaky": lambda: nn.LeakyReLU(0.3),
    "tanh": nn.Tanh,
}


def network(activation: str, seed: int, hidden: int = 2, width: int = 8, classes: int = 4) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for k in range(hidden):
        layers += [nn.Linear(width if k else 5, width), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers, nn.Linear(width, classes)).double()


def tail_of(model: nn.Sequential) -> DenseTail:
    weights = tuple(m.weight.detach() for m in model if isinstance(m, nn.Linear))
    sectors = [Sector.of(m, len(weights[0])) for m in model if not isinstance(m, nn.Linear)]
    return DenseTail(1.0, weights[:-1], tuple(s for s in sectors if s is not None), weights[-1])


def largest_slopes(model: nn.Sequential, samples: int = 400) -> Tensor:
    """Return the largest slopes of all f_i − f_j that gradients at random points and ascent find: (N, N)."""
    first = model[0]
    assert isinstance(first, nn.Linear)
    x = 3 * torch.randn(samples, first.in_features, dtype=torch.float64)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda one: model(one[None])[0]))(x)  # (S, N, n)
    differences = jacobian[:, :, None] - jacobian[:, None]
    largest: Tensor = torch.linalg.vector_norm(differences, dim=-1).amax(0)
    return largest


def worst_signs(model: nn.Sequential) -> Tensor:
    """Return ‖(w_i − w_j) D₂ W₂ D₁ W₁‖, the largest over all patterns of an activation with two slopes."""
    first, second, head = (m.weight.detach() for m in model if isinstance(m, nn.Linear))
    half = len(first) // 2
    swap = torch.eye(len(first), dtype=torch.float64).reshape(half, 2, -1).flip(1).reshape(len(first), -1)
    eye = torch.eye(len(first), dtype=torch.float64)
    patterns = []
    for signs in itertools.product((0.0, 1.0), repeat=half):
        rows = torch.tensor(signs, dtype=torch.float64).repeat_interleave(2)[:, None]
        patterns.append(rows * eye + (1 - rows) * swap)
    worst = torch.zeros(len(head), len(head), dtype=torch.float64)
    for one, other in itertools.product(patterns, patterns):
        rows = head @ other @ second @ one @ first
        worst = torch.maximum(worst, torch.cdist(rows, rows))
    return worst


@pytest.mark.parametrize("hidden", [1, 2, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_no_slope_exceeds_the_constants(activation: str, hidden: int) -> None:
    for seed in range(2):
        model = network(activation, seed, hidden)
        tight = certifier(model, (5,), effort="tight").proved.pairs
        product = certifier(model, (5,), effort="exact").proved.pairs
        assert (tight <= product).all()
        assert (largest_slopes(model) <= tight).all()


def test_no_pattern_of_minmax_exceeds_the_constants_and_they_are_much_smaller_than_the_product() -> None:
    for seed in range(4):
        model = network("minmax", seed)
        tight, worst = tight_pairs(tail_of(model)), worst_signs(model)
        product = certifier(model, (5,)).proved.pairs
        apart = ~torch.eye(4, dtype=torch.bool)
        assert (worst <= tight).all()
        assert (tight[apart] < 0.97 * product[apart]).all()


def test_points_far_apart_do_not_exceed_the_constants() -> None:
    model = network("minmax", 0)
    tight = tight_pairs(tail_of(model))
    x, y = 2 * torch.randn(2, 5000, 5, dtype=torch.float64)
    moved = model(x) - model(y)
    stretch = (moved[:, :, None] - moved[:, None]).abs() / (x - y).norm(dim=1)[:, None, None]
    assert (stretch.amax(0) <= tight).all()


def random_metrics(tail: DenseTail, seed: int) -> list[Metric]:
    torch.manual_seed(seed)
    found = []
    for sector in tail.sectors:
        n, m = len(sector.passing), len(sector.unsure)
        lower = torch.randn(n, n, dtype=torch.float64).tril(-1) + torch.diag(0.5 + torch.rand(n).double())
        found.append(Metric(lower, 0.2 + torch.rand(m, dtype=torch.float64)))
    return found


@pytest.mark.parametrize("activation", ["minmax", "relu", "leaky"])
def test_any_metric_is_sound(activation: str) -> None:
    for seed in range(5):
        model = network(activation, seed)
        tail = tail_of(model)
        assert (largest_slopes(model) <= TailProver(tail).upper(random_metrics(tail, seed))).all()


def test_a_network_of_ones_has_the_exact_constants_in_fractions() -> None:
    """One hidden MinMax pair: with W = I every K_ij is at least ‖w_i − w_j‖."""
    head = torch.tensor([[1.0, 2.0], [-2.0, 0.5], [0.25, 0.75]], dtype=torch.float64)
    sector = Sector.of(MinMax(), 2)
    assert sector is not None
    found = tight_pairs(DenseTail(1.0, (torch.eye(2, dtype=torch.float64),), (sector,), head))
    for i, j in itertools.combinations(range(3), 2):
        rows = [[Fraction(float(v)) for v in row] for row in head]
        square = sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))
        assert Fraction(float(found[i, j])) ** 2 >= square
        assert float(found[i, j]) ** 2 <= float(square) * (1 + 3e-2)


def exact_product(*factors: Tensor) -> list[list[Fraction]]:
    rows = [[Fraction(float(v)) for v in row] for row in factors[0]]
    for factor in factors[1:]:
        columns = [[Fraction(float(v)) for v in column] for column in factor.T]
        rows = [[sum((a * b for a, b in zip(r, c, strict=True)), Fraction(0)) for c in columns] for r in rows]
    return rows


def test_products_are_within_their_errors_in_exact_arithmetic() -> None:
    torch.manual_seed(0)
    for _ in range(20):
        factors = [
            torch.randn(6, 6, dtype=torch.float64) * 10.0 ** torch.randint(-3, 4, (6, 6)) for _ in range(3)
        ]
        product = Approximate.of(factors[0]) @ Approximate.of(factors[1]) @ Approximate.of(factors[2])
        exact = exact_product(*factors)
        apart = sum(
            (Fraction(float(a)) - b) ** 2
            for row, other in zip(product.value, exact, strict=True)
            for a, b in zip(row, other, strict=True)
        )
        assert 0 < apart <= Fraction(product.error) ** 2


def test_the_norm_of_a_product_that_cancels_needs_its_rounding_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """(1 + 2⁻³⁰)(1 − 2⁻³⁰) − 1 is −2⁻⁶⁰; the computed product is 0, and its bound must not be."""
    a = torch.tensor([[1 + 2.0**-30, 1.0]], dtype=torch.float64)
    b = torch.tensor([[1 - 2.0**-30], [-1.0]], dtype=torch.float64)
    product = Approximate.of(a) @ Approximate.of(b)
    true = abs(exact_product(a, b)[0][0])
    assert float(product.value) == 0 < true <= product.norm_upper()
    monkeypatch.setattr(approximate, "gamma", lambda k: 0.0)  # the planted mistake
    assert product.norm_upper() < true


def test_an_inverse_that_is_none_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("minmax", 0)
    tail = tail_of(model)
    assert factor_of_inverse(0.25) >= 4 / 3
    assert factor_of_inverse(1.5) == factor_of_inverse(float("nan")) == torch.inf
    good = random_metrics(tail, 0)
    # What solves with an upper triangle reads only half of L: its inverse is another one.
    full = [Metric(m.lower + 2 * torch.ones_like(m.lower).triu(1), m.width) for m in good]
    assert (TailProver(tail).upper(full) == torch.inf).all()
    small = [Metric(1e-9 * m.lower, m.width) for m in good]
    lie = Approximate.of(torch.zeros(8, 8, dtype=torch.float64))
    monkeypatch.setattr(Metric, "inward", lambda self: (lie, 1.0))  # the planted mistake: no check
    assert not (largest_slopes(model) <= TailProver(tail).upper(small)).all()


@pytest.mark.parametrize("wrong", [0.0, float("nan"), float("inf")])
def test_widths_and_factors_that_are_no_numbers_prove_nothing(wrong: float) -> None:
    tail = tail_of(network("minmax", 0))
    metrics = random_metrics(tail, 0)
    metrics[0].width[0] = wrong
    assert (TailProver(tail).upper(metrics) == torch.inf).all()


def test_negative_multipliers_prove_nothing() -> None:
    tail = tail_of(network("minmax", 0))
    metrics = random_metrics(tail, 0)
    multipliers = metrics[0].width ** 2
    multipliers[1] = -multipliers[1]
    metrics[0] = Metric(metrics[0].lower, multipliers.sqrt())
    assert (TailProver(tail).upper(metrics) == torch.inf).all()


def test_slopes_outside_of_the_sector_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("relu", 1, hidden=1)
    tail = tail_of(model)
    sector = tail.sectors[0]
    planted = Sector(sector.centre, sector.reach / 100)
    wrong = DenseTail(1.0, tail.weights, (planted,), tail.head)
    assert not (largest_slopes(model) <= tight_pairs(wrong)).all()


def test_gradients_are_those_of_differences() -> None:
    torch.manual_seed(0)
    kinds = [MinMax(), nn.ReLU(), MinMax(halves=True)]
    sectors = [Sector.of(kind, 6) for kind in kinds]
    layers = [Layer(torch.randn(6, 6, dtype=torch.float64) / 3, s) for s in sectors if s is not None]
    row = torch.randn(6, dtype=torch.float64)
    target, mu = torch.outer(row, row), 0.1
    ds = first_multipliers(layers)
    assert ds is not None
    found = path(layers, ds)
    assert found is not None
    slopes, _ = gradient_and_steps(layers, found[0], target, mu)
    step = 1e-6
    for k, d in enumerate(ds):
        for i in range(len(d)):
            ends = []
            for sign in (1, -1):
                moved = [one.clone() for one in ds]
                moved[k][i] += sign * step
                ends.append(value(layers, target, moved, mu))
            measured = (ends[0] - ends[1]) / (2 * step)
            assert measured == pytest.approx(float(slopes[k][i]), rel=1e-4, abs=1e-5)


def test_other_layers_before_the_tail_count_by_their_product() -> None:
    torch.manual_seed(0)
    end = [nn.Flatten(), nn.Linear(32, 8), MinMax(), nn.Dropout(), nn.Linear(8, 3)]
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), *end).eval()
    tight, exact = (certifier(model, (1, 4, 4), effort=e).proved for e in ("tight", "exact"))
    apart = ~torch.eye(3, dtype=torch.bool)
    assert (tight.pairs[apart] < exact.pairs[apart]).all()
    tail = DenseTail.of(tight.features, tight.bound, tight.head.rows)
    assert tail is not None
    assert len(tail.weights) == 1
    assert tail.entry == pytest.approx(tight.bound.layers[0].upper)


@pytest.mark.filterwarnings("ignore:the last layer is not linear")
@pytest.mark.parametrize(
    "layers",
    [
        lambda: [nn.Linear(4, 3)],
        lambda: [nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3)],
        lambda: [nn.Linear(4, 6), nn.ReLU()],
        lambda: [nn.Linear(4, 6), nn.ReLU(), nn.Unflatten(1, (2, 3)), nn.Flatten(), nn.Linear(6, 3)],
    ],
)
def test_networks_without_a_known_tail_keep_the_product(layers: object) -> None:
    model = nn.Sequential(*layers())  # type: ignore[operator]
    tight, exact = (certifier(model, (4,), effort=e).proved.pairs for e in ("tight", "exact"))
    assert torch.equal(tight, exact)


ODD = ["zero layer", "zero head", "equal rows", "one logit", "one class of weights", "huge", "tiny"]


@pytest.mark.parametrize("case", ODD)
def test_odd_networks(case: str) -> None:
    model = network("minmax", 0, classes=1 if case == "one logit" else 4)
    first, *_, head = (layer.weight.data for layer in model if isinstance(layer, nn.Linear))
    if case == "zero layer":
        first.zero_()
    elif case == "zero head":
        head.zero_()
    elif case == "equal rows":
        head[1] = head[0]
    elif case == "one class of weights":
        first[1:] = first[0]
    elif case in ("huge", "tiny"):
        first.mul_(1e120 if case == "huge" else 1e-120)
    tight, exact = (certifier(model, (5,), effort=e).proved.pairs for e in ("tight", "exact"))
    assert (tight <= exact).all()
    assert torch.isfinite(tight).all()
    measured = largest_slopes(model)  # rounded as well: equal rows differ in their last bits
    assert (measured <= tight + 1e-15 * measured.max()).all()


def test_many_pairs_share_their_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("relu", 0, classes=4)
    own = tight_pairs(tail_of(model))
    monkeypatch.setattr(pairs, "_PAIRS", 3)
    shared = tight_pairs(tail_of(model))
    assert (own <= shared).all()
    assert (own < shared).any()
    assert (largest_slopes(model) <= shared).all()


def test_layers_that_are_too_wide_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_WIDEST", 7)
    assert (tight_pairs(tail_of(network("relu", 0)))).isinf().all()


def test_a_wide_first_matrix_is_replaced_by_a_small_one_that_is_no_smaller() -> None:
    torch.manual_seed(0)
    wide = torch.randn(6, 50, dtype=torch.float64)
    small, factor = tail_prover._reduced(wide)
    assert small.shape == (6, 6)
    assert factor == pytest.approx(1, abs=1e-6)
    for _ in range(20):
        row = torch.randn(1, 6, dtype=torch.float64)
        assert float((row @ wide).norm()) <= float((row @ small).norm()) * factor * (1 + 1e-14)
    flat = torch.ones(6, 50, dtype=torch.float64)
    root, factor = tail_prover._reduced(flat)
    assert spectral_norm_upper(root) * factor >= spectral_norm_upper(flat) * (1 - 1e-14)


def test_the_pairs_of_the_product_are_those_of_trivial_metrics() -> None:
    model = network("minmax", 0, hidden=1)
    tail = tail_of(model)
    metric = Metric(torch.eye(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64))
    product = spectral_norm_upper(tail.weights[0]) * pairs_upper(tail.head)
    apart = ~torch.eye(4, dtype=torch.bool)
    assert torch.allclose(TailProver(tail).upper([metric])[apart], product[apart], rtol=1e-9)
