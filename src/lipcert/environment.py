"""The origin of a result: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import lipcert


def environment() -> dict[str, Any]:
    """Return the facts that belong beside every measured number."""
    return {
        "lipcert": lipcert.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{_processor()}, {os.cpu_count()} cores",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
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
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
