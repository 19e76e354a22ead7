"""Write the tables of README.md and docs/ from results/*.json; `--check` only compares.

A table stands between `<!-- results: NAME [key=value | claims | over-seeds | cells] -->` and
`<!-- /results -->`; the table of what is registered between `<!-- registries -->` and `<!-- /registries -->`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from lipcert.commands.support.kinds import KINDS
from lipcert.paper.definition import VERDICTS
from lipcert.paper.loss_layer_grid import CLEAN, CRA, grid_cells
from lipcert.paper.paper_tables import seed_cells
from lipcert.report.curves import curve_cells
from lipcert.report.table import markdown_table

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
    return f"{lines_of(['`lipcert list`', 'registry', 'names'], cells)}\n"


def table(name: str, condition: str) -> str:
    """The chosen rows of a result, and a line that says how they were made."""
    results = json.loads((ROOT / "results" / f"{name}.json").read_text())
    if "table" in results:
        return plain_table(results)
    if "claims" in condition.split():
        return claims_table(results)
    summed = "over-seeds" in condition.split()
    wanted = dict(part.split("=") for part in condition.split() if "=" in part)
    rows = [row for row in results["rows"] if all(str(row[k]) == v for k, v in wanted.items())]
    machines = sorted({row["environment"]["machine"] for row in rows})
    commits = sorted({str(row["environment"]["commit"]) for row in rows})
    seeds = ", ".join(map(str, results["seeds"]))
    source = (
        f"`{results['command']}`: {results['epochs']} epochs, seed {seeds}, {'; '.join(machines)}, "
        f"one thread a run, {results['date']}, commit {', '.join(commits)}."
    )
    if "cells" in condition.split():
        tables = [lines_of(*grid_cells(rows, column)) for column in (CRA, CLEAN)]
        return "\n\n".join([*tables, f"Means with the least and the most of the seeds. {source}\n"])
    if any(row.get("x") is not None or row.get("series") for row in rows):
        return f"{lines_of(*curve_cells(rows))}\n\nMeans with the least and the most of the seeds. {source}\n"
    text = lines_of(*seed_cells(rows)) if summed else markdown_table(rows)
    return f"{text}\n\n{source}\n"


def claims_table(results: dict[str, Any]) -> str:
    """What the paper says, what was found, whether it holds."""
    titles = ["claim of the paper", "paper", "here", "holds"]
    cells = [
        [claim["claim"], claim["paper"], claim["here"], VERDICTS[claim["holds"]]]
        for claim in results["claims"]
    ]
    return f"{lines_of(titles, cells)}\n"


def lines_of(titles: list[str], cells: list[list[str]]) -> str:
    """Markdown."""
    lines = [titles, ["---"] * len(titles), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plain_table(results: dict[str, Any]) -> str:
    """Titles and cells as they are, and where they come from."""
    text = lines_of(results["titles"], results["table"])
    made = results["environment"]
    source = f"`{results['command']}`, {made['machine']}, {results['date']}, commit {made['commit']}"
    return f"{text}\n\n{source}: {results['note']}.\n"


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
