"""`lipcert report`: one page that works offline, and its tables and figures as files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, select_autoescape
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from lipcert.atomic import write_atomically
from lipcert.environment import environment
from lipcert.errors import InputError
from lipcert.report.chart_files import print_charts
from lipcert.report.charts import Chart, radius_chart, sweep_charts, training_charts
from lipcert.report.comparison import compare, splits_shown, terminal, write_comparison
from lipcert.report.details import MANY, details_of
from lipcert.report.figure import COLOURS
from lipcert.report.layers import TITLES as LAYER_TITLES
from lipcert.report.sources import Sources, Summed, find_sources
from lipcert.sweeps.findings import best_of, cell, summary_table


@dataclass(frozen=True)
class Written:
    """The tables to print and the files that were written."""

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

    def is_printed(self, row: list[str]) -> bool:
        """Return whether a row is one of the paper, which names no seeds."""
        return "seed" in self.titles and row[self.titles.index("seed")] == "–"


def write_report(paths: Sequence[Path], output: Path) -> Written:
    """Write OUTPUT.html, and beside it a folder of its name with the tables and figures."""
    if output.suffix not in (".html", ""):
        raise InputError(f"--output {output}: expected a name that ends in .html, or one without an ending")
    base = output.with_suffix("")
    sources = find_sources(paths)
    library = _plotly()
    charts = [radius_chart(sources.everything), *training_charts(sources.everything)]
    sweeps = [
        (it, _sweep_tables(it), sweep_charts(it.name, it.sweep.keys, it.summary)) for it in sources.sweeps
    ]
    compared = _compared(sources)
    runs = _details(sources)
    page = _page(sources, runs, compared, charts, sweeps, library)
    tables = [*compared, *(c for _, cells, _ in sweeps for c in cells)]
    tables += [c for run in runs for c in _run_cells(run)]
    try:
        base.mkdir(parents=True, exist_ok=True)
        written = [base.with_name(base.name + ".html")]
        write_atomically(written[0], page.encode())
        for cells in tables:
            written += write_comparison(cells.titles, cells.rows, base / cells.name)
        written += print_charts([*charts, *(c for _, _, more in sweeps for c in more)], base)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None
    shown = [terminal(cells.titles, cells.rows, _splits(sources)) for cells in compared]
    return Written([*shown, *(table for it in sources.sweeps for table in _terminal_tables(it))], written)


def _details(sources: Sources) -> list[dict[str, Any]]:
    """Detail all runs, or those named individually; the layers of a deep network take a minute."""
    chosen = sources.everything if len(sources.everything) <= MANY else sources.runs
    console = Console(stderr=True)
    shown = track(chosen, "runs", console=console, transient=True, disable=not console.is_terminal)
    return [details_of(run) for run in shown]


def _compared(sources: Sources) -> list[Cells]:
    """Return the individually named runs, with the paper's rows."""
    if not sources.runs:
        return []
    titles, rows = compare([run.run for run in sources.runs])
    note = f"Accuracies in percent, {_splits(sources)}, with proved bounds; "
    note += "the paper's rows are those it prints."
    return [Cells("comparison", "Comparison", titles, rows, note)]


def _splits(sources: Sources) -> str:
    return splits_shown([run.run for run in sources.runs])


def _sweep_tables(it: Summed) -> list[Cells]:
    """Return the summary, and the unfinished trainings."""
    missing = [[name, why] for name, why in it.unfinished.items()]
    more = [Cells(f"{it.name}-unfinished", "Not finished", ["training", "why"], missing)] if missing else []
    return [_summary_cells(it), *more]


def _summary_cells(it: Summed) -> Cells:
    titles = list(dict.fromkeys(title for row in it.summary for title in row))
    note = f"{it.progress}; mean ± standard deviation over seeds, accuracies in percent."
    best = best_of(it.summary)
    if best is not None:
        chosen = ", ".join(f"{key} = {best[key]}" for key in it.sweep.keys if key in best)
        note += f" Best by validation: {chosen}." if chosen else ""
    cells = [[cell(title, row.get(title)) for title in titles] for row in it.summary]
    return Cells(f"{it.name}-summary", f"{it.name}: sweep of {it.sweep.recipe}", titles, cells, note)


def _terminal_tables(it: Summed) -> list[Table]:
    """Return the tables of a sweep for the terminal."""
    summary = summary_table(it.summary, best_of(it.summary))
    summary.title = Text(f"{it.name}: {it.progress}")
    if not it.unfinished:
        return [summary]
    others = Table("not finished", "why", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, why in it.unfinished.items():
        others.add_row(Text(name), Text(why))
    return [summary, others]


def _run_cells(run: dict[str, Any]) -> list[Cells]:
    """Return the certificate and the layers of a run."""
    certified = [
        [split["name"], row["radius"], row["value"], row["interval"], row["count"]]
        for split in run["certificate"]["splits"]
        for row in split["rows"]
    ]
    name = run["name"]
    titles = ["split", "radius", "certified [%]", "95 % interval", "count"]
    return [
        Cells(f"{name}-certificate", "Certificate", titles, certified),
        Cells(f"{name}-layers", "Layer by layer", LAYER_TITLES, run["layers"]),
    ]


def _page(
    sources: Sources,
    runs: Sequence[dict[str, Any]],
    compared: Sequence[Cells],
    charts: Sequence[Chart],
    sweeps: Sequence[tuple[Summed, list[Cells], list[Chart]]],
    library: str,
) -> str:
    engine = Environment(autoescape=select_autoescape(default=True))
    template = engine.from_string((files("lipcert.report") / "report.html").read_text())
    all_charts = [*charts, *(chart for _, _, more in sweeps for chart in more)]
    return template.render(
        data=sources.everything[0].recipe.data.name,
        compared=compared,
        charts=charts,
        sweeps=[{"tables": cells, "charts": more, "command": it.command} for it, cells, more in sweeps],
        layer_titles=LAYER_TITLES,
        runs=runs,
        undetailed=len(sources.everything) - len(runs),
        environment=environment(),
        library=library,
        colours=_script_json(COLOURS),
        drawn=_script_json([asdict(chart) for chart in all_charts]),
    )


def _script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value).replace("<", "\\u003c")


def _plotly() -> str:
    """Return the drawing library, to be part of the page."""
    try:
        offline = importlib.import_module("plotly.offline")
    except ImportError:
        raise InputError("report: Plotly is missing; pip install 'lipcert[report]' brings it") from None
    return str(offline.get_plotlyjs())
