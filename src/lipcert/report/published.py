"""The numbers printed in the paper, as data."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml


def published() -> dict[str, Any]:
    """Read tables, figures and seed statistics of the paper (published.yaml)."""
    content: dict[str, Any] = yaml.safe_load((files("lipcert.report") / "published.yaml").read_text())
    return content
