"""Show finished runs in the columns of the paper, each with the paper's row beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from lipcert.atomic import write_atomically
from lipcert.errors import InputError
from lipcert.recipes import Recipe, packaged_recipes, read_recipe
from lipcert.report.names import is_published_size, method_of, model_of
from lipcert.report.published import published
from lipcert.runs import Run
from lipcert.runs.rows import fraction, shown_split, tightness_of

# The radii of the paper's three columns.
PRINTED = (36 / 255, 72 / 255, 108 / 255)
DATA = {"cifar10": "cifar-10", "cifar100": "cifar-100", "tiny-imagenet": "tiny-imagenet"}


@dataclass(frozen=True)
class Line:
    """One row: a run, or a row of the paper. None where there is no value."""

    method: str
    model: str
    source: str
    eps: float | None
    slack: float | None
    epochs: int | None
    seed: int | None
    clean: float
    cra: tuple[float | None, ...]
    k_f: float | None
    k_hf: float | None
    tightness: float | None
    seconds: float | None


def compare(runs: Sequence[Run]) -> tuple[list[str], list[list[str]]]:
    """Titles and cells: every run, and after it the paper's row if it has one."""
    lines: list[Line] = []
    radii: tuple[float, ...] = ()
    for run in runs:
        if not run.certificate.is_file():
            raise InputError(f"{run.path}: no certificate.json in it (is the run finished?)")
        recipe = read_recipe(str(run.recipe))
        radii = radii or recipe.certify.radii
        if recipe.certify.radii != radii:
            raise InputError(f"{run.path}: certified at other radii than {runs[0].path}")
        lines.append(_ours(run, recipe))
        lines += [line for line in _paper(recipe, radii) if line not in lines]
    titles = ["method", "model", "source", "ε", "p", "epochs", "seed", "clean"]
    titles += [f"CRA {fraction(r)}" for r in radii] + ["K_f", "K_hf", "tightness", "seconds"]
    return titles, [_cells(line) for line in lines]


def splits_shown(runs: Sequence[Run]) -> str:
    """For a caption."""
    names = list(dict.fromkeys(shown_split(run.statement()) for run in runs))
    return f"on the {' and the '.join(names)} split{'s' if len(names) > 1 else ''}"


def _ours(run: Run, recipe: Recipe) -> Line:
    found = run.statement()
    split = found.splits[shown_split(found)]
    tightness = tightness_of(run)
    model = model_of(_published_recipe(recipe))
    return Line(
        method=method_of(recipe),
        model=model if is_published_size(recipe) else f"{model}, other size",
        source=run.path.name,
        eps=recipe.loss.arguments.get("eps"),
        slack=found.loss.slack,
        epochs=recipe.train.epochs,
        seed=recipe.seed,
        clean=100 * split.clean.value,
        cra=tuple(100 * row.value for row in split.certified),
        k_f=found.k_f,
        k_hf=found.k_hf,
        tightness=None if tightness is None else 100 * tightness,
        seconds=found.seconds,
    )


def _published_recipe(recipe: Recipe) -> Recipe:
    """Return the packaged recipe at its full budget, to compare a thin network with it, or itself."""
    if recipe.name not in packaged_recipes():
        return recipe
    full = read_recipe(recipe.name)
    return full if full.model.name == recipe.model.name else recipe


def _paper(recipe: Recipe, radii: Sequence[float]) -> list[Line]:
    """Return the printed rows of the same method, model and ε that have one of these radii."""
    rows: list[dict[str, Any]] = published()["tables"].get(DATA.get(recipe.data.name, ""), [])
    eps, model = recipe.loss.arguments.get("eps"), model_of(_published_recipe(recipe))
    same = [r for r in rows if r["method"] == method_of(recipe) and r["model"] == model]
    same = [r for r in same if "epsilon" not in r or r["epsilon"] == eps]
    return [_paper_line(row, radii) for row in same if any(_printed(radius, row) for radius in radii)]


def _paper_line(row: dict[str, Any], radii: Sequence[float]) -> Line:
    origin = row.get("source", "")
    return Line(
        method=row["method"],
        model=row["model"],
        source=f"paper, {origin}" if origin.startswith("report") else "paper",
        eps=row.get("epsilon"),
        slack=row.get("slack"),
        epochs=None,
        seed=None,
        clean=row["clean"],
        cra=tuple(_printed(radius, row) for radius in radii),
        k_f=row.get("k_f"),
        k_hf=row.get("k_hf"),
        tightness=row.get("tightness"),
        seconds=None,
    )


def _printed(radius: float, row: dict[str, Any]) -> float | None:
    """Return the paper's certified accuracy at exactly this radius."""
    found = [value for at, value in zip(PRINTED, row["cra"], strict=True) if abs(at - radius) < 1e-9]
    return found[0] if found else None


def _cells(line: Line) -> list[str]:
    def number(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    return [
        line.method,
        line.model,
        line.source,
        "–" if line.eps is None else f"{line.eps:g}",
        "–" if line.slack is None else f"{line.slack:g}",
        "–" if line.epochs is None else str(line.epochs),
        "–" if line.seed is None else str(line.seed),
        number(line.clean, 1),
        *(number(value, 1) for value in line.cra),
        number(line.k_f, 1),
        number(line.k_hf, 1),
        number(line.tightness, 0),
        number(line.seconds, 0),
    ]


def terminal(titles: list[str], cells: list[list[str]], splits: str) -> Table:
    """Return a table for the terminal; `splits` as in `splits_shown`."""
    caption = f"accuracies in %, {splits}, with proved bounds"
    table = Table(box=SIMPLE_HEAD, caption=caption, padding=(0, 1, 0, 0))
    for i, title in enumerate(titles):
        table.add_column(title.replace(" ", "\n"), justify="left" if i < 3 else "right", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    return table


def write_comparison(titles: list[str], cells: list[list[str]], base: Path) -> list[Path]:
    """Write BASE.md, BASE.csv and BASE.tex."""
    markdown = "\n".join("| " + " | ".join(row) + " |" for row in [titles, ["---"] * len(titles), *cells])
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows([titles, *cells])
    texts = {".md": markdown + "\n", ".csv": rows.getvalue(), ".tex": _latex(titles, cells)}
    written = []
    for suffix, text in texts.items():
        path = base.with_name(base.name + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
        written.append(path)
    return written


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "_%&#${}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "…": r"\dots{}",
        "×": r"$\times$",
        "±": r"$\pm$",
        "≤": r"$\leq$",
        "ε": r"$\varepsilon$",
        "λ": r"$\lambda$",
        "δ": r"$\delta$",
        "γ": r"$\gamma$",
        "σ": r"$\sigma$",
    }
)


def _latex(titles: list[str], cells: list[list[str]]) -> str:
    """Return a booktabs table."""

    def line(row: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in row) + r" \\"

    columns = "lll" + "r" * (len(titles) - 3)
    body = "\n".join(line(row) for row in cells)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{line(titles)}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}\n"
    )
