"""A certified classifier in a scikit-learn pipeline, with radii in the units of the raw table.

python examples/sklearn_pipeline.py
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lipcert import CertifiedClassifier
from lipcert.estimator import certified_changes, certified_radius

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = make_pipeline(StandardScaler(), CertifiedClassifier(eps=0.25, epochs=20, random_state=0))
print("accuracy, cross-validated", cross_val_score(model, X_train, y_train, cv=3).round(3))
model.fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.3f}")
print("radius around the raw row", certified_radius(model, X_test[:1]))
print("how far each feature may move alone", certified_changes(model, X_test[:1])[0].round(3))
