"""The built wheel in an empty environment, away from the repo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_sdist_has_what_its_own_tests_read() -> None:
    """Whatever lies beside pyproject.toml and is named in a test."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    beside = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - ignored
    read = {name for name in beside if any(f'"{name}"' in text for text in texts)}
    assert {"docs", "results", "README.md", "Makefile"} <= read
    # The build adds pyproject.toml by itself.
    assert {f"/{name}" for name in read} - {"/pyproject.toml"} <= set(included)


@pytest.mark.wheel
def test_tests_run_from_the_sdist(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (place,) = (path for path in tmp_path.iterdir() if path.is_dir())
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    for arguments in (
        ["--collect-only", "tests"],
        ["tests/test_structure.py", "tests/paper/test_results.py"],
    ):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.wheel
def test_the_wheel_runs_the_readme_and_a_packaged_recipe(tmp_path: Path) -> None:
    def run(*command: object) -> str:
        done = subprocess.run([str(c) for c in command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    for code in re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    ):
        assert "tensor([0])" in run(python, "-c", code)
    assert "site-packages" in run(python, "-c", "import lipcert; print(lipcert.__file__)")
    lipcert = tmp_path / "empty" / "bin" / "lipcert"
    assert "moons-cll" in run(lipcert, "list", "recipes")
    assert "cifar10-4c3f-cll" in run(lipcert, "list", "trained")
    run(lipcert, "train", "moons-cll", "--budget", "smoke", "--output", "run")
    assert (tmp_path / "run" / "certificate.json").exists()
    assert "float64 rounding included" in run(lipcert, "certify", "run")
    assert "py.typed" in " ".join(p.name for p in (tmp_path / "empty").rglob("lipcert/py.typed"))
