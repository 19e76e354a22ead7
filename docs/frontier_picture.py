"""Draw docs/images/frontier.png from results/frontier.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from png import png

from lipcert.report.figure import PAGE_WIDTH, new_figure, write_note
from lipcert.report.radius_curves import RadiusCurve, draw_radius_curves
from lipcert.report.recorded import RecordedTable
from lipcert.tables.kinds import parsed_radius

ROOT = Path(__file__).parents[1]


def draw() -> Iterator[tuple[str, bytes]]:
    """Yield the name of the picture and its content."""
    found = RecordedTable.read(ROOT / "results" / "frontier.json")
    assert found is not None
    titles, rows = found.table.titles, found.table.cells
    radii = {i: parsed_radius(t.removeprefix("CRA ")) for i, t in enumerate(titles) if t.startswith("CRA ")}
    radii[titles.index("clean")] = 0.0
    epochs = titles.index("epochs")
    curves = [
        RadiusCurve(
            f"{row[0].replace(', as many parameters', ', thin')}, {row[epochs]} epochs",
            "CLL",
            sorted((radius, float(row[i])) for i, radius in radii.items()),
        )
        for row in rows
    ]
    figure, axes = new_figure((PAGE_WIDTH, 3.8))
    write_note(
        figure,
        "CLL with slack 0.25, CIFAR-10 test split, equal training time on one thread, one seed; "
        "thin: as many parameters as frontier",
    )
    draw_radius_curves(axes, curves)
    yield "frontier", png(figure)
