"""Certified radii of a scikit-learn pipeline, in the units of the raw table.

A pipeline scales features before the classifier sees them, so the radius of the classifier is about scaled
features. Scaling moves feature j by (x − m_j)/s_j, so a change of the raw table is at most 1/min s_j times as
long after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from lipcert.bounds.provers.rounding import SAFETY, TINY_ROOT, U
from lipcert.errors import InputError
from lipcert.estimator.classifier import CertifiedClassifier
from lipcert.estimator.scaling import Floats


def certified_radius(pipeline: Pipeline, X: ArrayLike) -> Floats:
    """Return the proved L2 radius of every sample in the units of the raw table: (B,).

    All features share it, so the one with the smallest scale decides; see `certified_changes`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> X, y = load_iris(return_X_y=True)
        >>> model = make_pipeline(StandardScaler(), CertifiedClassifier(epochs=3, random_state=0)).fit(X, y)
        >>> certified_radius(model, X).shape
        (150,)
    """
    radius, spread = _proved(pipeline, X)
    return _down(radius, float(spread.min(initial=np.inf)))


def certified_changes(pipeline: Pipeline, X: ArrayLike) -> Floats:
    """Return how far every single feature may move alone, in its own units, with the class kept: (B, D).

    Infinite for a feature that was constant in training, which the classifier ignores.
    """
    radius, spread = _proved(pipeline, X)
    return _down(radius[:, None], spread)


def _proved(pipeline: Pipeline, X: ArrayLike) -> tuple[Floats, Floats]:
    """Return radii in scaled units (B,), less rounding, and what one scaled unit is in raw units (D,)."""
    classifier, scalers = _parts(pipeline)
    z: Any = X
    spread, error = np.ones(classifier.n_features_in_), np.zeros((1, classifier.n_features_in_))
    for scaler in scalers:
        z, scale = scaler.transform(z), _scale(scaler)
        values = np.asarray(z)
        if values.dtype != np.float64:
            raise InputError(
                f"X: expected float64, because {values.dtype} would be scaled in its own precision"
            )
        # At most four rounding errors, of numbers as large as the feature and what is taken off.
        error = error / scale + 4 * U * (np.abs(values) + 2 * np.abs(_offset(scaler)))
        spread = spread * scale
    scaling = classifier.scaling_
    own = np.where(np.isinf(scaling.spread), np.inf, scaling.spread / scaling.unit)
    radius: Floats = classifier.certified_radius(z)
    # Rounding moves the sample, and any point within the radius, whose features are a little larger.
    lost = 2 * np.linalg.norm(error / own, axis=1) + 8 * U * len(scalers) * radius
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        kept = np.maximum(radius - SAFETY * lost - TINY_ROOT, 0.0) if scalers else radius
    return np.where(np.isinf(radius), radius, kept), spread * own


def _down(radius: Floats, spread: Floats | float) -> Floats:
    """Return radius·spread, rounded down by more than products of a few scales lose; 0·∞ is 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = radius * spread * (1 - 16 * U)
    return np.where(np.isnan(product), 0.0, product)


def _parts(pipeline: Any) -> tuple[CertifiedClassifier, list[Any]]:
    """Return the classifier of a pipeline and the scalers before it; raise for anything else."""
    if not isinstance(pipeline, Pipeline):
        raise InputError(f"pipeline: expected a scikit-learn Pipeline, got {type(pipeline).__name__}")
    check_is_fitted(pipeline)
    *before, (name, classifier) = pipeline.steps
    if not isinstance(classifier, CertifiedClassifier):
        raise InputError(f"pipeline: expected a CertifiedClassifier as its last step, {name} is no such one")
    scalers = [(name, step) for name, step in before if step is not None and step != "passthrough"]
    for name, step in scalers:
        if type(step) not in _SCALERS:
            known = ", ".join(kind.__name__ for kind in _SCALERS)
            raise InputError(
                f"pipeline: {name} ({type(step).__name__}) has no known effect on distances; known: {known}"
            )
    return classifier, [step for _, step in scalers]


def _scale(scaler: Any) -> Floats:
    """Return the divisor of every feature."""
    # A MinMaxScaler that clips shortens distances, which only helps.
    count = scaler.n_features_in_
    scale = scaler.scale_ if getattr(scaler, "scale_", None) is not None else np.ones(count)
    with np.errstate(divide="ignore"):
        return np.abs(1 / scale) if isinstance(scaler, MinMaxScaler) else np.abs(scale)


def _offset(scaler: Any) -> Floats:
    """Return the size of what a scaler takes off every feature, in units after scaling."""
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.min_)
    centre = getattr(scaler, "mean_", getattr(scaler, "center_", None))
    return np.zeros(1) if centre is None else np.asarray(centre) / _scale(scaler)


_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
