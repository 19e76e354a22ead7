"""Provide the last layers of networks, one per file; `head: NAME` in a recipe chooses one."""

from lipcert.models.heads.base import HEADS, make_head

__all__ = ["HEADS", "make_head"]
