"""Draw a finished run: accuracy against radius, class by class, the most and least robust images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lipcert.atomic import write_atomically
from lipcert.data import Dataset
from lipcert.data.base import Split, shown_split
from lipcert.recipes import Recipe
from lipcert.recipes.budgets import remark
from lipcert.recipes.splits import Splits
from lipcert.report.figure import labelled, new_figure, new_grid, write_figure
from lipcert.report.palette import GREY, PROVED
from lipcert.runs import Run
from lipcert.runs.samples import Samples
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_PERCENT, PROVED_RADIUS, SETTING, TEXT, printed_radius
from lipcert.tables.table_files import csv_text

# Images in a row of the picture.
_SHOWN = 10


def write_evaluation(run: Run, recipe: Recipe, splits: Splits) -> list[Path]:
    """Write a curve, a table by class and, for images, a picture into the run's figures folder."""
    split = shown_split(recipe.certify.splits)
    found = run.samples(split)
    data = splits.of(recipe, split)
    run.figures.mkdir(exist_ok=True)
    with labelled(remark(recipe.budget)):
        return _write(run, recipe.certify.radii, split, found, data)


def _write(run: Run, radii: tuple[float, ...], split: Split, found: Samples, data: Dataset) -> list[Path]:
    written = [_curve(found.robust, radii, split, run.figures / "curve.png"), run.figures / "classes.csv"]
    by_class = class_table(data.classes, found, radii)
    write_atomically(written[1], csv_text(by_class).encode())
    if data.x.dtype == torch.uint8 and data.x.ndim == 4:
        written.append(_extremes(data, found, run.figures / "images.png"))
    return written


def _curve(robust: Tensor, radii: tuple[float, ...], split: Split, path: Path) -> Path:
    """Draw certified accuracy at every radius."""
    ordered = robust[robust > 0].sort().values.numpy()
    figure, axes = new_figure((5.2, 3.4))
    remaining = 100 * np.arange(len(ordered), 0, -1) / len(robust)
    axes.step(ordered, remaining, where="post", color=PROVED)
    for radius in radii:
        axes.axvline(radius, color=GREY, linewidth=0.5)
    largest = max(1.2 * max(radii), float(np.quantile(ordered, 0.99)) if len(ordered) else 0.0)
    axes.set(xlabel="L2 radius", ylabel="certified accuracy [%]", xlim=(0, largest), ylim=(0, 101))
    axes.set_title(f"{split}, {len(robust):,} samples, proved", fontsize=9)
    return write_figure(figure, path)


@dataclass(frozen=True)
class ClassRow:
    """One class: how many of its samples are correct, and correct and certified, as fractions."""

    name: str
    samples: int
    clean: float
    certified: tuple[float, ...]  # by radius
    mean_radius: float  # 0 for wrong predictions


def _class_row(name: str, label: int, found: Samples, radii: Sequence[float]) -> ClassRow:
    mine = found.label == label
    correct, robust = found.correct[mine], found.robust[mine]
    clean, *certified = (float(part.double().mean()) for part in (correct, *(robust > r for r in radii)))
    return ClassRow(name, int(mine.sum()), clean, tuple(certified), float(robust.mean()))


def class_table(classes: Sequence[str], found: Samples, radii: Sequence[float]) -> Table[ClassRow]:
    """Lay out one line per class that occurs."""
    present = set(found.label.tolist())
    rows = [_class_row(name, i, found, radii) for i, name in enumerate(classes) if i in present]
    return Table(
        [
            Column("class", TEXT, lambda row: row.name),
            Column("samples", SETTING, lambda row: row.samples),
            Column("clean", EXACT_PERCENT, lambda row: row.clean),
            *(_radius_column(i, radius) for i, radius in enumerate(radii)),
            Column("mean radius", PROVED_RADIUS, lambda row: row.mean_radius),
        ],
        rows,
    )


def _radius_column(i: int, radius: float) -> Column[ClassRow]:
    return Column(f"CRA {printed_radius(radius)}", EXACT_PERCENT, lambda row: row.certified[i])


def extremes(found: Samples) -> dict[str, list[int]]:
    """Return the correct predictions with the largest radii, and those with the smallest."""
    correct = found.correct.nonzero().flatten()
    order = correct[found.radius[correct].argsort(descending=True)].tolist()
    return {"most robust": order[:_SHOWN], "least robust": order[-_SHOWN:][::-1]}


def _extremes(data: Dataset, found: Samples, path: Path) -> Path:
    """Draw the most robust images above, the least robust below."""
    rows = extremes(found)
    figure, grid = new_grid(2, _SHOWN, (1.25 * _SHOWN, 3.6))
    for axes in grid.flat:
        axes.axis("off")
    for row, (title, samples) in zip(grid, rows.items(), strict=True):
        for axes, i in zip(row, samples, strict=False):
            image = data.x[i].permute(1, 2, 0).numpy()
            axes.imshow(image if image.shape[2] == 3 else image[..., 0], cmap="gray")
            axes.set_title(image_title(data.classes, found, i), fontsize=7)
        row[0].text(-0.15, 0.5, title, transform=row[0].transAxes, rotation=90, va="center", fontsize=8)
    return write_figure(figure, path, dpi=150)


def image_title(classes: Sequence[str], found: Samples, i: int) -> str:
    """Write class, certified radius and nearest rival of a sample, one per line."""
    name, rival = (classes[int(column[i])][:14] for column in (found.label, found.rival))
    return f"{name}\n{PROVED_RADIUS.text(float(found.radius[i]))}\nnot {rival}"
