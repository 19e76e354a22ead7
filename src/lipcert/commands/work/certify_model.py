"""Certify a trained model again, and check certificates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lipcert.certificates.certificate import RADII, Rounding
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.local import balls_for
from lipcert.certificates.statement import DataSource, Statement, read_certificate
from lipcert.certificates.verification import Check, Training, certify_data, describe, verify
from lipcert.commands.work.certificate_place import check_certificate_place
from lipcert.commands.work.own_model import ALREADY_KNOWN, Own, own_card, own_subject
from lipcert.data import DATASETS, Dataset, load
from lipcert.data.base import Split
from lipcert.data.places import PATH_ARGUMENTS
from lipcert.errors import InputError
from lipcert.hashing import tensors_sha256
from lipcert.models import ModelCard
from lipcert.models.manifest import is_published
from lipcert.models.model_files import model_file, read_card, read_model
from lipcert.models.model_names import model_place
from lipcert.models.python_files import is_python, load_python
from lipcert.models.trained import CERTIFICATE, trained_models
from lipcert.progress import proving, waiting
from lipcert.recipes.reading import read_run_recipe
from lipcert.recipes.schema import Component, Recipe
from lipcert.runs import Run
from lipcert.runs.run_paths import restored_data, stored_data
from lipcert.strict_files import shown
from lipcert.suggestions import meant
from lipcert.tables.kinds import parsed_radius
from lipcert.types import Effort

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Subject:
    """A model with proved constants, and the data to certify."""

    model: nn.Module
    card: ModelCard
    prover: Certifier
    data: Dataset
    described: DataSource  # the data, for a certificate
    radii: tuple[float, ...]
    recipe: Recipe | None

    @property
    def balls(self) -> tuple[float, ...]:
        """Return balls for local bounds: one per radius."""
        return balls_for(self.radii)

    @classmethod
    def open(
        cls,
        source: str,
        data_name: str | None,
        split: Split,
        radii: str | None,
        effort: Effort = "auto",
        check_place: Callable[[nn.Module], None] = lambda model: None,
        device: torch.device = _CPU,
        own: Own = ALREADY_KNOWN,
    ) -> Subject:
        """Load, check and prove what the command line names; `check_place` may refuse before that."""
        asked = None if radii is None else parsed_radii(radii)
        if is_python(source):
            found = own_subject(source, data_name, split, own)
            check_place(found.model)
            prover = _proved(found.model, found.card, effort, device)
            return cls(found.model, found.card, prover, found.data, found.described, asked or RADII, None)
        own.refuse(source)
        model = load_model(source)
        check_place(model)
        file = model_file(source)
        card, recipe = read_card(file), _recipe_beside(file)
        data, described, default_radii = _data(source, recipe, data_name, split)
        _check_fit(source, card, data)
        if card.classes and data.classes != card.classes:
            raise InputError(
                f"{source}: made for the classes {_names(card.classes)}, the data has {_names(data.classes)}"
            )
        prover = _proved(model, card, effort, device)
        return cls(model, card, prover, data, described, asked or default_radii, recipe)


def _proved(model: nn.Module, card: ModelCard, effort: Effort, device: torch.device) -> Certifier:
    """Move a model to its device and prove its constants."""
    with proving():
        return certifier(model.to(device), card.input_shape, effort)


def _check_fit(source: str, card: ModelCard, data: Dataset) -> None:
    """Raise if a model takes other inputs than the data has, or tells other classes apart."""
    if data.input_shape != card.input_shape or len(data.classes) != card.num_classes:
        raise InputError(
            f"{source}: made for inputs {card.input_shape} and {card.num_classes} classes, "
            f"the data has {data.input_shape} and {len(data.classes)}"
        )


class Findings(NamedTuple):
    """The content of a certificate, the radius of every sample (0 where the class is wrong), and the budget
    of the training that made the model, if it is known."""

    statement: Statement
    radii: Tensor
    budget: str | None


def certify_model(
    source: str,
    data_name: str | None,
    split: Split,
    radii: str | None,
    rounding: Rounding,
    effort: Effort,
    local: bool,
    place: Path | None = None,
    device: torch.device = _CPU,
    own: Own = ALREADY_KNOWN,
) -> Findings:
    """Find out what `lipcert certify` says about a model; `place` is for the file, `own` for FILE.py:NAME."""

    def check_place(model: nn.Module) -> None:
        if place is not None:
            check_certificate_place(place, tensors_sha256(model.state_dict()))

    it = Subject.open(source, data_name, split, radii, effort, check_place, device, own)
    balls = it.balls if local else ()
    certificate = certify_data(it.prover, it.data, rounding, local=balls)
    splits = {split: (it.data, certificate)}
    training = None if it.recipe is None else it.recipe.stated_training()
    described = it.described if place is None else stored_data(it.described, place.parent)
    statement = describe(it.model, it.card, it.prover, described, splits, it.radii, training)
    radius = torch.where(certificate.prediction == it.data.y, certificate.radius, 0.0)
    return Findings(statement, radius, None if it.recipe is None else it.recipe.budget)


def _recipe_beside(file: Path) -> Recipe | None:
    """Return the recipe in a model's run directory, None for a model file alone."""
    run = Run(file.parent)
    return read_run_recipe(run) if file == run.model and run.recipe.is_file() else None


