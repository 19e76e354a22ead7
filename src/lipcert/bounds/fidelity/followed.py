"""A model together with its private float64 copy, and the program traced from that copy."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.fidelity.snapshot import frozen_copy, settled_copy
from lipcert.bounds.precision import double_device, refuse_coarse_doubles
from lipcert.bounds.tracing.program import Program, checked_shape, trace
from lipcert.errors import InputError
from lipcert.types import Shape


@dataclass(frozen=True)
class Followed:
    """A model, its private float64 copy, and the program that was traced from the copy."""

    model: nn.Module
    copy: nn.Module
    program: Program
    input_shape: Shape
    where: torch.device  # the copy's

    @classmethod
    def of(
        cls, model: nn.Module, input_shape: Sequence[int], device: str | torch.device | None = None
    ) -> Followed:
        """Copy and trace a model; the copy is on the model's device, unless another is given."""
        shape = checked_shape(input_shape)
        where = double_device(example_of(model).device) if device is None else torch.device(device)
        if double_device(where) != where:
            raise InputError(f"device: {where.type} has no float64, so certificates are computed on the CPU")
        refuse_coarse_doubles(where)
        copied = frozen_copy(model, where)
        return cls(model, copied, _keeping_inputs(trace(copied, shape)), shape, where)

    def on_cpu(self) -> Program:
        """Trace the program once more, from a copy of the copy on the CPU."""
        return _keeping_inputs(trace(copy.deepcopy(self.copy).cpu(), self.input_shape))

    def own_program(self) -> Program:
        """Trace the program once more, from a copy in the model's precision and on its device."""
        return _keeping_inputs(trace(settled_copy(self.model), self.input_shape))

    def example(self) -> Tensor:
        """Return a tensor with the precision and device of the model."""
        return example_of(self.model)


def example_of(model: nn.Module) -> Tensor:
    """Return a tensor with the precision and device of a model."""
    tensors = [*model.parameters(), *model.buffers()]
    return next((t for t in tensors if t.is_floating_point()), torch.zeros(()))


def _keeping_inputs(program: Program) -> Program:
    """Keep layers of a copy from working in place, because their inputs are read after they ran."""
    for step in program.steps:
        if isinstance(getattr(step.module, "inplace", None), bool):
            setattr(step.module, "inplace", False)  # noqa: B010
    return program
