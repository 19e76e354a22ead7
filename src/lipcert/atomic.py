"""Write files atomically: an interruption leaves either the old file or the new one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file, flush it to disk, then rename it."""
    beside = path.with_name(f".{path.name}.part")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON, atomically."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
