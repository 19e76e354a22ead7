"""Does CLL gain by what its rivals have? Focal factor, adaptive offset, K detached; three seeds each.

4C3F at a quarter of the width, six epochs of the fast recipe. `python benchmarks/cll_variants.py` trains what
is missing, two at a time, and writes results/cll-variants.json. The variants live here alone: a loss that
does not help does not belong into the package.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import torch
from seeds import means, path_of, train_all
from speedrun import FAST, trial
from torch import Tensor

from lipcert.losses import CLL, LOSSES
from lipcert.losses.base import off_label
from lipcert.losses.cll import logits_against_label
from lipcert.losses.softmax import cross_entropy
from lipcert.recipes import read_recipe
from lipcert.sweeps import Trial
from lipcert.types import PairLip
from results import write_table

SEEDS = (1, 2, 3)
THIN = ("model.width=0.25", "train.epochs=6")


@LOSSES.register("cll-variant", example={"eps": 0.1, "slack": 0.05})
@dataclass(frozen=True)
class CLLVariant(CLL):
    r"""CLL times $(1 - q)^\gamma$, γ = `focus`; with `adaptive` a rival is raised only as far as it needs."""

    focus: float = 0.0
    adaptive: bool = False

    stacks = False

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """(B,)."""
        lip = lip.detach() if self.detach_constant else lip
        z = logits_against_label(
            logits, labels, lip, width=self.width, margin=self.margin, normaliser=self.normaliser
        )
        if self.adaptive:  # EMMA's: the part of the margin at which the rival draws level, 1 % at least
            part = (1 - z / self.margin).detach().clamp(0.01, 1.0)
            z = torch.where(off_label(logits, labels), z - (1 - part) * self.margin, 0.0)
        values = cross_entropy(z, labels)
        doubt = -torch.expm1(-values)
        return values * doubt.clamp_min(torch.finfo(z.dtype).tiny) ** self.focus if self.focus else values


VARIANTS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "focal factor, γ = 0.5": ("loss.focus=0.5",),
    "focal factor, γ = 1": ("loss.focus=1.0",),
    "focal factor, γ = 2": ("loss.focus=2.0",),
    "adaptive offset": ("loss.adaptive=true",),
    "ε = 0.3": ("loss.eps=0.3",),
    "adaptive offset, ε = 0.3": ("loss.adaptive=true", "loss.eps=0.3"),
    "K detached": ("loss.detach_constant=true",),
}


def variant_trial(name: str, seed: int) -> Trial:
    # Another name replaces a whole component, so the arguments come along.
    loss = json.dumps({"name": "cll-variant", **read_recipe(FAST).loss.arguments})
    settings = (*THIN, f"loss={loss}", *VARIANTS[name], f"seed={seed}")
    return trial(path_of("cll-variants", name, seed), FAST, None, *settings)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    train_all(variant_trial, VARIANTS, SEEDS)
    note = (
        "4C3F at a quarter of the width, 6 epochs, validation split, proved bounds, "
        "mean ± half the range of three seeds, percent"
    )
    titles = ["change to cifar10-4c3f-fast", "clean", "CRA 36/255", "72/255", "108/255", "K_f"]
    rows = [[name, *means(variant_trial, name, SEEDS)] for name in VARIANTS]
    write_table("cll-variants", note, titles, rows)
