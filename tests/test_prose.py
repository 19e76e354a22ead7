"""The prose of README and docs: short sentences with a verb, defined abbreviations, pages that lead on.

The distributive article and coined words are guarded in tests/test_words.py, for sources and pages alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_words import GENERATED

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
LONGEST = 35  # words

# Pages whose sentences may be longer, and why.
LONG_ON_PURPOSE = {
    "proofs.md": "a theorem names all its conditions in one sentence, and formulas count as words",
}

# Pages without one of the three parts, and why.
NO_OPENING = {"README.md": "it opens with the one sentence that says what lipcert is"}
NO_ENDING = {
    "README.md": "it ends with what lipcert is not",
    "index.md": "it is where to go",
    "api.md": "it is looked up, not read",
}
NO_EXAMPLE = {
    "api.md": "every docstring has its own example, which the tests run",
    "architecture.md": "it describes files",
    "platforms.md": "it describes systems",
    "errors.md": "tests/commands/mistakes.py runs its errors",
    "proofs.md": "the theorems are tested, not run",
    "clusters.md": "its commands need several devices",
    "notebooks.md": "the notebooks are the examples",
    "benchmarks-tables.md": "every table names its command",
    "reproduction-tables.md": "every table names its command",
    "results-tables.md": "every table names its command",
}

# Where a newcomer may land: the first paragraph with the abbreviation must define it.
LANDING = ["README.md", "index.md", "concepts.md", "choosing.md", "own-data.md", "certify-your-own.md"]
LANDING += ["estimator.md", "reproduction.md", "results.md", "comparison.md"]
DEFINITIONS = {
    "CRA": r"certified (robust )?accuracy",
    "K_f": r"Lipschitz constant|difference of (two|any two) (logits|outputs)",
    "K_hf": r"network and (of the )?loss",
    "ε": r"\bradi(us|i)\b",
    "CLL": r"Calibrated Lipschitz-Margin",
}

# What is not written by hand, or not prose.
SKIPPED = [
    GENERATED,
    re.compile(
        r"<!-- (template|file|registry|layers|registries|leaderboard|verdict-counts|picture)\b"
        r".*?<!-- /\1 -->",
        re.DOTALL,
    ),
    re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"^:::.*(\n +options:.*)?$", re.MULTILINE),
    re.compile(r"<!--.*?-->|</?div[^>]*>", re.DOTALL),
]
INLINE = [
    (re.compile(r"`[^`]+`"), "CODE"),
    (re.compile(r"\$[^$\n]+\$"), "FORMULA"),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\*\*|(?<!\w)[*_](?=\w)|(?<=[\w.!?)])[*_](?!\w)"), ""),
]
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|(?<=\|)\n")
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(A-Z0-9εσλ])")

# A sentence that begins so has no verb, or hides its subject.
VERBLESS = re.compile(r"(Of|That of|Those of|Whoever)\b")
# A note to oneself, as in a commit.
COMMIT_LIKE = re.compile(
    r"(Added|Fixed|Removed|Renamed|Refactored|Bumped|Cleaned up|Merged|WIP|TODO|FIXME)\b"
    r"|(Before|After|Now|Also|Same|Ditto|Likewise):"
)


def written(text: str) -> str:
    """Return the prose of a page: without code, formulas, rendered blocks and marks."""
    for pattern in SKIPPED:
        text = pattern.sub("\n\n", text)
    for pattern, word in INLINE:
        text = pattern.sub(word, text)
    return text


def blocks(text: str) -> Iterator[str]:
    """Yield paragraphs, items of lists and cells of tables."""
    for block in BLOCK.split(HEADING.sub("\n", written(text))):
        cells = block.strip().strip("|").split("|") if block.strip().startswith("|") else [block]
        for cell in cells:
            words = " ".join(re.sub(r"^\s*(?:[-*>]|\d+\.) ", "", cell.strip()).split())
            if words:
                yield words


def sentences(text: str) -> Iterator[str]:
    for block in blocks(text):
        yield from END.split(block)


def length(sentence: str) -> int:
    """Count the words; a number with its unit counts as two."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def complaint(sentence: str) -> str | None:
    if VERBLESS.match(sentence):
        return "begins without a verb"
    if COMMIT_LIKE.match(sentence):
        return "reads like a commit"
    return f"has {length(sentence)} words" if length(sentence) > LONGEST else None


def undefined(text: str) -> list[str]:
    """Return the abbreviations whose first paragraph does not define them."""
    found = []
    paragraphs = list(blocks(text))
    for short, definition in DEFINITIONS.items():
        word = re.compile(rf"(?<!\w){short}(?!\w)")
        first = next((i for i, block in enumerate(paragraphs) if word.search(block)), None)
        before = " ".join(paragraphs[: first + 1]) if first is not None else ""
        if first is not None and not re.search(definition, before):
            found.append(short)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_sentences_are_short_and_have_a_verb(path: Path) -> None:
    found = [(why, s) for s in sentences(path.read_text(encoding="utf-8")) if (why := complaint(s))]
    if path.name in LONG_ON_PURPOSE:
        found = [(why, s) for why, s in found if "words" not in why]
    assert not found, "\n".join(f"{why}: {s}" for why, s in found)


@pytest.mark.parametrize("name", LANDING)
def test_abbreviations_are_defined_where_a_newcomer_lands(name: str) -> None:
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    assert undefined(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_a_page_says_what_you_will_know_has_an_example_and_leads_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    opening, end = " ".join(list(blocks(text))[:2]), text[-2000:]
    assert ("After this page you" in opening) == (path.name not in NO_OPENING)
    assert ("## Where to go next" in end or "\nNext: " in end) or path.name in NO_ENDING
    assert re.search(r"^```(python|sh)$", text, re.MULTILINE) or path.name in NO_EXAMPLE


@pytest.mark.parametrize("table", [LONG_ON_PURPOSE, NO_OPENING, NO_ENDING, NO_EXAMPLE])
def test_an_exception_is_about_a_page_that_exists(table: dict[str, str]) -> None:
    assert table.keys() <= {path.name for path in PAGES}


@pytest.mark.parametrize(
    "text",
    [
        "It works. Of several processes the first prints.",
        "- Those of the head are larger.",
        "Whoever reads this is lost.",
        "Fixed rounding in the head.",
        "| what | TODO |\n|---|---|\n",
        "Before: every layer had its own calls.",
        "It is " + "very " * 40 + "long.",
        "One line that wraps\n" + "and goes on " * 15 + "\nto its end.",
    ],
)
def test_bad_prose_is_found(text: str) -> None:
    assert any(map(complaint, sentences(f"# Title\n{text}")))


@pytest.mark.parametrize(
    "text",
    [
        "A sentence ends here. " * 20,
        "```\n" + "code " * 50 + "\n```",
        "<!-- results: x -->\n" + "Of words " * 50 + "\n<!-- /results -->",
        "- one item\n" * 50,
        "| cell | cell |\n" * 50,
        "See [" + "the page](page.md) about `" + "a " * 40 + "b`.",
    ],
)
def test_good_prose_is_not(text: str) -> None:
    assert not any(map(complaint, sentences(f"# Title\n\n{text}")))


def test_an_abbreviation_without_a_definition_is_found() -> None:
    assert undefined("# Page\n\nCRA falls.\n\nIt is the certified robust accuracy.") == ["CRA"]
    assert undefined("# Page\n\nCRA, the certified robust accuracy, falls.\n\nCRA rises.") == []
