"""Provers of the norm of a convolution, one per file; the tightest that the effort affords is used."""

from lipcert.bounds.provers.convolutions.base import PROVERS, Prover

__all__ = ["PROVERS", "Prover"]
