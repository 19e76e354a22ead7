"""The words of the sources: docstrings and help are sentences, and "per" says what belongs to each."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import lipcert
from lipcert.cli import app

ROOT = Path(lipcert.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TOP = ROOT.parents[1]
SCRIPTS = [
    path
    for folder in ("tests", "tools", "docs", "benchmarks", "examples", "notebooks")
    for path in (TOP / folder).rglob("*.py")
]
NOTEBOOKS = sorted((TOP / "notebooks").glob("*.py"))  # their comments are prose
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]

# A first line that begins so has no verb, or hides its subject.
OPENINGS = re.compile(
    r"(Of|That of|Those of|Whoever|Whether|As|From|With|Ready|In|At|By|If|Where|When|Within|Until|One of"
    r"|How|What|Which|Who)\b"
)

# A function does something: its first line begins with one of these. Add a verb that is missing.
VERBS = set(
    re.findall(
        r"\w+",
        """
    Add Append Apply Approximate Attack Average Bound Bring Build Call Certify Change Chart Check Choose
    Clamp Classify Clip Collect Compare Compile Complete Compute Concatenate Construct Continue Convert
    Convolve Copy Count Create Crop Decode Decorate Describe Detail Divide Do Download Draw Drop End
    Estimate Evaluate Exclude Expand Find Fix Fold Forget Give Group Hand Hash Hold Import Improve
    Interpolate Interrupt Iterate Join Judge Keep Lay Leave Let List Load Look Make Map Mark Measure
    Merge Mirror Mix Move Multiply Name Note Open Pack Parse Pool Predict Prepare Print Prove Publish Pull Put
    Raise
    Read Record Reflect Refuse Register Remove Repeat Replace Report Reshape Restore Return Round Run
    Save Say Search Select Send Serve Set Show Silence Sort Split Square Start State Stop Subtract Suggest Sum
    Summarise Swap Take Tell Tie Trace Train Transform Turn Update Upload Use Vary Wait Warn Write Yield
    """,
    )
)

# An option either says what to do, or names its values after a colon.
HELP_VERBS = VERBS | {"Override"}
LABEL = re.compile(r"[A-Z][a-z]+( [a-z]+){0,3}: \S")

# A comment that begins so is half a sentence.
FRAGMENT = re.compile(r"#:? *(Of|That of|Those of|Whoever)\b", re.IGNORECASE)

# "A value a sample" is "one value per sample", "one a core" is "one per core".
UNITS = (
    r"(sample|step|epoch|class|layer|image|process|device|node|pair|row|line|channel|model|entry|group|axis"
    r"|training|core|run|second|minute|hour|batch|file|point|seed|trial|kernel|product|network|column|call"
    r"|cell|machine|piece|pixel|split|term|frame|recipe|thread|worker|stage|block)\b"
)
LINKS = (
    r"(?!(for|of|in|as|to|is|on|with|by|from|at|and|or|than|into|that|has|be|are|not|over|without|within"
    r"|where|when|if|per|between|after|before|but|about|against|which|while|until|beside|takes?|gets?)\b)"
)
NUMBERS = r"(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|\d[\d,]*|\$)"
DISTRIBUTIVE = re.compile(
    rf"\b(a|an) {LINKS}[\w-]+ (a|an) {UNITS}(?! (of|that|which|is|has)\b)"
    rf"|(?<![\w$√/.]){NUMBERS} ({LINKS}[\w-]+ ){{0,2}}(a|an) {UNITS}"
    rf"|\b(operators|products|iterations|threads|calls) (a|an) {UNITS}",
    re.IGNORECASE,
)

# The field says "correct" and "rounding error".
COINED = re.compile(r"\broundings\b|\bright (and certified|predictions)\b|(percent|%) right\b", re.IGNORECASE)

# Tables that docs/render.py makes of recorded results, whose words are those of their day.
GENERATED = re.compile(r"<!-- (results|verdicts)\b.*?<!-- /\1 -->", re.DOTALL)


def docstrings(text: str) -> Iterator[tuple[int, ast.AST, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node)
            if found:
                yield node.body[0].lineno, node, found


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module: docstrings, messages, titles, help."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page that a person wrote."""
    text = GENERATED.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
    yield from enumerate(text.splitlines(), 1)


