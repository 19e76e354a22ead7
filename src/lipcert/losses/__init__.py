"""Losses, one paper per file: a pure function, and a thin class over it."""

from lipcert.losses.base import LOSSES, Loss
from lipcert.losses.cll import CLL, calibrated_logits, calibrated_scale
from lipcert.losses.gloro import GloRo, gloro_logits
from lipcert.losses.gloro_trades import GloRoTrades
from lipcert.losses.softmax import CrossEntropy, cross_entropy

__all__ = [
    "CLL",
    "LOSSES",
    "CrossEntropy",
    "GloRo",
    "GloRoTrades",
    "Loss",
    "calibrated_logits",
    "calibrated_scale",
    "cross_entropy",
    "gloro_logits",
]
