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

from lipcert.atomic import check_file_place, check_folder_place, write_atomically, writing
from lipcert.environment import environment
from lipcert.errors import InputError
from lipcert.progress import tracked
from lipcert.recipes.budgets import remark
from lipcert.recipes.splits import Splits
from lipcert.report.chart_files import print_charts
from lipcert.report.charts import Chart, radius_chart, sweep_charts, training_charts
from lipcert.report.comparison import ComparedRow, compare
from lipcert.report.figure import labelled
from lipcert.report.palette import DARK_PAGE, GREY, PAGE, css_variables
from lipcert.report.report_inputs import Sources, Summed, find_sources
from lipcert.report.run_details import MANY, RunDetails, details_of
from lipcert.sweeps.summary import best_of, summary_table
from lipcert.tables import Table
from lipcert.tables.kinds import UPPER_BOUND
from lipcert.tables.table import text_table
from lipcert.tables.table_files import write_table


@dataclass(frozen=True)
class Written:
    """The tables to print and the files that were written."""

    tables: list[Table[Any]]
    paths: list[Path]


def write_report(paths: Sequence[Path], output: Path) -> Written:
    """Write OUTPUT.html, and beside it a folder of its name with the tables and figures."""
    if output.suffix not in (".html", "") or not output.name:
        raise InputError(f"--output {output}: expected a name that ends in .html, or one without an ending")
    base = output.with_suffix("")
    check_file_place(base.with_name(base.name + ".html"))
    check_folder_place(base)
    sources = find_sources(paths)
    library = _plotly()
    charts = [radius_chart(sources.everything), *training_charts(sources.everything)]
    sweeps = [(it, _sweep_tables(it), sweep_charts(it.name, it.summary)) for it in sources.sweeps]
    shown = [compare(sources.runs)] if sources.runs else []
    compared = [_on_page(table) for table in shown]
    runs = _details(sources)
    page = _page(sources, runs, compared, charts, sweeps, library)
    tables = [*compared, *(table for _, more, _ in sweeps for table in more)]
    tables += [table for run in runs for table in (run.certificate, run.layers)]
    with writing(output):
        base.mkdir(parents=True, exist_ok=True)
        written = [base.with_name(base.name + ".html")]
        write_atomically(written[0], page.encode())
        for table in tables:
            written += write_table(table, base / table.name)
        with labelled(next(filter(None, (remark(run.recipe.budget) for run in sources.everything)), "")):
            written += print_charts([*charts, *(c for _, _, more in sweeps for c in more)], base)
    return Written([*shown, *(table for it in sources.sweeps for table in _terminal_tables(it))], written)


def _details(sources: Sources) -> list[RunDetails]:
    """Detail all runs, or those named one by one; the layers of a deep network take a minute."""
    chosen = sources.everything if len(sources.everything) <= MANY else sources.runs
    splits = Splits()
    return [details_of(run, splits) for run in tracked(chosen, "runs")]


def _on_page(compared: Table[ComparedRow]) -> Table[Any]:
    """Give the comparison a title, and a note in whole sentences."""
    note = f"A{compared.note[1:]}; the paper's rows are those it prints."
    return replace(compared, title="Comparison", note=note.replace("%", "percent"))


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
    template = engine.from_string((files("lipcert.report") / "report.html").read_text(encoding="utf-8"))
    all_charts = [*charts, *(chart for _, _, more in sweeps for chart in more)]
    return template.render(
        data=sources.everything[0].recipe.data.name,
        compared=compared,
        charts=charts,
        sweeps=[
            {"tables": tables, "charts": more, "command": it.sweep.command} for it, tables, more in sweeps
        ],
        colours=css_variables(PAGE),
        dark_colours=css_variables(DARK_PAGE),
        grey=GREY,
        at_most=UPPER_BOUND.text,
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
