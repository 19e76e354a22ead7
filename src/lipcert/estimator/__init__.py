"""A certified classifier with scikit-learn's interface: tables in, classes and proved radii out."""

from lipcert.estimator.classifier import CertifiedClassifier

__all__ = ["CertifiedClassifier"]
