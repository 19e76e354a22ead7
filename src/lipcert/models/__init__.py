"""Provide architectures, one family per file, and model files."""

from lipcert.models.base import MODELS, create
from lipcert.models.model_files import ModelCard, save

__all__ = ["MODELS", "ModelCard", "create", "save"]
