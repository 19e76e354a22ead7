"""Write the tables of README.md and docs/ from results/*.json; `--check` only compares.

A table stands between `<!-- results: NAME [key=value | claims | over-seeds | cells] -->` and
`<!-- /results -->`; the table of what is registered between `<!-- registries -->` and `<!-- /registries -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lipcert.commands.support.registries import KINDS
from lipcert.paper.accuracy_tables import seed_table
from lipcert.paper.curve_table import curve_table
from lipcert.paper.loss_layer_grid import CLEAN, CRA, grid_table
from lipcert.paper.outcome import Outcome
from lipcert.paper.results import Results, claim_table
from lipcert.report.recorded import RecordedTable
from lipcert.report.run_table import run_table
from lipcert.tables.table import text_table
from lipcert.tables.table_files import markdown

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- results: (?P<name>[\w-]+)(?P<filter>[^>]*?) -->\n).*?(<!-- /results -->)", re.DOTALL
)

REGISTRIES = re.compile(r"(<!-- registries -->\n).*?(<!-- /registries -->)", re.DOTALL)


def documents() -> list[Path]:
    """All that may hold a table."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(text: str) -> str:
    """The text with every table made anew."""
    text = REGISTRIES.sub(lambda m: m[1] + registries_table() + m[2], text)
    return BLOCK.sub(lambda m: m[1] + table(m["name"], m["filter"]) + m[4], text)


def registries_table() -> str:
    """Where every kind is registered, and the names there are."""
    cells = [
        [f"`{kind}`", f"`{where.package}.{where.registry}`", ", ".join(f"`{name}`" for name in where.names())]
        for kind, where in sorted(KINDS.items())
    ]
    return f"{markdown(text_table(['`lipcert list`', 'registry', 'names'], cells))}\n"


def table(name: str, condition: str) -> str:
    """The chosen rows of a result, and a line that says how they were made."""
    path = ROOT / "results" / f"{name}.json"
    recorded = RecordedTable.read(path)
    if recorded is not None:
        return f"{markdown(recorded.table)}\n\n{recorded.source}\n"
    results = Results.read(path)
    words = condition.split()
    if "claims" in words:
        return f"{markdown(claim_table(results.claims))}\n"
    wanted = dict(part.split("=") for part in words if "=" in part)
    rows = [row for row in results.outcomes if all(str(getattr(row.run, k)) == v for k, v in wanted.items())]
    source, ranges = source_of(results, rows), "Means with the least and the most of the seeds. "
    if "cells" in words:
        tables = [markdown(grid_table(rows, measure)) for measure in (CRA, CLEAN)]
        return "\n\n".join([*tables, f"{ranges}{source}\n"])
    if any(row.x is not None or row.series for row in rows):
        return f"{markdown(curve_table(rows))}\n\n{ranges}{source}\n"
    runs = [row.run for row in rows]
    text = markdown(seed_table(rows)) if "over-seeds" in words else markdown(run_table(runs), aligned=True)
    return f"{text}\n\n{source}\n"


def source_of(results: Results, rows: Sequence[Outcome]) -> str:
    """Say how the rows were made."""
    machines = sorted({row.run.environment.machine for row in rows})
    commits = sorted({str(row.run.environment.commit) for row in rows})
    seeds = ", ".join(map(str, results.seeds))
    return (
        f"`{results.command}`: {results.epochs} epochs, seed {seeds}, {'; '.join(machines)}, "
        f"one thread a run, {results.date}, commit {', '.join(commits)}."
    )


def main() -> int:
    """Render or compare all documents; the number of stale ones when comparing."""
    stale = 0
    for path in documents():
        text = path.read_text()
        new = rendered(text)
        if new != text:
            stale += 1
            if "--check" in sys.argv:
                print(f"{path.relative_to(ROOT)}: a table differs from results/; run `make docs`")
            else:
                path.write_text(new)
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
