"""Weights of samples and classes, and probabilities of large tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification, make_moons

from lipcert import CertifiedClassifier, InputError
from lipcert.data import Dataset
from lipcert.estimator.network import WeightedPlan
from lipcert.estimator.temperature import SMALLEST_TABLE, held_out
from lipcert.losses import CLL
from lipcert.models import create


def plan(weights: list[float] | None) -> WeightedPlan:
    x, y = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])
    return WeightedPlan(
        model=create("mlp", num_classes=2, input_shape=(2,), widths=[4]),
        loss=CLL(eps=0.1, slack=0.2),
        optimizer=torch.optim.Adam,
        train=Dataset(x, y, ("a", "b")),
        epochs=1,
        batch_size=2,
        seed=0,
        weights=None if weights is None else torch.tensor(weights),
    )


def seen(weights: list[float], epochs: int = 400) -> np.ndarray:
    counts = [torch.cat(plan(weights).batches(epoch)).bincount(minlength=4) for epoch in range(epochs)]
    return np.asarray(torch.stack(counts).double().mean(0))


def test_samples_are_seen_as_often_as_their_weights_say() -> None:
    assert seen([1.0, 1.0, 1.0, 1.0], epochs=5).tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(seen([2.0, 1.0, 0.5, 0.5]), [2.0, 1.0, 0.5, 0.5], atol=0.1)
    np.testing.assert_allclose(seen([1000.0, 1e-9, 1e-9, 1.0]), [4.0, 0.0, 0.0, 0.004], atol=0.02)


def test_epochs_differ_and_can_be_repeated() -> None:
    weighted = plan([2.0, 1.0, 0.5, 0.5])
    orders = [torch.cat(weighted.batches(epoch)).tolist() for epoch in range(8)]
    assert orders == [torch.cat(weighted.batches(epoch)).tolist() for epoch in range(8)]
    assert len(set(map(tuple, orders))) > 3


def contradicting() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every point twice, with both labels; the weights say which label holds."""
    X, y = make_moons(200, noise=0.1, random_state=0)
    heavy = np.r_[np.ones(200), np.full(200, 0.01)]
    return np.r_[X, X], np.r_[y, 1 - y], heavy


def test_weights_of_samples_decide_between_contradictions() -> None:
    X, y, heavy = contradicting()
    fitted = CertifiedClassifier(epochs=30, random_state=0).fit(X, y, sample_weight=heavy)
    assert fitted.score(X[:200], y[:200]) > 0.9
    turned = CertifiedClassifier(epochs=30, random_state=0).fit(X, y, sample_weight=heavy[::-1])
    assert turned.score(X[:200], y[:200]) < 0.1


def test_a_sample_of_weight_zero_is_not_there() -> None:
    X, y, _ = contradicting()
    absent = np.r_[np.ones(200), np.zeros(200)]
    whole = CertifiedClassifier(epochs=5, random_state=0).fit(X, y, sample_weight=absent)
    half = CertifiedClassifier(epochs=5, random_state=0).fit(X[:200], y[:200], sample_weight=np.ones(200))
    assert (whole.predict_proba(X) == half.predict_proba(X)).all()
    with pytest.raises(InputError, match="at least two samples with a weight above 0"):
        CertifiedClassifier(epochs=5).fit(X, y, sample_weight=np.r_[1.0, np.zeros(399)])
    with pytest.raises(InputError, match="got one class"):
        CertifiedClassifier(epochs=5).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        CertifiedClassifier(epochs=5).fit(X, y, sample_weight=-np.ones(400))


def test_weights_of_classes_move_the_boundary() -> None:
    X, y = make_classification(400, 6, class_sep=0.3, random_state=0)
    shares = {}
    for name, weight in {"first": {0: 20.0, 1: 1.0}, "none": None, "second": {0: 1.0, 1: 20.0}}.items():
        model = CertifiedClassifier(epochs=20, random_state=0, class_weight=weight).fit(X, y)
        shares[name] = (model.predict(X) == 1).mean()
    assert shares["first"] + 0.1 < shares["none"] < shares["second"] - 0.1


def test_balanced_weights_help_a_rare_class() -> None:
    X, y = make_classification(1500, 6, weights=[0.97], class_sep=0.5, flip_y=0, random_state=1)
    plain, balanced = (
        CertifiedClassifier(epochs=20, random_state=0, class_weight=weight).fit(X, y)
        for weight in (None, "balanced")
    )
    recall = [(model.predict(X[y == 1]) == 1).mean() for model in (plain, balanced)]
    assert recall[1] > recall[0] + 0.1


def test_small_tables_hold_nothing_out() -> None:
    assert not held_out(SMALLEST_TABLE - 1, seed=0).any()
    assert held_out(SMALLEST_TABLE, seed=0).sum() == SMALLEST_TABLE // 10
    assert held_out(10**6, seed=0).sum() == 5000


@pytest.mark.parametrize(("wrong", "apart"), [(0.0, 1.0), (0.01, 1.5)], ids=["clean", "with wrong labels"])
def test_confidence_on_a_large_table_is_the_accuracy(wrong: float, apart: float) -> None:
    """The mean of the largest probability, on samples that were never seen."""
    X, y = make_classification(60_000, 20, n_informative=10, class_sep=apart, flip_y=wrong, random_state=0)
    model = CertifiedClassifier(epochs=2, random_state=0).fit(X[:50_000], y[:50_000])
    accuracy = model.score(X[50_000:], y[50_000:])

    def gap() -> float:
        return float(abs(model.predict_proba(X[50_000:]).max(axis=1).mean() - accuracy))

    assert gap() < 0.006  # the accuracy of 5000 held-out samples is that uncertain
    model.temperature_ = 1.0  # the probabilities of the loss as they are
    assert gap() > 0.006
