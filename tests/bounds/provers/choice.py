"""Tests choose the prover of a convolution; users choose an effort."""

from __future__ import annotations

import pytest

from lipcert.bounds.provers import convolution_norm as convolution

PROVERS = ("gram", "fourier", "strips")


def force(patch: pytest.MonkeyPatch, prover: str) -> None:
    """Every convolution by this one, whatever its size (circular ones by Fourier instead of strips)."""
    patch.setattr(convolution, "_exact_side", lambda *_: 8192 if prover == "gram" else 0)
    patch.setattr(convolution, "_strip_cost", lambda *_: 10**18 if prover == "strips" else 0)
    patch.setattr(convolution, "remembered", lambda weight, key, prove: prove())
