"""Make tables for the terminal and for Markdown, from the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from lipcert.certificates.predictions import Prediction
from lipcert.certificates.statement import Statement
from lipcert.certificates.verification import Check
from lipcert.runs import Run
from lipcert.runs.rows import Row, row_of

Column = tuple[str, Callable[[Row], str]]

_LEFT = ("recipe", "loss")


def columns(rows: Sequence[Row]) -> list[Column]:
    """Return the columns: loss or recipe, ε, slack, accuracies of every certified split, constants, time."""
    splits = [name for name in ("train", "val", "test") if any(name in row for row in rows)]
    shown: list[Column] = [
        ("loss", lambda row: str(row["loss"])),
        ("ε", lambda row: f"{row['eps']:g}"),
        ("slack", lambda row: "–" if row["slack"] is None else f"{row['slack']:g}"),
    ]
    if len({(row["loss"], row["eps"], row["slack"], row["seed"]) for row in rows}) < len(rows):
        shown[0] = ("recipe", lambda row: str(row["recipe"]))  # which differ otherwise
    if len({row["seed"] for row in rows}) > 1:
        shown.append(("seed", lambda row: str(row["seed"])))
    shown.append((f"clean {splits[-1]}", _accuracy(splits[-1], "clean")))  # not seen in training
    for name in splits:
        size = next(row[name]["samples"] for row in rows if name in row)
        shown.append((f"CRA {name} ({size:,})", _accuracy(name, "cra")))
    return [
        *shown,
        ("K_f", lambda row: f"{row['k_f']:.1f}"),
        ("K_hf", lambda row: f"{row['k_hf']:.1f}"),
        ("seconds", lambda row: f"{row['seconds']:.0f}"),
    ]


def _accuracy(split: str, kind: str) -> Callable[[Row], str]:
    return lambda row: f"{100 * row[split][kind]:.2f}" if split in row else "–"


def rich_table(rows: Sequence[Row]) -> Table:
    """Return a table for the terminal; accuracies in percent."""
    table = Table(
        box=SIMPLE_HEAD, caption="accuracies in %; CRA: correct and certified at ε, with proved bounds"
    )
    shown = columns(rows)
    for title, _ in shown:
        header = title.replace(" ", "\n")  # narrow columns, for narrow terminals
        table.add_column(header, justify="left" if title in _LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell(row) for _, cell in shown))
    return table


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table for documents."""
    shown = columns(rows)
    lines = [
        "| " + " | ".join(title for title, _ in shown) + " |",
        "|" + "|".join("---" if title in _LEFT else "---:" for title, _ in shown) + "|",
        *("| " + " | ".join(cell(row) for _, cell in shown) + " |" for row in rows),
    ]
    return "\n".join(lines)


def run_table(runs: Sequence[Run]) -> Table:
    """Finished runs side by side."""
    return rich_table([row_of(run) for run in runs])


def check_table(checks: Sequence[Check]) -> Table:
    """Return the statements of a certificate and whether they hold."""
    failed = sum(check.holds is False for check in checks)
    verdict = "every statement holds"
    if failed:
        verdict = f"{failed} statement{'s do' if failed > 1 else ' does'} NOT hold"
    elif any(check.is_unchecked for check in checks):
        verdict = "what was checked holds; not everything was checked"
    table = Table("statement", "holds", title=verdict)
    words = {True: "yes", False: "NO", None: "not checked"}
    for check in checks:
        table.add_row(escape(check.statement), words[check.holds] if check.is_claim else "not a claim")
    return table


def prediction_table(predictions: Sequence[Prediction]) -> Table:
    """Return a table with one line per image."""
    table = Table(
        "file",
        "class",
        "probability [%]",
        "radius",
        "nearest rival",
        box=SIMPLE_HEAD,
        caption="no input within the radius (L2, pixels from 0 to 1) gets another class",
    )
    table.columns[0].overflow = "fold"  # a truncated name would be useless
    for title in table.columns[2:4]:
        title.justify = "right"
    for p in predictions:
        named = "[dim]abstains[/dim]" if p.label is None else escape(p.label)
        table.add_row(escape(p.file), named, f"{100 * p.probability:.1f}", _floor(p.radius), escape(p.rival))
    return table


def _floor(radius: float) -> str:
    """Format a radius with four digits, never above its value."""
    return f"{math.floor(1e4 * radius) / 1e4:.4f}" if math.isfinite(radius) else "∞"


def certificate_table(statement: Statement) -> Table:
    """Return a table of one certificate, radius by radius."""
    (name, split), *_ = statement.splits.items()
    rounding = statement.rounding
    label = "ROUNDING IGNORED" if rounding == "ignored" else f"{rounding} rounding included"
    table = Table(
        title=f"{name}: {split.samples:,} samples, K_f ≤ {statement.k_f:.6g} (proved), {label}",
        caption="percent correct and certified, with exact 95 % binomial intervals",
    )
    for title in ("radius", "accuracy", "from", "to", "count"):
        table.add_column(title, justify="right")
    for row in split.rows:
        low, high = (f"{100 * end:.2f}" for end in row.interval)
        table.add_row(f"{row.radius:.4g}", f"{100 * row.value:.2f}", low, high, f"{row.count:,}")
    return table
