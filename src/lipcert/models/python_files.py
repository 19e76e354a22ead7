"""Load a model of your own by FILE.py:NAME or package.module:NAME: the code is run, nothing else is.

NAME is a module of torch, or a function or class that returns one when it is called without arguments.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import nn

from lipcert.errors import InputError, reason
from lipcert.extensions import load
from lipcert.models.own_weights import load_weights

_EXPECTED = "expected a torch module, or a function without arguments that returns one"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:\w+")


def is_python(source: str) -> bool:
    """Return whether a MODEL argument names something in a Python file or in an installed module."""
    return ".py:" in source or (_MODULE.fullmatch(source) is not None and not Path(source).exists())


def load_python(source: str, weights: Path | None = None) -> nn.Module:
    """Return the module in evaluation mode, with the weights of a file if one is given; executes the code."""
    place, _, name = source.rpartition(":")
    code = load(place)
    if not hasattr(code, name):
        raise InputError(f"{place}: expected a module or a function {name!r} in it, found none of this name")
    model = _made(source, getattr(code, name))
    if weights is not None:
        load_weights(model, weights)
    return model.eval()


def own_name(source: str) -> str:
    """Return the name of the model without the folder of its file, which may move.

    Example:
        >>> own_name("work/nets.py:small"), own_name("my_package.nets:small")
        ('nets.py:small', 'my_package.nets:small')
    """
    place, _, name = source.rpartition(":")
    return f"{Path(place).name}:{name}"


def _made(source: str, found: Any) -> nn.Module:
    """Return what was found if it is a module, else what it returns."""
    if isinstance(found, nn.Module):
        return found
    if not callable(found):
        raise InputError(f"{source}: {_EXPECTED}, found {type(found).__name__}")
    try:
        model = found()
    except (Exception, SystemExit) as error:  # the user's code may raise anything, and end the process
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise InputError(f"{source}: {kind}{reason(error)}") from error
    if not isinstance(model, nn.Module):
        raise InputError(f"{source}: {_EXPECTED}, got {type(model).__name__}")
    return model
