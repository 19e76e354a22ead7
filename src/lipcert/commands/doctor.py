"""`lipcert doctor`: show what is installed and found."""

from __future__ import annotations

from lipcert.commands.support.options import command, show

app = command()


@app.command()
def doctor() -> None:
    """Show versions, devices, data found, extras that are missing and how to get them.

    Example: lipcert doctor
    """
    from lipcert.commands.work.diagnosis import findings

    for table in findings():
        show(table)
