"""lipcert beside other libraries: steps and predictions, certified radii, and a race over ten minutes.

    python benchmarks/peers.py steps | radii | race [arguments of the script]

deel-torchlip and orthogonium are installed beside lipcert into an environment of their own, auto_LiRPA with
the torch it needs (1.12, so Python 3.10: --python) into another. Both are made once, under --folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = {"steps": "peer_steps.py", "radii": "peer_radii.py", "race": "peer_race.py"}
BESIDE = ("deel-torchlip==1.0.5", "orthogonium==0.0.4")
# auto_LiRPA asks for torchvision, which none of its bounds needs.
LIRPA = "auto_LiRPA==0.3"
OLD = (
    "torch==1.12.1",
    "numpy<2",
    "packaging",
    "appdirs",
    "pyyaml",
    "ninja",
    "setuptools",
    "tqdm",
    "sortedcontainers",
)


def run(*command: str | Path) -> None:
    """Run a command and stop if it fails."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True)


def environment(folder: Path, python: str) -> tuple[Path, bool]:
    """Return the interpreter of an environment, and whether it is new."""
    found = folder / "bin" / "python"
    if found.exists():
        return found, False
    run(python, "-m", "venv", folder)
    return found, True


def beside_lipcert(folder: Path) -> Path:
    """Return an interpreter that has lipcert, as here, and the two libraries that run with the same torch."""
    python, is_new = environment(folder / "beside", sys.executable)
    if is_new:
        constraints = ("--constraint", HERE.parent / "constraints.txt")
        run(python, "-m", "pip", "install", "-q", *constraints, "--editable", f"{HERE.parent}[attack,report]")
        run(python, "-m", "pip", "install", "-q", *constraints, *BESIDE)
    return python


def with_auto_lirpa(folder: Path, python: str) -> Path:
    """Return an interpreter that has auto_LiRPA."""
    if shutil.which(python) is None:
        sys.exit(f"{python}: not found; --python names a Python 3.10, which torch 1.12 needs")
    found, is_new = environment(folder / "lirpa", python)
    if is_new:
        run(found, "-m", "pip", "install", "-q", *OLD)
        run(found, "-m", "pip", "install", "-q", "--no-deps", LIRPA)
    return found


def thin_run(folder: Path, python: Path) -> Path:
    """Return a trained 4C3F of a quarter of the width; its training takes minutes."""
    run_folder = folder / "thin"
    if not (run_folder / "certificate.json").exists():
        settings = ("model.width=0.25", "model.normalise=null", "train.epochs=6", "certify.tightness=null")
        sets = [part for setting in settings for part in ("--set", setting)]
        recipe = ("cifar10-4c3f-cll", "--budget", "cpu")
        run(python, "-m", "lipcert", "train", *recipe, *sets, "--output", run_folder, "--overwrite")
    return run_folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=SCRIPTS)
    parser.add_argument("--folder", type=Path, default=Path("peers"), help="of the environments")
    parser.add_argument("--python", default="python3.10", help="for auto_LiRPA")
    given, rest = parser.parse_known_args()
    folder = given.folder.absolute()
    python = beside_lipcert(folder)
    if given.what == "radii":
        rest = [str(with_auto_lirpa(folder, given.python)), str(thin_run(folder, python)), *rest]
    os.environ["OMP_NUM_THREADS"] = "1"
    run(python, HERE / SCRIPTS[given.what], *rest)


if __name__ == "__main__":
    main()
