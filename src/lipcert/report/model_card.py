"""Write a model card: a page of Markdown from recipe and certificate for the model's users."""

from __future__ import annotations

from pathlib import Path

from lipcert.certificates.loading import load
from lipcert.certificates.statement import Statement
from lipcert.models.model_files import model_file, read_card
from lipcert.recipes import Recipe, read_recipe
from lipcert.runs import Run

_LIMITS = """\
- The certificate is about L2 distance alone, in the space of the network's inputs, and about the weights
  evaluated in float64. Other changes of an input, and other data, it says nothing of.
- That a class is certain within a radius does not mean that it is right.
- Trained for study and comparison; no other use was tested."""


def model_card(place: Path, name: str) -> str:
    """Return the card of a run directory or a pretrained model."""
    recipe, statement = read_recipe(str(place / "recipe.yaml")), Run(place).statement()
    card = read_card(model_file(place))
    parameters = sum(p.numel() for p in load(place).parameters())
    shape = "×".join(map(str, card.input_shape))
    return "\n".join(
        [
            f"# {name}",
            f"A {card.name} ({parameters:,} parameters) for inputs of {shape} and the classes "
            f"{', '.join(card.classes)}.",
            "",
            "## Certified",
            *_accuracies(statement),
            "",
            f"Proved K_f {statement.k_f:.4g} (effort {statement.effort}), "
            f"{statement.rounding} rounding included. `lipcert verify {name}` proves it again.",
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


def _accuracies(statement: Statement) -> list[str]:
    rows = [
        "| split | samples | clean [%] | radius | certified [%] | 95 % interval |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for split, found in statement.splits.items():
        for row in found.certified:
            low, high = (f"{100 * value:.2f}" for value in row.interval)
            rows.append(
                f"| {split} | {found.samples} | {100 * found.clean.value:.2f} | {row.radius:.4g} "
                f"| {100 * row.value:.2f} | {low} to {high} |"
            )
    return rows


def _training(recipe: Recipe, statement: Statement) -> str:
    loss = recipe.loss.model_dump(mode="json")
    values = ", ".join(f"{key} {value}" for key, value in loss.items() if key != "name")
    made = statement.environment
    return (
        f"`lipcert train recipe.yaml`, the file beside this one: {recipe.data.name}, "
        f"{recipe.train.epochs} epochs of batches of {recipe.train.batch_size}, {recipe.optimizer.name}, "
        f"loss {loss['name']} ({values}), seed {recipe.seed}; {made.machine}, torch {made.torch}."
    )
