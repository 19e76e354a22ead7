"""What is understood of a user's model, and what is refused with its name."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from lipcert import InputError, UnknownBoundError
from lipcert.bounds import upper
from lipcert.nn import Branches, MinMax, Residual, Scale


def scaled(factor: float, size: int = 3) -> nn.Linear:
    layer = nn.Linear(size, size, bias=False)
    nn.init.eye_(layer.weight)
    layer.weight.data *= factor
    return layer


def test_sequences_multiply() -> None:
    model = nn.Sequential(scaled(2), nn.Sequential(nn.ReLU(), scaled(3)), Scale(-0.5), MinMaxFree())
    assert upper(model, (3,)).value == pytest.approx(3.0, rel=1e-6)  # a float32 scale may be rounded up


class MinMaxFree(nn.Module):
    """A user's block without a rule of its own: walked into."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x).flatten(1)


def test_residual_sums_add_one() -> None:
    bound = upper(Residual(scaled(2), nn.Tanh()), (3,))
    assert bound.value == pytest.approx(3.0, rel=1e-12)
    assert bound.value >= 3


def test_branches_add_in_squares() -> None:
    assert upper(Branches(scaled(3), scaled(4)), (3,)).value == pytest.approx(5.0, rel=1e-12)


def test_a_block_in_its_own_words() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = scaled(2), scaled(5)

        def forward(self, x: Tensor) -> Tensor:
            y = torch.cat([self.a(x), x + self.b(x)], dim=1)
            return torch.flatten(y, 1)

    assert upper(Block(), (3,)).value == pytest.approx(math.hypot(2, 6), rel=1e-12)


