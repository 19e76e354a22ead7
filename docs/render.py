"""Write the tables of README.md and docs/ from results/*.json; `--check` only compares.

- `<!-- results: NAME [key=value | over-seeds | cells] -->` to `<!-- /results -->`: rows of results/NAME.json.
  Of a reproduction that was not run yet, the command instead.
- `<!-- picture: NAME ALT -->` to `<!-- /picture -->`: docs/images/NAME.png, once it is there.
- `<!-- leaderboard picture -->` to `<!-- /leaderboard picture -->`: docs/images/leaderboard.png, drawn again
  when a packaged model is new or its numbers have changed.
- `<!-- verdicts -->` to `<!-- /verdicts -->`: the verdicts on the whole paper; on some of its parts after
  `<!-- verdicts: PLACE; PLACE -->`.
- `<!-- leaderboard -->` to `<!-- /leaderboard -->`: the bundled models, as `lipcert list trained`.
- `<!-- verdict-counts -->` to `<!-- /verdict-counts -->`: how many claims got which verdict, by part.
- `<!-- registries -->` to `<!-- /registries -->`: what is registered.
- `<!-- layers -->` to `<!-- /layers -->`: what every layer keeps, takes and costs (layer_table.py).
- `<!-- template: KIND NAME -->` to `<!-- /template -->`: the file that `lipcert new KIND NAME` writes.
- `<!-- file: PATH -->` to `<!-- /file -->`: a file of the repository, as code.
- `<!-- registry: KIND -->` to `<!-- /registry -->`: the docstrings of one kind, as `lipcert list`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from layer_table import TITLES as LAYER_TITLES
from layer_table import layer_rows
from leaderboard_picture import draw, link

from lipcert.bounds.contract import RULES
from lipcert.commands.support.registries import KINDS
from lipcert.commands.work.new_file import written_text
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.accuracy_tables import seed_table
from lipcert.paper.curve_table import curve_table
from lipcert.paper.ledger import LedgerRow, ledger_table, section_table
from lipcert.paper.loss_layer_grid import CRA, grid_table
from lipcert.paper.outcome import Outcome
from lipcert.paper.parts import ledger
from lipcert.paper.printed_measures import CLEAN
from lipcert.paper.results import Results
from lipcert.paper.verdict import Word
from lipcert.registry import import_files, summary_of
from lipcert.report.leaderboard import leaderboard, leaderboard_table
from lipcert.report.recorded import RecordedTable
from lipcert.report.run_table import run_table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import NOTHING
from lipcert.tables.table import text_table
from lipcert.tables.table_files import markdown

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- results: (?P<name>[\w-]+)(?P<filter>[^>]*?) -->\n).*?(<!-- /results -->)", re.DOTALL
)

PICTURE = re.compile(
    r"(<!-- picture: (?P<name>[\w-]+) (?P<alt>[^>]+?) -->\n).*?(<!-- /picture -->)", re.DOTALL
)
LEADERBOARD_PICTURE = re.compile(
    r"(<!-- leaderboard picture -->\n)(.*?)(<!-- /leaderboard picture -->)", re.DOTALL
)
VERDICTS = re.compile(r"(<!-- verdicts(?:: (?P<places>[^>]+?))? -->\n).*?(<!-- /verdicts -->)", re.DOTALL)
COUNTS = re.compile(r"(<!-- verdict-counts -->\n).*?(<!-- /verdict-counts -->)", re.DOTALL)
LEADERBOARD = re.compile(r"(<!-- leaderboard -->\n).*?(<!-- /leaderboard -->)", re.DOTALL)
REGISTRIES = re.compile(r"(<!-- registries -->\n).*?(<!-- /registries -->)", re.DOTALL)
LAYERS = re.compile(r"(<!-- layers -->\n).*?(<!-- /layers -->)", re.DOTALL)
TEMPLATE = re.compile(r"(<!-- template: (\w+) ([\w-]+) -->\n).*?(<!-- /template -->)", re.DOTALL)
REGISTRY = re.compile(r"(<!-- registry: (\w+) -->\n).*?(<!-- /registry -->)", re.DOTALL)
FILE = re.compile(r"(<!-- file: (\S+\.py) -->\n).*?(<!-- /file -->)", re.DOTALL)

# Arguments that a recipe does not give.
GIVEN = {"split", "num_classes", "input_shape"}


def documents() -> list[Path]:
    """All that may hold a table."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(text: str) -> str:
    """The text with every table made anew."""
    text = LEADERBOARD_PICTURE.sub(lambda m: m[1] + leaderboard_picture() + m[3], text)
    text = VERDICTS.sub(lambda m: m[1] + verdicts(m["places"]) + m[3], text)
    text = COUNTS.sub(lambda m: m[1] + verdict_counts() + m[2], text)
    text = LEADERBOARD.sub(lambda m: m[1] + leaderboard_tables() + m[2], text)
    text = REGISTRIES.sub(lambda m: m[1] + registries_table() + m[2], text)
    text = LAYERS.sub(lambda m: f"{m[1]}{markdown(text_table(LAYER_TITLES, layer_rows()))}\n{m[2]}", text)
    text = REGISTRY.sub(lambda m: m[1] + registry_table(m[2]) + m[3], text)
    text = TEMPLATE.sub(lambda m: f"{m[1]}```python\n{written_text(m[2], m[3])}```\n{m[4]}", text)
    text = FILE.sub(
        lambda m: f"{m[1]}```python\n{(ROOT / m[2]).read_text(encoding='utf-8')}```\n{m[3]}", text
    )
    text = PICTURE.sub(lambda m: m[1] + picture(m["name"], m["alt"]) + m[4], text)
    return BLOCK.sub(lambda m: m[1] + table(m["name"], m["filter"]) + m[4], text)


