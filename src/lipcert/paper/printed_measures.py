"""The measures that the paper prints: clean and certified accuracy of the test split, at its three radii."""

from __future__ import annotations

from lipcert.certificates.certificate import RADII
from lipcert.runs.measures import clean, cra

CLEAN = clean("test")
NEAR, MIDDLE, FAR = (cra("test", radius) for radius in RADII)
