"""A certified classifier with scikit-learn's interface: tables in, classes and proved radii out."""

from lipcert.estimator.classifier import CertifiedClassifier
from lipcert.estimator.pipelines import certified_changes, certified_radius

__all__ = ["CertifiedClassifier", "certified_changes", "certified_radius"]
