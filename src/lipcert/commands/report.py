"""`lipcert report`: compare finished runs and sweeps on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import command, show

app = command()


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_OR_SWEEP...", help="Compare these run directories and sweeps."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Write the page here; tables and figures go into a folder beside it."
        ),
    ] = Path("report.html"),
) -> None:
    """Compare finished runs and sweeps on one page, the paper's rows beside them. Needs the extra `report`.

    Example: lipcert report runs/cifar10-4c3f-cll runs/cifar10-4c3f-gloro -o report.html
    """
    from lipcert.report.report_page import write_report

    written = write_report(runs, output)
    for table in written.tables:
        show(table)
    page, *others = written.paths
    print(f"wrote {page}, and {len(others)} files in {page.with_suffix('')}")
    print(f"next: open {page} in a browser; it needs no network")
