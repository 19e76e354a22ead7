"""Turns of a visitor's trainings: only the last one that was started runs."""

from __future__ import annotations

import threading


class Turns:
    """The number of the current turn per visitor; a training with an older number stops.

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
        """Return the next turn; every earlier turn of this visitor ends."""
        with self._lock:
            self._taken += 1
            self._last[visitor] = self._taken
            return self._taken

    def holds(self, visitor: str, turn: int) -> bool:
        """Return whether nothing was started or stopped since."""
        return self._last.get(visitor) == turn

    def leave(self, visitor: str) -> None:
        """Forget a visitor, which ends everything that runs for them."""
        with self._lock:
            self._last.pop(visitor, None)
