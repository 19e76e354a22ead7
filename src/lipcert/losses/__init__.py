"""Provide losses, one paper per file: a pure function, and a thin class over it."""

from lipcert.losses.annealing import EMMAAnnealing, LogitAnnealing, logit_annealing
from lipcert.losses.aol import AOL, offset_cross_entropy
from lipcert.losses.base import LOSSES, Loss
from lipcert.losses.cll import CLL, calibrated_logits, calibrated_scale
from lipcert.losses.emma import EMMA, emma_logits
from lipcert.losses.gloro import GloRo, gloro_logits
from lipcert.losses.gloro_trades import GloRoTrades
from lipcert.losses.hinge import MultiMargin, multi_margin
from lipcert.losses.hkr import HKR, hinge_against_rest, transport
from lipcert.losses.kr import KR
from lipcert.losses.lmt import LMT, lmt_logits
from lipcert.losses.soc import CertificateRegularisation, label_radius
from lipcert.losses.soft_transport import SoftHKR, soft_hkr
from lipcert.losses.softmax import CrossEntropy, cross_entropy
from lipcert.losses.tempered import TemperatureCrossEntropy, temperature_cross_entropy

__all__ = [
    "AOL",
    "CLL",
    "EMMA",
    "HKR",
    "KR",
    "LMT",
    "LOSSES",
    "CertificateRegularisation",
    "CrossEntropy",
    "EMMAAnnealing",
    "GloRo",
    "GloRoTrades",
    "LogitAnnealing",
    "Loss",
    "MultiMargin",
    "SoftHKR",
    "TemperatureCrossEntropy",
    "calibrated_logits",
    "calibrated_scale",
    "cross_entropy",
    "emma_logits",
    "gloro_logits",
    "hinge_against_rest",
    "label_radius",
    "lmt_logits",
    "logit_annealing",
    "multi_margin",
    "offset_cross_entropy",
    "soft_hkr",
    "temperature_cross_entropy",
    "transport",
]
