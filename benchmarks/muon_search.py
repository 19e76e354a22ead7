"""What does each change to a training with Muon buy? 4C3F at half width with CLL, one change at a time.

`python benchmarks/muon_search.py short` trains four epochs each on most of real CIFAR-10, and holds out
10,000 images: they have half the standard error of 2500. Variants that seem to help have a second seed.
`long` trains 32 epochs on half of it, where generalisation is what matters. What is finished is kept, what
was interrupted goes on; bounds are proved. Variants that are no recipe live here alone: what does not help
does not belong into the package. Writes results/muon-search-short.json and -long.json.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import numpy as np
import torch
from optimizer import newton_schulz
from scipy.special import ellipj, ellipk
from seeds import path_of, work
from speedrun import FAST, found, trial
from torch import Tensor, nn

from lipcert.data.augmentations.standard import Standard
from lipcert.losses import CLL, LOSSES
from lipcert.losses.base import off_label
from lipcert.losses.cll import logits_against_label
from lipcert.models import MODELS
from lipcert.models.convnet import Statistics, convolutional_network
from lipcert.recipes import read_recipe
from lipcert.sweeps import Trial
from lipcert.train.optimizers import OPTIMIZERS, Parameters
from lipcert.train.optimizers import muon as muon_module
from lipcert.train.optimizers.muon import Muon
from lipcert.train.plan import Plan
from lipcert.train.step import Single
from lipcert.types import PairLip
from results import write_table

MUON = (
    "optimizer={name: muon, lr: 0.02, momentum: 0.95, adam_lr: 4e-3}",
    "schedule.optimizer.lr={name: trapezoid}",
    "loss.lam=1e-3",
    "model.width=0.5",
)
RADIUS = 36 / 255


@LOSSES.register("cll-smooth", example={"eps": 0.1, "slack": 0.05})
@dataclass(frozen=True)
class SmoothCLL(CLL):
    """CLL whose cross-entropy has smoothed labels: the margins of rivals count a little."""

    smoothing: float = 0.0

    stacks = False

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """(B,)."""
        lip = lip.detach() if self.detach_constant else lip
        z = logits_against_label(
            logits, labels, lip, width=self.width, margin=self.margin, normaliser=self.normaliser
        )
        # The margin is for the label: the uniform part looks at the plain distances.
        plain = z - self.margin * off_label(logits, labels)
        uniform = -plain.log_softmax(1).mean(1)
        label = -z.log_softmax(1).gather(1, labels[:, None])[:, 0]
        return (1 - self.smoothing) * label + self.smoothing * uniform


@OPTIMIZERS.register("muon-but", example={"lr": 0.02})
def muon_but(
    parameters: Parameters,
    head: Collection[nn.Parameter] = (),
    lr: float = 0.02,
    adam_lr: float = 4e-3,
    adam: Sequence[int] = (),
    head_too: bool = False,
) -> torch.optim.Optimizer:
    """Muon but for some matrices by their place among all, which Adam moves, or with the head."""
    parameters = list(parameters)
    matrices = [p for p in parameters if p.ndim > 1]
    others = [p for i, p in enumerate(matrices) if i in adam]
    return Muon(parameters, others if head_too else [*head, *others], lr, adam_lr=adam_lr)


@OPTIMIZERS.register("muon-schulz", example={"lr": 0.02})
def muon_schulz(
    parameters: Parameters, head: Collection[nn.Parameter] = (), lr: float = 0.02, adam_lr: float = 4e-3
) -> torch.optim.Optimizer:
    """As its authors have it: five steps of Newton and Schulz."""
    muon_module.subtract_orthogonalised = newton_schulz
    return Muon(parameters, head, lr, adam_lr=adam_lr)


@OPTIMIZERS.register("muon-poles", example={"lr": 0.02})
def muon_poles(
    parameters: Parameters,
    head: Collection[nn.Parameter] = (),
    lr: float = 0.02,
    adam_lr: float = 4e-3,
    low: float = 0.003,
    poles: int = 2,
) -> torch.optim.Optimizer:
    """Muon with a closer approximation of the inverse root, or for smaller singular values."""
    m = 1 - low**2
    sn, cn, *_ = ellipj(np.arange(1, 2 * poles + 1) * ellipk(m) / (2 * poles + 1), m)
    c = (low * sn / cn) ** 2
    odd, even = c[::2], c[1::2]
    weights = [-np.prod(s - even) / np.prod(np.delete(s - odd, j)) for j, s in enumerate(odd)]
    x = np.geomspace(low, 1, 10_001)
    values = x * (1 + sum(w / (x**2 + s) for s, w in zip(odd, weights, strict=True)))
    muon_module._SCALE = float(2 / (values.min() + values.max()))
    muon_module._POLES = tuple((float(s), float(w)) for s, w in zip(odd, weights, strict=True))
    return Muon(parameters, head, lr, adam_lr=adam_lr)


@MODELS.register("4c3f-like", example={"num_classes": 3, "input_shape": (1, 8, 8), "width": 0.125})
def like_4c3f(
    num_classes: int = 10,
    input_shape: Sequence[int] = (3, 32, 32),
    width: float = 1.0,
    normalise: Statistics | None = None,
    gain: float = math.sqrt(2),
    channels: Sequence[int] = (32, 32, 64, 64),
    dense: Sequence[int] = (512, 512),
    squares: bool = False,
) -> nn.Sequential:
    """4C3F with other widths; on squares of 2 × 2 pixels the first convolutions lose their stride."""
    stride = 1 if squares else 2
    kernel = 3 if squares else 4
    a, b, c, d = channels
    convolutions = [(a, 3, 1, 1), (b, kernel, stride, 1), (c, 3, 1, 1), (d, 4, 2, 1)]
    inputs, *size = input_shape
    if not squares:
        return convolutional_network(
            convolutions, dense, num_classes, input_shape, width, normalise, gain, "minmax"
        )
    shape = (4 * inputs, size[0] // 2, size[1] // 2)
    if normalise is not None:
        means, stds = normalise
        normalise = (tuple(np.repeat(means, 4).tolist()), tuple(np.repeat(stds, 4).tolist()))
    network = convolutional_network(convolutions, dense, num_classes, shape, width, normalise, gain, "minmax")
    return nn.Sequential(nn.PixelUnshuffle(2), *network)


def cropped(crop: int, jitter: float = 0.0, rotate: float = 0.0) -> str:
    return f"train.augment={{crop: {crop}, flip: true, jitter: {jitter}, rotate: {rotate}}}"


def like(**arguments: object) -> str:
    """The model with other arguments."""
    base = {k: v for k, v in read_recipe(FAST).model.arguments.items() if k != "activation"}
    return "model=" + json.dumps({"name": "4c3f-like", **base, "width": 0.5, **arguments})


def smooth(smoothing: float) -> str:
    loss = {**read_recipe(FAST).loss.arguments, "lam": 1e-3, "smoothing": smoothing}
    return "loss=" + json.dumps({"name": "cll-smooth", **loss})


CYCLE = "schedule.optimizer.lr={name: one-cycle}"
SHORT: dict[str, tuple[str, ...]] = {
    "Muon": (),
    "one-cycle": (CYCLE,),
    "one-cycle, Adam": (CYCLE, "optimizer={name: adam, lr: 4e-3}", "loss.lam=1e-4"),
    "one-cycle, Newton and Schulz": (CYCLE, "optimizer={name: muon-schulz}"),
    "one-cycle, three poles from 0.001": (CYCLE, "optimizer={name: muon-poles, low: 0.001, poles: 3}"),
    "one-cycle, two poles from 0.01": (CYCLE, "optimizer={name: muon-poles, low: 0.01, poles: 2}"),
    "one-cycle, batch 64, rate 0.014": (CYCLE, "train.batch_size=64", "optimizer.lr=0.014"),
    "one-cycle, batch 256, rate 0.03": (CYCLE, "train.batch_size=256", "optimizer.lr=0.03"),
    "Adam": ("optimizer={name: adam, lr: 4e-3}", "loss.lam=1e-4"),
    "batch 64, rate 0.014": ("train.batch_size=64", "optimizer.lr=0.014"),
    "rate stays until 0.4": ("schedule.optimizer.lr={name: trapezoid, fall: 0.4}",),
    "rate 0.03": ("optimizer.lr=0.03",),
    "rate 0.014": ("optimizer.lr=0.014",),
    "momentum 0.9": ("optimizer.momentum=0.9",),
    "λ 1e-4": ("loss.lam=1e-4",),
    "λ 1e-2": ("loss.lam=1e-2",),
    "squares of pixels": (like(squares=True),),
    "first layers twice as wide": (like(channels=[64, 64, 64, 64]),),
    "slack 0.15": ("loss.slack=0.15",),
    "ε 0.2": ("loss.eps=0.2",),
    "GloRo, ε 0.15": ("loss={name: gloro, eps: 0.15}",),
    "GloRo, ε 0.15, growing": (
        "loss={name: gloro, eps: 0.15}",
        "schedule.loss.eps={name: ramp, first: 0.01, until: 0.5}",
    ),
    "Adam's rate 1e-3": ("optimizer.adam_lr=1e-3",),
    "Adam's rate 1e-2": ("optimizer.adam_lr=1e-2",),
    "gain 1.4": ("model.gain=1.4",),
    "head by Muon": ("optimizer={name: muon-but, head_too: true}",),
    "largest layer by Adam": ("optimizer={name: muon-but, adam: [4]}",),
    "labels smoothed by 0.1": (smooth(0.1),),
    "averaged weights, 0.99": ("train.ema=0.99",),
    "constants in three turns": ("train.turns=3",),
    "K detached": ("loss.detach_constant=true",),
}
CROP = cropped(2)
LONG: dict[str, tuple[str, ...]] = {
    "crop 2": (CROP,),
    "crop 4": (cropped(4),),
    "no crop": (),
    "crop 4, colours by 0.25, turned by 2°": (cropped(4, jitter=0.25, rotate=2.0),),
    "averaged weights, 0.999": ("train.ema=0.999", CROP),
    "slack 0.15": ("loss.slack=0.15", CROP),
    "averaged weights, 0.999, rate falls to a third": (
        "train.ema=0.999",
        "schedule.optimizer.lr={name: linear, end: 7e-3}",
        CROP,
    ),
    "labels smoothed by 0.1": (smooth(0.1), CROP),
    "Adam": ("optimizer={name: adam, lr: 4e-3}", "loss.lam=1e-4", CROP),
    "batch 64, rate 0.014": ("train.batch_size=64", "optimizer.lr=0.014", CROP),
    "weight decay 0.05": ("optimizer.weight_decay=0.05", CROP),
    "batches grow from 64 to 192": (CROP,),
    "crops grow from 0 to 2": (CROP,),
    "first third at half the resolution": (CROP,),
    "first layers twice as wide": (like(channels=[64, 64, 64, 64]), CROP),
    "squares of pixels": (like(squares=True), CROP),
    "linear residuals on squares of pixels": (
        "model={name: uniform, layer: linear-residual, patch: 2, width: 1.0}",
        CROP,
    ),
}


@dataclass(frozen=True)
class Stage:
    """Variants, and how long and on how much of the training images they are trained."""

    variants: dict[str, tuple[str, ...]]
    epochs: int
    held_out: float
    base: tuple[str, ...] = ()  # what the stage before has shown to help
    again: tuple[str, ...] = ()  # variants with a second seed

    def seeds(self, name: str) -> tuple[int, ...]:
        return (1, 2) if name in self.again else (1,)


STAGES = {
    "short": Stage(
        SHORT,
        4,
        0.2,
        again=(
            "Muon",
            "batch 64, rate 0.014",
            "momentum 0.9",
            "ε 0.2",
            "averaged weights, 0.99",
            "λ 1e-4",
            "K detached",
            "GloRo, ε 0.15",
        ),
    ),
    "long": Stage(LONG, 32, 0.5, ("optimizer.momentum=0.9",)),
}


def growing_batches(plan: Plan, epoch: int) -> tuple[Tensor, ...]:
    """64 samples a step in the first epoch, 192 in the last, as many as always in all."""
    size = round(64 + 128 * epoch / max(1, plan.epochs - 1))
    needed = plan.steps_per_epoch * size
    orders = [
        torch.randperm(len(plan.train), generator=torch.Generator().manual_seed(plan.seed + 7919 * epoch + k))
        for k in range(-(-needed // len(plan.train)))
    ]
    return torch.split(torch.cat(orders)[:needed], size)


def growing_crops(augmentation: Standard, samples: int, seed: int, epoch: int) -> Tensor:
    """None in the first epoch, the whole in the last."""
    draws = DRAWS(augmentation, samples, seed, epoch)
    reach = min(1.0, epoch / (STAGES["long"].epochs - 1))
    span = (2 * reach * augmentation.crop + 1) / (2 * augmentation.crop + 1)
    draws[:, :2] = 0.5 + (draws[:, :2] - 0.5) * span
    return draws


def coarse_first(steps: Single, number: int, piece: Tensor) -> Tensor:
    """Squares of four pixels take their mean in the first third of the training."""
    x = INPUTS(steps, number, piece)
    if steps.training.fraction > 1 / 3:
        return x
    return nn.functional.interpolate(nn.functional.avg_pool2d(x, 2), scale_factor=2.0)


DRAWS, INPUTS = Standard.draws, Single._inputs
PATCHES = {
    "batches grow from 64 to 192": (Plan, "batches", growing_batches),
    "crops grow from 0 to 2": (Standard, "draws", growing_crops),
    "first third at half the resolution": (Single, "_inputs", coarse_first),
}


def variant_trial(stage: str, name: str, seed: int) -> Trial:
    it = STAGES[stage]
    length = (f"train.epochs={it.epochs}", f"data.val={it.held_out}", "train.validate_every=0")
    settings = (*MUON, *it.base, *length, *it.variants[name], f"seed={seed}")
    return trial(path_of(f"muon-search-{stage}", name, seed), FAST, None, *settings)


def carry_out(stage: str, name: str, seed: int) -> None:
    """In a process of its own, which registers the variants by reading this file."""
    if name in PATCHES:
        setattr(*PATCHES[name])
    work(partial(variant_trial, stage), name, seed)


def certified(stage: str, name: str, seed: int) -> Tensor:
    """Whether each validation image is correct and certified at 36/255."""
    return variant_trial(stage, name, seed).run.samples("val").robust > RADIUS


def row(stage: str, name: str, base: str, seeds: Sequence[int]) -> list[str]:
    """Means over the seeds; by how much more is certified than without the change, image by image."""
    numbers = zip(*(map(float, found(variant_trial(stage, name, s).run)) for s in seeds), strict=True)
    gains = [certified(stage, name, s).double() - certified(stage, base, s).double() for s in seeds]
    gain = 100 * torch.cat(gains)
    error = gain.std() / len(gain) ** 0.5
    bought = "" if name == base else f"{gain.mean():+.1f} ± {error:.1f}"
    return [name, str(len(seeds)), *(f"{fmean(n):.1f}" for n in numbers), bought]


def write(stage: str) -> None:
    """A row for every variant of which a seed is finished."""
    it = STAGES[stage]
    base = next(iter(it.variants))
    rows = []
    for name in it.variants:
        done = [s for s in it.seeds(name) if variant_trial(stage, name, s).is_finished()]
        if done:
            rows.append(row(stage, name, base, done))
            print(*rows[-1], sep="  ")
    seen, held = round(50_000 * (1 - it.held_out)), round(50_000 * it.held_out)
    note = (
        f"4C3F at half width, {it.epochs} epochs of {seen:,} images, {held:,} validation images, proved "
        "bounds, percent; gains at 36/255 with the standard error of the difference on the same images"
    )
    titles = ["change", "seeds", "clean", "CRA 36/255", "72/255", "108/255", "K_f", "gain"]
    write_table(f"muon-search-{stage}", note, titles, rows)


def main(stage: str, *chosen: str) -> None:
    it = STAGES[stage]
    names = chosen or tuple(it.variants)
    tasks = [(stage, name, seed) for seed in (1, 2) for name in names if seed in it.seeds(name)]
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        pool.starmap(carry_out, tasks, chunksize=1)
    write(stage)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*sys.argv[1:])
