"""Centering, scaled pooling and learned activations: what they compute, and what they refuse."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

import lipcert
from lipcert import Bounded, InputError
from lipcert.bounds import upper
from lipcert.bounds.small_pieces import batch_norms_in
from lipcert.nn import (
    BatchCentering,
    LayerCentering,
    LinearSpline,
    NActivation,
    ScaledAdaptiveAvgPool2d,
)


def test_batch_centering_is_batch_norm_without_division() -> None:
    torch.manual_seed(0)
    layer, norm = BatchCentering(3, momentum=0.3), nn.BatchNorm2d(3, momentum=0.3)
    for _ in range(4):
        x = torch.randn(5, 3, 4, 4) + 2
        assert float(layer(x).mean(dim=(0, 2, 3)).abs().max().detach()) < 1e-6
        norm(x)
    torch.testing.assert_close(layer.running_mean, norm.running_mean)
    x = torch.randn(2, 3, 4, 4)
    torch.testing.assert_close(layer.eval()(x), x - norm.running_mean[:, None, None])


def test_no_certificate_while_it_takes_means_of_batches() -> None:
    model = nn.Sequential(BatchCentering(3), nn.Linear(3, 2))
    with pytest.raises(InputError, match="mixes samples"):
        upper(BatchCentering(3).train(), (3,))
    model(torch.randn(8, 3))
    certificate = lipcert.certify(model.eval(), torch.randn(4, 3))
    assert (certificate.radius > 0).any()


def test_a_training_with_one_sample_takes_the_running_mean() -> None:
    model = nn.Sequential(BatchCentering(3), nn.Linear(3, 2))
    assert batch_norms_in(model) == [model[0]]
    before = copy.deepcopy(model[0].running_mean)
    bounded, x = Bounded(model, (3,)), torch.randn(1, 3)
    torch.testing.assert_close(bounded(x)[0], model[1](x - before))
    assert torch.equal(model[0].running_mean, before)
    assert model[0].training
    bounded(torch.randn(4, 3))
    assert not torch.equal(model[0].running_mean, before)


def test_a_centred_sample_has_the_mean_of_the_bias() -> None:
    layer, x = LayerCentering(3), torch.randn(2, 3, 4, 5)
    nn.init.normal_(layer.bias)
    torch.testing.assert_close(layer(x).mean((2, 3)), layer.bias.expand(2, 3))
    with pytest.raises(InputError, match="different dimensions"):
        LayerCentering(3, (1, -3))(x)
    with pytest.raises(InputError, match="without the batch"):
        LayerCentering(3, (0, 1))


def test_scaled_windows_keep_constant_images_as_long_as_they_are() -> None:
    """Disjoint windows: a constant image keeps its length, which is why the scale is no smaller."""
    x = torch.ones(1, 2, 6, 4).double()
    pooled = ScaledAdaptiveAvgPool2d((3, 2))(x)
    assert float(pooled.norm()) == pytest.approx(float(x.norm()))
    assert upper(ScaledAdaptiveAvgPool2d(1), (2, 6, 4)).value == pytest.approx(1, abs=1e-6)
    with pytest.raises(InputError, match="output_size"):
        ScaledAdaptiveAvgPool2d(0)


def test_an_n_activation_is_the_identity_between_folds() -> None:
    layer = NActivation(1, (-1.0, 2.0))
    x = torch.tensor([[-3.0], [-1.0], [0.0], [2.0], [5.0]])
    assert layer(x).flatten().tolist() == [-1.0, 1.0, 0.0, -2.0, 1.0]
    turned = NActivation(1, (2.0, -1.0))
    torch.testing.assert_close(turned(x), layer(x))
    y = torch.randn(50, 1).double().requires_grad_()
    (slope,) = torch.autograd.grad(layer.double()(y).sum(), y)
    assert set(slope.abs().flatten().tolist()) == {1.0}
    theta = torch.tensor([[-0.4, 0.6]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lipcert.nn.n_activation.n_activation, (y, theta))


def test_a_spline_is_its_integral() -> None:
    torch.manual_seed(0)
    layer = LinearSpline(2, pieces=6, reach=1.5).double()
    nn.init.uniform_(layer.slopes, -2, 2)
    nn.init.normal_(layer.middle)
    x = torch.linspace(-3, 3, 601, dtype=torch.float64)[:, None].expand(-1, 2)
    edges = torch.linspace(-1.5, 1.5, 7, dtype=torch.float64)
    piece = (torch.bucketize(x[:-1] + 0.005, edges) - 1).clamp(0, 5)
    slopes = layer.slopes.clamp(-1, 1).T.gather(0, piece)
    torch.testing.assert_close(layer(x).diff(dim=0), 0.01 * slopes, atol=1e-12, rtol=0)
    torch.testing.assert_close(layer(torch.zeros(1, 2).double())[0], layer.middle)


def test_a_clipped_slope_can_come_back() -> None:
    layer = LinearSpline(1, pieces=2)
    with torch.no_grad():
        layer.slopes.fill_(3.0)
    assert float(layer(torch.tensor([[2.0]])).detach()) == 2.0
    layer(torch.tensor([[2.0]])).sum().backward()
    assert layer.slopes.grad.tolist() == [[0.0, 2.0]]


def test_the_gradients_of_a_spline() -> None:
    torch.manual_seed(0)
    layer = LinearSpline(3, pieces=4).double()
    nn.init.uniform_(layer.slopes, -0.9, 0.9)
    x = torch.randn(7, 3, 2).double().requires_grad_()

    def values(*inputs: torch.Tensor) -> torch.Tensor:
        given = dict(zip(("slopes", "middle"), inputs[1:], strict=True))
        return torch.func.functional_call(layer, given, (inputs[0],))

    assert torch.autograd.gradcheck(values, (x, layer.slopes, layer.middle))


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="pieces"):
        LinearSpline(3, pieces=3)
    with pytest.raises(InputError, match="channels"):
        NActivation(0)
    with pytest.raises(InputError, match="3 channels"):
        NActivation(3)(torch.zeros(1, 2))
    with pytest.raises(InputError, match="momentum"):
        BatchCentering(3, momentum=0.0)
    assert math.isinf(float(LinearSpline(1)(torch.tensor([[math.inf]])).detach()))
