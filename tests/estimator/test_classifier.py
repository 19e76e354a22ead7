"""CertifiedClassifier: scikit-learn's own checks, its tools, and the soundness of what it promises."""

from __future__ import annotations

import pickle
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import lipcert
from lipcert import CertifiedClassifier, InputError
from lipcert.estimator.scaling import Scaling

# Checks that cannot apply, and why; docs/estimator.md says so.
_DRAWN = "samples are drawn into batches: weight 2 and two copies agree in what they teach, not in bits"
NOT_APPLICABLE: dict[str, str] = {"check_sample_weight_equivalence_on_dense_data": _DRAWN}


def not_applicable(estimator: CertifiedClassifier) -> dict[str, str]:
    return NOT_APPLICABLE


# Most checks ask for shapes, types and messages, for which a few steps will do.
@parametrize_with_checks([CertifiedClassifier(epochs=3)], expected_failed_checks=not_applicable)
def test_scikit_learns_checks(estimator: CertifiedClassifier, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [CertifiedClassifier(epochs=3, standardise=False)], expected_failed_checks=not_applicable
)
def test_scikit_learns_checks_in_own_units(
    estimator: CertifiedClassifier, check: Callable[[Any], None]
) -> None:
    check(estimator)


@pytest.mark.slow
def test_scikit_learns_check_of_what_was_learned_with_the_settings_users_get() -> None:
    estimator_checks.check_classifiers_train("CertifiedClassifier", CertifiedClassifier())


def test_names_of_columns_are_kept_and_compared() -> None:
    check = estimator_checks.check_dataframe_column_names_consistency
    check("CertifiedClassifier", CertifiedClassifier(epochs=3))