class Functional(nn.Module):
    """A network in the style of most tutorials."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.conv, self.fc = how, nn.Conv2d(1, 2, 3, padding=1), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.leaky_relu(self.conv(x), 0.1), 2)
        x = F.dropout(torch.tanh(x), training=self.training)
        if self.how == "size":
            x = x.view(x.size(0), -1)
        elif self.how == "shape":
            x = x.permute(0, 2, 3, 1).reshape(x.shape[0], 8)
        elif self.how == "rest":
            x = x.reshape(-1, 8)
        else:
            x = torch.flatten(F.avg_pool2d(F.gelu(x), 1), 1)
        return self.fc(x)


@pytest.mark.parametrize("how", ["size", "shape", "rest", "flatten"])
def test_functionals_and_reshapes_are_followed(how: str) -> None:
    model = Functional(how).eval()
    bound = upper(model, (1, 4, 4))
    x, dx = torch.randn(2, 256, 1, 4, 4)
    stretch = (model(x + dx) - model(x)).norm(dim=1) / dx.flatten(1).norm(dim=1)
    assert 0.05 * bound.value < float(stretch.detach().max()) <= bound.value
    with pytest.raises(InputError, match=r"model\.eval\(\)"):
        upper(model.train(), (1, 4, 4))


def test_a_reshape_that_mixes_samples_is_refused() -> None:
    class Mixing(nn.Module):
        def __init__(self, *shape: int) -> None:
            super().__init__()
            self.shape = shape

        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(*self.shape)

    for shape in [(-1, 3), (-1, 12), (3, 2, -1), (30,)]:
        with pytest.raises((UnknownBoundError, InputError)):
            upper(Mixing(*shape), (6,))
    assert upper(Mixing(-1, 6), (6,)).value == 1


def test_a_module_used_twice_counts_twice() -> None:
    shared = scaled(3)
    bound = upper(nn.Sequential(shared, nn.ReLU(), shared), (3,))
    assert bound.value == pytest.approx(9.0, rel=1e-12)
    assert len(bound.layers) == 3


def test_parametrisations_are_bounded_by_the_weight_they_execute() -> None:
    layer = parametrizations.weight_norm(nn.Linear(3, 4)).eval()
    with torch.no_grad():
        layer.parametrizations.weight.original0 *= 5
    truth = float(torch.linalg.matrix_norm(layer.weight.detach().double(), 2))
    assert upper(nn.Sequential(layer), (3,)).value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.LayerNorm(3), "not globally Lipschitz"),
        (nn.GroupNorm(1, 3), "not globally Lipschitz"),
        (nn.MultiheadAttention(3, 1), "attention is not globally Lipschitz"),
        (nn.Softplus(threshold=5.0), "1: Softplus jumps at its threshold: expected one between 20 and 80"),
        (nn.Softplus(threshold=700.0), "nothing overflows, got 700"),
        (nn.Softplus(beta=-1.0), "expected beta between"),
        (nn.Softmax(dim=0), "1: expected a dimension that is not the batch, got dim=0"),
        (nn.Softmax(dim=-2), "not the batch, got dim=-2"),
        (nn.LogSoftmax(), "not the batch, got dim=None"),
        (nn.CELU(), "no Lipschitz rule"),
        (nn.Bilinear(3, 3, 3), "no Lipschitz rule"),
    ],
)
def test_what_has_no_bound_is_refused_with_the_reason(module: nn.Module, reason: str) -> None:
    with pytest.raises(UnknownBoundError, match=reason):
        upper(nn.Sequential(scaled(1), module), (3,))


def test_the_message_names_the_module_and_the_remedy() -> None:
    with pytest.raises(UnknownBoundError, match=r"1\.0 \(CELU\).*@lipcert\.bounds\.rule\(CELU"):
        upper(nn.Sequential(scaled(1), nn.Sequential(nn.CELU())), (3,))


def test_a_subclass_does_not_inherit_a_rule() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    with pytest.raises(UnknownBoundError, match="no Lipschitz rule"):
        upper(nn.Sequential(Doubled(3, 3)), (3,))


@pytest.mark.parametrize("where", ["leaf", "container"])
def test_hooks_are_refused(where: str) -> None:
    model = nn.Sequential(scaled(1))
    (model if where == "container" else model[0]).register_forward_hook(lambda m, i, o: 2 * o)
    with pytest.raises(UnknownBoundError, match="hooks"):
        upper(model, (3,))


def test_global_hooks_are_refused() -> None:
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: None)
    try:
        with pytest.raises(UnknownBoundError, match="global forward hooks"):
            upper(nn.Sequential(scaled(1)), (3,))
    finally:
        handle.remove()


@pytest.mark.parametrize("where", ["root", "leaf", "leaf alone"])
def test_a_forward_put_on_an_instance_is_refused(where: str) -> None:
    model = nn.Sequential(scaled(1), nn.ReLU())
    target = {"root": model, "leaf": model[1], "leaf alone": model[1]}[where]
    target.forward = lambda x: 100 * x  # type: ignore[method-assign]
    with pytest.raises(UnknownBoundError, match="forward on the instance"):
        upper(target if where == "leaf alone" else model, (3,))


class InPlace(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.act, self.fc = how, nn.LeakyReLU(3.0, inplace=True), scaled(1)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "sum":
            return x + self.act(x)
        if self.how == "dropped":
            self.act(x)
            return self.fc(x)
        h = self.fc(x)
        nn.functional.relu(h, inplace=True)
        return self.fc(h)


@pytest.mark.parametrize("how", ["sum", "dropped", "functional"])
def test_working_in_place_on_a_shared_value_is_refused(how: str) -> None:
    with pytest.raises(UnknownBoundError, match="in place"):
        upper(InPlace(how), (3,))
    assert upper(nn.Sequential(scaled(2), nn.ReLU(inplace=True)), (3,)).value == pytest.approx(2.0)


class SumInPlace(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.stem, self.body = how, scaled(1), scaled(2)
        self.view = nn.Flatten()

    def forward(self, x: Tensor) -> Tensor:
        h = x if self.how == "input" else self.stem(x)
        held = self.view(h) if "view" in self.how else h
        y = self.body(h if self.how != "residual" else x)
        if self.how == "into a view":
            held += y
            return self.body(h)
        h += y
        if self.how == "twice":
            h += x
        return held + h if self.how == "held" else held if self.how == "seen by a view" else h


@pytest.mark.parametrize("how", ["held", "into a view", "seen by a view"])
def test_a_sum_in_place_that_others_see_is_refused(how: str) -> None:
    with pytest.raises(UnknownBoundError, match=r"\+= works in place"):
        upper(SumInPlace(how), (3,))


@pytest.mark.parametrize(
    ("how", "expected"), [("residual", 3.0), ("own", 3.0), ("input", 3.0), ("twice", 4.0)]
)
def test_a_sum_in_place_that_nobody_sees_is_a_sum(how: str, expected: float) -> None:
    model, x = SumInPlace(how), torch.randn(4, 3)
    assert upper(model, (3,)).value == pytest.approx(expected)
    torch.testing.assert_close(model(x.clone()), expected * x)


def test_a_sum_that_broadcasts_is_refused() -> None:
    with pytest.raises(UnknownBoundError, match="different shapes"):
        upper(Residual(nn.Linear(100, 1)), (100,))


@pytest.mark.parametrize(
    "layer", [nn.PReLU(3, init=math.nan), nn.LeakyReLU(math.nan), nn.ELU(math.nan), Scale(math.nan)]
)
def test_slopes_that_are_not_numbers_are_refused(layer: nn.Module) -> None:
    with pytest.raises(InputError, match="1: expected finite weights"):
        upper(nn.Sequential(scaled(1), layer), (3,))


def test_a_negative_divisor_is_as_large_as_its_size() -> None:
    assert upper(nn.AvgPool2d(2, divisor_override=-1), (1, 4, 4)).value == pytest.approx(2.0)
    assert upper(nn.MaxPool2d([3, 3], stride=[2]), (1, 9, 9)).value == pytest.approx(2.0)  # type: ignore[arg-type]


def test_a_parametrised_weight_in_training_mode_is_refused() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(3, 3))
    with pytest.raises(InputError, match="parametrised"):
        upper(nn.Sequential(layer), (3,))


def test_a_rule_of_ones_own_overrides_a_refusal() -> None:
    from lipcert.bounds import Constant, register
    from lipcert.bounds.contract import REFUSALS, RULES

    reason = REFUSALS[nn.RMSNorm]
    register(Constant(7.0), nn.RMSNorm, examples=[lambda: (nn.RMSNorm(3), (3,))])
    try:
        assert upper(nn.Sequential(nn.RMSNorm(3)), (3,)).value == pytest.approx(7.0)
    finally:
        del RULES[nn.RMSNorm]
        REFUSALS[nn.RMSNorm] = reason


def test_an_input_without_its_channels_is_not_taken_for_a_batch() -> None:
    with pytest.raises(InputError, match="input_shape"):
        upper(nn.Conv2d(2, 2, 1), (3, 3))


class Odd(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.layer, self.shift = how, scaled(1), nn.Parameter(torch.ones(3))
        self.attend = nn.MultiheadAttention(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "square":
            return x * x
        if self.how == "parameter":
            return x + self.shift
        if self.how == "scalar":
            return x + 1
        if self.how == "branch":
            return x if x.sum() > 0 else -x
        if self.how == "batch":
            return torch.cat([x, x])
        if self.how == "alpha":
            return torch.add(x, self.layer(x), alpha=3)
        if self.how == "constant":
            return self.shift
        if self.how == "attention":
            return self.attend(x, x, x)[0]
        if self.how == "flat":
            return self.layer(x).flatten()
        return self.layer(x), x  # type: ignore[return-value]


@pytest.mark.parametrize(
    "how",
    ["square", "parameter", "scalar", "branch", "batch", "flat", "tuple", "alpha", "constant", "attention"],
)
def test_code_that_is_not_understood_is_refused(how: str) -> None:
    with pytest.raises(UnknownBoundError):
        upper(Odd(how), (3,))


@pytest.mark.parametrize("shape", [(), (0,), (-1,), (2.5,), (4,), 3, None])
def test_input_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="input_shape"):
        upper(nn.Sequential(scaled(1)), shape)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3), nn.Dropout()])
def test_training_mode_has_no_certificate(layer: nn.Module) -> None:
    model = nn.Sequential(scaled(1), layer)
    with pytest.raises(InputError, match=r"model\.eval\(\)"):
        upper(model.train(), (3,))
    assert upper(model.eval(), (3,)).value > 0


def test_max_pool_constants_of_the_specification() -> None:
    assert upper(nn.MaxPool2d(3, stride=2), (1, 9, 9)).value == pytest.approx(2.0)
    assert upper(nn.MaxPool2d(2), (1, 8, 8)).value == 1
    assert upper(nn.AvgPool2d(4, divisor_override=4), (1, 8, 8)).value == pytest.approx(1.0)


def test_layers_are_listed_with_shapes_and_provers() -> None:
    bound = upper(nn.Sequential(nn.Linear(3, 4), MinMax()), (3,))
    assert [(x.kind, x.shape, x.prover) for x in bound.layers] == [
        ("Linear", (4,), "cholesky"),
        ("MinMax", (4,), "known"),
    ]


def test_effort_is_checked() -> None:
    with pytest.raises(InputError, match="effort"):
        upper(scaled(1), (3,), effort="lazy")  # type: ignore[arg-type]
