"""Every attack on every certificate of some runs, for float64 and for float32; writes results/attacks.json.

The budget, then the runs: `python benchmarks/self_attack.py full runs/moons-cll runs/moons-gloro`
"""

from __future__ import annotations

import sys
from pathlib import Path

from lipcert.commands.work.attack_model import attack_model
from results import write_table

TITLES = ["run", "rounding", "samples", "points tried", "radius", "clean", "certified", "attacked", "broken"]


def row(source: str, rounding: str, budget: str) -> list[str]:
    """One run attacked."""
    _, found = attack_model(source, None, "test", None, rounding, budget, local=False)
    total = found["samples"]

    def percent(counts: list[int]) -> str:
        return " / ".join(f"{100 * count / total:.2f}" for count in counts)

    cells = [
        Path(source).name,
        rounding,
        f"{total:,}",
        f"{found['points']:,}",
        " / ".join(f"{r['radius']:.3g}" for r in found["radii"]),
        percent([found["clean"]]),
        percent([r["certified"] for r in found["radii"]]),
        percent([r["empirical"] for r in found["radii"]]),
        str(len(found["broken"])),
    ]
    print(*cells, sep="  ", flush=True)
    return cells


def main() -> None:
    budget, *sources = sys.argv[1:]
    note = "percent of the samples; L2 PGD, DeepFool, FMN, Brendel-Bethge, APGD, the margin and rounding"
    write_table(
        "attacks",
        note,
        TITLES,
        [row(source, r, budget) for source in sources for r in ("float64", "float32")],
    )


if __name__ == "__main__":
    main()
