"""The words of the sources: docstrings are sentences, and "per" says what belongs to each."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import lipcert

ROOT = Path(lipcert.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# A first line that begins so has no verb, or hides its subject.
OPENINGS = re.compile(
    r"(Of|That of|Those of|Whoever|Whether|As|From|With|Ready|In|At|By|If|Where|When|Within|Until|One of"
    r"|How|What|Which|Who)\b"
)

# A function does something: its first line begins with the verb.
NOUNS = re.compile(r"(The|A|An|This|That|It|Its|Their|Each|Every|All|Some|Any|No|None|One|Two)\b")

# "A value a sample" is "one value per sample".
DISTRIBUTIVE = re.compile(
    r"\b(a|an|one|two|three|\d+) (?!for\b|of\b|in\b|as\b|to\b|is\b|on\b|with\b)[\w-]+ (a|an) "
    r"(sample|step|epoch|class|layer|image|process|device|node|pair|row|line|channel|model|entry|group|axis)\b"
    r"(?! (of|that|which|is|has)\b)",
    re.IGNORECASE,
)


def docstrings(path: Path) -> Iterator[tuple[int, ast.AST, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, node, text


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def complaint(node: ast.AST, text: str) -> str | None:
    first, *rest = text.splitlines()
    if not rest and not first.endswith((".", "?")):
        return "does not end with a full stop"
    if OPENINGS.match(first):
        return "begins without a verb"
    if isinstance(node, ast.FunctionDef) and (NOUNS.match(first) or not re.match(r"[A-Z][a-z]+\b", first)):
        return "does not begin with the verb of the function"
    return None


def test_the_first_line_of_a_docstring_is_a_sentence() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {why}: {text.splitlines()[0]}"
        for path in FILES
        for line, node, text in docstrings(path)
        if (why := complaint(node, text))
    ]
    assert not found


def test_per_says_what_belongs_to_each() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for path in FILES
        for line, text in [*((line, text) for line, _, text in docstrings(path)), *comments(path)]
        for match in DISTRIBUTIVE.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "Of a process that ends with it.",
        "Whether it is.",
        "With the norms.",
        "The norm.",
        "(B,).",
        "Return W",
    ],
)
def test_a_fragment_is_found(text: str) -> None:
    (node,) = ast.parse(f"def f():\n    '''{text}'''").body
    assert complaint(node, text) is not None


@pytest.mark.parametrize("text", ["one value a sample", "Two kernels a step", "a row a model"])
def test_a_distributive_article_is_found(text: str) -> None:
    assert DISTRIBUTIVE.search(text)


@pytest.mark.parametrize("text", ["one value per sample", "1 for a model", "a row of a class"])
def test_other_articles_are_not(text: str) -> None:
    assert not DISTRIBUTIVE.search(text)
