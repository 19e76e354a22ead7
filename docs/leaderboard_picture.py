"""Draw docs/images/leaderboard.png from the certificates of the packaged models."""

from __future__ import annotations

from collections.abc import Iterator

from png import png

from lipcert.report.leaderboard import leaderboard
from lipcert.report.leaderboard_figure import leaderboard_figure, leaderboard_words


def draw() -> Iterator[tuple[str, bytes]]:
    """Yield the name of the picture and its content."""
    yield "leaderboard", png(leaderboard_figure(leaderboard()))


def link() -> str:
    """Return the picture as Markdown; its text for readers who cannot see it holds every number."""
    return f"![Accuracy against radius. {leaderboard_words(leaderboard())}](images/leaderboard.png)\n"
