"""The packages of the extra `attack`, imported when an attack needs them."""

from __future__ import annotations

import importlib
from typing import Any

from lipcert.errors import InputError


def needed(name: str) -> Any:
    """Import a package, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError("attacks come with an extra: pip install 'lipcert[attack]'") from None
