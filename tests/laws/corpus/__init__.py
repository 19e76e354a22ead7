"""Forwards that users write, by theme. Importing this package registers them all."""

from tests.laws.corpus import (
    batches,
    calls,
    contexts,
    honest,
    honest_layers,
    layers,
    modules,
    randomness,
    state,
    tracing,
    values,
)
from tests.laws.corpus.registry import FORWARDS, Entry

__all__ = [
    "FORWARDS",
    "Entry",
    "batches",
    "calls",
    "contexts",
    "honest",
    "honest_layers",
    "layers",
    "modules",
    "randomness",
    "state",
    "tracing",
    "values",
]
