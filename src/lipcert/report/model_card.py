"""Write a model card: a page of Markdown from recipe and certificate for the model's users."""

from __future__ import annotations

from pathlib import Path

from lipcert.certificates.loading import load
from lipcert.certificates.statement import Accuracy, SplitAccuracies, Statement
from lipcert.data.base import Split
from lipcert.models.model_files import model_file, read_card
from lipcert.recipes import Recipe, read_run_recipe
from lipcert.runs import Run
from lipcert.tables import Column, Table
from lipcert.tables.kinds import COUNT, EXACT_PERCENT, RADIUS, TEXT, UPPER_BOUND, Interval, shape_text
from lipcert.tables.table_files import markdown

_LIMITS = """\
- The certificate is about L2 distance alone, in the space of the network's inputs, and about the weights
  evaluated in float64. Other changes of an input, and other data, it says nothing of.
- That a class is certain within a radius does not mean that it is correct.
- Trained for study and comparison; no other use was tested."""


def model_card(place: Path, name: str, address: str | None = None) -> str:
    """Return the card of a run directory or a pretrained model; `address` is what commands take for it."""
    run = Run(place)
    recipe, statement = read_run_recipe(run), run.statement()
    card = read_card(model_file(place))
    parameters = sum(p.numel() for p in load(place, statement).parameters())
    return "\n".join(
        [
            f"# {name}",
            f"A {card.name} ({parameters:,} parameters) for inputs of {shape_text(card.input_shape)} "
            f"and the classes {', '.join(card.classes)}.",
            "",
            "## Certified",
            _accuracies(statement),
            "",
            f"Proved: K_f ≤ {UPPER_BOUND.text(statement.k_f)} (effort {statement.effort}), "
            f"{statement.rounding} rounding included. `lipcert verify {address or name}` proves it again.",
            "",
            "## Training",
            _training(recipe, statement),
            "",
            "## Limits",
            _LIMITS,
            "",
            f"SHA-256 of the weights: `{statement.model_sha256}`; loading refuses any others. "
            "The file holds numbers only: nothing in it is executed.",
            "",
        ]
    )


def _accuracies(statement: Statement) -> str:
    """Write one line per split and radius."""
    rows = [(name, split, row) for name, split in statement.splits.items() for row in split.certified]
    columns: list[Column[tuple[Split, SplitAccuracies, Accuracy]]] = [
        Column("split", TEXT, lambda row: row[0]),
        Column("samples", COUNT, lambda row: row[1].samples),
        Column("clean [%]", EXACT_PERCENT, lambda row: row[1].clean.value),
        Column("radius", RADIUS, lambda row: row[2].radius),
        Column("certified [%]", EXACT_PERCENT, lambda row: row[2].value),
        Column("95 % interval", EXACT_PERCENT, lambda row: Interval(*row[2].interval)),
    ]
    return markdown(Table(columns, rows), aligned=True)


def _training(recipe: Recipe, statement: Statement) -> str:
    loss = recipe.loss.model_dump(mode="json")
    values = ", ".join(f"{key} {value}" for key, value in loss.items() if key != "name")
    made = statement.environment
    return (
        f"`lipcert train recipe.yaml`, the file beside this one: {recipe.data.name}, "
        f"{recipe.train.epochs} epochs of batches of {recipe.train.batch_size}, {recipe.optimizer.name}, "
        f"loss {loss['name']} ({values}), seed {recipe.seed}; {made.machine}, torch {made.torch}."
    )
