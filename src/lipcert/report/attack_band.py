"""Clean, certified and empirical accuracy as one band: the truth lies between the last two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lipcert.attack import Band
from lipcert.data.base import Split
from lipcert.report.end_labels import EndLabel, label_ends
from lipcert.report.figure import PAGE_WIDTH, TEXT, new_figure, write_figure
from lipcert.report.palette import ATTACKED, GREY, PROVED
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_PERCENT, RADIUS


@dataclass(frozen=True)
class BandRow:
    """Accuracies at one radius, as fractions: the truth lies between certified and attacked."""

    radius: float
    certified: float
    attacked: float
    clean: float


def band_rows(band: Band, radii: Sequence[float]) -> list[BandRow]:
    """Return the band at some radii."""
    total = len(band.correct)
    return [
        BandRow(r, band.certified(r) / total, band.empirical(r) / total, band.clean() / total) for r in radii
    ]


def band_table(band: Band, radii: Sequence[float], split: Split) -> Table[BandRow]:
    """Lay out the band radius by radius, with the verdict."""
    verdict = f"{len(band.broken)} CERTIFICATES BROKEN" if band.broken else "no certificate broken"
    closest = ", ".join(f"{name} {count}" for name, count in band.found_by.items())
    return Table(
        [
            Column("radius", RADIUS, lambda row: row.radius),
            Column("certified", EXACT_PERCENT, lambda row: row.certified),
            Column("under attack", EXACT_PERCENT, lambda row: row.attacked),
            Column("clean", EXACT_PERCENT, lambda row: row.clean),
        ],
        band_rows(band, radii),
        title=f"{split}: {len(band.correct):,} samples, {band.points:,} points tried, {verdict}",
        note=f"closest: {closest or 'none found'}",
    )


def band_figure(band: Band, radii: Sequence[float], path: Path) -> Path:
    """Draw accuracy against radius: what is proved, what attacks left standing, the band between."""
    eps = np.linspace(0, 1.25 * max(radii), 400)
    rows = band_rows(band, eps.tolist())
    certified = np.array([100 * row.certified for row in rows])
    attacked = np.array([100 * row.attacked for row in rows])
    figure, axes = new_figure((PAGE_WIDTH, 3.8))
    clean = 100 * rows[0].clean
    axes.axhline(clean, color=GREY, linestyle=":")
    axes.plot(eps, attacked, color=ATTACKED, linewidth=1.8)
    axes.plot(eps, certified, color=PROVED, linewidth=1.8)
    axes.fill_between(eps, certified, attacked, color=GREY, alpha=0.2, linewidth=0)
    axes.set(xlabel="radius [L2 distance]", ylabel="accuracy [%]", xlim=(0, eps[-1]), ylim=(0, 103))
    axes.set_title(f"{len(band.correct):,} samples, {len(band.broken)} certificates broken", fontsize=TEXT)
    for radius in radii:
        axes.axvline(radius, color=GREY, linewidth=0.5)
    ends = [
        ("clean", GREY, clean),
        ("under attack", ATTACKED, attacked[-1]),
        ("certified", PROVED, certified[-1]),
    ]
    label_ends(axes, [EndLabel(text, colour, eps[-1], float(height)) for text, colour, height in ends])
    return write_figure(figure, path)