@cache
def all_verdicts() -> list[LedgerRow]:
    """What every page takes its verdicts from."""
    return ledger(ROOT / "results")


@cache
def leaderboard_picture() -> str:
    """The picture of the packaged models, with their numbers as its text."""
    return link()


def verdicts(places: str | None) -> str:
    """The verdicts on the whole paper, or on some of its parts."""
    rows = all_verdicts()
    if places is None:
        return f"{markdown(ledger_table(rows))}\n"
    names = places.split("; ")
    chosen = [row for row in rows if row.place in names]
    if {row.place for row in chosen} != set(names):
        raise ValueError(f"verdicts: {places}: expected places such as {rows[0].place}")
    return f"{markdown(section_table(chosen))}\n"


def verdict_counts() -> str:
    """Count the verdicts per part of the paper, and sum them up."""
    words = [str(word) for word in Word]
    parts = grouped(all_verdicts(), lambda row: row.place)
    cells = [[place, *(count(rows, word) for word in words)] for place, rows in parts.items()]
    cells = [row for row in cells if any(cell != NOTHING for cell in row[1:])]
    cells.append(["**all**", *(f"**{count(all_verdicts(), word)}**" for word in words)])
    return f"{markdown(text_table(['part of the paper', *words], cells))}\n"


def count(rows: Sequence[LedgerRow], word: str) -> str:
    """Say how many rows have a verdict."""
    return str(sum(row.said == word for row in rows) or NOTHING)


def leaderboard_tables() -> str:
    """Make one table of bundled models per data set, with a line that says what the columns are."""
    tables = [leaderboard_table(data, entries) for data, entries in leaderboard().items()]
    parts = [f"**{table.title}**\n\n{markdown(table, aligned=True)}" for table in tables]
    return "\n\n".join([*parts, f"{first_capital(tables[0].note)}.\n"])


def first_capital(words: str) -> str:
    """Begin the words with a capital letter."""
    return words[:1].upper() + words[1:]


def registries_table() -> str:
    """Where every kind is registered, and the names there are."""
    cells = [
        [f"`{kind}`", f"`{where.package}.{where.registry}`", ", ".join(f"`{name}`" for name in where.names())]
        for kind, where in sorted(KINDS.items())
    ]
    return f"{markdown(text_table(['`lipcert list`', 'registry', 'names'], cells))}\n"


def registry_table(kind: str) -> str:
    """What the docstrings of a kind say: layers with their constants, others with their arguments."""
    if kind == "layers":
        titles, cells = ["layer", "what it does", "constant"], layer_cells()
    else:
        titles, registry = ["name", "what it does", "arguments", "paper"], KINDS[kind].open()
        entries = [registry[name] for name in registry]
        cells = [[f"`{e.name}`", e.summary, arguments(e.constructor), e.paper] for e in entries]
    if kind == "models":  # a file may hold those of several papers
        cells = [[*row[:3], ""] for row in cells]
    shown = [i for i in range(len(titles)) if any(row[i] for row in cells)]
    escaped = [[row[i].replace("|", "\\|") or NOTHING for i in shown] for row in cells]
    return f"{markdown(text_table([titles[i] for i in shown], escaped))}\n"


