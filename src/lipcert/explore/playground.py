"""Train on two moons while the visitor watches: the trainer's own steps, and a proof for every frame.

A network this small is proved in less time than its picture takes, so that no number shown is an estimate.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from lightning_fabric import Fabric

from lipcert.certificates.certifier import certifier
from lipcert.errors import InputError, TrainingError
from lipcert.explore import markup
from lipcert.recipes import Recipe, read_recipe
from lipcert.recipes.execution import build
from lipcert.recipes.splits import Splits
from lipcert.report.moons_figure import Picture, PictureNumbers, draw_outputs, draw_panel
from lipcert.report.palette import loss_title
from lipcert.runs import Run
from lipcert.tables.kinds import SETTING, UPPER_BOUND, duration, percent
from lipcert.train import Hardware
from lipcert.train.loop import steps_of
from lipcert.train.state import Training

CLL, GLORO, CROSS_ENTROPY = map(loss_title, ("cll", "gloro", "cross-entropy"))

# The losses offered, and the recipes whose training is shortened.
LOSSES = {CLL: "moons-cll", GLORO: "moons-gloro", CROSS_ENTROPY: "moons-ce"}
EPS, SLACK, DEPTH = (0.02, 0.3), (0.001, 0.45), (1, 6)

# Seconds of training between two frames.
_EVERY = 0.4

# Far fewer steps than in the recipe, so larger steps and one cycle of the learning rate.
_QUICK = (
    "train.epochs=80",
    "train.batch_size=200",
    "train.validate_every=0",
    "optimizer.lr=0.01",
    "schedule.optimizer.lr={name: one-cycle}",
    "schedule.loss.slack=null",
)
_WIDTH = 20

# Made once.
_SPLITS = Splits()


@dataclass(frozen=True)
class Wish:
    """The settings that a visitor chooses; checked, because anyone can send anything."""

    loss: str = CLL
    eps: float = 0.15
    slack: float = 0.05
    depth: int = 3

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)}, got {self.loss!r}")
        for name, (low, high) in {"eps": EPS, "slack": SLACK, "depth": DEPTH}.items():
            value = getattr(self, name)
            if not isinstance(value, float | int) or not low <= value <= high:
                raise InputError(f"{name}: expected a number from {low} to {high}, got {value!r}")

    def recipe(self) -> Recipe:
        """Return the recipe of the loss, shortened."""
        settings = [*_QUICK, f"model.widths={[_WIDTH] * int(self.depth)}", f"certify.radii=[{self.eps}]"]
        if self.loss != CROSS_ENTROPY:
            settings.append(f"loss.eps={self.eps}")
        if self.loss == CLL:
            settings.append(f"loss.slack={self.slack}")
        return read_recipe(LOSSES[self.loss], None, settings)


@dataclass(frozen=True)
class Frame:
    """The proved classifier after some steps."""

    picture: Picture
    clean: float
    step: int
    steps: int
    seconds: float


def train(wish: Wish, wanted: Callable[[], bool] = lambda: True) -> Iterator[Frame]:
    """Yield frames from the first weights to the last, until they are no longer `wanted`."""
    plan, _ = build(wish.recipe(), _SPLITS)
    # A run directory that is nowhere: nothing is kept.
    training = Training(plan, Run(os.devnull), _fabric())
    steps = steps_of(training)
    yield _frame(wish, training, 0.0)
    start = last = time.perf_counter()
    pause = 0.0
    while training.step < plan.total_steps:
        if not wanted():
            return
        steps.advance()
        now = time.perf_counter()
        if now - last > max(_EVERY, pause):  # drawing never takes longer than training
            steps.hand_out()
            yield _frame(wish, training, now - start)
            last = time.perf_counter()
            pause = last - now
    steps.close()
    yield _frame(wish, training, time.perf_counter() - start)


@cache
def _fabric() -> Fabric:
    return Hardware(accelerator="cpu").launch()


def _frame(wish: Wish, training: Training, seconds: float) -> Frame:
    """Prove the network in its present state, and certify the training points."""
    plan = training.plan
    if not all(bool(p.isfinite().all()) for p in plan.model.parameters()):
        raise TrainingError(f"the weights are not finite after step {training.step}")
    data = plan.train
    prover = certifier(copy.deepcopy(plan.model).eval(), data.input_shape)
    certificate = prover(data.x)
    correct = certificate.prediction == data.y
    cra = float((correct & certificate.at(wish.eps)).double().mean())
    k_hf = plan.loss.whole_lipschitz(prover.k_f)
    slack = wish.slack if wish.loss == CLL else None
    numbers = PictureNumbers(wish.loss, wish.eps, slack, prover.k_f, k_hf, cra)
    picture = Picture(numbers, prover, data, certificate)
    return Frame(picture, float(correct.double().mean()), training.step, plan.total_steps, seconds)


def numbers_of(frame: Frame) -> str:
    """Show what is proved about the frame, as HTML."""
    shown, count = frame.picture.numbers, f"{len(frame.picture.data):,}"
    return markup.numbers(
        {
            "CRA": (percent(shown.cra), f"certified at ε = {SETTING.text(shown.eps)}"),
            "clean": (percent(frame.clean), f"correct, of {count} points"),
            "K_f": (UPPER_BOUND.text(shown.k_f), "of the logits, proved"),
            "K_hf": (UPPER_BOUND.text(shown.k_hf), "with the loss's scaling"),
            "step": (f"{frame.step} / {frame.steps}", f"of the training, {duration(frame.seconds)}"),
        }
    )


def pictures_of(frame: Frame) -> str:
    """Draw the plane and the outputs, as HTML."""
    panel = markup.drawing(
        lambda axes: draw_panel(axes, frame.picture),
        "The points, the decision boundary and the certified margin",
        size=(4.6, 3.45),
        legend=True,
    )
    outputs = markup.drawing(
        lambda axes: draw_outputs(axes, frame.picture),
        "Distribution of the outputs, the margin in their units, and the probability the loss makes of them",
        size=(4.6, 3.45),
    )
    return markup.beside(panel, outputs)
