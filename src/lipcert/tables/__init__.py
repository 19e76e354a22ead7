"""Typed tables: columns that know their kind, and one renderer per medium."""

from lipcert.tables.table import Column, Table

__all__ = ["Column", "Table"]
