"""A trained model certified once more, and certificates checked."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, get_args

from torch import nn

from lipcert.certificate import RADII, Certifier, Rounding, certifier
from lipcert.certificate_file import Check, certify_data, describe, read_certificate, verify
from lipcert.data import DATASETS, Dataset, load
from lipcert.data.base import Split
from lipcert.errors import InputError
from lipcert.local_bound import balls_for
from lipcert.models import load as load_model
from lipcert.models.files import model_file, read_card, read_model
from lipcert.models.trained import model_place
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.waiting import proving, waiting


@dataclass(frozen=True)
class Subject:
    """A model with proved constants, and what it is judged on."""

    model: nn.Module
    prover: Certifier
    data: Dataset
    described: dict[str, Any]  # the data, for a certificate
    radii: tuple[float, ...]

    @property
    def balls(self) -> tuple[float, ...]:
        """For local bounds: one for every radius."""
        return balls_for(self.radii)

    @classmethod
    def open(
        cls, source: str, data_name: str | None, split: str, radii: str | None, rounding: str, effort: str
    ) -> Subject:
        """From what the command line says."""
        if rounding not in get_args(Rounding):
            raise InputError(f"--rounding: expected {' or '.join(get_args(Rounding))}, got {rounding!r}")
        if split not in get_args(Split):
            raise InputError(f"--split: expected {', '.join(get_args(Split))}, got {split!r}")
        card = read_card(model_file(source))
        data, described, default_radii = _data(source, data_name, split)
        if data.input_shape != card.input_shape or len(data.classes) != card.num_classes:
            raise InputError(
                f"{source}: made for inputs {card.input_shape} and {card.num_classes} classes, "
                f"the data has {data.input_shape} and {len(data.classes)}"
            )
        model = load_model(source)
        with proving():
            prover = certifier(model, card.input_shape, effort)  # type: ignore[arg-type]
        return cls(model, prover, data, described, _parse_radii(radii) if radii else default_radii)


def certify_model(
    source: str, data_name: str | None, split: str, radii: str | None, rounding: str, effort: str, local: bool
) -> dict[str, Any]:
    """What `lipcert certify` finds out about a run directory or a model file."""
    it = Subject.open(source, data_name, split, radii, rounding, effort)
    balls = it.balls if local else ()
    certificate = certify_data(it.prover, it.data, rounding, local=balls)  # type: ignore[arg-type]
    return describe(it.model, it.prover, it.described, {split: (it.data, certificate)}, it.radii)


def verify_file(certificate: str, source: str | None, root: str | None) -> list[Check]:
    """Every statement of a certificate, checked against a model and, with a root, its data."""
    place = model_place(certificate)
    claim = read_certificate(place / "certificate.json" if place.is_dir() else place)
    source = source or str(place if place.is_dir() else place.parent)
    file = model_file(source)
    card = read_card(file)
    splits = {} if root is None else {split: _claimed_data(claim, split, root) for split in claim["splits"]}
    with waiting("proving and counting again"):
        return verify(claim, read_model(file), card.input_shape, splits)


def _claimed_data(claim: dict[str, Any], split: Any, root: str) -> Dataset:
    described = dict(claim["data"])
    if not isinstance(described.get("name"), str):
        raise InputError("certificate: data: names no data set")
    if "root" in signature(DATASETS[described["name"]].constructor).parameters:
        described["root"] = root
    try:
        return load(described.pop("name"), split=split, **described)
    except TypeError as error:
        raise InputError(f"certificate: data: {error}") from None


def _data(source: str, name: str | None, split: Any) -> tuple[Dataset, dict[str, Any], tuple[float, ...]]:
    """The data and radii of the run, or the named data at the usual radii."""
    recipe_file = model_place(source) / "recipe.yaml"
    if name is not None:
        return load(name, split=split), {"name": name}, RADII
    if not recipe_file.is_file():
        raise InputError(f"{source}: a model file alone names no data; give --data")
    recipe = read_recipe(str(recipe_file))
    return recipe.make_data(split), recipe.data.model_dump(mode="json"), recipe.certify.radii


def _parse_radii(text: str) -> tuple[float, ...]:
    try:
        radii = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--radii: expected numbers with commas between, got {text!r}") from None
    if not all(0 < r < float("inf") for r in radii):
        raise InputError(f"--radii: expected numbers > 0, got {text!r}")
    return radii
