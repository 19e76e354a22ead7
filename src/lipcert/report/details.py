"""The details of one run on the page: its certificate, its layers, its images, its command."""

from __future__ import annotations

import base64
import io
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from lipcert.data import Dataset
from lipcert.errors import LipcertError
from lipcert.report.layers import layers_of
from lipcert.report.run_figures import extremes
from lipcert.report.sources import Finished
from lipcert.runs.rows import fraction
from lipcert.runs.samples import Samples

# The most runs with full details; for more the page has tables and curves only.
MANY = 12


def details_of(run: Finished) -> dict[str, Any]:
    """Return everything that the template shows of a run."""
    return {
        "name": run.name,
        "claim": run.recipe.claim,
        "certificate": certificate_of(run),
        "layers": layers_of(run),
        "whole": whole_of(run),
        **images_of(run),
        "environment": run.certificate.environment.model_dump(),
        "recipe": run.run.recipe.read_text(),
        "command": f"lipcert train {run.run.path}/recipe.yaml --output again",
        "verify": f"lipcert verify {run.run.path}",
    }


def certificate_of(run: Finished) -> dict[str, Any]:
    """Return what was proved, and about what."""
    found = run.certificate
    splits = [
        {
            "name": name,
            "samples": split.samples,
            "sha256": split.sha256,
            "rows": [
                {
                    "radius": "clean" if row.radius == 0 else fraction(row.radius),
                    "value": f"{100 * row.value:.2f}",
                    "interval": " … ".join(f"{100 * end:.2f}" for end in row.interval),
                    "count": f"{row.count:,}",
                }
                for row in split.rows
            ],
        }
        for name, split in found.splits.items()
    ]
    keys = ("rounding", "effort", "model_sha256", "k_f", "k_hf")
    return {"splits": splits, **{key: getattr(found, key) for key in keys}}


def whole_of(run: Finished) -> dict[str, str]:
    """Return K_f from below by two points, estimated and proved, and K before the head."""
    last = run.run.last_metrics()
    validation = None if last is None else last.validation
    values = {
        "lower": run.witnessed,
        "estimate": validation.k_f_converged if validation else last.k_f if last else None,
        "features": run.certificate.k_features,
        "upper": run.certificate.k_f,
    }
    return {name: "–" if value is None else f"{value:.6g}" for name, value in values.items()}


def images_of(run: Finished) -> dict[str, Any]:
    """Return the correct predictions with the largest and the smallest radii; none for points."""
    try:
        data = run.recipe.make_data(run.split)
    except LipcertError as error:
        return {"images": [], "no_images": str(error)}
    if data.x.ndim != 4 or data.x.dtype != torch.uint8:
        return {"images": [], "no_images": ""}
    found = run.samples
    cards = {title: [_card(data, found, i) for i in rows] for title, rows in extremes(found).items()}
    return {"images": [{"title": title, "cards": c} for title, c in cards.items()], "no_images": ""}


def _card(data: Dataset, found: Samples, i: int) -> dict[str, str]:
    return {
        "source": _png(data.x[i]),
        "label": data.classes[int(found.label[i])],
        "radius": f"{float(found.radius[i]):.3g}",
        "rival": data.classes[int(found.rival[i])],
    }


def _png(image: Tensor) -> str:
    """Return an image as a data URL for the page."""
    pixels = image.permute(1, 2, 0).numpy()
    file = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0]).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
