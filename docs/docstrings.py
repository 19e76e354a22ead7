"""Docstrings as mkdocstrings wants them: doctests stand under `Examples:` there."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class PluralExamples(Extension):
    """Our docstrings have one, and say `Example:`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename the section."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
