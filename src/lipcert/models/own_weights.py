"""Give a model the weights of a file that lipcert did not write: safetensors, or a state dict of torch.

Reading executes nothing: a checkpoint with other objects than tensors and plain containers is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

from lipcert.errors import InputError, lacks_memory, reason

# Training scripts keep the weights beside an epoch and an optimiser's state, under one of these keys.
_KEYS = ("state_dict", "model_state_dict", "model")

# A model in DataParallel or DistributedDataParallel has this before the name of every weight.
_WRAPPED = "module."

# The differences that an error names.
_NAMED = 3

_EXPECTED = "expected a .safetensors file, or what torch.save(model.state_dict(), FILE) writes"


def load_weights(model: nn.Module, path: Path) -> None:
    """Give a model all weights of a file; any other name, shape or finer type than the model's is refused."""
    given = read_state_dict(path)
    own = model.state_dict()
    odd = [told for key in sorted(own.keys() | given.keys()) if (told := _difference(key, own, given))]
    if odd:
        more = f", and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
        raise InputError(f"{path}: its weights do not fit the model: {'; '.join(odd[:_NAMED])}{more}")
    try:
        model.load_state_dict(given)
    except RuntimeError as error:  # a model's own code may refuse
        raise InputError(f"{path}: its weights do not fit the model: {reason(error)}") from None


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Return the weights of a file by name, without the prefix of a wrapped model."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; {_EXPECTED}")
    found = _safetensors(path) if path.suffix == ".safetensors" else _state_dict(path)
    if found and all(name.startswith(_WRAPPED) for name in found):
        consume_prefix_in_state_dict_if_present(found, _WRAPPED)
    return found


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: not a safetensors file, or cut short ({error})") from None


def _state_dict(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # about formats that are refused in the next moment
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file may raise anything; torch's text advises to trust it
        if lacks_memory(error):
            raise
        raise InputError(
            f"{path}: {_EXPECTED}, found other objects, another format or a part of one"
        ) from None
    found = next((found[key] for key in _KEYS if _is_mapping(found) and _is_mapping(found.get(key))), found)
    if not _is_mapping(found) or not all(isinstance(value, Tensor) for value in found.values()):
        raise InputError(f"{path}: {_EXPECTED}, found {_outline(found)}")
    return dict(found)


def _is_mapping(found: Any) -> bool:
    return isinstance(found, Mapping) and all(isinstance(key, str) for key in found)


def _outline(found: Any) -> str:
    """Say what a checkpoint holds that is no state dict."""
    kind = type(found).__name__
    return f"a {kind} of {', '.join(list(found)[:5])}" if _is_mapping(found) and found else f"a {kind}"


def _difference(key: str, own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str | None:
    """Say why a weight does not fit, None if it does."""
    if key not in given or key not in own:
        return f"{key} is only in the {'model' if key in own else 'file'}"
    here, there = own[key], given[key]
    if here.shape != there.shape:
        return f"{key} is {tuple(there.shape)} in the file and {tuple(here.shape)} in the model"
    # Copying would round the weights, and another network than the file's would be certified.
    if torch.promote_types(here.dtype, there.dtype) != here.dtype:
        return f"{key} is {there.dtype} in the file and {here.dtype} in the model, which would round it"
    return None
