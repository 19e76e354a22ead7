"""README and docs: their code runs, their numbers are those of results/, their links lead somewhere."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [
    (path, i, code)
    for path in DOCUMENTS
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize(("path", "i", "code"), CODE, ids=[f"{p.name}-{i}" for p, i, _ in CODE])
def test_python_blocks_run(path: Path, i: int, code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_readme_examples_end_in_certified_radii(capsys: pytest.CaptureFixture[str]) -> None:
    trained, packaged = (code for path, _, code in CODE if path.name == "README.md")
    for code in (trained, packaged):
        names: dict[str, object] = {}
        exec(code, names)
        certificate = names["certificate"]
        assert certificate.prediction.tolist() == [0]  # type: ignore[attr-defined]
        assert float(certificate.radius) > 0.1  # type: ignore[attr-defined]


def test_commands_in_the_documents_exist() -> None:
    from lipcert.recipes import packaged_recipes
    from lipcert.reproductions import REPRODUCTIONS

    text = "\n".join(path.read_text() for path in DOCUMENTS)
    for name in re.findall(r"lipcert reproduce ([a-z][\w-]*)", text):
        assert name in REPRODUCTIONS
    for name in re.findall(r"lipcert train ([a-z][\w.-]*)", text):
        assert name in packaged_recipes()


def test_tables_are_those_of_the_results() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "render.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_results_say_how_they_were_made() -> None:
    files = list((ROOT / "results").glob("*.json"))
    assert files
    for path in files:
        results = json.loads(path.read_text())
        assert results.keys() >= {"command", "date"}
        if "table" in results:
            assert results["environment"]["commit"]
            assert results["environment"]["machine"]
            assert all(len(row) == len(results["titles"]) for row in results["table"])
            continue
        assert results.keys() >= {"epochs", "seeds", "rows"}
        for row in results["rows"]:
            assert row["environment"]["commit"]
            assert row["environment"]["machine"]
            assert row["seconds"] > 0


def test_cll_certifies_every_training_point_at_the_true_margin_on_three_seeds() -> None:
    rows = json.loads((ROOT / "results" / "moons.json").read_text())["rows"]
    cll = [row for row in rows if row["loss"] == "cll" and row["eps"] == 0.15]
    assert sorted(row["seed"] for row in cll) == [1, 2, 3]
    assert all(row["train"] == {**row["train"], "samples": 2000, "cra": 1.0} for row in cll)


def test_the_verdicts_on_the_paper_are_those_of_the_results() -> None:
    rows = json.loads((ROOT / "results" / "moons.json").read_text())["rows"]

    def lead(eps: float, split: str) -> float:
        """Mean CRA of CLL less that of GloRo, in points."""
        cra = {
            loss: [100 * r[split]["cra"] for r in rows if (r["loss"], r["eps"]) == (loss, eps)]
            for loss in ("cll", "gloro")
        }
        return statistics.mean(cra["cll"]) - statistics.mean(cra["gloro"])

    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert f"it is {lead(0.15, 'val'):.2f} points behind CLL" in text
    assert f"CLL is ahead by {lead(0.2, 'train'):.1f} points at 2ε = 0.4" in text
    assert f"GloRo by {-lead(0.25, 'train'):.1f} points at 2ε = 0.5" in text
    assert all(r["train"]["cra"] == 1 for r in rows if r["eps"] == 0.15)
    for eps, smaller in ((0.1, True), (0.15, False), (0.2, True), (0.25, True)):
        k_hf = {
            loss: [r["k_hf"] for r in rows if (r["loss"], r["eps"]) == (loss, eps)]
            for loss in ("cll", "gloro")
        }
        assert (max(k_hf["gloro"]) < min(k_hf["cll"])) == smaller


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
