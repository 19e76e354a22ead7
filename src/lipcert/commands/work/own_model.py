"""A model of one's own on the command line, FILE.py:NAME, with the data to certify."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from lipcert.bounds.bounded import checked_classes
from lipcert.bounds.tracing.program import checked_shape, trace
from lipcert.certificates.statement import DataSource
from lipcert.data import Dataset, load
from lipcert.data.base import Split
from lipcert.data.on_disk import own_data
from lipcert.errors import InputError
from lipcert.models import ModelCard
from lipcert.models.python_files import load_python, own_name
from lipcert.types import Shape


@dataclass(frozen=True)
class Own:
    """The weights and the input shape that a command line gives for a model that lipcert did not write."""

    weights: Path | None = None
    input_shape: str | None = None

    def refuse(self, source: str) -> None:
        """Raise if a model whose file says all of this is told it again."""
        given = {"--weights": self.weights, "--input-shape": self.input_shape}
        for option in (option for option, value in given.items() if value is not None):
            raise InputError(f"{option}: only for a model of your own (FILE.py:NAME), {source} has its own")


ALREADY_KNOWN = Own()


class OwnSubject(NamedTuple):
    """A model of one's own and its data, which fit each other."""

    model: nn.Module
    card: ModelCard
    data: Dataset
    described: DataSource


def own_subject(source: str, data_name: str | None, split: Split, own: Own) -> OwnSubject:
    """Load the model and the data; raises unless the model takes the data's inputs and knows its classes."""
    if data_name is None:
        raise InputError(
            f"{source}: --data: a model of your own needs data, such as cifar10, a folder of images or a "
            "file.npz with x and y"
        )
    shape = None if own.input_shape is None else parsed_shape(own.input_shape)
    described = own_data(data_name, split, shape)
    model = load_python(source, own.weights)
    data = _load(described, split)
    if shape is not None and shape != data.input_shape:
        raise InputError(f"--input-shape: expected that of the data, {data.input_shape}, got {shape}")
    card = own_card(source, model, data.input_shape)
    if described["name"] == "arrays" and len(data.classes) < card.num_classes:
        described["classes"] = [str(i) for i in range(card.num_classes)]  # the last ones have no sample
        data = _load(described, split)
    if len(data.classes) != card.num_classes:
        raise InputError(
            f"{source}: tells {card.num_classes} classes apart, {data_name} has {len(data.classes)}"
        )
    return OwnSubject(model, card, data, DataSource.model_validate(described))


def own_card(source: str, model: nn.Module, input_shape: Shape) -> ModelCard:
    """Return the description of the model for a certificate; it knows no names of classes."""
    return ModelCard(own_name(source), max(checked_classes(trace(model, input_shape)), 2), input_shape)


def _load(described: dict[str, Any], split: Split) -> Dataset:
    arguments = {key: value for key, value in described.items() if key != "name"}
    return load(described["name"], split=split, **arguments)


def parsed_shape(shape: str) -> Shape:
    """Read the value of --input-shape: positive numbers with commas between.

    Example:
        >>> parsed_shape("3,32,32")
        (3, 32, 32)
    """
    try:
        return checked_shape(tuple(int(part) for part in shape.split(",")))
    except ValueError:
        raise InputError(
            f"--input-shape: expected positive numbers with commas between, such as 3,32,32, got {shape!r}"
        ) from None
