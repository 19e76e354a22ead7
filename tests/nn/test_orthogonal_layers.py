"""What single families promise beyond the laws."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert import Bounded, certifier
from lipcert.errors import InputError
from lipcert.losses import CLL
from lipcert.models.uniform import FAMILIES, uniform
from lipcert.nn import (
    BROConv2d,
    BROLinear,
    CayleyConv2d,
    CayleyLinear,
    CholeskyConv2d,
    CholeskyLinear,
    LinearResidualConv2d,
    LOTConv2d,
    LOTLinear,
    OrthogonalParameter,
    PartialAbs,
    ShiftMix,
)
from lipcert.nn.bases.spectral import by_frequency, centred_symbol
from lipcert.nn.cholesky import whitened
from lipcert.nn.lot import orthogonal_factor
from lipcert.nn.shift_mix import nearest_orthogonal, shift
from lipcert.train.optimizers.adam import adam
from lipcert.train.optimizers.adamw import adamw
from lipcert.train.optimizers.nadam import nadam
from lipcert.train.optimizers.orthogonal import OrthogonalAdam
from lipcert.train.optimizers.sgd import sgd


def singular_values(layer: nn.Module, *shape: int) -> Tensor:
    """Of the linear part, as a matrix."""
    zero = torch.zeros(1, *shape, dtype=torch.float64)
    with torch.no_grad():
        inputs = torch.eye(math.prod(shape), dtype=torch.float64).view(-1, *shape)
        columns = layer(inputs) - layer(zero)
    return torch.linalg.svdvals(columns.flatten(1))


@pytest.mark.parametrize(
    ("make", "shape", "tolerance"),
    [
        (lambda: CayleyConv2d(4, 4), (4, 5, 6), 1e-9),
        (lambda: CayleyConv2d(2, 6), (2, 4, 4), 1e-9),
        (lambda: CayleyConv2d(3, 12, stride=2), (3, 4, 6), 1e-9),
        (lambda: CayleyLinear(5, 9), (5,), 1e-9),
        (lambda: BROLinear(7, 7), (7,), 1e-4),  # a ridge keeps it from being singular
    ],
)
def test_lengths_are_kept(make: Callable[[], nn.Module], shape: tuple[int, ...], tolerance: float) -> None:
    values = singular_values(make().double().eval(), *shape)
    assert values == pytest.approx(torch.ones_like(values), abs=tolerance)


@pytest.mark.parametrize("make", [CholeskyLinear, LOTLinear])
def test_shorter_sides_are_nearly_orthonormal(make: Callable[[int, int], nn.Module]) -> None:
    for inputs, outputs in ((9, 4), (4, 9)):
        values = singular_values(make(inputs, outputs).double().eval(), inputs)
        assert values.max() <= 1 + 1e-12
        assert values[: min(inputs, outputs)].min() >= 0.999


@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (5, 2)])
def test_the_short_way_back_is_the_gradient(shape: tuple[int, int]) -> None:
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(whitened, x, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(whitened, x)
    slow = torch.func.jacrev(whitened)(x)
    torch.testing.assert_close(torch.autograd.functional.jacobian(whitened, x), slow)
    torch.testing.assert_close(torch.func.jacfwd(whitened)(x), slow)


def test_a_layer_may_be_transformed_though_its_weights_are_not() -> None:
    layer, x = CholeskyLinear(6, 4).train(), torch.randn(3, 6)
    torch.testing.assert_close(torch.vmap(layer)(x), layer(x))
    torch.testing.assert_close(torch.func.jacrev(layer)(x[0]), whitened(layer.raw))


@pytest.mark.parametrize("make", [BROLinear, CholeskyLinear, LOTLinear])
def test_weights_keep_their_precision_under_autocast(make: Callable[[int, int], nn.Module]) -> None:
    layer = make(32, 32).train()
    with torch.autocast("cpu", dtype=torch.float16):
        (weights,) = layer.weights()
    assert weights.dtype == torch.float32
    assert torch.equal(weights, layer.weights()[0])


@pytest.mark.parametrize("size", [1e-38, 1e-20, 1e18, 1e37])
def test_the_length_of_weights_does_not_matter(size: float) -> None:
    x = torch.randn(3, 5)
    torch.testing.assert_close(whitened(size * x), whitened(x))
    assert torch.isfinite(torch.func.jacrev(whitened)(1e18 * x)).all()


def test_weights_that_are_not_finite_make_none_that_are() -> None:
    assert whitened(torch.full((3, 5), torch.nan)).isnan().all()
    assert nearest_orthogonal(torch.tensor([[1.0, torch.inf], [0.0, 1.0]])).isnan().all()


def test_matrices_of_zeros_have_a_gradient() -> None:
    x, weights = torch.zeros(2, 3, requires_grad=True), torch.randn(2, 3)
    (whitened(x) * weights).sum().backward()
    assert torch.equal(x.grad, weights)


def test_patches_are_one_matrix() -> None:
    layer = CholeskyConv2d(2, 8, 2, bias=False).double().eval()
    values = singular_values(layer, 2, 4, 4)
    assert values == pytest.approx(torch.ones_like(values), abs=1e-3)
    with pytest.raises(InputError, match="kernel_size"):
        CholeskyConv2d(2, 8, 0)


def test_a_spectrum_is_a_circular_convolution() -> None:
    kernels, x = torch.randn(3, 2, 3, 3).double(), torch.randn(4, 2, 5, 6).double()
    found = by_frequency(x, centred_symbol(kernels, (5, 6)))
    expected = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="circular"), kernels)
    torch.testing.assert_close(found, expected)


def test_newton_never_overshoots() -> None:
    """A contraction after any number of steps, also of matrices without full rank."""
    v = torch.randn(5, 3, 6).double()
    v[0, 2] = v[0, 1]
    for steps in range(12):
        assert torch.linalg.matrix_norm(orthogonal_factor(v, steps), 2).max() <= 1 + 1e-12


def test_lot_begins_as_the_identity() -> None:
    layer, x = LOTConv2d(4, 4).eval(), torch.randn(2, 4, 6, 6)
    torch.testing.assert_close(layer(x), x, atol=1e-3, rtol=1e-3)


def test_a_reflection_undoes_itself() -> None:
    layer = BROConv2d(4, 4, kernel_size=1, bias=False).double().eval()  # no border to cross
    x = torch.randn(2, 4, 5, 5).double()
    torch.testing.assert_close(layer(layer(x)), x, atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match="rank"):
        BROConv2d(4, 4, rank=1.0)


def test_a_linear_residual_is_one_convolution() -> None:
    layer = LinearResidualConv2d(4, depth=9).eval()
    x = torch.randn(2, 4, 5, 5)
    added = F.conv2d(x, layer.raw / 3, layer.bias, padding=1)
    torch.testing.assert_close(layer(x), x + added)
    with pytest.raises(InputError, match="odd"):
        LinearResidualConv2d(4, kernel_size=4)


def test_fifths_move_around_the_circle() -> None:
    x = torch.arange(12.0).view(1, 1, 3, 4).expand(1, 5, 3, 4)
    moved = shift(x)[0]
    for channel, (down, right) in enumerate([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]):
        assert torch.equal(moved[channel], x[0, channel].roll((down, right), (0, 1)))


def test_wrong_sizes_are_named() -> None:
    for shape in ((1, 4, 3, 4), (4, 3, 3)):
        with pytest.raises(InputError, match="expected a batch of images"):
            ShiftMix(4, (3, 3))(torch.zeros(shape))
    with pytest.raises(InputError, match="size"):
        ShiftMix(4, (3,))
    with pytest.raises(InputError, match="share"):
        PartialAbs(1.5)


def test_the_optimiser_turns_matrices_and_arrives() -> None:
    target = nn.init.orthogonal_(torch.empty(6, 6))
    layer = ShiftMix(6, (2, 2))
    if torch.det(target) * torch.det(layer.rotation.detach()) < 0:  # a turn cannot become a reflection
        target[0] *= -1
    optimizer = adam(layer.parameters(), lr=0.05)
    assert isinstance(optimizer, OrthogonalAdam)
    for step in range(400):
        for group in optimizer.param_groups:
            group["lr"] = 0.05 * (1 - step / 400)
        optimizer.zero_grad()
        loss = (layer.rotation - target).square().sum() + layer.down.square().sum()
        loss.backward()
        optimizer.step()
        off = layer.rotation.T @ layer.rotation - torch.eye(6)
        assert float(off.detach().abs().max()) < 1e-5
    assert float(loss.detach()) < 1e-2


def orthogonality(matrix: Tensor) -> float:
    """The largest entry of XᵀX − I."""
    return float((matrix.T @ matrix - torch.eye(len(matrix))).detach().abs().max())


@pytest.mark.parametrize("start", [1.0, 3.0])
def test_wide_matrices_and_large_steps_stay_orthogonal(start: float) -> None:
    torch.manual_seed(0)
    matrix = OrthogonalParameter(start * torch.eye(512))
    optimizer = OrthogonalAdam([matrix], lr=2e-2)  # the first angles are about ten
    a, b = torch.rand(512) + 0.1, torch.linspace(1, 2, 512)
    for _ in range(5):
        optimizer.zero_grad()
        (b * (matrix @ a)).sum().backward()
        optimizer.step()
        assert orthogonality(matrix) < 1e-4


def test_a_closure_is_called_before_the_step() -> None:
    layer = ShiftMix(8, (2, 2))
    optimizer = adam(layer.parameters(), lr=0.05)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = layer(torch.ones(2, 8, 2, 2)).square().sum() + layer.mix.sum()
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure).detach()) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert orthogonality(layer.mix) < 1e-5


def test_steps_that_overflow_in_half_precision_are_left_out() -> None:
    layer = ShiftMix(4, (2, 2))
    optimizer, scaler = adam(layer.parameters(), lr=0.01), torch.amp.GradScaler("cpu")
    before = layer.rotation.detach().clone()
    scaler.scale(1e36 * layer(torch.ones(1, 4, 2, 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(layer.rotation, before)


def test_matrices_stay_orthogonal_parameters(tmp_path: Path) -> None:
    layer = ShiftMix(4, (2, 2))
    torch.save(layer, tmp_path / "layer.pt")
    assigned, emptied = ShiftMix(4, (2, 2)), ShiftMix(4, (2, 2)).to("meta").to_empty(device="cpu")
    assigned.load_state_dict({k: v.clone() for k, v in layer.state_dict().items()}, assign=True)
    loaded = torch.load(tmp_path / "layer.pt", weights_only=False)
    for other in (loaded, assigned, emptied, copy.deepcopy(layer).double()):
        assert isinstance(adam(other.parameters()), OrthogonalAdam)


def test_transposed_parameters_are_other_ones() -> None:
    layer = CholeskyLinear(4, 4).eval()
    x, before = torch.randn(2, 4), layer.raw.detach()
    first = layer(x)
    layer.raw = nn.Parameter(before.T)  # at the same address
    assert not torch.equal(layer(x), first)
    torch.testing.assert_close(layer(x), copy.deepcopy(layer)(x))


def test_sums_of_pixels_may_overflow_though_weights_are_zero() -> None:
    layer = LOTConv2d(1, 2)
    nn.init.zeros_(layer.raw)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(32, 2)).eval()
    radius = certifier(model, (1, 4, 4))(torch.zeros(1, 1, 4, 4), "float32").radius
    assert float(radius) < 1e37


def test_a_reflector_needs_two_channels() -> None:
    with pytest.raises(InputError, match="at least 2 channels"):
        BROLinear(1, 1)


def test_its_state_goes_on_where_it_was() -> None:
    torch.manual_seed(0)
    layer = ShiftMix(4, (2, 2))
    x = torch.randn(8, 4, 2, 2)

    def steps(module: ShiftMix, optimizer: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            module(x).abs().sum().backward()
            optimizer.step()

    first = adam(layer.parameters(), lr=0.01)
    steps(layer, first, 3)
    other = copy.deepcopy(layer)
    second = adam(other.parameters(), lr=0.01)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    steps(layer, first, 2)
    steps(other, second, 2)
    assert all(torch.equal(a, b) for a, b in zip(layer.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("make", [adamw, nadam, sgd])
def test_other_optimisers_refuse_matrices_they_would_move(
    make: Callable[..., torch.optim.Optimizer],
) -> None:
    with pytest.raises(InputError, match="orthogonal"):
        make(ShiftMix(4, (2, 2)).parameters())


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_in_the_same_network(family: str) -> None:
    torch.manual_seed(0)
    shape = (3, 8, 8)
    model = uniform(num_classes=3, input_shape=shape, layer=family, width=0.125)
    bounded, loss = Bounded(model, shape), CLL(eps=0.1, slack=0.1, lam=1e-3)
    optimizer = adam(bounded.parameters(), lr=1e-3)
    x, y = torch.rand(32, *shape), torch.arange(32) % 3
    for _ in range(3):
        logits, lip = bounded(x)
        optimizer.zero_grad()
        (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    prover = certifier(model.eval(), shape)
    assert (prover(x).radius > 0).any()
    if family not in ("plain", "linear-residual"):
        # Five terms of an exponential may stretch by half a percent, four times over.
        assert prover.proved.bound.value <= (1.02 if family == "soc" else 1 + 1e-4)


def test_unknown_families_are_named() -> None:
    with pytest.raises(InputError, match="shift-mix"):
        uniform(layer="attention")
