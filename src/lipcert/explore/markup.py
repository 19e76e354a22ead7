"""Pictures and numbers as inline HTML, so that a session creates and requests no files."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from html import escape
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from lipcert.report.moons_figure import draw_legend


def drawing(
    draw: Callable[[Axes], None], alt: str, size: tuple[float, float] = (4.6, 3.1), legend: bool = False
) -> str:
    """Draw with `draw` on new axes and return an image, optionally with the legend of the moons below."""
    file = io.BytesIO()
    figure = Figure(figsize=size, layout="constrained")  # not pyplot's, which is bound to one thread
    draw(figure.subplots())
    if legend:
        draw_legend(figure)
    figure.savefig(file, format="png", dpi=140, pil_kwargs={"compress_level": 1})
    return f'<img class="drawing" alt="{escape(alt)}" src="{_source(file)}">'


def pixels(image: np.ndarray, caption: str, note: str = "") -> str:
    """Return an image (C, H, W) uint8 with square pixels and a caption."""
    shown = image.transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(shown if shown.shape[2] == 3 else shown[..., 0]).save(file, format="PNG")
    words = f"{escape(caption)}<br><small>{escape(note)}</small>"
    return (
        f'<figure class="pixels"><img alt="{escape(caption)}" src="{_source(file)}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _source(file: io.BytesIO) -> str:
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def numbers(shown: Mapping[str, tuple[str, str]]) -> str:
    """Return large values, each with its name above and a remark below."""
    cells = "".join(
        f'<div><dt>{escape(name)}</dt><dd data-number="{escape(name)}">{escape(value)}</dd>'
        f"<small>{escape(remark)}</small></div>"
        for name, (value, remark) in shown.items()
    )
    return f'<dl class="numbers">{cells}</dl>'


Mood = Literal["note", "good", "bad", "error"]


def message(text: str, kind: Mood = "note") -> str:
    """Return a sentence in a box."""
    return f'<p class="message {kind}" role="status">{escape(text)}</p>'


def beside(*parts: str) -> str:
    """Put parts side by side where there is room, else one below the other."""
    return f'<div class="beside">{"".join(parts)}</div>'
