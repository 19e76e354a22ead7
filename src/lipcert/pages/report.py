"""`lipcert report`: one page without a network, and every table and figure of it as files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, select_autoescape
from rich.table import Table

from lipcert.atomic import write_atomically
from lipcert.environment import environment
from lipcert.errors import InputError
from lipcert.pages.charts import Chart, radius_chart, sweep_charts, training_charts
from lipcert.pages.details import MANY, details_of
from lipcert.pages.figures import print_charts
from lipcert.pages.sources import Finished, Sources, Summed, find_sources
from lipcert.report.comparison import compare, terminal, write_comparison
from lipcert.report.curves import COLOURS
from lipcert.sweeps.findings import best_of, cell, summary_table


@dataclass(frozen=True)
class Written:
    """What to print, and what was written."""

    tables: list[Table]
    paths: list[Path]


@dataclass(frozen=True)
class Cells:
    """A table of the page."""

    name: str  # of its files
    title: str
    titles: list[str]
    rows: list[list[str]]
    note: str = ""


def write_report(paths: Sequence[Path], output: Path) -> Written:
    """OUTPUT.html, and beside it a folder of its name with the tables and figures."""
    base = output.with_suffix("") if output.suffix == ".html" else output
    sources = find_sources(paths)
    library = _plotly()
    charts = [radius_chart(sources.everything), *training_charts(sources.everything)]
    sweeps = [
        (it, _sweep_cells(it), sweep_charts(it.name, it.sweep.keys, it.summary)) for it in sources.sweeps
    ]
    compared = _compared(sources)
    runs = [details_of(run) for run in _detailed(sources)]
    page = _page(sources, runs, compared, charts, sweeps, library)
    tables = [*compared, *(cells for _, cells, _ in sweeps), *(c for run in runs for c in _run_cells(run))]
    try:
        base.mkdir(parents=True, exist_ok=True)
        written = [base.with_name(base.name + ".html")]
        write_atomically(written[0], page.encode())
        for cells in tables:
            written += write_comparison(cells.titles, cells.rows, base / cells.name)
        written += print_charts([*charts, *(c for _, _, more in sweeps for c in more)], base)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None
    shown = [terminal(cells.titles, cells.rows) for cells in compared]
    return Written(
        [*shown, *(summary_table(it.summary, best_of(it.summary)) for it in sources.sweeps)], written
    )


def _detailed(sources: Sources) -> list[Finished]:
    return sources.everything if len(sources.everything) <= MANY else sources.runs


def _compared(sources: Sources) -> list[Cells]:
    """Runs named one by one, with the paper's rows."""
    if not sources.runs:
        return []
    titles, rows = compare([run.run for run in sources.runs])
    note = (
        "Accuracies in percent, on the test split, with proved bounds; the paper's rows are those it prints."
    )
    return [Cells("comparison", "Comparison", titles, rows, note)]


def _sweep_cells(it: Summed) -> Cells:
    titles = list(dict.fromkeys(title for row in it.summary for title in row))
    finished = sum(row["status"] == "finished" for row in it.rows)
    note = f"{finished} of {len(it.rows)} trainings are finished; mean ± standard deviation over seeds, "
    note += "accuracies in percent."
    best = best_of(it.summary)
    if best is not None:
        chosen = ", ".join(f"{key} = {best[key]}" for key in it.sweep.keys if key in best)
        note += f" Best by validation: {chosen}." if chosen else ""
    cells = [[cell(title, row.get(title)) for title in titles] for row in it.summary]
    return Cells(f"{it.name}-summary", f"Sweep of {it.sweep.recipe}", titles, cells, note)


def _run_cells(run: dict[str, Any]) -> list[Cells]:
    """The certificate and the layers of a run."""
    certified = [
        [split["name"], row["radius"], row["value"], row["interval"], row["count"]]
        for split in run["certificate"]["splits"]
        for row in split["rows"]
    ]
    layers = [list(layer.values()) for layer in run["layers"]]
    name = run["name"]
    titles = ["split", "radius", "certified [%]", "95 % interval", "count"]
    return [
        Cells(f"{name}-certificate", "Certificate", titles, certified),
        Cells(
            f"{name}-layers",
            "Layer by layer",
            ["layer", "type", "output", "at least", "at most", "prover"],
            layers,
        ),
    ]


def _page(
    sources: Sources,
    runs: Sequence[dict[str, Any]],
    compared: Sequence[Cells],
    charts: Sequence[Chart],
    sweeps: Sequence[tuple[Summed, Cells, list[Chart]]],
    library: str,
) -> str:
    engine = Environment(autoescape=select_autoescape(default=True))
    template = engine.from_string((files("lipcert.pages") / "report.html").read_text())
    all_charts = [*charts, *(chart for _, _, more in sweeps for chart in more)]
    return template.render(
        data=sources.everything[0].recipe.data.name,
        compared=compared,
        charts=charts,
        sweeps=[{"cells": cells, "charts": more, "command": it.command} for it, cells, more in sweeps],
        runs=runs,
        undetailed=len(sources.everything) - len(runs),
        environment=environment(),
        library=library,
        colours=_script_json(COLOURS),
        drawn=_script_json([asdict(chart) for chart in all_charts]),
    )


def _script_json(value: Any) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value).replace("<", "\\u003c")


def _plotly() -> str:
    """The library that draws, to be part of the page."""
    try:
        offline = importlib.import_module("plotly.offline")
    except ImportError:
        raise InputError("report: Plotly is missing; pip install 'lipcert[report]' brings it") from None
    return str(offline.get_plotlyjs())
