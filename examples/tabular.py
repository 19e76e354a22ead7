"""A certified classifier on a table: accuracy, and how much of it is proved at which distance.

python examples/tabular.py
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from lipcert import CertifiedClassifier


def main() -> None:
    """Train, prove, print."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    model = CertifiedClassifier(eps=0.25, random_state=0, verbose=True).fit(X_train, y_train)
    print(f"accuracy {model.score(X_test, y_test):.3f}")
    for eps in (0.1, 0.25, 0.5, 1.0):  # in standard deviations
        print(f"certified at {eps:4}: {model.certified_score(X_test, y_test, eps):.3f}")
    radius = model.certified_radius(X_test)
    print(f"median radius {sorted(radius)[len(radius) // 2]:.2f} standard deviations")


if __name__ == "__main__":
    main()
