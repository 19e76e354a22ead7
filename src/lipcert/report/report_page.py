"""`lipcert report`: one page that works offline, and its tables and figures as files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, select_autoescape
from rich.console import Console
from rich.progress import track

from lipcert.atomic import write_atomically
from lipcert.environment import environment
from lipcert.errors import InputError
from lipcert.report.chart_files import print_charts
from lipcert.report.charts import Chart, radius_chart, sweep_charts, training_charts
from lipcert.report.comparison import compare, splits_shown
from lipcert.report.report_inputs import Sources, Summed, find_sources
from lipcert.report.run_details import MANY, RunDetails, details_of
from lipcert.sweeps.summary import best_of, summary_table
from lipcert.tables import Table
from lipcert.tables.kinds import EXACT_CONSTANT
from lipcert.tables.table import text_table
from lipcert.tables.table_files import write_table


@dataclass(frozen=True)
class Written:
    """The tables to print and the files that were written."""

    tables: list[Table[Any]]
    paths: list[Path]


def write_report(paths: Sequence[Path], output: Path) -> Written:
    """Write OUTPUT.html, and beside it a folder of its name with the tables and figures."""
    if output.suffix not in (".html", ""):
        raise InputError(f"--output {output}: expected a name that ends in .html, or one without an ending")
    base = output.with_suffix("")
    sources = find_sources(paths)
    library = _plotly()
    charts = [radius_chart(sources.everything), *training_charts(sources.everything)]
    sweeps = [(it, _sweep_tables(it), sweep_charts(it.name, it.summary)) for it in sources.sweeps]
    compared = _compared(sources)
    runs = _details(sources)
    page = _page(sources, runs, compared, charts, sweeps, library)
    tables = [*compared, *(table for _, more, _ in sweeps for table in more)]
    tables += [table for run in runs for table in (run.certificate, run.layers)]
    try:
        base.mkdir(parents=True, exist_ok=True)
        written = [base.with_name(base.name + ".html")]
        write_atomically(written[0], page.encode())
        for table in tables:
            written += write_table(table, base / table.name)
        written += print_charts([*charts, *(c for _, _, more in sweeps for c in more)], base)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None
    shown = [compare([run.run for run in sources.runs])] if sources.runs else []
    return Written([*shown, *(table for it in sources.sweeps for table in _terminal_tables(it))], written)


def _details(sources: Sources) -> list[RunDetails]:
    """Detail all runs, or those named one by one; the layers of a deep network take a minute."""
    chosen = sources.everything if len(sources.everything) <= MANY else sources.runs
    console = Console(stderr=True)
    shown = track(chosen, "runs", console=console, transient=True, disable=not console.is_terminal)
    return [details_of(run) for run in shown]


def _compared(sources: Sources) -> list[Table[Any]]:
    """Compare the runs named one by one, with the paper's rows."""
    if not sources.runs:
        return []
    runs = [run.run for run in sources.runs]
    note = f"Accuracies in percent, {splits_shown(runs)}, with proved bounds; "
    note += "the paper's rows are those it prints."
    return [replace(compare(runs), title="Comparison", note=note)]


def _sweep_tables(it: Summed) -> list[Table[Any]]:
    """Return the summary, and what is missing from it."""
    note = f"{it.progress}; mean ± standard deviation over seeds, accuracies in percent."
    best = best_of(it.summary)
    if best is not None and best.values:
        note += f" Best by validation: {', '.join(f'{k} = {v}' for k, v in best.values.items())}."
    summary = replace(
        summary_table(it.summary, with_seconds=True),
        name=f"{it.name}-summary",
        title=f"{it.name}: sweep of {it.sweep.recipe}",
        note=note,
    )
    return [summary, *_unfinished(it, "training")]


def _unfinished(it: Summed, heading: str) -> list[Table[Any]]:
    """List the trainings that are missing, if there are any."""
    if not it.unfinished:
        return []
    missing = text_table([heading, "why"], [[name, why] for name, why in it.unfinished.items()])
    return [replace(missing, name=f"{it.name}-unfinished", title="Not finished")]


def _terminal_tables(it: Summed) -> list[Table[Any]]:
    """Return the same for the terminal."""
    summary = replace(summary_table(it.summary), title=f"{it.name}: {it.progress}")
    return [summary, *(replace(table, title="") for table in _unfinished(it, "not finished"))]


def _page(
    sources: Sources,
    runs: Sequence[RunDetails],
    compared: Sequence[Table[Any]],
    charts: Sequence[Chart],
    sweeps: Sequence[tuple[Summed, list[Table[Any]], list[Chart]]],
    library: str,
) -> str:
    engine = Environment(autoescape=select_autoescape(default=True))
    template = engine.from_string((files("lipcert.report") / "report.html").read_text())
    all_charts = [*charts, *(chart for _, _, more in sweeps for chart in more)]
    return template.render(
        data=sources.everything[0].recipe.data.name,
        compared=compared,
        charts=charts,
        sweeps=[{"tables": tables, "charts": more, "command": it.command} for it, tables, more in sweeps],
        exact=EXACT_CONSTANT.text,
        runs=runs,
        undetailed=len(sources.everything) - len(runs),
        environment=environment(),
        library=library,
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
