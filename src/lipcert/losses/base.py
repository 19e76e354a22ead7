"""The contract of a loss, and the checks all losses share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from lipcert.errors import InputError
from lipcert.registry import Registry
from lipcert.transforms import is_transformed
from lipcert.types import PairLip

# A hyper-parameter: a float, or a 0-dim tensor.
Number = float | Tensor


@dataclass(frozen=True)
class Loss(ABC):
    """The contract loss(logits, labels, lip) → (B,); the objective is its mean plus `penalty(lip)`.

    A loss sees logits, labels and constants, never a model. Hyper-parameters are floats or tensors;
    floats are checked on construction, tensors (which vmap may batch) are trusted.
    """

    uses_constants: ClassVar[bool] = True  # if not, a training does not follow them from step to step
    shift_invariant: ClassVar[bool] = True  # whether only differences of logits count
    sample_by_sample: ClassVar[bool] = True  # whether the value of a sample depends on no other sample
    exact_gradient: ClassVar[bool] = True  # whether no part of the value is held fixed in the gradient

    def __call__(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Check the arguments, then return one value per sample: (B,)."""
        check(logits, labels, lip)
        return self.values(logits, labels, lip)

    @abstractmethod
    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""

    def penalty(self, lip: PairLip) -> Tensor:
        """Return the penalty on the constants themselves: a scalar."""
        return lip.features.new_zeros(())

    def whole_lipschitz(self, k_f: float) -> float:
        """Return K_hf, the constant of the classifier with the loss's own scaling of the logits."""
        return k_f


LOSSES: Registry[Loss] = Registry("loss", package="lipcert.losses")


def check(logits: Tensor, labels: Tensor, lip: PairLip) -> None:
    """Check shapes, types, and (where no device synchronisation is needed) the range of the labels."""
    for name, value in (("logits", logits), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise InputError(f"{name}: expected a tensor, got {type(value).__name__}")
    if not isinstance(lip, PairLip):
        raise InputError(f"lip: expected the constants that Bounded returns, got {type(lip).__name__}")
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(f"logits: expected shape (B, N) with N >= 2, got {tuple(logits.shape)}")
    if labels.shape != logits.shape[:1]:
        raise InputError(
            f"labels: expected shape ({logits.shape[0]},) for these logits, got {tuple(labels.shape)}"
        )
    if labels.dtype != torch.int64:
        raise InputError(f"labels: expected int64 class numbers, got {labels.dtype}")
    if lip.head.ndim != 2 or lip.head.shape[0] != logits.shape[1]:
        raise InputError(
            f"lip: expected {logits.shape[1]} head rows, one per class, got shape {tuple(lip.head.shape)}"
        )
    if tuple(lip.features.shape) not in ((), tuple(logits.shape[:1])):
        raise InputError(
            f"lip: expected one feature constant, or one per sample, got shape {tuple(lip.features.shape)}"
        )
    if labels.device.type == "cpu" and not is_transformed(labels) and labels.numel():
        low, high = (int(v) for v in labels.aminmax())
        if low < 0 or high >= logits.shape[1]:
            raise InputError(f"labels: expected 0..{logits.shape[1] - 1}, got {low if low < 0 else high}")


def check_number(
    name: str, value: Number, *, above: float, below: float = float("inf"), or_equal: bool = False
) -> None:
    """Raise unless a float lies strictly between two limits, or at the lower one; tensors are trusted."""
    if isinstance(value, Tensor) or (or_equal and value == above):
        return
    if not isinstance(value, float | int) or isinstance(value, bool) or not above < value < below:
        more = ">=" if or_equal else ">"
        limit = f"{more} {above:g}" if below == float("inf") else f"between {above:g} and {below:g}"
        raise InputError(f"{name}: expected a number {limit}, got {value!r}")


def finite(logits: Tensor) -> Tensor:
    """Clamp logits to where softmax and its gradient are finite: differences must not overflow."""
    return clamped(logits, torch.finfo(logits.dtype).max / 8)


def clamped(x: Tensor, limit: float) -> Tensor:
    """Clamp to ±limit: `clamp` whose gradient is one kernel, not five."""
    return F.hardtanh(x, -limit, limit)


def on_label(logits: Tensor, labels: Tensor) -> Tensor:
    """Return a mask of the label, by index and never by value: (B, N)."""
    return torch.arange(logits.shape[1], device=labels.device) == labels[:, None]


def off_label(logits: Tensor, labels: Tensor) -> Tensor:
    """Return a mask of the rivals of the label, by index and never by value: (B, N)."""
    return torch.arange(logits.shape[1], device=labels.device) != labels[:, None]
