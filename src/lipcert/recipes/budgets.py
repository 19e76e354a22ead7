"""Remarks about figures that a budget calls for."""

from __future__ import annotations

_REMARKS = {"smoke": "smoke budget: shows that everything works, not how well"}


def remark(budget: str | None) -> str:
    """Return what has to stand beside figures of this budget, empty for most.

    Example:
        >>> remark("smoke"), remark(None)
        ('smoke budget: shows that everything works, not how well', '')
    """
    return _REMARKS.get(budget or "", "")


def with_remark(note: str, *budgets: str | None) -> str:
    """Return the note of a table with the remark of the first budget that has one."""
    found = next(filter(None, map(remark, budgets)), "")
    return "; ".join(filter(None, [note, found]))
