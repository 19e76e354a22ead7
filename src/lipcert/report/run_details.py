"""One run on the page: its certificate, its layers, its images, how to make it again."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor

from lipcert.certificates.statement import Accuracy, TrainedStatement
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.errors import LipcertError
from lipcert.recipes.splits import Splits
from lipcert.report.layer_table import LayerRow, layer_table, layers_of
from lipcert.report.report_inputs import Finished
from lipcert.report.run_figures import extremes
from lipcert.runs.samples import Samples
from lipcert.tables import Column, Table
from lipcert.tables.kinds import (
    COUNT,
    EXACT_CONSTANT,
    EXACT_PERCENT,
    LOWER_BOUND,
    PROVED_RADIUS,
    RADIUS,
    TEXT,
    UPPER_BOUND,
    Interval,
)

# Runs of which the page tells everything; of more it has the tables and curves.
MANY = 12


@dataclass(frozen=True)
class CertifiedRow:
    """The accuracy of one split at one radius."""

    split: Split
    accuracy: Accuracy


@dataclass(frozen=True)
class Constants:
    """K_f from below by two points, as estimated in training, and as proved; what is before the head."""

    lower: str
    estimate: str
    features: str
    upper: str


@dataclass(frozen=True)
class ImageCard:
    """One image, its class, its certified radius and the nearest rival."""

    source: str
    label: str
    radius: str
    rival: str


@dataclass(frozen=True)
class ImageRow:
    """Images that have something in common."""

    title: str
    cards: Sequence[ImageCard]


@dataclass(frozen=True)
class RunDetails:
    """Everything the template shows of a run."""

    name: str
    claim: str
    statement: TrainedStatement
    certificates: Sequence[Table[CertifiedRow]]  # one per split
    certificate: Table[CertifiedRow]  # all splits in one
    layers: Table[LayerRow]
    constants: Constants
    images: Sequence[ImageRow]
    no_images: str  # why there are none
    recipe: str
    command: str
    verify: str


def details_of(run: Finished, data: Splits) -> RunDetails:
    """Collect what the template shows; `data` keeps what was loaded."""
    images, no_images = images_of(run, data)
    splits = run.certificate.splits
    return RunDetails(
        name=run.name,
        claim=run.recipe.claim,
        statement=run.certificate,
        certificates=[_certified_table(run, [name]) for name in splits],
        certificate=_certified_table(run, list(splits), f"{run.name}-certificate"),
        layers=layer_table(layers_of(run), f"{run.name}-layers"),
        constants=constants_of(run),
        images=images,
        no_images=no_images,
        recipe=run.run.recipe_text(),
        command=f"lipcert train {run.run.recipe} --output again",
        verify=f"lipcert verify {run.run.path}",
    )


def _certified_table(run: Finished, splits: Sequence[Split], name: str = "") -> Table[CertifiedRow]:
    """Lay out what was proved; a table of one split names it in its title, a file in a column."""
    found = run.certificate.splits
    rows = [CertifiedRow(split, accuracy) for split in splits for accuracy in found[split].rows]
    columns: list[Column[CertifiedRow]] = [
        Column("radius", RADIUS, lambda row: row.accuracy.radius or "clean"),
        Column("certified [%]", EXACT_PERCENT, lambda row: row.accuracy.value),
        Column("95 % interval", EXACT_PERCENT, lambda row: Interval(*row.accuracy.interval)),
        Column("count", COUNT, lambda row: row.accuracy.count),
    ]
    if name:
        columns.insert(0, Column("split", TEXT, lambda row: row.split))
    else:
        title = f"{splits[0]}, {found[splits[0]].samples:,} samples"
        columns[0] = Column(title, RADIUS, columns[0].value)
    return Table(columns, rows, name, "Certificate")


def constants_of(run: Finished) -> Constants:
    """Write the constants of the whole network."""
    last = run.run.last_metrics()
    validation = None if last is None else last.validation
    estimate = validation.k_f_converged if validation else last.k_f if last else None
    found = run.certificate
    return Constants(
        lower=LOWER_BOUND.text(run.witnessed),
        estimate=EXACT_CONSTANT.text(estimate),
        features=UPPER_BOUND.text(found.k_features),
        upper=UPPER_BOUND.text(found.k_f),
    )


def images_of(run: Finished, splits: Splits) -> tuple[list[ImageRow], str]:
    """Return the correct predictions with the largest and with the smallest radii, or why there are none."""
    try:
        data = splits.of(run.recipe, run.split)
    except LipcertError as error:
        return [], str(error)
    if data.x.ndim != 4 or data.x.dtype != torch.uint8:
        return [], ""
    found = run.samples
    shown = extremes(found).items()
    return [ImageRow(title, [card_of(data, found, i) for i in rows]) for title, rows in shown], ""


def card_of(data: Dataset, found: Samples, i: int) -> ImageCard:
    """Return what the page shows of a sample."""
    return ImageCard(
        source=_png(data.x[i]),
        label=data.classes[int(found.label[i])],
        radius=PROVED_RADIUS.text(float(found.radius[i])),
        rival=data.classes[int(found.rival[i])],
    )


def _png(image: Tensor) -> str:
    """Write pixels as the page holds them."""
    pixels = image.permute(1, 2, 0).numpy()
    file = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0]).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
