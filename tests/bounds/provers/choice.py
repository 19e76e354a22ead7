"""Tests choose the prover of a convolution; users choose an effort."""

from __future__ import annotations

import pytest
from torch import Tensor

from lipcert.bounds.provers import convolution_norm as convolution
from lipcert.bounds.provers.convolutions import PROVERS, Prover
from lipcert.bounds.provers.geometry import Geometry

__all__ = ["PROVERS", "force"]


def force(patch: pytest.MonkeyPatch, prover: str) -> None:
    """Every convolution by this one, whatever its size (circular ones by Fourier instead of strips)."""

    def choose(weight: Tensor, g: Geometry, effort: str) -> tuple[str, Prover]:
        name = prover if PROVERS.create(prover).can_prove(g) else "fourier"
        return name, PROVERS.create(name)

    patch.setattr(convolution, "choose_prover", choose)
    patch.setattr(convolution, "remembered", lambda weight, key, prove: prove())
