"""`lipcert tightness`: measure how close a proved constant is to the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import DeviceName, choice, chosen_device, command

app = command()


@app.command()
def tightness(
    run: Annotated[Path, typer.Argument(help="Measure the run in this directory.")],
    budget: Annotated[
        str, typer.Option(help="Search effort: full (4000 pairs, 1000 steps), cpu (64, 200) or smoke.")
    ] = "full",
    minutes: Annotated[
        float | None, typer.Option(help="End the search after this time; the same command continues it.")
    ] = None,
    device: DeviceName = None,
    devices: Annotated[
        str,
        typer.Option(
            help="Use this many devices, which share the pairs, or auto for all; torchrun needs no flag."
        ),
    ] = "1",
) -> None:
    """Measure how tight the proved constant is by searching for two inputs whose slope comes closest to it.

    Example: lipcert tightness runs/moons-cll --budget cpu --minutes 10
    """
    from lipcert.commands.work.shared_devices import shared_devices
    from lipcert.recipes.tightness_search import measure_run
    from lipcert.runs import Run
    from lipcert.tables.kinds import LOWER_BOUND, UPPER_BOUND, percent
    from lipcert.types import BudgetName

    kind = choice("--budget", budget, BudgetName)
    where, shard = shared_devices(chosen_device(device), devices)
    found = measure_run(Run(run), kind, minutes=minutes, device=where, shard=shard)
    if shard.index > 0:
        return
    done = f"{found.pairs}" if found.searched == found.pairs else f"{found.searched} of {found.pairs}"
    print(
        f"{LOWER_BOUND.text(found.lower)} (witnessed) ≤ K_f ≤ {UPPER_BOUND.text(found.upper)} (proved): "
        f"tightness {percent(found.tightness)}, {done} pairs, {found.steps} steps"
    )
    print(f"wrote {Run(run).tightness_file}")
    if found.searched < found.pairs:
        print("the time was over: the same command continues the search")
