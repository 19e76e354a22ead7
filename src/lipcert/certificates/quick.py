"""Certificates of a model as it runs, in its own precision, rounding ignored."""

from __future__ import annotations

import torch
from torch import Tensor

from lipcert.bounds.bounded import binary_as_two
from lipcert.certificates.proved_model import ProvedModel
from lipcert.certificates.radius import nearest_quickly


class QuickEvaluation:
    """Certifies by the model's own forward pass, and takes hardly longer."""

    def __init__(self, proved: ProvedModel) -> None:
        self._proved = proved
        # Layers may have others inside.
        inside = any(getattr(module, "inplace", False) for module in proved.model.modules())
        self._overwrites = proved.program.overwrites or inside
        self._pairs = proved.pairs.to(next(proved.model.parameters(), proved.pairs).dtype)
        apart = self._pairs[~torch.eye(proved.classes, dtype=torch.bool)]
        self.is_possible = bool(((apart > 0) & (apart < torch.inf)).all())

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return prediction, radius and rival: each (B,)."""
        replay, example = self._proved.replay, next(self._proved.model.parameters(), x)
        trusted = all_finite(x).cpu()
        outputs = replay.outputs(x.detach().to(example, copy=self._overwrites))
        replay.compare_outputs(x, outputs)
        logits = binary_as_two(outputs).cpu()  # (B, N)
        best, top = logits.max(dim=1)
        nearest, rival = nearest_quickly(best[:, None] - logits, self._pairs[top], top)
        trusted &= torch.isfinite(best - logits.amin(dim=1))  # which is NaN or infinite if any logit is
        return torch.where(all_finite(logits), top, -1), torch.where(trusted, nearest, 0.0).double(), rival


def all_finite(x: Tensor) -> Tensor:
    """Return whether every number of a sample is finite: (B,)."""
    flat = x.flatten(1)
    total = torch.isfinite(flat.sum(1))  # then every summand is
    return total if bool(total.all()) else torch.isfinite(flat).all(1)
