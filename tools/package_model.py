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
from lipcert.models import load, save
from lipcert.models.files import model_file, read_card, round_to_16_bits
from lipcert.recipes.certifying import certify_model
from lipcert.recipes.reading import read_recipe
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
        write_json(made / "certificate.json", findings.to_json())
        (made / "model-card.md").write_text(model_card(made, home.name))
        home.mkdir(parents=True, exist_ok=True)
        for file in made.iterdir():
            shutil.copy(file, home)


if __name__ == "__main__":
    package(Path(sys.argv[1]), WEIGHTS / sys.argv[2])
