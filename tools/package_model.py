"""Put a finished run into the package: weights rounded to 16 bits, then proved and certified once more.

Usage: python tools/package_model.py RUN NAME

A packaged model is a run, too: where the format of certificates or a proof changes,
`python tools/package_model.py src/lipcert/models/weights/NAME NAME` issues its certificate anew.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lipcert.certificates.loading import load
from lipcert.certificates.statement import write_certificate
from lipcert.commands.work.certify_model import certify_model
from lipcert.models import save
from lipcert.models.model_files import model_file, read_card, round_to_16_bits
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.tightness_search import measure_run
from lipcert.report.model_card import model_card
from lipcert.runs import Run

WEIGHTS = Path(__file__).parents[1] / "src" / "lipcert" / "models" / "weights"


def package(run: Run, home: Path) -> None:
    """Round, prove, certify, and only then replace what the package holds."""
    recipe = read_recipe(str(run.recipe))
    model = load(run.path)
    round_to_16_bits(model)
    with TemporaryDirectory() as folder:
        made = Run(folder)
        shutil.copy(run.recipe, made.recipe)
        save(model, read_card(model_file(run.path)), made.model)
        certify = recipe.certify
        statement = certify_model(
            str(made.path), None, certify.splits[-1], None, certify.rounding, certify.effort, certify.local
        ).statement
        seconds = run.statement().seconds
        write_certificate(made.certificate, statement.model_copy(update={"seconds": seconds}))
        # The search is for the rounded weights; an earlier one for the very same weights is kept.
        if run.path == home and run.tightness_file.is_file():
            shutil.copy(run.tightness_file, made.tightness_file)
        measure_run(made, "cpu")
        (made.path / "model-card.md").write_text(model_card(made.path, home.name), encoding="utf-8")
        home.mkdir(parents=True, exist_ok=True)
        for file in made.path.iterdir():
            shutil.copy(file, home)


if __name__ == "__main__":
    package(Run(sys.argv[1]), WEIGHTS / sys.argv[2])
