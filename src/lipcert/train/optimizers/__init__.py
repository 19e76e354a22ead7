"""Optimisers, one per file. Those that have fused kernels use them: the moons step is a third faster."""

from lipcert.train.optimizers.base import OPTIMIZERS, MakeOptimizer, Parameters, optimizer_for

__all__ = ["OPTIMIZERS", "MakeOptimizer", "Parameters", "optimizer_for"]
