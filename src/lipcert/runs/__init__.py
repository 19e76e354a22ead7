"""Run directories: what one training leaves behind."""

from lipcert.runs.run import Run

__all__ = ["Run"]