def verify_file(
    certificate: str | Path,
    source: str | None,
    root: str | None = None,
    bounds_only: bool = False,
    weights: Path | None = None,
) -> list[Check]:
    """Check every statement of a certificate against a model and its data.

    The data is searched where `certify` searches it, or in `root`. Missing data raises `InputError`, unless
    `bounds_only` says that the counts need not be checked. `weights` are those of a model of one's own.
    """
    if bounds_only and root is not None:
        raise InputError("--bounds-only: checks no data; leave out --data")
    place = model_place(certificate)
    if not place.exists():
        guess = meant(str(certificate), trained_models())
        raise InputError(f"{certificate}: cannot be read (No such file or directory){guess}")
    folder = place if place.is_dir() else place.parent
    claim = read_certificate(place / CERTIFICATE if place.is_dir() else place)
    model, card, training = _claimed_model(source or str(folder), weights, claim)
    described = restored_data(claim.data, folder)
    splits = {} if bounds_only else {split: _claimed_data(described, split, root) for split in claim.splits}
    for data in splits.values():
        _check_fit(str(source or certificate), card, data)
    with waiting("proving and counting again"):
        return verify(claim, model, card, training, splits)


def _claimed_model(
    source: str, weights: Path | None, claim: Statement
) -> tuple[nn.Module, ModelCard, Training | None]:
    """Load the model that a certificate is checked against; one's own takes the inputs that are claimed."""
    if is_python(source):
        model = load_python(source, weights)
        return model, own_card(source, model, tuple(claim.model.input_shape)), None
    Own(weights).refuse(source)
    file = model_file(source)
    card, recipe = read_card(file), _recipe_beside(file)
    return read_model(file), card, None if recipe is None else recipe.stated_training()


def _claimed_data(described: DataSource, split: Split, root: str | None) -> Dataset:
    """Load the data that a certificate names, from its usual place or from `root`."""
    if root is not None:
        _check_read(described.name)
    try:
        data = Component.model_validate(described.model_dump())
        arguments = data.check(DATASETS, "data", "split")
        if root is not None:
            arguments |= dict.fromkeys(_places(data.name), root)
        return load(data.name, split=split, **arguments)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{shown(str(error), 300)}; --data names its folder, --bounds-only leaves the counts unchecked"
        ) from None


def _check_read(name: str) -> None:
    """Raise if a data set is not read from anywhere."""
    if name in DATASETS and not _places(name):
        raise InputError(f"--data: expected none, because {name} is not read from a folder; leave it out")


def _places(name: str) -> list[str]:
    """Return the arguments of a data set that say where it is."""
    known = signature(DATASETS[name].constructor).parameters
    return [key for key in PATH_ARGUMENTS if key in known]


def _data(
    source: str, recipe: Recipe | None, name: str | None, split: Split
) -> tuple[Dataset, DataSource, tuple[float, ...]]:
    """Return the data and radii of the run, or the named data at the usual radii."""
    if name is not None:
        return load(name, split=split), DataSource.model_validate({"name": name}), RADII
    if recipe is None or not model_place(source).is_dir():
        raise InputError(f"{source}: a model file alone names no data; give --data")
    return _run_data(source, recipe, split), recipe.source, recipe.certify.radii


def _run_data(source: str, recipe: Recipe, split: Split) -> Dataset:
    """Load the data of a run; where it is missing, say which file names its place."""
    try:
        return recipe.make_data(split)
    except InputError as error:
        named = [key for key in PATH_ARGUMENTS if key in recipe.data.arguments]
        if not any(not Path(str(recipe.data.arguments[key])).exists() for key in named):
            raise
        raise InputError(f"{error}; {_remedy(model_place(source), named[0], recipe)}") from None


def _remedy(place: Path, key: str, recipe: Recipe) -> str:
    """Say how a model finds its data: a published one keeps only the last name of the data's path."""
    if is_published(place):
        return f"run this in the directory that holds {Path(str(recipe.data.arguments[key])).name}"
    return f"if the data has moved, correct data.{key} in {Run(place).recipe}"


def _names(classes: Sequence[str]) -> str:
    return shown(", ".join(classes))


def parsed_radii(text: str) -> tuple[float, ...]:
    """Read the value of --radii: positive numbers or fractions, with commas between.

    Example:
        >>> parsed_radii("36/255,0.5") == (36 / 255, 0.5)
        True
    """
    try:
        radii = tuple(parsed_radius(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"--radii: {error}, with commas between several, got {text!r}") from None
    if not all(0 < r < float("inf") for r in radii):
        raise InputError(f"--radii: expected numbers > 0, got {text!r}")
    return radii