def layer_cells() -> list[list[str]]:
    """One row per layer of lipcert, in the order of their files."""
    import_files("lipcert.nn")
    own = [(t, type(r.rule)) for t, r in RULES.items() if t.__module__.startswith("lipcert.nn.")]
    return [
        [f"`{t.__name__}`", summary_of(t), summary_of(rule)]
        for t, rule in sorted(own, key=lambda pair: (pair[0].__module__, pair[0].__name__))
    ]


def arguments(make: Callable[..., object]) -> str:
    """The arguments with their defaults, if they have any."""
    own = [p for p in inspect.signature(make).parameters.values() if p.name not in GIVEN]
    return ", ".join(f"`{p.name}`" if p.default is p.empty else f"`{p.name}={shown(p.default)}`" for p in own)


def shown(default: object) -> str:
    """A default as a recipe may write it."""
    if isinstance(default, tuple):
        return str(list(default))
    return f"{default:.4g}" if isinstance(default, float) else str(default)


def picture(name: str, alt: str) -> str:
    """The picture, if it was drawn."""
    drawn = (ROOT / "docs" / "images" / f"{name}.png").exists()
    return f"![{alt}](images/{name}.png)\n" if drawn else ""


def table(name: str, condition: str) -> str:
    """The chosen rows of a result, and a line that says how they were made."""
    path = ROOT / "results" / f"{name}.json"
    if not path.exists() and name in REPRODUCTIONS:
        budget = " --budget cpu" if "cpu" in REPRODUCTIONS.create(name).budgets else ""
        return f"Not run yet: `lipcert reproduce {name}{budget}`.\n"
    recorded = RecordedTable.read(path)
    if recorded is not None:
        return f"{markdown(recorded.table)}\n\n{recorded.source}\n"
    results = Results.read(path)
    words = condition.split()
    wanted = dict(part.split("=") for part in words if "=" in part)
    rows = [row for row in results.outcomes if all(str(getattr(row.run, k)) == v for k, v in wanted.items())]
    source, ranges = source_of(results, rows), "Means, with the values of the seeds. "
    if "cells" in words:
        tables = [markdown(grid_table(rows, measure)) for measure in (CRA, CLEAN)]
        return "\n\n".join([*tables, f"{ranges}{source}\n"])
    on_images = any("test" in row.run.splits for row in rows)
    if on_images and any(row.x is not None or row.series for row in rows):
        return f"{markdown(curve_table(rows))}\n\n{ranges}{source}\n"
    runs = [row.run for row in rows]
    text = markdown(seed_table(rows)) if "over-seeds" in words else markdown(run_table(runs), aligned=True)
    return f"{text}\n\n{source}\n"


def source_of(results: Results, rows: Sequence[Outcome]) -> str:
    """Say how the rows were made."""
    machines = sorted({row.run.environment.machine for row in rows})
    commits = sorted({str(row.run.environment.commit) for row in rows})
    seeds = ", ".join(map(str, results.seeds))
    known = results.name in REPRODUCTIONS
    older = REPRODUCTIONS.create(results.name).older(results.date) if known else ""
    return (
        f"`{results.command}`: {results.length}, seed {seeds}, {'; '.join(machines)}, "
        f"one thread per run, {results.date}, commit {', '.join(commits)}."
        + (f" **Older than today's definition: {older}.**" if older else "")
    )


def redraw_leaderboard() -> None:
    """Draw the picture of the packaged models again."""
    for name, content in draw():
        (ROOT / "docs" / "images" / f"{name}.png").write_bytes(content)


def main() -> int:
    """Render or compare all documents; the number of stale ones when comparing."""
    stale = 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = rendered(text)
        if new != text:
            stale += 1
            if "--check" in sys.argv:
                print(
                    f"{path.relative_to(ROOT)}: a table differs from results/ or docstrings; run `make docs`"
                )
            else:
                if LEADERBOARD_PICTURE.findall(new) != LEADERBOARD_PICTURE.findall(text):
                    redraw_leaderboard()
                path.write_text(new, encoding="utf-8")
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
