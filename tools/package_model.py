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

from lipcert.atomic import write_json
from lipcert.certificates.statement import read_certificate
from lipcert.commands.work.certify import certify_model
from lipcert.models import load, save
from lipcert.models.files import model_file, read_card, round_to_16_bits
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.tightness import measure
from lipcert.report.model_card import model_card

WEIGHTS = Path(__file__).parents[1] / "src" / "lipcert" / "models" / "weights"


def package(run: Path, home: Path) -> None:
    """Round, prove, certify, and only then replace what the package holds."""
    recipe = read_recipe(str(run / "recipe.yaml"))
    model = load(run)
    round_to_16_bits(model)
    with TemporaryDirectory() as folder:
        made = Path(folder)
        shutil.copy(run / "recipe.yaml", made)
        save(model, read_card(model_file(run)), made / "model.safetensors")
        certify = recipe.certify
        findings = certify_model(
            str(made), None, certify.splits[-1], None, certify.rounding, certify.effort, certify.local
        )
        seconds = read_certificate(run / "certificate.json").seconds
        write_json(made / "certificate.json", findings.model_copy(update={"seconds": seconds}).to_json())
        # Of the rounded weights; an earlier search of the very same ones is kept.
        if run == home and (run / "tightness.json").is_file():
            shutil.copy(run / "tightness.json", made)
        measure(made, "cpu", quiet=False)
        (made / "model-card.md").write_text(model_card(made, home.name))
        home.mkdir(parents=True, exist_ok=True)
        for file in made.iterdir():
            shutil.copy(file, home)


if __name__ == "__main__":
    package(Path(sys.argv[1]), WEIGHTS / sys.argv[2])