def quick(**settings: Any) -> CertifiedClassifier:
    return CertifiedClassifier(**{"epochs": 20, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def wine() -> tuple[CertifiedClassifier, np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return quick().fit(X, y), X, y


def test_good_out_of_the_box() -> None:
    X, y = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(X, y, random_state=0, stratify=y)
    model = CertifiedClassifier(random_state=0).fit(train_x, train_y)
    assert model.score(test_x, test_y) > 0.95
    assert model.certified_score(test_x, test_y) > 0.93


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_nothing_inside_the_radius_has_another_class(standardise: bool, classes: int) -> None:
    X, y = load_wine(return_X_y=True)
    X, y = X[y < classes, :6], y[y < classes]
    model = quick(standardise=standardise, eps=0.25 if standardise else 2.0).fit(X, y)
    radius, before = model.certified_radius(X), model.predict(X)
    assert radius.max() > model.eps
    step = X.std(axis=0) if standardise else np.ones(X.shape[1])
    directions = [*np.random.default_rng(0).normal(size=(40, *X.shape)), *uphill(model, X, step)]
    for direction in directions:
        direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved = X + 0.999 * radius[:, None] * direction * step
        assert (model.predict(moved) == before).all()


def uphill(model: CertifiedClassifier, X: np.ndarray, step: np.ndarray) -> list[np.ndarray]:
    """Towards every class in turn, by the gradient of the network: where a radius too large would show."""
    z = torch.from_numpy(model.scaling_(X)).float().requires_grad_()
    logits = model.model_(z)
    found = []
    for i in range(logits.shape[1]):
        margin = (logits[:, i] - logits.amax(dim=1)).sum()
        (gradient,) = torch.autograd.grad(margin, z, retain_graph=True)
        found.append(gradient.double().numpy() + 1e-12)
    return found


def test_a_radius_too_large_would_show() -> None:
    """The attack above reaches the boundary when it goes a few radii far."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2, :6], y[y < 2]
    model = quick().fit(X, y)
    step = X.std(axis=0)
    changed = np.zeros(len(X), dtype=bool)
    for direction in uphill(model, X, step):
        direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved = X + 2.5 * model.certified_radius(X)[:, None] * direction * step
        changed |= model.predict(moved) != model.predict(X)
    assert changed.mean() > 0.3


def test_the_class_is_that_of_the_certificate(
    wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray],
) -> None:
    model, X, _ = wine
    z = torch.from_numpy(model.scaling_(X))
    certificate = lipcert.certify(model.model_, z)
    assert (model.classes_[certificate.prediction.numpy()] == model.predict(X)).all()
    assert (model.certified_radius(X) <= certificate.radius.numpy()).all()
    np.testing.assert_allclose(model.certified_radius(X), certificate.radius.numpy(), rtol=1e-12)


def test_decisions_are_radii_with_a_sign(wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray]) -> None:
    model, X, y = wine
    decision = model.decision_function(X)
    assert decision.shape == (len(X), 3)
    assert (model.classes_[decision.argmax(axis=1)] == model.predict(X)).all()
    assert ((decision > 0).sum(axis=1) == 1).all()
    np.testing.assert_allclose(decision.max(axis=1), model.certified_radius(X), rtol=1e-9)
    two = quick(standardise=False).fit(X[y < 2], y[y < 2])
    decision = two.decision_function(X)
    assert decision.shape == (len(X),)
    assert ((decision > 0) == (two.predict(X) == 1)).all()
    np.testing.assert_allclose(abs(decision), two.certified_radius(X), rtol=1e-9)


def test_probabilities_are_those_of_the_loss() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = quick(eps=0.3, slack=0.1).fit(X, y)
    odds = model.decision_function(X) * np.log(0.9 / 0.1) / 0.3  # distance over σ
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_certified_score_counts_what_is_right_and_strictly_inside(
    wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray],
) -> None:
    model, X, y = wine
    right, radius = model.predict(X) == y, model.certified_radius(X)
    assert model.certified_score(X, y) == (right & (radius > 0.25)).mean()
    largest = radius[right].max()
    assert model.certified_score(X, y, eps=largest) == 0
    assert model.certified_score(X, y, eps=np.nextafter(largest, 0)) == 1 / len(X)
    assert model.certified_score(X, y, eps=0) == model.score(X, y)


def test_units_of_features_do_not_matter_when_standardised() -> None:
    X, y = load_iris(return_X_y=True)
    units = np.array([1e-3, 1.0, 1e3, 1e9])
    one, other = quick().fit(X, y), quick().fit(X * units + 7, y)
    np.testing.assert_allclose(one.certified_radius(X), other.certified_radius(X * units + 7), rtol=1e-3)


def test_a_common_unit_scales_eps_and_radii_when_not_standardised() -> None:
    X, y = load_iris(return_X_y=True)
    one = quick(standardise=False, eps=0.25).fit(X, y)
    other = quick(standardise=False, eps=256.0).fit(X * 1024, y)
    np.testing.assert_allclose(1024 * one.certified_radius(X), other.certified_radius(X * 1024), rtol=1e-9)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X * 1024), rtol=1e-9)


def test_constant_features_are_ignored() -> None:
    X, y = load_iris(return_X_y=True)
    padded = np.column_stack([X, np.full(len(X), 0.1), np.zeros(len(X))])
    for standardise in (True, False):
        model = quick(standardise=standardise).fit(padded, y)
        moved = padded + np.array([0, 0, 0, 0, 5, 5])
        assert (model.certified_radius(moved) == model.certified_radius(padded)).all()
        assert model.score(padded, y) > 0.9


def test_scaling_loses_what_its_rounding_may() -> None:
    scaling = Scaling.of(np.array([[1e8, 0.0], [1e8 + 1, 1.0]]), standardise=True)
    z = scaling(np.array([[1e8 + 0.3, 0.2]]))
    found = scaling.radius(np.array([1.0]), z)[0]
    assert 0 < 1 - found < 1e-13
    assert scaling.radius(np.array([1e-18]), z)[0] == 0
    assert scaling.radius(np.array([np.inf]), z)[0] == np.inf


def test_one_feature_and_strings_and_float32() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-2, 1, (60, 1)), rng.normal(2, 1, (60, 1))]).astype(np.float32)
    y = np.array(["low"] * 60 + ["high"] * 60)
    model = quick().fit(X, y)
    assert list(model.classes_) == ["high", "low"]
    assert model.score(X, y) > 0.9
    assert (model.predict(X) == model.predict(X.astype(np.float64))).all()
    assert model.certified_score(X, y) > 0.7


def test_the_same_seed_gives_the_same_bits_and_leaves_torchs_alone() -> None:
    X, y = load_iris(return_X_y=True)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = quick().fit(X, y)
    assert torch.equal(torch.rand(3), expected)
    assert (one.decision_function(X) == quick().fit(X, y).decision_function(X)).all()
    assert (one.decision_function(X) != quick(random_state=1).fit(X, y).decision_function(X)).any()


def test_balanced_classes_count_the_same() -> None:
    X, y = make_moons(400, noise=0.4, random_state=0)
    kept = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]])
    plain, balanced = (quick(balanced=b).fit(X[kept], y[kept]) for b in (False, True))
    rare = X[y == 1]
    assert (balanced.predict(rare) == 1).mean() > (plain.predict(rare) == 1).mean() + 0.2


def test_clone_has_the_settings_and_nothing_learned(
    wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray],
) -> None:
    copy = clone(wine[0].set_params(slack=0.2))
    assert copy.get_params() == wine[0].get_params()
    with pytest.raises(NotFittedError):
        copy.certified_radius(wine[1])


def test_pickled_it_is_the_same_and_not_proved_again(
    wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, _ = wine
    monkeypatch.setattr("lipcert.certificates.proved_model.prove", lambda *_: pytest.fail("proved again"))
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.certified_radius(X) == model.certified_radius(X)).all()
    assert (copy.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.slow
def test_cross_validation_in_two_processes_gives_what_one_gives() -> None:
    X, y = load_iris(return_X_y=True)
    model = quick(epochs=5)
    alone = cross_val_score(model, X, y, cv=2)
    assert (cross_val_score(model, X, y, cv=2, n_jobs=2) == alone).all()


def test_pipeline_and_grid_search_over_slack() -> None:
    X, y = load_wine(as_frame=True, return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), quick(standardise=False, epochs=10))
    grid = {"certifiedclassifier__slack": [0.05, 0.4]}
    search = GridSearchCV(pipeline, grid, scoring=certified, cv=2).fit(X, y)
    assert search.best_params_["certifiedclassifier__slack"] in (0.05, 0.4)
    assert len(set(search.cv_results_["mean_test_score"])) == 2
    assert search.best_score_ > 0.8
    # Standardised outside or inside, a radius is the same.
    inside = quick(epochs=10, slack=0.05).fit(X, y)
    assert list(inside.feature_names_in_) == list(X.columns)
    outside = pipeline.set_params(certifiedclassifier__slack=0.05).fit(X, y)
    np.testing.assert_allclose(
        outside[1].certified_radius(outside[0].transform(X)), inside.certified_radius(X), rtol=1e-3
    )


def certified(pipeline: Any, X: pd.DataFrame, y: pd.Series) -> float:
    model: CertifiedClassifier = pipeline[-1]
    return model.certified_score(pipeline[:-1].transform(X), y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eps": 0}, "eps: expected a number > 0, got 0"),
        ({"eps": "large"}, "eps: expected a number > 0, got 'large'"),
        ({"slack": 0.5}, "slack: expected between 0 and 0.5, got 0.5"),
        ({"lam": -1}, "lam: expected a number > 0, got -1"),
        ({"widths": (3,)}, "widths: expected even numbers"),
        ({"widths": None}, "widths: expected a sequence of even numbers, got None"),
        ({"learning_rate": 0}, "learning_rate: expected a number > 0, got 0"),
        ({"learning_rate": "a"}, "learning_rate: expected a number > 0, got 'a'"),
        ({"epochs": 0}, "epochs: expected a whole number >= 1, got 0"),
        ({"batch_size": 2.5}, "batch_size: expected a whole number >= 1, got 2.5"),
    ],
)
def test_bad_settings_are_refused_by_fit(settings: dict[str, Any], message: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = quick(**settings)
    with pytest.raises(InputError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_bad_data_are_refused(wine: tuple[CertifiedClassifier, np.ndarray, np.ndarray]) -> None:
    model, X, y = wine
    with pytest.raises(ValueError, match="expected at least two classes, got one class: 1"):
        quick().fit(X, np.ones(len(X), dtype=int))
    with pytest.raises(ValueError, match="contains NaN"):
        quick().fit(np.where(X > 14, np.nan, X), y)
    for method in (model.predict, model.certified_radius):
        with pytest.raises(ValueError, match="infinity"):
            method(np.full((1, 13), np.inf))
        with pytest.raises(ValueError, match="13 features"):
            method(X[:, :5])
        with pytest.raises(InputError, match="too far from the training samples"):
            method(np.full((1, 13), 1e308))
    with pytest.raises(InputError, match="squares are finite"):
        quick().fit(X * 1e300, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.certified_score(X, y[:-1])
    with pytest.raises(InputError, match="eps: expected a number >= 0, got -1"):
        model.certified_score(X, y, eps=-1)


@pytest.mark.parametrize(
    "when", ["lipcert.train.stacked.stack.Stack.advance", "lipcert.certificates.proved_model.prove"]
)
def test_an_interrupted_fit_changes_nothing(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    model = quick().fit(X, y)
    before, expected = dict(vars(model)), model.certified_radius(X)
    work = pkgutil.resolve_name(when)

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return work(*arguments)

    monkeypatch.setattr(when, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    assert vars(model) == before
    assert (model.certified_radius(X) == expected).all()


def test_verbose_tells_and_quiet_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    X, y = load_iris(return_X_y=True)
    quick(epochs=2).fit(X, y)
    assert capfd.readouterr() == ("", "")
    quick(epochs=2, verbose=True).fit(X, y)
    said = capfd.readouterr().err
    number = r"\d+\.\d+ %"
    assert re.search(
        rf"CertifiedClassifier: training accuracy {number}, certified at .*: {number}, K_f ≤", said
    )


def test_importing_lipcert_loads_neither_torch_nor_scikit_learn() -> None:
    code = "import lipcert, sys; assert not {'torch', 'sklearn'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
