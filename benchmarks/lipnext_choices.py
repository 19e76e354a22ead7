"""What LipNeXt's description leaves open: one choice changed at a time, two seeds each.

64 channels, 4 blocks, patches of 4 × 4 pixels, three epochs with EMMA on real CIFAR-10. `python
benchmarks/lipnext_choices.py` trains what is missing, two at a time, and writes results/lipnext-choices.json.
Drift is the largest ‖QᵀQ − I‖₂ of the trained matrices, before the nearest orthogonal ones are executed.
"""

from __future__ import annotations

import os

import torch
from safetensors.torch import load_file
from seeds import means, path_of, train_all
from speedrun import trial
from torch import nn

from lipcert.models import MODELS
from lipcert.models.lipnext import lipnext
from lipcert.sweeps import Trial
from lipcert.train import orthogonal
from results import write_table

SEEDS = (1, 2)
RECIPE = "cifar10-lipnext"
SMALL = ("model.width=64", "model.depth=4", "model.patch=4", "model.pool=null", "train.epochs=3")
EXAMPLE = {"num_classes": 3, "input_shape": (1, 8, 8), "width": 6, "depth": 2}


@MODELS.register("lipnext-without-position", example=EXAMPLE)
def without_position(
    num_classes: int = 10,
    input_shape: tuple[int, ...] = (3, 32, 32),
    width: int = 256,
    depth: int = 16,
    patch: int = 2,
) -> nn.Sequential:
    """Its terms of the position stay 0."""
    model = lipnext(num_classes, input_shape, width, depth, patch)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.endswith((".down", ".right")))
    return model


UNPOLISHED = "matrices not polished"
CHOICES: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "|x| on a quarter of the channels": ("model.share=0.25",),
    "|x| on half of them": ("model.share=0.5",),
    "|x| on all of them": ("model.share=1.0",),
    "lengths of windows of 4 × 4": ("model.pool=4",),
    "lengths of windows of 2 × 2": ("model.pool=2",),
    "patches of 2 × 2": ("model.patch=2",),
    "no term of the position": ("model={name: lipnext-without-position, width: 64, depth: 4, patch: 4}",),
    UNPOLISHED: (),
    "learning rate 1e-3": ("optimizer.lr=1e-3",),
}


def choice_trial(name: str, seed: int) -> Trial:
    if name == UNPOLISHED:
        orthogonal.polished = lambda matrix: matrix  # in this process alone
    return trial(
        path_of("lipnext-choices", name, seed), RECIPE, "cpu", *SMALL, *CHOICES[name], f"seed={seed}"
    )


def drift(name: str) -> str:
    """Of all matrices and seeds."""
    largest = 0.0
    for seed in SEEDS:
        weights = load_file(choice_trial(name, seed).run.model)
        for key in (key for key in weights if key.endswith((".rotation", ".mix"))):
            q = weights[key].double()
            gap = q.T @ q - torch.eye(len(q), dtype=q.dtype)
            largest = max(largest, float(torch.linalg.matrix_norm(gap, 2)))
    return f"{largest:.0e}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    train_all(choice_trial, CHOICES, SEEDS)
    note = "width 64, depth 4, 3 epochs, validation split, proved bounds, mean ± half the range of two seeds"
    titles = ["choice", "clean", "CRA 36/255", "72/255", "108/255", "K_f", "drift"]
    rows = [[name.replace("|", r"\|"), *means(choice_trial, name, SEEDS), drift(name)] for name in CHOICES]
    write_table("lipnext-choices", note, titles, rows)
