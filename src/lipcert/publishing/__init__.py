"""Publish trained models: a folder for the Hugging Face Hub, and its upload."""

from lipcert.publishing.published_folder import publish
from lipcert.publishing.upload import upload

__all__ = ["publish", "upload"]
