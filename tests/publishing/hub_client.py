"""Run commands of lipcert one after another in one process, whose environment names the server of the hub.

Usage: python hub_client.py ROOT < steps.json > outcomes.json

A step is [token, fault, word, word, ...]: the words of a command line, run with this token while the server
has this fault (see hub_server.py).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

from lipcert.cli import main


def outcome(words: list[str]) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["lipcert", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("a command ends its process")


if __name__ == "__main__":
    fault = Path(sys.argv[1], "fault")
    outcomes = []
    for token, wrong, *words in json.load(sys.stdin):
        os.environ["HF_TOKEN"] = token
        fault.write_text(wrong, encoding="utf-8")
        outcomes.append(outcome(words))
    json.dump(outcomes, sys.stdout)
