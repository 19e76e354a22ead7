"""Read Python's pickles safely: arrays, lists, dictionaries, strings and numbers, nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from lipcert.errors import InputError

# The constructors of a pickled array, under numpy's old and new names.
_ADMITTED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("_codecs", "encode"),
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def read_pickle(path: Path) -> dict[str, Any]:
    """Read the dictionary in a file, with its keys as text."""
    try:
        with path.open("rb") as file:
            content = _Restricted(file, encoding="latin1").load()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except Exception as error:  # a damaged pickle may raise anything
        raise InputError(f"{path}: damaged, or not a file of this data set ({error})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a dictionary, found {type(content).__name__}")
    return {key.decode() if isinstance(key, bytes) else str(key): value for key, value in content.items()}
