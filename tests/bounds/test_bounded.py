"""`Bounded`: constants for training, without touching the user's model."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning_fabric import Fabric
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

from lipcert import Bounded, InputError, upper
from lipcert.bounds.rules.convolution import ConvRule
from lipcert.errors import LipcertWarning
from lipcert.losses import CLL
from lipcert.models import create
from lipcert.nn import MinMax


def network(classes: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 8), MinMax(), nn.Linear(8, 6), MinMax(), nn.Linear(6, classes))


def test_features_is_the_product_of_the_layers_before_the_head() -> None:
    model = network().double()
    lip = Bounded(model, (2,)).converge(tolerance=1e-13)
    norms = [float(torch.linalg.matrix_norm(model[i].weight.detach(), 2)) for i in (0, 2)]
    assert float(lip.features) == pytest.approx(norms[0] * norms[1], rel=1e-9)
    assert torch.equal(lip.head, model[4].weight)


def test_the_users_model_is_left_as_it_was() -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())
    bounded = Bounded(model, (2,))
    bounded(torch.randn(4, 2))
    assert model.state_dict().keys() == before.keys()
    assert {n for n, _ in bounded.named_parameters()} == {f"model.{n}" for n, _ in model.named_parameters()}
    assert sorted(n for n, _ in bounded.named_buffers()) == ["vector__0", "vector__2"]


def test_vectors_move_in_training_only_and_carry_no_gradient() -> None:
    bounded = Bounded(network(), (2,))
    first = bounded.get_buffer("vector__0").clone()
    with torch.no_grad():
        bounded.model[0].weight.normal_()
    bounded.eval()(torch.randn(4, 2))
    assert torch.equal(bounded.get_buffer("vector__0"), first)
    _, lip = bounded.train()(torch.randn(4, 2))
    assert not torch.equal(bounded.get_buffer("vector__0"), first)
    assert not bounded.get_buffer("vector__0").requires_grad
    assert lip.features.requires_grad


def test_the_gradient_of_the_constant_is_that_of_the_norm() -> None:
    model = network().double()
    bounded = Bounded(model, (2,))
    bounded.converge(tolerance=1e-14)
    bounded.lip().features.backward()
    w = model[0].weight.detach().clone().requires_grad_()
    (torch.linalg.matrix_norm(w, 2) * torch.linalg.matrix_norm(model[2].weight.detach(), 2)).backward()
    torch.testing.assert_close(model[0].weight.grad, w.grad, rtol=1e-5, atol=1e-7)


def test_one_logit_stands_for_two() -> None:
    model = network(classes=1)
    x = torch.randn(5, 2)
    logits, lip = Bounded(model, (2,))(x)
    assert torch.equal(logits, torch.cat([torch.zeros(5, 1), model(x)], dim=1))
    assert torch.equal(lip.head, torch.cat([torch.zeros(1, 6), model[4].weight]))


def test_a_head_that_is_not_linear_is_said() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    with pytest.warns(LipcertWarning, match="√2"):
        _, lip = Bounded(model, (2,))(torch.randn(4, 2))
    assert torch.equal(lip.head, torch.eye(3))
    norm = float(torch.linalg.matrix_norm(model[0].weight.detach(), 2))
    assert float(lip.features.detach()) == pytest.approx(norm, rel=1e-4)


def test_a_copy_is_independent() -> None:
    bounded = Bounded(network(), (2,))
    other = copy.deepcopy(bounded)
    with torch.no_grad():
        other.model[0].weight.mul_(3)
    assert float(other.lip().features) == pytest.approx(3 * float(bounded.lip().features), rel=1e-4)


def test_a_zero_layer_recovers() -> None:
    model = network()
    bounded = Bounded(model, (2,))
    saved = model[0].weight.data.clone()
    model[0].weight.data.zero_()
    bounded(torch.randn(4, 2))
    assert float(bounded.lip().features) == 0
    model[0].weight.data = saved
    assert float(bounded.converge().features) > 0


def test_of_many_classes_a_step_looks_at_those_of_its_batch_and_the_worst_pair() -> None:
    bounded = Bounded(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 300)), (2,))
    lip = bounded.lip()
    seen = bounded.near(lip, torch.tensor([0, 1]))
    assert seen.head.shape == (4, 8)
    assert float(seen.max().detach()) == pytest.approx(float(lip.max().detach()), rel=1e-6)
    with torch.no_grad():  # another row gets far from all
        bounded.head.weight[7] *= 100
        lip = bounded.lip()
        assert float(lip.max()) / 2 < float(bounded.near(lip, torch.tensor([0])).max()) < float(lip.max())
        bounded.find_worst_pair()
        assert float(bounded.near(lip, torch.tensor([0])).max()) == pytest.approx(float(lip.max()), rel=1e-6)
    assert 7 in bounded.worst_pair.tolist()
    assert "worst_pair" in bounded.state_dict()
    assert Bounded(network(), (2,)).worst_pair is None


def test_wrappers_do_not_pile_hooks_on_the_parameters() -> None:
    model = network()
    fabric = Fabric(accelerator="cpu", devices=1)
    wrapped = fabric.setup(Bounded(model, (2,)))
    for _ in range(3):
        logits, lip = wrapped(torch.randn(4, 2))
        fabric.backward(logits.sum() + lip.max())
    assert not model[4].weight._backward_hooks


@settings(max_examples=40)
@given(
    channels=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    groups=st.integers(1, 2),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    size=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    mode=st.sampled_from(["zeros", "circular", "reflect", "replicate"]),
)
def test_the_adjoint_of_any_convolution_is_exact(
    channels, groups, kernel, stride, padding, dilation, size, mode
):
    """⟨Wv, u⟩ = ⟨v, Wᵀu⟩."""
    if any(d * (k - 1) + 1 > n + 2 * p for k, n, p, d in zip(kernel, size, padding, dilation, strict=True)):
        return
    conv = nn.Conv2d(
        groups * channels[0],
        groups * channels[1],
        kernel,
        stride,
        padding,
        dilation,
        groups,
        padding_mode=mode,
    ).double()
    shape = torch.Size((groups * channels[0], *size))
    v = torch.randn(2, *shape, dtype=torch.float64)
    rule = ConvRule()
    with torch.no_grad():
        image = rule.apply(conv, v)
        u = torch.randn_like(image)
        back = rule.adjoint(conv, u, shape)
        assert back.shape == v.shape
        torch.testing.assert_close((image * u).sum(), (v * back).sum())


def test_two_models_train_in_one_vmapped_step() -> None:
    """Different weights, ε and slack; one step together equals two steps apart."""
    pair = [
        Bounded(create("mlp", num_classes=2, input_shape=(2,), widths=[6, 4]).double(), (2,)) for _ in "ab"
    ]
    x, y = torch.randn(16, 2, dtype=torch.float64), torch.randint(2, (16,))
    eps, slack = torch.tensor([0.1, 0.2]).double(), torch.tensor([0.05, 1e-8]).double()

    def objective(parameters, buffers, e, p):
        logits, lip = functional_call(pair[0].eval(), (parameters, buffers), (x,))
        loss = CLL(eps=e, slack=p, lam=1e-3, sides="one")
        return loss(logits, y, lip).mean() + loss.penalty(lip)

    parameters, buffers = stack_module_state(pair)
    gradients = vmap(grad(objective))(parameters, buffers, eps, slack)
    with torch.no_grad():
        stepped = {k: v - 0.1 * gradients[k] for k, v in parameters.items()}
    for i, bounded in enumerate(pair):
        logits, lip = bounded.eval()(x)
        loss = CLL(eps=float(eps[i]), slack=float(slack[i]), lam=1e-3, sides="one")
        (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
        for name, p in bounded.named_parameters():
            torch.testing.assert_close(stepped[name][i], (p - 0.1 * p.grad).detach())


def test_one_step_of_power_iteration_is_that_of_dense_matrices() -> None:
    """Five times v ← WᵀWv/‖WᵀWv‖ per layer and step from the vectors before; then K = ∏‖Wv‖."""
    model = network().double()
    bounded = Bounded(model, (2,), estimate="power")
    with torch.no_grad():
        for p in model.parameters():
            p.normal_()
    expected, vectors = 1.0, {}
    for name, i in (("vector__0", 0), ("vector__2", 2)):
        matrix, v = model[i].weight.detach(), bounded.get_buffer(name)
        for _ in range(5):
            v = matrix.T @ (matrix @ v)
            v = v / v.norm()
        vectors[name] = v
        expected *= float((matrix @ v).norm())
    _, lip = bounded(torch.randn(4, 2).double())
    assert float(lip.features) == pytest.approx(expected, rel=1e-12)
    for name, v in vectors.items():
        torch.testing.assert_close(bounded.get_buffer(name), v)
        assert not bounded.get_buffer(name).requires_grad
    lip.features.backward()
    first = model[0].weight
    outer = torch.outer(first.detach() @ vectors["vector__0"], vectors["vector__0"])
    slope = outer / outer.norm() * expected / (first.detach() @ vectors["vector__0"]).norm()
    torch.testing.assert_close(first.grad, slope)


def test_power_iterations_rise_towards_the_proved_norm() -> None:
    torch.manual_seed(2)
    model = create("4c3f", num_classes=3, input_shape=(3, 8, 8), width=0.25).double()
    bounded, x = Bounded(model, (3, 8, 8), estimate="power"), torch.randn(2, 3, 8, 8).double()
    proved = upper(bounded.model[:-1], (3, 8, 8)).value
    found = [float(bounded(x)[1].features.detach()) for _ in range(40)]
    krylov = float(Bounded(model, (3, 8, 8))(x)[1].features.detach())
    assert found[0] < krylov  # as many products
    assert found[0] < found[-1] <= proved
    assert found[-1] > 0.99 * proved
    assert float(bounded.converge().features) == pytest.approx(proved, rel=1e-4)


def test_an_unknown_estimate_is_refused() -> None:
    with pytest.raises(InputError, match="estimate: expected one of krylov, power"):
        Bounded(network(), (2,), estimate="lanczos")  # type: ignore[arg-type]


def improved(bounded: Bounded, **how: object) -> list[int]:
    """Which vectors a forward improves, after the weights have changed."""
    with torch.no_grad():
        for parameter in bounded.model.parameters():
            parameter.normal_()
    names = [name for name, _ in bounded.named_buffers()]
    before = [bounded.get_buffer(name).clone() for name in names]
    bounded(torch.randn(4, 2), **how)
    return [i for i, name in enumerate(names) if not torch.equal(bounded.get_buffer(name), before[i])]


def deep() -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(2 if i == 0 else 5, 5) for i in range(5)))


def test_the_layers_take_turns_by_themselves() -> None:
    assert improved(Bounded(deep(), (2,))) == [0, 1, 2, 3]
    bounded = Bounded(deep(), (2,), turns=3)
    assert [improved(bounded) for _ in range(4)] == [[0, 3], [1], [2], [0, 3]]
    assert improved(bounded, first=False) == improved(bounded, iterate=False) == []
    assert improved(bounded.eval()) == []
    assert improved(bounded.train()) == [1]  # whose turn it was
    assert improved(bounded, turn=(0, 1)) == [0, 1, 2, 3]
    assert improved(bounded) == [2]
    block = Bounded(deep(), (2,), estimate="block", turns=2)
    assert [len(improved(block)) > 0 for _ in range(4)] == [True, False, True, False]
    with pytest.raises(InputError, match="turns: expected 1 with estimate: power, got 3"):
        Bounded(deep(), (2,), estimate="power", turns=3)
    with pytest.raises(InputError, match="turns: expected a whole number >= 1, got 0"):
        Bounded(deep(), (2,), turns=0)


def test_turns_leave_converged_constants_exact() -> None:
    model = network()
    bounded = Bounded(model, (2,), turns=2)
    improved(bounded)  # one of the two layers
    norms = [float(torch.linalg.matrix_norm(model[i].weight.detach(), 2)) for i in (0, 2)]
    assert float(bounded.converge().features.detach()) == pytest.approx(norms[0] * norms[1], rel=1e-5)


def test_given_turns_are_those_of_the_counter_bit_for_bit() -> None:
    counted, told = Bounded(deep(), (2,), turns=3), Bounded(deep(), (2,))
    told.load_state_dict(counted.state_dict())
    for step in range(7):
        with torch.no_grad():
            for mine, theirs in zip(counted.parameters(), told.parameters(), strict=True):
                theirs.copy_(mine.mul_(1.1))
        counted(torch.zeros(4, 2))
        told(torch.zeros(4, 2), turn=(step % 3, 3))
    for name, vector in counted.named_buffers():
        assert torch.equal(vector, told.get_buffer(name)), name
