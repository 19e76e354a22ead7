"""Run the laws of a kind on everything registered of that kind: one test per thing and law."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from lipcert.laws import Laws


def every_law(laws: Laws[Any], slow: Mapping[str, str] | None = None) -> pytest.MarkDecorator:
    """Parametrise a test by `law` and by `make`, which makes the thing; `slow` are names with reasons."""
    cases = [
        pytest.param(law, make, id=f"{name}-{law.name}", marks=[pytest.mark.slow] * (name in (slow or {})))
        for name, make in ((name, cache(make)) for name, make in laws.examples().items())
        for law in laws
    ]
    return pytest.mark.parametrize(("law", "make"), cases)
