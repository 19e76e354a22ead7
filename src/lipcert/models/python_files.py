"""Load a model of your own by FILE.py:NAME: the file is run, and NAME is a module or returns one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torch import nn

from lipcert.errors import InputError


def is_python(source: str) -> bool:
    """Return whether a MODEL argument names something in a Python file."""
    return ".py:" in source


def load_python(source: str) -> nn.Module:
    """Return the module in evaluation mode. This executes the file."""
    path, _, name = source.rpartition(":")
    spec = importlib.util.spec_from_file_location("lipcert_user_model", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError(f"{path}: no such Python file")
    file = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(file)
        found = getattr(file, name)
        model = found if isinstance(found, nn.Module) else found()
    except Exception as error:  # the user's code may raise anything
        raise InputError(f"{source}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(model, nn.Module):
        expected = "expected a torch module or a function that returns one"
        raise InputError(f"{source}: {expected}, got {type(model).__name__}")
    return model.eval()
