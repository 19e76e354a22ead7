"""Draw the pictures of the documentation from packaged models, formulas, results/*.json and short trainings.

python docs/pictures.py             # all, about a minute of one core
python docs/pictures.py leaderboard # one group

Boundaries of long trainings on two moons are drawn by `lipcert reproduce moons` and its siblings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import concept_pictures
import frontier_picture
import leaderboard_picture
import moons_pictures
import result_pictures
import torch

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

# Each yields the names of pictures and their content.
GROUPS: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "concepts": concept_pictures.draw,
    "frontier": frontier_picture.draw,
    "leaderboard": leaderboard_picture.draw,
    "results": result_pictures.draw,
    "slack": moons_pictures.draw_slacks,
    "teaser": moons_pictures.draw_teaser,
}


def main() -> None:
    """Write docs/images/*.png of the named groups, or of all."""
    unknown = set(sys.argv[1:]) - set(GROUPS)
    if unknown:
        raise SystemExit(f"expected some of {', '.join(GROUPS)}, got {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)  # small networks take longer with more
    for group in sys.argv[1:] or GROUPS:
        for name, content in GROUPS[group]():
            (IMAGES / f"{name}.png").write_bytes(content)
            print(f"wrote docs/images/{name}.png")


if __name__ == "__main__":
    main()
