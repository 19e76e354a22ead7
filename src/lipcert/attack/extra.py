"""Import the packages of the extra `attack` when an attack needs them."""

from __future__ import annotations

import importlib
from typing import Any

from lipcert.errors import InputError


def needed(name: str) -> Any:
    """Import a package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError("attacks need an extra: pip install 'lipcert[attack]'") from None
