"""Tables that come with scikit-learn: CertifiedClassifier, a plain MLP and a linear SVM with their defaults.

All see standardised features and all are certified the same way, so that a radius means the same in every
row: networks by proved Lipschitz constants, the SVM by its weights, whose proved radius is the exact one.
Writes results/tabular.json: `python benchmarks/tabular.py`
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
from sklearn import datasets
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from lipcert import CertifiedClassifier, certifier
from results import write_table

RADII = (0.1, 0.25, 0.5, 1.0)
FOLDS, REPEATS = 5, 3
Arrays = tuple[np.ndarray, np.ndarray]


def diabetes() -> Arrays:
    """Whether the disease progressed more than in the median patient."""
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    return X, (y > np.median(y)).astype(int)


DATA: dict[str, Callable[[], Arrays]] = {
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "diabetes": diabetes,
}

MODELS: dict[str, Callable[[int], ClassifierMixin | Pipeline]] = {
    "CertifiedClassifier": lambda seed: CertifiedClassifier(random_state=seed),
    "MLPClassifier": lambda seed: make_pipeline(StandardScaler(), MLPClassifier((64, 64), random_state=seed)),
    "LinearSVC": lambda seed: make_pipeline(StandardScaler(), LinearSVC(random_state=seed)),
}


def layer(weight: np.ndarray, bias: np.ndarray) -> nn.Linear:
    """From a matrix (outputs, inputs)."""
    made = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    made.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})
    return made


def network(model: MLPClassifier | LinearSVC) -> nn.Sequential:
    """scikit-learn's weights in torch; two classes have one logit."""
    if isinstance(model, LinearSVC):
        return nn.Sequential(layer(model.coef_, model.intercept_))
    layers: list[nn.Module] = []
    for weight, bias in zip(model.coefs_, model.intercepts_, strict=True):
        layers += [layer(weight.T.copy(), bias), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def radii(model: ClassifierMixin | Pipeline, X: np.ndarray) -> np.ndarray:
    """Proved, in standard deviations: (B,)."""
    if isinstance(model, CertifiedClassifier):
        return model.certified_radius(X)
    scaled = model[0].transform(X)
    certificate = certifier(network(model[1]).eval(), scaled.shape[1:])(torch.from_numpy(scaled))
    assert (model[1].classes_[certificate.prediction.numpy()] == model.predict(X)).all()
    return certificate.radius.numpy()


def folds(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """A seed, the training and the test samples."""
    for i, split in enumerate(
        RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0).split(X, y)
    ):
        yield i // FOLDS, *split


def row(data: str, name: str) -> list[str]:
    """Accuracies over all folds, with their deviation; the median radius."""
    X, y = DATA[data]()
    found = []
    for seed, train, test in folds(X, y):
        model = MODELS[name](seed).fit(X[train], y[train])
        right, radius = model.predict(X[test]) == y[test], radii(model, X[test])
        certified = [100 * (right & (radius > eps)).mean() for eps in RADII]
        found.append([100 * right.mean(), *certified, np.median(radius)])
    *accuracies, radius = np.mean(found, axis=0)
    spread = np.std(found, axis=0)
    cells = [f"{mean:.1f} ± {s:.1f}" for mean, s in zip(accuracies, spread[: len(accuracies)], strict=True)]
    return [f"{data}, {len(X)}×{X.shape[1]}", name, *cells, f"{radius:.2f}"]


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)  # the MLP's, after its 200 epochs
    table = []
    for data in DATA:
        for name in MODELS:
            table.append(row(data, name))
            print(*table[-1], sep="  ", flush=True)
    titles = ["data", "model", "clean", *(f"CRA at {eps:g}" for eps in RADII), "median radius"]
    note = (
        f"percent of the test samples, mean ± deviation over {FOLDS} folds times {REPEATS} seeds; "
        "radii in standard deviations, proved, float64; one thread. "
        "Every model has its defaults, the MLP the widths 64, 64. CertifiedClassifier's defaults were chosen "
        "on splits of the first four tables, diabetes had no part in it"
    )
    write_table("tabular", note, titles, table)


if __name__ == "__main__":
    main()
