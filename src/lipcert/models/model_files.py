"""Models on disk: weights in safetensors, and in its metadata the arguments that rebuild the model.

Reading such a file executes nothing from it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from lipcert.atomic import write_atomically
from lipcert.errors import InputError
from lipcert.extensions import needed_by
from lipcert.models.base import MODELS, create
from lipcert.models.model_names import model_place
from lipcert.models.trained import RECIPE, WEIGHTS, trained_models
from lipcert.nn import FixedLinear
from lipcert.strict_files import shown
from lipcert.suggestions import meant

_FORMAT = 1
_KEY = "lipcert"


@dataclass(frozen=True)
class ModelCard:
    """The description of a model in its file: its architecture and the arguments that rebuild it."""

    name: str
    num_classes: int
    input_shape: tuple[int, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

    def build(self) -> nn.Module:
        """Build the architecture, freshly initialised."""
        return create(self.name, num_classes=self.num_classes, input_shape=self.input_shape, **self.arguments)


def save(model: nn.Module, card: ModelCard, path: Path) -> None:
    """Write weights and card atomically, in 16 bits if that changes no weight."""
    metadata = {_KEY: json.dumps({"format": _FORMAT, **asdict(card)})}
    tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    floats = [v for v in tensors.values() if v.is_floating_point()]
    if all(v.dtype == torch.float32 and bool((v.half().float() == v).all()) for v in floats):
        tensors = {k: v.half() if v.is_floating_point() else v for k, v in tensors.items()}
    write_atomically(path, safetensors.torch.save(tensors, metadata=metadata))


def round_to_16_bits(model: nn.Module) -> None:
    """Round every weight to the nearest half-precision number, before the network is certified."""
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            rounded = tensor.half()
            if not bool(rounded.isfinite().all()):
                raise InputError("16 bits: a weight is too large for half precision")
            tensor.copy_(rounded)


def read_model(path: Path) -> nn.Module:
    """Load the model of a file without looking at a certificate beside it."""
    card = read_card(path)
    try:
        model = card.build()
    except (TypeError, ValueError) as error:
        said = shown(str(error), 300)
        raise InputError(f"{path}: no {card.name} can be made from its model card ({said})") from None
    # 16 bits are a way to store float32 weights, not to compute with them.
    tensors = {
        k: v.float() if v.dtype == torch.float16 else v for k, v in safetensors.torch.load_file(path).items()
    }
    expected = {k: tuple(v.shape) for k, v in model.state_dict().items()}
    found = {k: tuple(v.shape) for k, v in tensors.items()}
    if expected != found:
        odd = sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
        raise InputError(f"{path}: the weights do not fit a {card.name}: {shown(odd[0])}")
    dtypes = {v.dtype for v in tensors.values() if v.is_floating_point()}
    if len(dtypes) == 1:
        model = model.to(dtypes.pop())
    model.load_state_dict(tensors)
    return model.eval()


def start_from(model: nn.Module, other: nn.Module, source: str, card: ModelCard) -> None:
    """Give a model the weights of another model; a head for other classes stays as initialised."""
    own, given = model.state_dict(), other.state_dict()
    head = _last_layer(model)
    differing = {
        k
        for k in own.keys() | given.keys()
        if k not in own or k not in given or own[k].shape != given[k].shape
    }
    strange = sorted(k for k in differing if k.rpartition(".")[0] != head)
    if strange:
        shapes = [f"{k} is {_shape(given, k)} there and {_shape(own, k)} here" for k in strange[:3]]
        more = f", and {len(strange) - 3} more" if len(strange) > 3 else ""
        raise InputError(
            f"start: {source}: its weights do not fit this model: {'; '.join(shapes)}{more}; "
            f"{_why(read_card(model_file(source)), card)}"
        )
    model.load_state_dict({**own, **{k: v for k, v in given.items() if k not in differing}})


def _last_layer(model: nn.Module) -> str:
    """Return the path of the last layer that has weights, trained or fixed."""
    paths: list[str] = [
        path
        for path, module in model.named_modules()
        if isinstance(module, FixedLinear) or next(module.parameters(recurse=False), None) is not None
    ]
    return paths[-1]


def _shape(tensors: Mapping[str, Tensor], name: str) -> str:
    """Return the shape of a weight as text, "missing" where there is none."""
    return "×".join(map(str, tensors[name].shape)) or "a number" if name in tensors else "missing"


def _why(theirs: ModelCard, ours: ModelCard) -> str:
    """Say in which settings two models differ."""
    if theirs.name != ours.name:
        return f"it is a {theirs.name}, this recipe trains a {ours.name}"
    there, here = _settings(theirs), _settings(ours)
    odd = [k for k in sorted(there.keys() | here.keys()) if there.get(k) != here.get(k)]
    if not odd:
        return f"both are a {ours.name} with the same settings: the file is of another version of lipcert"
    told = [f"{k} is {there.get(k, 'the default')} there and {here.get(k, 'the default')} here" for k in odd]
    return f"because {' and '.join(told)} (a budget may set it): use --set model.{odd[0]}=… or another budget"


def _settings(card: ModelCard) -> dict[str, Any]:
    """Return what decides the shapes of a model's weights, as its file would hold it."""
    given: dict[str, Any] = json.loads(json.dumps(dict(card.arguments)))
    return {**given, "input_shape": list(card.input_shape)}


def model_file(source: str | Path) -> Path:
    """Return the file of weights that a MODEL argument names."""
    path = model_place(source)
    if path.is_dir():
        path = path / WEIGHTS
        if not path.is_file():
            raise InputError(f"{source}: no {WEIGHTS} in this directory (is the run finished?)")
    if not path.is_file():
        names = trained_models()
        raise InputError(
            f"{source}: no such run directory or .safetensors file, nor one of {', '.join(names)}"
            f"{meant(str(source), names)}"
        )
    return path


def read_card(path: Path) -> ModelCard:
    """Read the card of a model file; any other file is refused."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: not a safetensors file, or cut short ({error})") from None
    if _KEY not in metadata:
        raise InputError(f"{path}: expected a file written by lipcert, found no model card")
    try:
        content = json.loads(metadata[_KEY])
        if content.pop("format") != _FORMAT:
            raise InputError(f"{path}: written by another version of lipcert; load it with that one")
        content["input_shape"] = tuple(operator.index(n) for n in content["input_shape"])
        content["num_classes"] = operator.index(content["num_classes"])
        content["classes"] = tuple(map(str, content["classes"]))
        content["arguments"] = dict(content["arguments"])
        card = ModelCard(**content)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: its model card cannot be read ({shown(str(error), 300)})") from None
    try:
        MODELS[str(card.name)]  # raises for an unknown architecture
    except InputError as error:
        raise InputError(f"{path}: {needed_by(path.parent / RECIPE) or error}") from None
    return card
