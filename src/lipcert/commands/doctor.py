"""`lipcert doctor`: show what is installed and found, and test a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lipcert.commands.support.options import command, show

app = command()


@app.command()
def doctor(
    selftest: Annotated[
        bool, typer.Option("--selftest", help="Compare everything on a device with the CPU; takes minutes.")
    ] = False,
    device: Annotated[str, typer.Option(help="Device to test: cpu, cuda, cuda:1 or mps.")] = "cpu",
    output: Annotated[
        Path | None, typer.Option(help="Write all checks to this JSON file, to attach to a report.")
    ] = None,
) -> None:
    """Show versions, devices, data found, extras that are missing and how to get them; or test a device.

    Example: lipcert doctor --selftest --device cuda --output selftest.json
    """
    if selftest:
        _test(device, output)
        return
    from lipcert.commands.work.diagnosis import findings

    for table in findings():
        show(table)


def _test(device: str, output: Path | None) -> None:
    """Run the self-test, print what it found, and fail if a check failed."""
    from lipcert.errors import LipcertError
    from lipcert.selftest import run_self_test

    found = run_self_test(device)
    show(found.summary())
    if output is not None:
        found.save(output)
        print(f"all checks: {output}")
    if found.failed:
        show(found.failures())
        raise LipcertError(f"{len(found.failed)} of {len(found.checks)} checks failed on {found.device}")
    print(f"all {len(found.checks)} checks passed on {found.device}")
