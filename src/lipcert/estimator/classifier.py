"""`CertifiedClassifier`: a scikit-learn estimator with the calibrated loss and the proved certificate."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from lipcert.certificates.certificate import Certificate
from lipcert.certificates.certifier import certifier
from lipcert.certificates.radius import rival_radii, unrounded
from lipcert.data import Dataset
from lipcert.errors import InputError
from lipcert.estimator.network import Settings, train_network
from lipcert.estimator.scaling import Floats, Scaling
from lipcert.estimator.temperature import fitted_temperature, held_out
from lipcert.losses import CLL
from lipcert.tables.kinds import UPPER_BOUND, percent


class CertifiedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A dense network with MinMax, trained with CLL; every prediction has a proved L2 radius.

    **Units.** Features are standardised inside, so `eps` and all radii are in standard deviations of the
    training samples: 0.25 allows a quarter of a deviation in one feature, or less in each of several.
    `standardise=False` keeps the features' own units, for images in [0, 1] and the like. Features that are
    constant in training are ignored.

    eps is the radius to train for, slack the softness of the margin (between 0 and ½: a small slack fits
    tightly, a large one tolerates outliers), lam the weight of K_f². epochs=None means 500 steps, and at
    least 10 epochs. balanced gives every class the same weight, as class_weight="balanced" does by showing
    samples of rare classes more often; a mapping gives classes other weights. verbose shows a bar on a
    terminal, and a line at the end.

    After `fit`: classes_, n_features_in_, feature_names_in_, model_ (the network, of scaled inputs),
    scaling_, certifier_ (the proof, made once), loss_, temperature_.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> iris = CertifiedClassifier(eps=0.2, epochs=30, random_state=0).fit(X, y)
        >>> bool(iris.certified_score(X, y) > 0.8)
        True
    """

    def __init__(
        self,
        eps: float = 0.25,
        slack: float = 0.2,
        *,
        lam: float = 1e-3,
        widths: Sequence[int] = (64, 64),
        learning_rate: float = 0.02,
        epochs: int | None = None,
        batch_size: int = 64,
        standardise: bool = True,
        balanced: bool = False,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.eps = eps
        self.slack = slack
        self.lam = lam
        self.widths = widths
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.standardise = standardise
        self.balanced = balanced
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> CertifiedClassifier:
        """Train and prove; a fit that fails or is interrupted leaves the estimator unchanged.

        A sample of weight 2 is seen twice as often as one of weight 1; one of weight 0 is left out.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, y, sample_weight)
        except BaseException:  # including Ctrl-C
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        loss, settings = self._loss(), self._settings()
        samples, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        weights = self._weights(samples, labels, sample_weight)
        if weights is not None:
            used = weights > 0
            samples, labels, weights = samples[used], labels[used], weights[used]
            if len(samples) < 2:
                raise InputError("sample_weight: expected at least two samples with a weight above 0")
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y: expected at least two classes, got one class: {self.classes_[0]}")
        self.scaling_ = Scaling.of(samples, self.standardise)
        self.loss_ = dataclasses.replace(loss, eps=loss.eps / self.scaling_.unit)
        z = torch.from_numpy(self.scaling_(samples))
        names = tuple(map(str, self.classes_))
        held = held_out(len(samples), settings.seed)
        if len(np.unique(numbers[~held])) < len(self.classes_):
            held[:] = False  # a rare class is needed in training
        data = Dataset(z[~held].float(), torch.from_numpy(numbers[~held]).long(), names)
        seen = None if weights is None else torch.from_numpy(weights[~held])
        self.model_ = train_network(data, self.loss_, settings, bar=bool(self.verbose), weights=seen)
        self.certifier_ = certifier(self.model_, data.input_shape)
        self.temperature_ = 1.0
        if held.any():
            scaled = self._steep(self._logits(z[held].numpy()))
            kept = None if weights is None else weights[held]
            self.temperature_ = fitted_temperature(scaled, numbers[held], kept)
        if self.verbose:
            self._tell(samples, labels)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of every sample, which is the one its radius is about: (B,)."""
        top = self._logits(self._scaled(X)).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[top]
        return classes

    def predict_proba(self, X: ArrayLike) -> Floats:
        r"""Return the probabilities of the loss, softmax of $f / (\sigma K_f)$ over a temperature: (B, N).

        The temperature is 1; for large tables it is fitted on a tenth of the samples, held out for that.
        """
        odds = np.exp(self._steep(self._logits(self._scaled(X))) / self.temperature_)
        probabilities: Floats = odds / odds.sum(axis=1, keepdims=True)
        return probabilities

    def decision_function(self, X: ArrayLike) -> Floats:
        r"""Return how far a sample is inside a class's region, negative outside: (B, N), or (B,) for two.

        $$ d_i = \min_{j \ne i} \frac{f_i - f_j}{K_{ij}} $$

        The distance is proved, up to the rounding error of the logits: for the predicted class it is the
        radius, for another class the least distance to its region. For two classes it is the distance of the
        second.
        """
        logits = torch.from_numpy(self._logits(self._scaled(X)))  # (B, N)
        # No constant is 0, so that classes keep an order where the network is constant.
        pairs = self.certifier_.proved.pairs.clamp_min(torch.finfo(torch.float64).tiny)  # (N, N)
        inside = []
        for i, constants in enumerate(pairs):
            top = torch.full((len(logits),), i)
            inside.append(rival_radii(logits[:, [i]] - logits, constants, top, unrounded).amin(dim=1))
        distance: Floats = torch.stack(inside, dim=1).numpy() * self.scaling_.unit
        return distance[:, 1] if len(pairs) == 2 else distance

    def certified_radius(self, X: ArrayLike) -> Floats:
        """Return the proved radius within which the class of `predict` stays, minus rounding error: (B,)."""
        z = self._scaled(X)
        return self._radius(z, self._certificate(z))

    def certified_score(self, X: ArrayLike, y: ArrayLike, eps: float | None = None) -> float:
        """Return the share of correct samples with a radius above `eps`, by default that of training."""
        asked = self.eps if eps is None else eps
        if not isinstance(asked, Real) or not asked >= 0:
            raise InputError(f"eps: expected a number >= 0, got {asked!r}")
        z, labels = self._scaled(X), column_or_1d(y)
        check_consistent_length(z, labels)
        certificate = self._certificate(z)
        correct = self.classes_[certificate.prediction.numpy()] == labels
        return float((correct & (self._radius(z, certificate) > asked)).mean())

    def _steep(self, logits: Floats) -> Floats:
        """Return the logits as the loss scales them, less the largest of a sample: (B, N)."""
        k_f = self.certifier_.k_f
        steep: Floats = logits - logits.max(axis=1, keepdims=True)
        return steep * (self.loss_.whole_lipschitz(k_f) / k_f)

    def _weights(self, samples: Floats, labels: NDArray[Any], given: ArrayLike | None) -> Floats | None:
        """Return one weight per sample, of the sample times of its class; None if all are alike."""
        if given is None and self.class_weight is None:
            return None
        weights: Floats = _check_sample_weight(
            given, samples, dtype=np.float64, copy=True, ensure_non_negative=True
        )
        weights *= compute_sample_weight(self.class_weight, labels)
        return weights

    def _loss(self) -> CLL:
        """Return the loss with ε in the user's units."""
        eps, slack, lam = (float(v) if isinstance(v, Real) else v for v in (self.eps, self.slack, self.lam))
        return CLL(eps=eps, slack=slack, lam=lam)

    def _settings(self) -> Settings:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        widths, rate = self.widths, self.learning_rate
        return Settings(widths, rate, self.epochs, self.batch_size, bool(self.balanced), int(seed))

    def _scaled(self, X: ArrayLike) -> Floats:
        """Check the samples and scale them in float64 as network inputs: (B, D)."""
        check_is_fitted(self)
        return self.scaling_(validate_data(self, X, dtype=np.float64, reset=False))

    def _logits(self, z: Floats) -> Floats:
        """Return the float64 logits that are certified: (B, N)."""
        logits: Floats = self.certifier_.logits(torch.from_numpy(z)).numpy()
        _refuse_overflow(z, np.isfinite(logits).all())
        return logits

    def _certificate(self, z: Floats) -> Certificate:
        certificate = self.certifier_(torch.from_numpy(z))
        _refuse_overflow(z, (certificate.prediction >= 0).all())
        return certificate

    def _radius(self, z: Floats, certificate: Certificate) -> Floats:
        return self.scaling_.radius(certificate.radius.numpy(), z)

    def _tell(self, X: ArrayLike, y: ArrayLike) -> None:
        clean, certified = self.score(X, y), self.certified_score(X, y)
        accuracy = f"training accuracy {percent(clean)}, certified at {self.eps:g}: {percent(certified)}"
        k_f = UPPER_BOUND.text(self.certifier_.k_f)
        print(f"CertifiedClassifier: {accuracy}, K_f ≤ {k_f}", file=sys.stderr)


def _refuse_overflow(z: Floats, finite: Any) -> None:
    """Raise for samples that overflow, as they have no class."""
    if not finite:
        raise InputError(f"X: too far from the training samples, got up to {abs(z).max():.3g} after scaling")
