"""Define the tables and figures of the paper: recipes to train, pictures to draw, claims to check."""

from lipcert.paper.definition import REPRODUCTIONS, Reproduction

__all__ = ["REPRODUCTIONS", "Reproduction"]
