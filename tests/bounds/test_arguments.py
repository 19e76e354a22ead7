"""What is no model, no tensor or no count is refused in one line, wherever it is passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert import Bounded, InputError, UnknownBoundError
from lipcert.bounds import upper


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)).eval()


X = torch.zeros(5, 2)

TAKES_A_MODEL: dict[str, Callable[[Any], object]] = {
    "certify": lambda model: lipcert.certify(model, X),
    "certifier": lambda model: lipcert.certifier(model, (2,)),
    "upper": lambda model: upper(model, (2,)),
    "Bounded": lambda model: Bounded(model, (2,)),
}

TAKES_A_TENSOR: dict[str, Callable[[Any], object]] = {
    "certify": lambda x: lipcert.certify(network(), x),
    "certifier": lambda x: lipcert.certifier(network(), (2,))(x),
    "logits": lambda x: lipcert.certifier(network(), (2,)).logits(x),
    "rival radii": lambda x: lipcert.certifier(network(), (2,)).rival_radii(x),
    "Bounded": lambda x: Bounded(network(), (2,))(x),
}


def told(error: pytest.ExceptionInfo[Exception]) -> str:
    """The message, which is one line and not longer than a reader takes in."""
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 250
    return message


@pytest.mark.parametrize("place", TAKES_A_MODEL)
@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("runs/moons", "'runs/moons'; a saved model comes from lipcert.load"),
        (Path("model.safetensors"), "lipcert.load"),
        (np.zeros((3, 2)), "got ndarray"),
        ([nn.Linear(2, 2)], "got list"),
        (torch.zeros(3), "got Tensor"),
        (None, "got None"),
        (nn.Linear, "got the class Linear"),
        (nn.Linear(2, 2).state_dict(), "got OrderedDict"),
        (torch.relu, "got builtin"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_model(place: str, wrong: object, found: str) -> None:
    with pytest.raises(InputError, match=r"model: expected an nn\.Module") as error:
        TAKES_A_MODEL[place](wrong)
    assert found in told(error)


@pytest.mark.parametrize("place", TAKES_A_MODEL)
def test_a_compiled_or_scripted_model(place: str) -> None:
    for made, how in (
        (torch.compile(network()), "torch.compile"),
        (torch.jit.script(network()), "torch.jit"),
    ):
        with pytest.raises(InputError, match=rf"the output of {how}; pass the module it was made from"):
            TAKES_A_MODEL[place](made)


@pytest.mark.parametrize("place", TAKES_A_TENSOR)
@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (np.zeros((5, 2)), "got a NumPy array; convert it with torch.as_tensor"),
        ([[0.0, 1.0]], "got a list; convert it with torch.as_tensor"),
        (([0.0, 1.0],), "got a tuple; convert"),
        ("photo.png", "got str 'photo.png'"),
        (None, "got None"),
        (1.5, "got float"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_tensor(place: str, wrong: object, found: str) -> None:
    with pytest.raises(InputError, match="x: expected a tensor") as error:
        TAKES_A_TENSOR[place](wrong)
    assert found in told(error)


@pytest.mark.parametrize("place", [place for place in TAKES_A_TENSOR if place != "Bounded"])
@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (X[:0], "at least one sample"),
        (X.to_sparse(), "expected a dense tensor"),
        (X.to("meta"), "without numbers"),
        (X.long(), "floating-point"),
        (X[0, 0], "got (shape )?\\(\\)"),
    ],
    ids=["empty", "sparse", "meta", "whole", "scalar"],
)
def test_tensors_that_are_no_batch(place: str, wrong: Tensor, found: str) -> None:
    with pytest.raises(InputError, match=f"x: .*{found}") as error:
        TAKES_A_TENSOR[place](wrong)
    told(error)


def test_an_empty_batch_of_a_training_is_empty() -> None:
    logits, lip = Bounded(network(), (2,))(X[:0])
    assert logits.shape == (0, 3)
    assert lip.features.isfinite()


@pytest.mark.parametrize("wrong", [2.5, 0, -1, "2", True, None, torch.tensor(2.0)], ids=repr)
def test_a_batch_size_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(InputError, match="batch_size: expected a whole number >= 1") as error:
        lipcert.certifier(network(), (2,))(X, batch_size=wrong)
    told(error)


def test_numbers_of_numpy_count() -> None:
    certify = lipcert.certifier(network(), (2,))
    certificate = certify(X, batch_size=np.int64(2), local=np.float64(0.5))  # type: ignore[arg-type]
    assert len(certificate.radius) == 5
    assert certificate.balls == (0.5,)


@pytest.mark.parametrize("wrong", ["a", None, ["a"], {}.keys], ids=["text", "None", "list", "method"])
def test_balls_are_numbers(wrong: Any) -> None:
    with pytest.raises(InputError, match="local: expected a radius"):
        lipcert.certifier(network(), (2,))(X, local=wrong)


def test_settings_of_a_training() -> None:
    with pytest.raises(InputError, match=r"iterations: expected a whole number >= 0, got 2\.5"):
        Bounded(network(), (2,), iterations=2.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="local: expected a radius > 0, got 'near'"):
        Bounded(network(), (2,), local="near")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [np.zeros(5, int), [0] * 5], ids=["array", "list"])
def test_labels_are_a_tensor(wrong: Any) -> None:
    with pytest.raises(InputError, match="labels: expected a tensor"):
        lipcert.certified_accuracy(lipcert.certify(network(), X), wrong)


@pytest.mark.parametrize("wrong", [X, np.array([2]), (True,), 2, "2", (2.0,)], ids=str)
def test_an_input_shape_is_a_tuple_of_sizes(wrong: Any) -> None:
    with pytest.raises(InputError, match="input_shape: expected positive sizes") as error:
        upper(network(), wrong)
    told(error)


class Linear(nn.Linear):
    """A subclass that changes nothing, and could."""


class Doubled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Statistics(nn.BatchNorm1d):
    """A subclass whose forward torch.fx cannot follow."""


class Norm(nn.LayerNorm):
    """A subclass of a layer that has no constant."""


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a block"])
@pytest.mark.parametrize(
    ("layer", "base"),
    [
        (Linear(2, 2), "Linear"),
        (Doubled(2, 2), "Linear"),
        (Statistics(2), "BatchNorm1d"),
        (Norm(2), "LayerNorm"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_subclass_of_a_known_layer(layer: nn.Module, base: str, alone: bool) -> None:
    model = layer.eval() if alone else nn.Sequential(nn.Linear(2, 2), nn.Sequential(layer.eval()))
    with pytest.raises(UnknownBoundError, match=f"no Lipschitz rule for a subclass of {base}") as error:
        upper(model, (2,))
    kind = type(layer).__name__
    assert told(error).startswith(f"{'model' if alone else '1.0'} ({kind}): ")
    assert f"@lipcert.bounds.rule({kind}, examples=[...])" in told(error)


class Exponential(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(x).clamp(max=(3.0))


def test_an_unknown_call_is_told_as_it_was_written() -> None:
    with pytest.raises(UnknownBoundError) as error:
        upper(nn.Sequential(nn.Linear(2, 2), Exponential()), (2,))
    assert told(error) == "1 (Exponential): no Lipschitz rule for the call exp(_0) in its forward"


@pytest.mark.parametrize("place", [place for place in TAKES_A_TENSOR if place != "certify"])
def test_samples_of_another_shape(place: str) -> None:
    with pytest.raises(InputError, match=r"x: expected shape \(B, 2\), got \(5, 3\)"):
        TAKES_A_TENSOR[place](torch.zeros(5, 3))


@pytest.mark.parametrize("wrong", ["near", None, [0.1], -1, float("nan")], ids=repr)
def test_a_radius_that_is_asked_for_is_a_number(wrong: Any) -> None:
    with pytest.raises(InputError, match="eps: expected a number >= 0"):
        lipcert.certify(network(), X).at(wrong)


@pytest.mark.parametrize("wrong", [3, None, network()], ids=lambda value: type(value).__name__)
def test_what_is_loaded_has_a_name(wrong: Any) -> None:
    with pytest.raises(
        InputError, match="model: expected a run directory, a file, the name of a model or hf://"
    ):
        lipcert.load(wrong)


@pytest.mark.parametrize(
    ("create", "said"),
    [
        (lambda: lipcert.models.create("mlp", num_classes=2.5, input_shape=(2,)), "num_classes: expected a"),
        (
            lambda: lipcert.models.create("mlp", num_classes=2, input_shape=(2,), width=3),
            r"mlp: width: unknown argument \(did you mean widths\?\)",
        ),
        (lambda: lipcert.data.load("moons", nois=0.1), r"moons: nois: unknown argument \(did you mean noise"),
    ],
    ids=["number", "model", "data"],
)
def test_arguments_by_name(create: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        create()
    told(error)


LIP = Bounded(network(), (2,)).lip()
LOGITS, LABELS = torch.zeros(2, 3), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((LOGITS.numpy(), LABELS, LIP), "logits: expected a tensor, got ndarray"),
        ((LOGITS, [0, 1], LIP), "labels: expected a tensor, got list"),
        ((LOGITS, LABELS, 3.0), "lip: expected the constants that Bounded returns, got float"),
    ],
    ids=["logits", "labels", "constants"],
)
def test_arguments_of_a_loss(arguments: tuple[Any, Any, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lipcert.losses.CLL(eps=0.1, slack=0.1)(*arguments)


def test_a_truth_is_no_number_of_a_loss() -> None:
    with pytest.raises(InputError, match="eps: expected a number > 0, got True"):
        lipcert.losses.CLL(eps=True, slack=0.1)
