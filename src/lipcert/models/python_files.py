"""Load a model of your own by FILE.py:NAME: the file is run, and NAME is a module or returns one."""

from __future__ import annotations

from torch import nn

from lipcert.errors import InputError
from lipcert.extensions import load


def is_python(source: str) -> bool:
    """Return whether a MODEL argument names something in a Python file."""
    return ".py:" in source


def load_python(source: str) -> nn.Module:
    """Return the module in evaluation mode. This executes the file."""
    path, _, name = source.rpartition(":")
    file = load(path)
    try:
        if not hasattr(file, name):
            raise InputError(
                f"{path}: expected a module or a function {name!r} in it, found none of this name"
            )
        found = getattr(file, name)
        model = found if isinstance(found, nn.Module) else found()
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything, and end the process
        raise InputError(f"{source}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(model, nn.Module):
        expected = "expected a torch module or a function that returns one"
        raise InputError(f"{source}: {expected}, got {type(model).__name__}")
    return model.eval()
