"""Tables as files: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from lipcert.atomic import write_atomically
from lipcert.tables.table import Table

Row = TypeVar("Row")


def write_table(table: Table[Row], base: Path) -> list[Path]:
    """Write BASE.md, BASE.csv and BASE.tex."""
    texts = {".md": markdown(table) + "\n", ".csv": csv_text(table), ".tex": latex(table)}
    base.parent.mkdir(parents=True, exist_ok=True)
    written = [base.with_name(base.name + suffix) for suffix in texts]
    for path, text in zip(written, texts.values(), strict=True):
        write_atomically(path, text.encode())
    return written


def markdown(table: Table[Row], *, aligned: bool = False) -> str:
    """Write a table for documents; `aligned` puts numbers to the right."""
    rule = "| " + " | ".join("---" for _ in table.columns) + " |"
    if aligned:
        rule = "|" + "|".join("---" if column.kind.is_left else "---:" for column in table.columns) + "|"
    head, *lines = ("| " + " | ".join(cells) + " |" for cells in [table.titles, *table.cells])
    return "\n".join([head, rule, *lines])


def csv_text(table: Table[Row], *, as_printed: bool = True) -> str:
    """Write a table for other programs: as printed, or with all digits and empty cells for no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.titles)
    if as_printed:
        writer.writerows(table.cells)
    else:
        writer.writerows([column.value(row) for column in table.columns] for row in table.rows)
    return text.getvalue()


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


def latex(table: Table[Row]) -> str:
    """Write a table with the rules of the package booktabs."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    columns = "".join("l" if column.kind.is_left else "r" for column in table.columns)
    body = "\n".join(map(line, table.cells))
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{line(table.titles)}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}\n"
    )
