"""Whose turn it is: of the trainings that one visitor starts, the last one runs."""

from __future__ import annotations

import threading


class Turns:
    """A number a visitor; whoever holds an older one stops.

    Example:
        >>> turns = Turns()
        >>> first = turns.take("visitor")
        >>> second = turns.take("visitor")
        >>> turns.holds("visitor", first), turns.holds("visitor", second)
        (False, True)
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._lock = threading.Lock()
        self._taken = 0

    def take(self, visitor: str) -> int:
        """The next turn; every earlier one of this visitor ends."""
        with self._lock:
            self._taken += 1
            self._last[visitor] = self._taken
            return self._taken

    def holds(self, visitor: str, turn: int) -> bool:
        """Whether nothing was started or stopped since."""
        return self._last.get(visitor) == turn

    def leave(self, visitor: str) -> None:
        """The visitor is gone, and whatever runs for them ends."""
        with self._lock:
            self._last.pop(visitor, None)
