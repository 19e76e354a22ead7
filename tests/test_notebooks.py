"""Every notebook runs as a plain program and draws what it announces; a new one is found by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))

HEADER = """# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---
"""
TITLE = re.compile(r"# %% \[markdown\]\n# # (.+)\n# \S")
ALT = re.compile(r' alt="[^"]{20,}"\n')


def cells(text: str) -> list[str]:
    """Each begins with what follows `# %%`."""
    return text.split("\n# %%")[1:]


def complaints_about_form(text: str) -> list[str]:
    """What a reader of the file misses."""
    found = [] if text.startswith(HEADER) else ["does not begin with the header of jupytext"]
    found += [] if TITLE.match(text.removeprefix(HEADER).lstrip()) else ["has no title with a text below"]
    found += [] if len(text.splitlines()) <= 100 else ["is longer than 100 lines"]
    found += [] if "[markdown]" in (cells(text) or [""])[-1] else ["ends without a text"]
    for cell in cells(text):
        if ("plt.show()" in cell) != bool(ALT.match(cell)):
            found.append(f"a cell with a picture has alt, any other has none: {cell.splitlines()[0]}")
    return found


def complaints_about_run(path: Path, place: Path) -> list[str]:
    """What is wrong when a file runs in a fresh process, in an empty folder."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "module://tests.saved_figures", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        encoding="utf-8",
        cwd=place,
        env={**os.environ, **environment},
    )
    expected = {f"figure-{i}.png" for i in range(path.read_text(encoding="utf-8").count("plt.show()"))}
    found = [f"fails: {done.stderr}"] if done.returncode else []
    found += [f"warns: {done.stderr}"] if "Warning" in done.stderr else []
    found += [] if done.stdout or expected else ["neither prints nor draws"]
    left = {file.name for file in place.iterdir()}
    return found + ([] if left == expected else [f"leaves {sorted(left)}, not {sorted(expected)}"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_form_of_one(path: Path) -> None:
    assert complaints_about_form(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    assert complaints_about_run(path, tmp_path) == []


def test_every_notebook_is_listed_by_its_title() -> None:
    assert len(NOTEBOOKS) >= 6
    table = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    pages = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        found = TITLE.search(path.read_text(encoding="utf-8"))
        assert found
        assert f"[{found[1]}](../notebooks/{path.name})" in table
        assert f"- {found[1]}: notebooks/{path.stem}.md\n" in pages


GOOD = f"""{HEADER}
# %% [markdown]
# # A picture
# It shows a line.

# %% alt="A line that rises from left to right"
import matplotlib.pyplot as plt

plt.plot([0, 1])
plt.show()

# %% [markdown]
# That was it.
"""


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("# jupyter:\n", "", "header"),
        ("# # A picture", "# A picture", "title"),
        (' alt="A line that rises from left to right"', "", "alt"),
        ("plt.show()\n", "", "alt"),
        ("# %% [markdown]\n# That was it.\n", "# %%\nplt.close()\n", "ends"),
        ("plt.plot([0, 1])\n", "plt.plot([0, 1])\n" * 90, "longer"),
    ],
)
def test_a_mistake_of_form_is_noticed(before: str, after: str, word: str) -> None:
    assert complaints_about_form(GOOD) == []
    assert before in GOOD
    assert any(word in complaint for complaint in complaints_about_form(GOOD.replace(before, after)))


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("", "", None),
        ("plt.plot([0, 1])", "assert 1 + 1 == 3", "fails: Traceback"),
        ("plt.plot([0, 1])", "import warnings; warnings.warn('mind')", "warns"),
        ("plt.plot([0, 1])", "plt.close('all')", "leaves \\[\\], not \\['figure-0.png'\\]"),
        ("plt.show()", "open('table.csv', 'w').close()", "leaves \\['table.csv'\\], not \\[\\]"),
        ("plt.show()", "plt.close('all')", "neither"),
    ],
)
def test_a_mistake_of_a_run_is_noticed(before: str, after: str, word: str | None, tmp_path: Path) -> None:
    path = tmp_path / "notebook.py"
    path.write_text(GOOD.replace(before, after) if before else GOOD, encoding="utf-8")
    (tmp_path / "place").mkdir()
    found = "\n".join(complaints_about_run(path, tmp_path / "place"))
    assert re.search(word, found) if word else found == ""
