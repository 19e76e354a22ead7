"""Finished runs in the columns of the paper, as a table for the documents: NAME, a note, then the runs.

`python benchmarks/image_runs.py images "a note" runs/cifar10-4c3f-cll runs/cifar10-4c3f-gloro`
"""

from __future__ import annotations

import sys
from pathlib import Path

from lipcert.report.comparison import compare
from lipcert.runs import Run
from results import write_table


def main(name: str, note: str, *runs: str) -> None:
    table = compare([Run(Path(run)) for run in runs])
    for row in table.cells:
        print(*row, sep="  ")
    write_table(name, note, table.titles, table.cells)


if __name__ == "__main__":
    main(*sys.argv[1:])
