"""Compute Lipschitz bounds: estimates for training (`Bounded`), proofs for certificates (`upper`)."""

from lipcert.bounds import rules as _rules  # registers the rules of torch's modules
from lipcert.bounds.bounded import Bounded
from lipcert.bounds.contract import Constant, Proof, Rule, refuse, register, rule
from lipcert.bounds.krylov import LinearMap
from lipcert.bounds.proof import Bound, LayerBound
from lipcert.bounds.upper_bound import upper
from lipcert.errors import UnknownBoundError
from lipcert.types import PairLip

__all__ = [
    "Bound",
    "Bounded",
    "Constant",
    "LayerBound",
    "LinearMap",
    "PairLip",
    "Proof",
    "Rule",
    "UnknownBoundError",
    "refuse",
    "register",
    "rule",
    "upper",
]
del _rules
