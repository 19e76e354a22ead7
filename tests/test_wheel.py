"""The built wheel in an empty environment, away from the repo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        assert "tensor([0])" in run(python, "-c", code)
    assert "site-packages" in run(python, "-c", "import lipcert; print(lipcert.__file__)")
    lipcert = tmp_path / "empty" / "bin" / "lipcert"
    assert "moons-cll" in run(lipcert, "list", "recipes")
    assert "cifar10-4c3f-cll" in run(lipcert, "list", "trained")
    run(lipcert, "train", "moons-cll", "--budget", "smoke", "--output", "run")
    assert (tmp_path / "run" / "certificate.json").exists()
    assert "float64 rounding included" in run(lipcert, "certify", "run")
    assert "py.typed" in " ".join(p.name for p in (tmp_path / "empty").rglob("lipcert/py.typed"))
