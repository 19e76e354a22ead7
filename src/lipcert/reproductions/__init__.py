"""Tables and figures of the paper as commands: which recipes to train, what to draw, what is claimed."""

from lipcert.reproductions.carrying_out import REPRODUCTIONS, carry_out, parse_seeds
from lipcert.reproductions.definition import Reproduction

__all__ = ["REPRODUCTIONS", "Reproduction", "carry_out", "parse_seeds"]
