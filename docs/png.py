"""Turn figures into the bytes of PNG files, the same on every machine."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

# Pixels per inch: a figure across a page is twice as wide as the site shows it.
DPI = 200


def png(figure: Figure) -> bytes:
    """Return the content of a file without the name of the program."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI, metadata={"Software": None})
    return content.getvalue()
