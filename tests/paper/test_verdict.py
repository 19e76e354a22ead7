"""The words of verdicts: four, and no other."""

from __future__ import annotations

import pytest

from lipcert.errors import InputError
from lipcert.paper.verdict import TRUE_BY_DEFINITION, Consistency, Verdict, Word


def test_there_are_four_words() -> None:
    assert list(Word) == ["holds", "does not hold here", "level within the seeds", "not run"]


@pytest.mark.parametrize("word", ["partly", "yes", "holds", "true by definition", "", None, True])
def test_no_other_word_is_a_verdict(word: object) -> None:
    with pytest.raises(InputError, match="verdict: expected one of holds, "):
        Verdict(word, "")  # type: ignore[arg-type]


def test_a_definition_is_no_claim_that_holds() -> None:
    assert Consistency(True, "").said == TRUE_BY_DEFINITION
    assert Consistency(False, "").said == f"{TRUE_BY_DEFINITION}, but the numbers disagree"
    assert TRUE_BY_DEFINITION not in list(Word)
