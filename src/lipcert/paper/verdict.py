"""The result of checking the paper: one of four words with numbers, or the check of a definition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lipcert.errors import InputError


class Word(StrEnum):
    """The four verdicts on a claim. No page uses another word."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    LEVEL = "level within the seeds"
    NOT_RUN = "not run"

    @classmethod
    def of(cls, holds: bool | None) -> Word:
        """Return the word for yes, no, and seeds that mingle."""
        return {True: cls.HOLDS, False: cls.FAILS, None: cls.LEVEL}[holds]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim in some rows, with the numbers.

    Example:
        >>> Verdict(Word.HOLDS, "+2.0 points").said
        'holds'
    """

    word: Word
    found: str

    def __post_init__(self) -> None:
        if not isinstance(self.word, Word):
            raise InputError(f"verdict: expected one of {', '.join(Word)}, got {self.word!r}")

    @property
    def said(self) -> str:
        """Return the word as printed."""
        return self.word.value


TRUE_BY_DEFINITION = "true by definition"


@dataclass(frozen=True)
class Consistency:
    """The check of a statement that is true by definition: recorded numbers agree, or there is a bug.

    Example:
        >>> Consistency(True, "to 0.3 %").said
        'true by definition'
    """

    agrees: bool
    found: str

    @property
    def said(self) -> str:
        """Return what is printed instead of a verdict."""
        return TRUE_BY_DEFINITION if self.agrees else f"{TRUE_BY_DEFINITION}, but the numbers disagree"


Finding = Verdict | Consistency
