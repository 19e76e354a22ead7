"""Tables and figures of the paper: which recipes to train, what to draw, what is claimed."""

from lipcert.paper.definition import REPRODUCTIONS, Reproduction

__all__ = ["REPRODUCTIONS", "Reproduction"]
