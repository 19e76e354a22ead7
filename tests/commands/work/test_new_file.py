"""New files: names as they are typed, places, and what is not replaced."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from lipcert.commands.support import completion
from lipcert.commands.work.new_file import Spelling, written_text
from lipcert.errors import InputError

Cli = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("typed", ["squared-hinge", "squared_hinge", "SquaredHinge", "Squared-Hinge"])
def test_a_name_may_be_typed_in_any_spelling(typed: str) -> None:
    name = Spelling.of(typed)
    assert (name.registered, name.function, name.class_name) == (
        "squared-hinge",
        "squared_hinge",
        "SquaredHinge",
    )


@pytest.mark.parametrize("typed", ["", "-x", "x--y", "3x", "a/b", "ä", "x y", "x."])
def test_what_is_no_name_is_refused(typed: str) -> None:
    with pytest.raises(InputError, match="NAME: expected letters and digits"):
        Spelling.of(typed)


@pytest.mark.parametrize("kind", completion.new_kinds())
def test_no_word_of_the_template_is_left(kind: str) -> None:
    text = written_text(kind, "trial-name")
    assert "my" not in text.lower().replace("mypy", "")
    assert ast.get_docstring(ast.parse(text))
    assert "hange" in text  # its comments say what to change
    assert all(len(line) <= 110 for line in text.splitlines())


def test_a_file_is_not_replaced_unless_told(cli: Cli) -> None:
    place = ("new", "schedule", "trial", "--output", "a folder/own.py")
    assert cli(*place)[0] == 0
    Path("a folder/own.py").write_text("mine", encoding="utf-8")
    status, out, err = cli(*place)
    assert (status, out) == (2, "")
    assert (
        err == "lipcert: a folder/own.py: exists; --overwrite replaces it, --output chooses another place\n"
    )
    assert Path("a folder/own.py").read_text(encoding="utf-8") == "mine"
    assert cli(*place, "--overwrite")[0] == 0
    assert "class Trial(Schedule)" in Path("a folder/own.py").read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_named(cli: Cli) -> None:
    status, _, err = cli("new", "loss", "trial", "--output", "/proc/trial.py")
    assert (status, err.count("\n")) == (2, 1)
    assert "/proc/trial.py: cannot be written" in err


def test_kinds_are_completed() -> None:
    assert completion.templates("la") == ["layer"]
