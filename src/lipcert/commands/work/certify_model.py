"""Certify a trained model again, and check certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from torch import nn

from lipcert.bounds.proof import Effort
from lipcert.certificates.certificate import RADII, Rounding
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.local import balls_for
from lipcert.certificates.progress import proving, waiting
from lipcert.certificates.statement import CERTIFICATE, Statement, read_certificate
from lipcert.certificates.strict_files import shown
from lipcert.certificates.verification import Check, certify_data, describe, verify
from lipcert.data import DATASETS, Dataset, load
from lipcert.data.base import Split
from lipcert.errors import InputError
from lipcert.models import ModelCard
from lipcert.models.model_files import model_file, read_card, read_model
from lipcert.models.trained import model_place
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.schema import Component, Recipe
from lipcert.runs import Run


@dataclass(frozen=True)
class Subject:
    """A model with proved constants, and the data to certify."""

    model: nn.Module
    card: ModelCard
    prover: Certifier
    data: Dataset
    described: dict[str, Any]  # the data, for a certificate
    radii: tuple[float, ...]
    recipe: Recipe | None

    @property
    def balls(self) -> tuple[float, ...]:
        """Return balls for local bounds: one per radius."""
        return balls_for(self.radii)

    @classmethod
    def open(
        cls, source: str, data_name: str | None, split: Split, radii: str | None, effort: Effort = "auto"
    ) -> Subject:
        """Load, check and prove what the command line names."""
        file = model_file(source)
        card, recipe = read_card(file), _recipe_beside(file)
        data, described, default_radii = _data(source, recipe, data_name, split)
        if data.input_shape != card.input_shape or len(data.classes) != card.num_classes:
            raise InputError(
                f"{source}: made for inputs {card.input_shape} and {card.num_classes} classes, "
                f"the data has {data.input_shape} and {len(data.classes)}"
            )
        if card.classes and data.classes != card.classes:
            raise InputError(
                f"{source}: made for the classes {_names(card.classes)}, the data has {_names(data.classes)}"
            )
        model = load_model(source)
        with proving():
            prover = certifier(model, card.input_shape, effort)
        chosen = _parse_radii(radii) if radii else default_radii
        return cls(model, card, prover, data, described, chosen, recipe)


def certify_model(
    source: str,
    data_name: str | None,
    split: Split,
    radii: str | None,
    rounding: Rounding,
    effort: Effort,
    local: bool,
) -> Statement:
    """Find out what `lipcert certify` says about a run directory or a model file."""
    it = Subject.open(source, data_name, split, radii, effort)
    balls = it.balls if local else ()
    certificate = certify_data(it.prover, it.data, rounding, local=balls)
    splits = {split: (it.data, certificate)}
    training = None if it.recipe is None else it.recipe.stated_training()
    return describe(it.model, it.card, it.prover, it.described, splits, it.radii, training)


def _recipe_beside(file: Path) -> Recipe | None:
    """Return the recipe in a model's run directory, None for a model file alone."""
    run = Run(file.parent)
    return read_recipe(str(run.recipe)) if file == run.model and run.recipe.is_file() else None


def verify_file(
    certificate: str | Path, source: str | None, root: str | None = None, bounds_only: bool = False
) -> list[Check]:
    """Check every statement of a certificate against a model and its data.

    The data is searched where `certify` searches it, or in `root`. Missing data raises `InputError`, unless
    `bounds_only` says that the counts need not be checked.
    """
    if bounds_only and root is not None:
        raise InputError("--bounds-only: checks no data; leave out --data")
    place = model_place(certificate)
    claim = read_certificate(place / CERTIFICATE if place.is_dir() else place)
    file = model_file(source or (place if place.is_dir() else place.parent))
    card, recipe = read_card(file), _recipe_beside(file)
    training = None if recipe is None else recipe.stated_training()
    splits = {} if bounds_only else {split: _claimed_data(claim, split, root) for split in claim.splits}
    with waiting("proving and counting again"):
        return verify(claim, read_model(file), card, training, splits)


def _claimed_data(claim: Statement, split: Split, root: str | None) -> Dataset:
    """Load the data that a certificate names, from its usual place or from `root`."""
    if not isinstance(claim.data.get("name"), str):
        raise InputError("certificate: data: names no data set")
    try:
        data = Component.model_validate(claim.data)
        arguments = data.check(DATASETS, "data", "split")
        if root is not None:
            known = signature(DATASETS[data.name].constructor).parameters
            arguments |= {key: root for key in ("root", "path") if key in known}
        return load(data.name, split=split, **arguments)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{shown(str(error), 300)}; --data names its folder, --bounds-only leaves the counts unchecked"
        ) from None


def _data(
    source: str, recipe: Recipe | None, name: str | None, split: Split
) -> tuple[Dataset, dict[str, Any], tuple[float, ...]]:
    """Return the data and radii of the run, or the named data at the usual radii."""
    if name is not None:
        return load(name, split=split), {"name": name}, RADII
    if recipe is None or not model_place(source).is_dir():
        raise InputError(f"{source}: a model file alone names no data; give --data")
    return recipe.make_data(split), recipe.data.model_dump(mode="json"), recipe.certify.radii


def _names(classes: Sequence[str]) -> str:
    return shown(", ".join(classes))


def _parse_radii(text: str) -> tuple[float, ...]:
    try:
        radii = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--radii: expected numbers with commas between, got {text!r}") from None
    if not all(0 < r < float("inf") for r in radii):
        raise InputError(f"--radii: expected numbers > 0, got {text!r}")
    return radii
