"""The origin of a result: versions, machine, commit."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

import lipcert
from lipcert.cores import available_cores


class Environment(BaseModel):
    """The environment in which a result was made: a note, not a claim."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    lipcert: str
    commit: str | None
    python: str
    torch: str
    machine: str


def environment() -> Environment:
    """Return the facts that belong beside every measured number."""
    return Environment(
        lipcert=lipcert.__version__,
        commit=commit(),
        python=platform.python_version(),
        torch=str(torch.__version__),
        machine=f"{_processor()}, {available_cores()} cores",
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str | None:
    """Return the commit of a source checkout, marked if files differ from it; None for an installed wheel."""
    root = Path(lipcert.__file__).parents[2]
    if not (root / "src" / "lipcert" / "__init__.py").is_file():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
