"""Classify image files, each with the radius within which its class is certain."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.statement import Statement, find_certificate
from lipcert.data.image_files import Form, Mode, is_image, read_image
from lipcert.errors import InputError
from lipcert.models import ModelCard
from lipcert.models.model_files import model_file, read_card
from lipcert.models.model_names import model_place
from lipcert.progress import proving, tracked

# The images that are decoded and certified at a time.
_BATCH = 64


@dataclass(frozen=True)
class Prediction:
    """The prediction for one file: no input within `radius` gets another class; `rival` is the nearest."""

    file: str
    label: str | None  # None if the model abstains
    probability: float
    radius: float
    rival: str


def predict_files(
    source: str, paths: Sequence[Path], abstain_below: float | None = None
) -> tuple[list[Prediction], list[str]]:
    """Predict images, and those in directories; also return one line per file without a prediction.

    An image is converted to the model's input: its size, and grey or RGB. Radii are in that space, pixels
    from 0 to 1. Where the radius is not above `abstain_below`, no class is named.
    """
    if abstain_below is not None and not abstain_below >= 0:
        raise InputError(f"--abstain-below: expected a radius >= 0, got {abstain_below}")
    card, statement = read_card(model_file(source)), find_certificate(model_place(source))
    form = image_form(source, card, statement)
    files, complaints = _files(paths)
    if not files:
        return [], complaints
    with proving():
        prover = certifier(load_model(source, statement), card.input_shape)
    judge = _Judge(prover, card, sharpness(statement), abstain_below)
    found: list[Prediction] = []
    batches = [files[i : i + _BATCH] for i in range(0, len(files), _BATCH)]
    for batch in tracked(batches, "predicting"):
        images: dict[str, np.ndarray] = {}
        for path in batch:
            try:
                images[str(path)] = read_image(path, form)
            except InputError as error:
                complaints.append(str(error))
        if images:
            found += judge(images)
    return found, complaints


@dataclass(frozen=True)
class _Judge:
    prover: Certifier
    card: ModelCard
    sharpness: float
    abstain_below: float | None

    def __call__(self, images: dict[str, np.ndarray]) -> Iterator[Prediction]:
        """Yield a prediction for every image."""
        x = torch.from_numpy(np.stack(list(images.values()))).float() / 255
        certificate = self.prover(x)
        probability: Tensor = (self.sharpness * self.prover.logits(x)).softmax(dim=1)  # (B, N)
        names = self.card.classes or tuple(str(i) for i in range(self.prover.proved.classes))
        for i, file in enumerate(images):
            top, radius = int(certificate.prediction[i]), float(certificate.radius[i])
            abstains = top < 0 or (self.abstain_below is not None and radius <= self.abstain_below)
            yield Prediction(
                file=file,
                label=None if abstains else names[top],
                probability=float(probability[i].max()),
                radius=radius,
                rival=names[int(certificate.rival[i])],
            )


def image_form(source: str, card: ModelCard, statement: Statement | None) -> Form:
    """Return the form of a model's input images, cropped if the data of its certificate is."""
    modes: dict[int, Mode] = {1: "L", 3: "RGB"}
    if len(card.input_shape) != 3 or card.input_shape[0] not in modes:
        raise InputError(f"{source}: takes inputs of shape {card.input_shape}, not grey or RGB images")
    channels, height, width = card.input_shape
    crop = statement is not None and bool(statement.data.model_dump().get("crop"))
    return Form(modes[channels], (width, height), convert=True, crop=crop)


def _files(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the files, with directories searched, and one complaint per problem."""
    files: list[Path] = []
    complaints: list[str] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(filter(is_image, path.rglob("*")))
            files += inside
            complaints += [] if inside else [f"{path}: no images in this directory"]
        elif path.is_file():
            files.append(path)
        else:
            complaints.append(f"{path}: no such file or directory")
    return list(dict.fromkeys(files)), complaints


def sharpness(statement: Statement | None) -> float:
    """Return K_hf/K_f, by which the loss of a run multiplies its logits; 1 where no certificate tells."""
    if statement is None or statement.k_hf is None or statement.k_f == 0:
        return 1.0
    return statement.k_hf / statement.k_f


def as_json(predictions: Sequence[Prediction]) -> str:
    """Return a list of objects; `class` is null where the model abstains, and an infinite radius is null."""
    return json.dumps(
        [
            {
                "file": p.file,
                "class": p.label,
                "probability": p.probability,
                "radius": p.radius if p.radius < sys.float_info.max else None,
                "rival": p.rival,
            }
            for p in predictions
        ],
        indent=2,
        ensure_ascii=False,
    )


def as_csv(predictions: Sequence[Prediction]) -> str:
    """Return a line per file below a header; `class` is empty where the model abstains.

    Example:
        >>> print(as_csv([Prediction("a, b.png", None, 0.5, 0.25, "dog")]), end="")
        file,class,abstained,probability,radius,rival
        "a, b.png",,true,0.5,0.25,dog
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "class", "abstained", "probability", "radius", "rival"])
    for p in predictions:
        abstained = "true" if p.label is None else "false"
        writer.writerow([p.file, p.label, abstained, p.probability, p.radius, p.rival])
    return text.getvalue()
