"""Draw a finished run: accuracy against radius, class by class, the most and least robust images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lipcert.atomic import write_atomically
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.recipes import Recipe
from lipcert.recipes.splits import Splits
from lipcert.report.figure import new_figure, new_grid
from lipcert.runs import Run
from lipcert.runs.samples import Samples

_BLUE, _GREY = (0.24, 0.41, 0.64), (0.47, 0.47, 0.47)

# Images in a row of the picture.
_SHOWN = 10


def write_evaluation(run: Run, recipe: Recipe, splits: Splits) -> list[Path]:
    """Curve, table by class and, for images, a picture, into the run's figures folder."""
    split: Split = "test" if "test" in recipe.certify.splits else recipe.certify.splits[-1]
    found = run.samples(split)
    data = splits.of(recipe, split)
    run.figures.mkdir(exist_ok=True)
    written = [
        _curve(found.robust, recipe.certify.radii, split, run.figures / "curve.png"),
        _by_class(data, found, recipe.certify.radii, run.figures / "classes.csv"),
    ]
    if data.x.dtype == torch.uint8 and data.x.ndim == 4:
        written.append(_extremes(data, found, run.figures / "images.png"))
    return written


def _curve(robust: Tensor, radii: tuple[float, ...], split: str, path: Path) -> Path:
    """Draw certified accuracy at every radius."""
    ordered = robust[robust > 0].sort().values.numpy()
    figure, axes = new_figure((5.2, 3.4))
    remaining = 100 * np.arange(len(ordered), 0, -1) / len(robust)
    axes.step(ordered, remaining, where="post", color=_BLUE)
    for radius in radii:
        axes.axvline(radius, color=_GREY, linewidth=0.5)
    largest = max(1.2 * max(radii), float(np.quantile(ordered, 0.99)) if len(ordered) else 0.0)
    axes.set(xlabel="L2 radius", ylabel="certified accuracy [%]", xlim=(0, largest), ylim=(0, 101))
    axes.set_title(f"{split}, {len(robust):,} samples, proved", fontsize=9)
    figure.savefig(path, dpi=200)
    return path


def _by_class(data: Dataset, found: Samples, radii: tuple[float, ...], path: Path) -> Path:
    """Write accuracies in percent, one line per class."""
    lines = [",".join(["class", "samples", "clean", *(f"cra at {r:.4g}" for r in radii), "mean radius"])]
    for label, name in enumerate(data.classes):
        mine = found.label == label
        if not mine.any():
            continue
        right, robust = found.correct[mine], found.robust[mine]
        shares = [right, *(robust > r for r in radii)]
        cells = [f"{100 * float(share.double().mean()):.2f}" for share in shares]
        quoted = f'"{name}"' if "," in name else name
        lines.append(",".join([quoted, str(int(mine.sum())), *cells, f"{float(robust.mean()):.4f}"]))
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    return path


def extremes(found: Samples) -> dict[str, list[int]]:
    """Return the correct predictions with the largest radii, and those with the smallest."""
    right = found.correct.nonzero().flatten()
    order = right[found.radius[right].argsort(descending=True)].tolist()
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
            name, rival = (data.classes[int(column[i])][:14] for column in (found.label, found.rival))
            axes.set_title(f"{name}\n{float(found.radius[i]):.2g}\nnot {rival}", fontsize=7)
        row[0].text(-0.15, 0.5, title, transform=row[0].transAxes, rotation=90, va="center", fontsize=8)
    figure.savefig(path, dpi=150)
    return path
