"""Files that are either the old one or the new one, whatever interrupts the writing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside, flush to the disk, then rename over."""
    beside = path.with_name(f".{path.name}.part")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_json(path: Path, content: Any) -> None:
    """Readable JSON, atomically."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