def code_blocks(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    for block in re.finditer(r"```python[^\n]*\n(.*?)```", text, re.DOTALL):
        yield text[: block.start(1)].count("\n"), block[1]


def parameters(command: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    """The help text of every argument and option, by command and name."""
    for name, other in getattr(command, "commands", {}).items():
        yield from parameters(other, f"{path} {name}")
    if not hasattr(command, "commands"):
        for parameter in command.params:
            yield f"{path} {parameter.name}".strip(), parameter.help


def first_word(text: str) -> str:
    return re.split(r"[^A-Za-z-]", text, maxsplit=1)[0]


def complaint(node: ast.AST, text: str) -> str | None:
    first, *rest = text.splitlines()
    if not rest and not first.endswith((".", "?")):
        return "does not end with a full stop"
    if OPENINGS.match(first):
        return "begins without a verb"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and first_word(first) not in VERBS:
        return "does not begin with a verb of VERBS"
    return None


def help_complaint(text: str | None) -> str | None:
    if not text:
        return "has no help text"
    if not text.endswith("."):
        return "does not end with a full stop"
    if first_word(text) not in HELP_VERBS and not LABEL.match(text):
        return "neither begins with a verb nor names its values after a colon"
    return None


def test_the_first_line_of_a_docstring_is_a_sentence() -> None:
    sources = [(path, 0, path.read_text(encoding="utf-8")) for path in FILES]
    sources += [(path, start, block) for path in PAGES for start, block in code_blocks(path)]
    assert any("def values" in block for _, start, block in sources if start)  # the template for newcomers
    found = [
        f"{path.relative_to(TOP)}:{start + line}: {why}: {text.splitlines()[0]}"
        for path, start, source in sources
        for line, node, text in docstrings(source)
        if (why := complaint(node, text))
    ]
    assert not found


def test_help_says_what_to_do() -> None:
    texts = dict(parameters(typer.main.get_command(app)))
    assert {"train recipes", "sweep address", "data fetch root"} <= texts.keys()
    found = [f"{name}: {why}: {text}" for name, text in texts.items() if (why := help_complaint(text))]
    assert not found


def test_a_comment_is_no_fragment() -> None:
    found = [
        f"{path.relative_to(TOP)}:{line}: {text}"
        for path in [*FILES, *SCRIPTS]
        for line, text in comments(path)
        if FRAGMENT.match(text)
    ]
    assert not found


@pytest.mark.parametrize("words", [DISTRIBUTIVE, COINED], ids=["per", "common words"])
def test_plain_words(words: re.Pattern[str]) -> None:
    texts = [(path, line, text) for path in FILES for line, text in [*strings(path), *comments(path)]]
    texts += [(path, line, text) for path in PAGES for line, text in prose(path)]
    texts += [(path, line, text) for path in NOTEBOOKS for line, text in prose(path)]
    texts += [(path, line, text) for path in ROOT.rglob("*.html") for line, text in prose(path)]
    found = [
        f"{path.relative_to(TOP)}:{line}: {match[0]}"
        for path, line, text in texts
        for match in words.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "Of a process that ends with it.",
        "Whether it is.",
        "With the norms.",
        "The norm.",
        "Adam with momentum.",
        "(B,).",
        "Return W",
    ],
)
def test_a_fragment_is_found(text: str) -> None:
    (node,) = ast.parse(f"def f():\n    '''{text}'''").body
    assert complaint(node, text) is not None


@pytest.mark.parametrize(
    "text", [None, "", "Of a Ray cluster.", "Where to.", "Comma-separated.", "Such as 3.", "Use it"]
)
def test_help_that_says_nothing_is_found(text: str | None) -> None:
    assert help_complaint(text) is not None


@pytest.mark.parametrize(
    "text", ["# Of metrics.jsonl: key, title.", "# of one proof", "#: That of the head."]
)
def test_half_a_comment_is_found(text: str) -> None:
    assert FRAGMENT.match(text)


@pytest.mark.parametrize(
    "text",
    [
        "one value a sample",
        "Two kernels a step",
        "a row a model",
        "one a core",
        "one row a training",
        "one more unit a product",
        "five iterations a step",
        "$2^{-63}$ an entry",
        "calls of torch's operators a step",
    ],
)
def test_a_distributive_article_is_found(text: str) -> None:
    assert DISTRIBUTIVE.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "one value per sample",
        "1 for a model",
        "a row of a class",
        "at 36/255 a point above both",
        "half a second",
    ],
)
def test_other_articles_are_not(text: str) -> None:
    assert not DISTRIBUTIVE.search(text)


@pytest.mark.parametrize("text", ["two roundings", "right and certified", "83 % right"])
def test_coined_words_are_found(text: str) -> None:
    assert COINED.search(text)
