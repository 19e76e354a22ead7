"""Radii of pipelines in the units of the raw table: they hold there, and unknown steps are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

from lipcert import CertifiedClassifier, InputError
from lipcert.estimator import certified_changes, certified_radius

X, Y = load_wine(return_X_y=True)


def classifier(standardise: bool = False) -> CertifiedClassifier:
    return CertifiedClassifier(epochs=10, random_state=0, standardise=standardise)


PIPELINES: dict[str, Any] = {
    "standard": lambda: (StandardScaler(), classifier()),
    "standard twice": lambda: (StandardScaler(), classifier(standardise=True)),
    "min-max": lambda: (MinMaxScaler((-1, 2)), classifier()),
    "robust": lambda: (RobustScaler(), classifier()),
    "max-abs": lambda: (MaxAbsScaler(), "passthrough", classifier()),
    "three": lambda: (MinMaxScaler(), StandardScaler(with_mean=False), RobustScaler(), classifier()),
    "none": lambda: (classifier(standardise=True),),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_nothing_within_the_radius_has_another_class(name: str) -> None:
    model = make_pipeline(*PIPELINES[name]()).fit(X, Y)
    radius, alone, before = certified_radius(model, X), certified_changes(model, X), model.predict(X)
    assert (radius > 0).mean() > 0.8
    generator = np.random.default_rng(0)
    for direction in generator.normal(size=(20, *X.shape)):
        direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
        assert (model.predict(X + 0.999 * radius[:, None] * direction) == before).all()
    assert (alone >= radius[:, None] * (1 - 1e-9)).all()
    for j in range(X.shape[1]):
        for sign in (-0.999, 0.999):
            moved = X.copy()
            moved[:, j] += sign * np.where(np.isinf(alone[:, j]), 1e6, alone[:, j])
            assert (model.predict(moved) == before).all()


def test_the_units_are_those_of_the_raw_table() -> None:
    """A table in other units has radii in those units, and changes of a feature scale with it."""
    model = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    larger = make_pipeline(StandardScaler(), classifier()).fit(1000 * X, Y)
    np.testing.assert_allclose(
        certified_radius(larger, 1000 * X), 1000 * certified_radius(model, X), rtol=1e-3
    )
    scaled = model[-1].certified_radius(model[0].transform(X))
    spread = model[0].scale_
    np.testing.assert_allclose(certified_radius(model, X), scaled * spread.min(), rtol=1e-9)
    np.testing.assert_allclose(certified_changes(model, X), scaled[:, None] * spread, rtol=1e-9)


def test_dataframes_and_constant_features() -> None:
    table = pd.DataFrame(X).add_prefix("feature ")
    table["same"] = 3.0
    model = make_pipeline(StandardScaler(), classifier()).fit(table, Y)
    alone = certified_changes(model, table)
    assert np.isinf(alone[certified_radius(model, table) > 0, -1]).all()
    assert np.isfinite(alone[:, :-1]).all()
    assert np.isfinite(certified_radius(model, table)).all()


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            make_pipeline(PCA(2), classifier()),
            r"pca \(PCA\) has no known effect on distances; known: Standard",
        ),
        (make_pipeline(PowerTransformer(), classifier()), "PowerTransformer"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "expected a CertifiedClassifier as its last"),
    ],
    ids=["pca", "power", "other"],
)
def test_other_steps_are_refused(pipeline: Pipeline, message: str) -> None:
    with pytest.raises(InputError, match=message):
        certified_radius(pipeline.fit(X, Y), X)


def test_what_is_no_fitted_pipeline_or_no_float64_table() -> None:
    with pytest.raises(InputError, match="expected a scikit-learn Pipeline, got CertifiedClassifier"):
        certified_radius(classifier().fit(X, Y), X)  # type: ignore[arg-type]
    model = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    with pytest.raises(InputError, match="expected float64, because float32"):
        certified_radius(model, X.astype(np.float32))
