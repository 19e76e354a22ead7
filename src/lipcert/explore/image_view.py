"""One image: its class, its certified radius against every rival, and the strongest attack found."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from lipcert.attack.margin import towards_rival
from lipcert.attack.target import Target
from lipcert.certificates.certifier import Certifier
from lipcert.data.image_files import Form, read_image
from lipcert.errors import InputError
from lipcert.explore import markup
from lipcert.tables.kinds import DISTANCE, SETTING, percent, proved_radius

# An upload of a few bytes may decompress to gigabytes; no photograph has so many pixels.
MAX_PIXELS = 50_000_000

# The rivals that an attack tries, nearest first, and the steps towards each: about two seconds for a 4C3F.
RIVALS, STEPS = 4, 40


@dataclass(frozen=True)
class Verdict:
    """A certified prediction: no input within `radius` gets another class."""

    label: str
    probability: float
    radius: float
    rivals: list[tuple[str, float]]  # nearest first, each with the radius within which no input gets it


@dataclass(frozen=True)
class Attempt:
    """The input within ε on which a rival came closest to the prediction, or past it."""

    pixels: np.ndarray  # (C, H, W) uint8, rounded for display; the numbers are of the unrounded input
    change: np.ndarray  # (C, H, W) in [-1, 1]
    distance: float
    label: str
    changed: bool
    certified: bool
    broken: bool  # a change within the certified radius, which would refute the certificate


@dataclass(frozen=True)
class Judge:
    """A proved model for images, and how to read its outputs."""

    model: nn.Module
    prover: Certifier
    form: Form
    names: tuple[str, ...]
    sharpness: float  # K_hf/K_f: the factor by which the loss multiplies the logits

    def __call__(self, image: np.ndarray) -> Verdict:
        """Classify and certify an image of pixels (C, H, W) uint8."""
        x = _floats(image)
        certificate = self.prover(x)
        top = int(certificate.prediction)
        if top < 0:
            raise InputError("model: its logits are not finite on this image")
        radii = self.prover.rival_radii(x)[0].tolist()
        rivals = [(self.names[j], radii[j]) for j in range(len(radii)) if j != top]
        probability = (self.sharpness * self.prover.logits(x)).softmax(dim=1)
        return Verdict(
            label=self.names[top],
            probability=float(probability[0, top]),
            radius=float(certificate.radius),
            rivals=sorted(rivals, key=lambda rival: rival[1]),
        )

    def attack(self, image: np.ndarray, eps: float) -> Attempt:
        """Attack towards the nearest rivals, each from its own start; pixels stay between 0 and 1."""
        if not 0 <= eps < float("inf"):
            raise InputError(f"eps: expected a number >= 0, got {eps}")
        target = Target.of(self.model, self.prover, _floats(image), "float64", (0.0, 1.0))
        top = int(target.prediction)
        order = self.prover.rival_radii(target.x)[0].argsort()
        rivals = order[order != top][:RIVALS]
        targets = _repeated(target, rivals)
        points = towards_rival(targets, torch.full((len(rivals),), eps, dtype=torch.float64), STEPS)
        points = points.clamp(0.0, 1.0)  # never farther from the image, which is between 0 and 1 too
        logits = targets.network(points)  # (R, N)
        gain = logits.scatter(1, targets.prediction[:, None], -torch.inf).amax(1) - logits[:, top]
        best = int(gain.argmax())
        point = points[best : best + 1]
        return Attempt(
            pixels=(255 * point[0]).round().to(torch.uint8).numpy(),
            change=(point - target.x)[0].numpy(),
            distance=float(target.distance(point)),
            label=self.names[int(logits[best].argmax())],
            changed=bool(target.flipped(point)),
            certified=float(target.radius) > eps,
            broken=bool(target.broken(point)),
        )


def read_upload(path: Path, form: Form) -> np.ndarray:
    """Read an upload in the form of the model, (C, H, W) uint8; errors name the file without its folder."""
    try:
        _refuse_huge(path)
        return read_image(path, form)
    except InputError as error:
        raise InputError(str(error).replace(str(path), path.name)) from None


def _refuse_huge(path: Path) -> None:
    """Raise if the header of the file announces too many pixels."""
    size = (0, 0)
    with contextlib.suppress(Exception), Image.open(path) as image:  # read_image reports the error
        size = image.size
    if size[0] * size[1] > MAX_PIXELS:
        raise InputError(f"{path}: {size[0]}×{size[1]} pixels, expected at most {MAX_PIXELS:,} in all")


def _floats(image: np.ndarray) -> Tensor:
    return torch.from_numpy(image[None].copy()).float() / 255


def _repeated(target: Target, rivals: Tensor) -> Target:
    """Repeat the single sample once per rival."""
    count = len(rivals)
    return replace(
        target,
        x=target.x.repeat(count, 1, 1, 1),
        prediction=target.prediction.repeat(count),
        rival=rivals,
        radius=target.radius.repeat(count),
    )


def verdict_html(verdict: Verdict, eps: float, truth: str | None = None) -> str:
    """Show class, probability, radius, and one bar per rival; rivals that ε reaches are marked.

    `truth` is the true label, where it is known.
    """
    shown = {
        "class": (verdict.label, f"not {verdict.rivals[0][0]}, which is nearest"),
        **_truth(verdict, truth),
        "probability": (percent(verdict.probability), "as the loss scales the logits"),
        "radius": (proved_radius(verdict.radius), "L2, pixels from 0 to 1, proved"),
    }
    finite = [radius for _, radius in verdict.rivals if radius < float("inf")]
    longest = max([eps, *finite]) or 1.0
    rows = "".join(
        f'<tr class="{"within" if radius <= eps else "beyond"}"><th scope="row">{escape(name)}</th>'
        f"<td>{proved_radius(radius)}</td>"
        f'<td class="bar"><div style="width: {100 * min(radius / longest, 1.0):.1f}%"></div></td></tr>'
        for name, radius in verdict.rivals
    )
    head = "<caption>Certified radius against every rival; red: not certified at ε</caption>"
    return markup.numbers(shown) + f'<div class="scroll"><table class="rivals">{head}{rows}</table></div>'


def _truth(verdict: Verdict, truth: str | None) -> dict[str, tuple[str, str]]:
    """Return the true label and whether the prediction agrees; nothing where it is unknown."""
    if truth is None:
        return {}
    return {"true label": (truth, "as predicted" if truth == verdict.label else "the prediction is wrong")}


def attempt_html(
    image: np.ndarray, verdict: Verdict, attempt: Attempt, eps: float, truth: str | None = None
) -> str:
    """Show the image with its true label, the attacked image and their amplified difference."""
    peak = float(np.abs(attempt.change).max())
    factor = 0.5 / peak if peak > 0 else 1.0
    difference = (255 * (0.5 + factor * attempt.change)).clip(0, 255).astype(np.uint8)
    shown = markup.beside(
        markup.pixels(image, verdict.label, "original" if truth is None else f"original; true label {truth}"),
        markup.pixels(
            attempt.pixels, attempt.label, f"strongest attack, {DISTANCE.text(attempt.distance)} away"
        ),
        markup.pixels(difference, "difference", f"times {round(factor)}; grey is none"),
    )
    return markup.message(*_conclusion(attempt, eps)) + shown


def _conclusion(attempt: Attempt, eps: float) -> tuple[str, markup.Mood]:
    """Say what is known at ε, and how to show it."""
    if attempt.broken:
        return (
            f"A change at {DISTANCE.text(attempt.distance)}, within the certified radius: please report it.",
            "error",
        )
    if attempt.certified:
        return f"Certified: no attack can succeed within ε = {SETTING.text(eps)}.", "good"
    if attempt.changed:
        return (
            f"Attacked: at a distance of {DISTANCE.text(attempt.distance)} the class is {attempt.label}.",
            "bad",
        )
    return f"Not certified at ε = {SETTING.text(eps)}, and no attack found: the answer is unknown.", "note"
