"""The colours of every figure and page, and the printed names of methods: one of each per method everywhere.

Colour-blind readers can tell them apart.

Marks and dashes differ as well, so that a grey print will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BLUE, RED, GREEN, PURPLE = "#3d69a3", "#b8433f", "#4a9961", "#7d5ba6"
ORANGE, TEAL, GREY, INK = "#c17d1a", "#3a9aa5", "#777777", "#555555"
AMBER, WHITE = "#e3ad3c", "#ffffff"

# Methods beyond the colours that readers can tell apart.
OTHER_METHOD = INK


@dataclass(frozen=True)
class Method:
    """The name of a method as the paper prints it, and its colour."""

    title: str
    colour: str = OTHER_METHOD


# By the registered name of the loss.
METHODS = {
    "cll": Method("CLL", BLUE),
    "gloro": Method("GloRo", RED),
    "gloro-trades": Method("GloRo+TRADES"),
    "lmt": Method("LMT", TEAL),
    "certificate-regularisation": Method("SOC", ORANGE),
    "multi-margin": Method("CPL"),
    "aol": Method("AOL", PURPLE),
    "emma": Method("EMMA", GREEN),
    "logit-annealing": Method("LA"),
    "emma-annealing": Method("EMMA+LA"),
    "hkr": Method("HKR"),
    "cross-entropy": Method("Cross-entropy", GREY),
}
_COLOURS = {method.title: method.colour for method in METHODS.values()}

# What is not a method: the numbers of a sweep, one after the other.
SERIES = (BLUE, RED, GREEN, PURPLE, ORANGE, TEAL, GREY)

# The two moons, and the points that are wrong or not robust.
CLASSES = (AMBER, BLUE)
WRONG = RED

# What is proved lies below the truth, what attacks leave lies above it.
PROVED, ATTACKED = BLUE, RED

# Pages, by day and by night; drawings stand on the same white sheet in both.
PAGE = {
    "ink": "#1c2530",
    "soft": "#5b6773",
    "line": "#d9dee4",
    "accent": "#2f5d9b",
    "paper": WHITE,
    "tint": "#f4f6f9",
    "sheet": WHITE,
}
DARK_PAGE = {
    "ink": "#e6eaef",
    "soft": "#9aa6b2",
    "line": "#36404b",
    "accent": "#7fb0ef",
    "paper": "#161b21",
    "tint": "#1f262e",
}

DASHES = ("solid", "dash", "dot")
LINES = {"solid": "-", "dash": "--", "dot": ":"}  # matplotlib's names for the dashes of Plotly
MARKS = ("o", "s", "^", "D", "v")
MARK_SIGNS = "●■▲◆▼"  # the same as letters


@dataclass(frozen=True)
class Look:
    """The colour and style of a line."""

    colour: str
    dash: str


def loss_title(loss: str) -> str:
    """Return the printed name of a loss; a loss of your own keeps the name it is registered by.

    Example:
        >>> loss_title("gloro"), loss_title("my-loss")
        ('GloRo', 'my-loss')
    """
    return METHODS[loss].title if loss in METHODS else loss


def method_colour(method: str) -> str:
    """Return the colour of a method; variants, such as "GloRo, ε growing", have that of their method.

    Example:
        >>> method_colour("CLL") == method_colour("CLL, slack") == BLUE
        True
    """
    return _COLOURS.get(method.partition(",")[0], OTHER_METHOD)


def run_looks(methods: Sequence[str]) -> list[Look]:
    """Return the looks of runs: the colour of the method, paler from run to run of the same method."""
    return [
        Look(
            _tint(method_colour(method), 0.6 * methods[:i].count(method) / methods.count(method)),
            DASHES[methods[:i].count(method) % len(DASHES)],
        )
        for i, method in enumerate(methods)
    ]


def shades(colour: str, count: int) -> list[str]:
    """Return shades of one colour, from pale to full: one method at rising values of a setting.

    Example:
        >>> shades("#000000", 3)
        ['#808080', '#404040', '#000000']
    """
    return [_tint(colour, 0.5 * (1 - i / max(count - 1, 1))) for i in range(count)]


def series_look(i: int) -> Look:
    """Return the look of the i-th line of a diagram whose lines are not methods."""
    return Look(SERIES[i % len(SERIES)], DASHES[i // len(SERIES) % len(DASHES)])


def _tint(colour: str, share: float) -> str:
    """Mix a colour with so much white.

    Example:
        >>> _tint("#000000", 0.0), _tint("#000000", 0.6)
        ('#000000', '#999999')
    """
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part + share * (255 - part)):02x}" for part in parts)


def css_variables(colours: Mapping[str, str]) -> str:
    """Return a style sheet that names colours for a page.

    Example:
        >>> css_variables({"good": "#4a9961"})
        ':root { --good: #4a9961; }'
    """
    return f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}"
