"""Clean, certified and empirical accuracy as one band: the true robust accuracy lies between the last two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from lipcert.attack import Band
from lipcert.report.figure import new_figure

_BLUE, _RED, _GREY = (0.24, 0.41, 0.64), (0.72, 0.26, 0.27), (0.47, 0.47, 0.47)


def band_table(findings: dict[str, Any]) -> Table:
    """Show the band radius by radius, and the verdict."""
    total, broken = findings["samples"], len(findings["broken"])
    verdict = f"{broken} CERTIFICATES BROKEN" if broken else "no certificate broken"
    table = Table(
        title=f"{findings['split']}: {total:,} samples, {findings['points']:,} points tried, {verdict}",
        caption="closest: " + (", ".join(f"{k} {v}" for k, v in findings["closest"].items()) or "none found"),
    )
    for title in ("radius", "certified", "under attack", "clean"):
        table.add_column(title, justify="right")
    for row in findings["radii"]:
        counts = row["certified"], row["empirical"], findings["clean"]
        table.add_row(f"{row['radius']:.4g}", *(f"{100 * count / total:.2f}" for count in counts))
    return table


def band_figure(band: Band, findings: dict[str, Any], path: Path) -> Path:
    """Draw accuracy against radius: certified, under attack, and the band between."""
    total = len(band.right)
    asked = [row["radius"] for row in findings["radii"]]
    eps = np.linspace(0, 1.25 * max(asked), 400)
    certified = np.array([100 * band.certified(e) / total for e in eps])
    empirical = np.array([100 * band.empirical(e) / total for e in eps])
    figure, axes = new_figure((5.2, 3.4))
    axes.axhline(100 * band.clean() / total, color=_GREY, linestyle=":", label="clean")
    axes.plot(eps, empirical, color=_RED, label="under attack (above the truth)")
    axes.plot(eps, certified, color=_BLUE, label="certified (below the truth)")
    axes.fill_between(eps, certified, empirical, color=_GREY, alpha=0.2, linewidth=0)
    for radius in asked:
        axes.axvline(radius, color=_GREY, linewidth=0.5)
    axes.set(xlabel="L2 radius", ylabel="accuracy [%]", xlim=(0, eps[-1]), ylim=(0, 101))
    axes.legend(loc="lower left", fontsize=8)
    axes.set_title(f"{total:,} samples, {len(band.broken)} certificates broken", fontsize=9)
    figure.savefig(path, dpi=200)
    return path
