"""Provide data sets, one per file."""

from lipcert.data.base import DATASETS, Dataset, load

__all__ = ["DATASETS", "Dataset", "load"]
