"""A model with proved constants: what was proved, and whether the model is still the one it was proved of."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lipcert.bounds.arguments import checked_model, checked_tensor, wrong_shape
from lipcert.bounds.bounded import checked_classes
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.fidelity.guards import refuse_tampering_anywhere
from lipcert.bounds.fidelity.kernels import refuse_flushed_denormals
from lipcert.bounds.fidelity.replay import Replay
from lipcert.bounds.precision import refuse_half_precision
from lipcert.bounds.proof import Bound, prove
from lipcert.bounds.provers.rounding import U
from lipcert.certificates.head import Head
from lipcert.certificates.shards import ALONE, Shard
from lipcert.certificates.tails.dense_tail import DenseTail
from lipcert.certificates.tails.tight_pairs import tight_pairs
from lipcert.errors import InputError, LipcertWarning, StaleBoundError
from lipcert.types import Effort


class ProvedModel:
    """The constants of a model, proved once: `bound` of the features, `pairs` K_ij (N, N) of the logits."""

    def __init__(
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        effort: Effort = "auto",
        shard: Shard = ALONE,
        device: str | torch.device | None = None,
    ) -> None:
        refuse_tampering_anywhere(checked_model(model))
        refuse_half_precision(model)
        refuse_flushed_denormals(all_threads=True)
        self.model, self.effort = model, effort
        self.is_float32 = all(p.dtype == torch.float32 for p in model.parameters())
        followed = Followed.of(model, input_shape, device)
        self.program, self.input_shape, self.where = followed.program, followed.input_shape, followed.where
        self.classes = max(checked_classes(self.program), 2)
        self.features, head = self.program.split_head()
        # Margins are differences that decide, of few numbers: the head is evaluated on the CPU.
        self.head = Head.identity(self.classes) if head is None else Head.linear(_on_cpu(head))
        if head is None:
            warnings.warn(
                "the last layer is not linear: every pair of classes gets the bound of the whole "
                "model times √2, which is looser",
                LipcertWarning,
                stacklevel=4,
            )
        # One process proves, so that all certify with the same bits.
        proof = prove(self.features, effort) if shard.index == 0 else None
        self.bound: Bound = shard.first(proof)
        self.pairs = _product_up(self.head.spread, self.bound.value)
        if effort == "tight":
            tight = self._tight_pairs(head) if shard.index == 0 else None
            self.pairs = torch.minimum(self.pairs, shard.first(tight))
        self.replay = Replay(followed, self.bound)
        self._snapshot = self.replay.rehearse()

    def _tight_pairs(self, head: nn.Linear | None) -> Tensor:
        """Return K_ij from several dense layers together, infinite where there are none: (N, N)."""
        tail = None if head is None else DenseTail.of(self.features, self.bound, self.head.rows)
        return torch.full_like(self.pairs, torch.inf) if tail is None else tight_pairs(tail)

    @property
    def k_f(self) -> float:
        """Return the largest K_ij."""
        return float(self.pairs.max())

    def check(self, x: Tensor) -> None:
        """Raise unless the model is still the one that the proof is about, and these are inputs of it."""
        checked_tensor("x", x)
        refuse_half_precision(self.model)
        refuse_flushed_denormals()
        refuse_tampering_anywhere(self.model)
        if tuple(x.shape[1:]) != self.input_shape:
            raise InputError(wrong_shape(x, self.input_shape))
        if len(x) == 0:
            raise InputError("x: expected at least one sample")
        if not x.is_floating_point():
            raise InputError(f"x: expected floating-point inputs, got {x.dtype}")
        changed = self.replay.change_since(self._snapshot)
        if changed is not None:
            raise StaleBoundError(f"{changed}: the model changed after the proof: make a new certifier")


def _on_cpu(head: nn.Linear) -> nn.Linear:
    """Return the layer if it is on the CPU, else a copy that is."""
    return head if head.weight.device.type == "cpu" else copy.deepcopy(head).cpu()


def _product_up(spread: Tensor, features: float) -> Tensor:
    """Return spread·features from above; 0 only where a factor is 0."""
    product = spread * (features * (1 + 4 * U))
    product = torch.nextafter(product, product.new_tensor(torch.inf))
    return torch.where((spread == 0) | (features == 0), 0.0, product)
