"""A model together with its private float64 copy, and the program traced from that copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.fidelity.snapshot import frozen_copy, settled_copy
from lipcert.bounds.tracing.program import Program, checked_shape, trace
from lipcert.types import Shape


@dataclass(frozen=True)
class Followed:
    """A model, its private float64 copy, and the program that was traced from the copy."""

    model: nn.Module
    copy: nn.Module
    program: Program
    input_shape: Shape

    @classmethod
    def of(cls, model: nn.Module, input_shape: Sequence[int]) -> Followed:
        """Copy and trace a model."""
        shape = checked_shape(input_shape)
        copied = frozen_copy(model)
        return cls(model, copied, _keeping_inputs(trace(copied, shape)), shape)

    def own_program(self) -> Program:
        """Trace the program once more, from a copy in the model's precision and on its device."""
        return _keeping_inputs(trace(settled_copy(self.model), self.input_shape))

    def example(self) -> Tensor:
        """Return a tensor with the precision and device of the model."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return next((t for t in tensors if t.is_floating_point()), torch.zeros(()))


def _keeping_inputs(program: Program) -> Program:
    """Keep layers of a copy from working in place, because their inputs are read after they ran."""
    for step in program.steps:
        if isinstance(getattr(step.module, "inplace", None), bool):
            setattr(step.module, "inplace", False)  # noqa: B010
    return program
