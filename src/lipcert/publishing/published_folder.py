"""Write a trained model as a folder in the layout of the Hugging Face Hub.

README.md               the model's page, with metadata and metrics
config.json             the model's description, once more for readers
model.safetensors       the weights, with the description from which lipcert rebuilds the model
certificate.json        what is proved about them
recipe.yaml             how they were trained
code/                   the Python files of one's own that recipe and model need, if any
lipcert-manifest.json   size and SHA-256 of all of these

Nothing else of a run is taken, and no path of the machine it ran on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import yaml

import lipcert
from lipcert import extensions
from lipcert.atomic import atomic_file, check_folder_place, made_folder, write_atomically, write_json
from lipcert.certificates.loading import load
from lipcert.certificates.statement import write_certificate
from lipcert.errors import InputError
from lipcert.extensions import Extension
from lipcert.models.downloads import require_hub
from lipcert.models.manifest import (
    CARD,
    CODE,
    CONFIG,
    MANIFEST,
    is_code_file,
    is_published,
    read_manifest,
    write_manifest,
)
from lipcert.models.model_files import read_card
from lipcert.models.model_names import model_place
from lipcert.models.trained import CERTIFICATE, RECIPE, WEIGHTS
from lipcert.publishing.hub_page import hub_page
from lipcert.publishing.portable import code_name, portable_data, portable_recipe
from lipcert.recipes import read_run_recipe
from lipcert.runs import Run

# How to write a file at a path, by the name of the file.
Contents = dict[str, Callable[[Path], None]]


def publish(
    source: str,
    folder: Path,
    address: str | None = None,
    license: str | None = None,
    *,
    overwrite: bool = False,
) -> list[str]:
    """Write a finished run into a folder and return the names of its files.

    `address` is the name on the hub that the page tells its readers to load. `overwrite`
    replaces a model that was published there before, and nothing else.
    """
    require_hub("publish")
    run = Run(model_place(source))
    if not run.path.is_dir():
        raise InputError(
            f"{source}: expected a run directory, which has recipe and certificate, found a file"
        )
    _check_place(run, folder, overwrite)
    contents = _contents(run, address, license)
    _write(folder, contents)
    return [*contents, MANIFEST]


def _check_place(run: Run, folder: Path, overwrite: bool) -> None:
    """Raise unless the folder is new, empty, or an earlier published model that may be replaced."""
    if folder.resolve() == run.path.resolve():
        raise InputError(f"{folder}: holds the run itself; choose another place")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: expected a directory, found a file")
    if folder.is_dir() and any(folder.iterdir()):
        if not is_published(folder):
            raise InputError(f"{folder}: holds other files; choose another place")
        if not overwrite:
            raise InputError(f"{folder}: holds a published model; --overwrite replaces it")
    check_folder_place(folder)


def _contents(run: Run, address: str | None, license: str | None) -> Contents:
    """Return how to write every file that is published, by its name."""
    recipe, statement = read_run_recipe(run), run.statement()
    load(run.path, statement)  # raises if the weights are not those of the certificate
    code = {code_name(one.file): _source(run, one.extension) for one in recipe.imports if one.file}
    name = recipe.name if address is None else address.rpartition("/")[2]
    page = hub_page(run, name, address or ".", license, sorted(code))
    tree = portable_recipe(recipe.model_dump(mode="json"))
    stated = statement.model_copy(update={"data": portable_data(statement.data)})
    described = {"library_name": "lipcert", "lipcert": lipcert.__version__, **asdict(read_card(run.model))}
    return {
        CARD: partial(write_atomically, content=page.encode()),
        CONFIG: partial(write_json, content=described),
        WEIGHTS: partial(_copy, run.model),
        CERTIFICATE: partial(write_certificate, statement=stated),
        RECIPE: partial(write_atomically, content=yaml.safe_dump(tree, sort_keys=False).encode()),
        **{name: partial(_copy, file) for name, file in code.items()},
    }


def _source(run: Run, wanted: Extension) -> Path:
    """Return the file with the code that a run was made with; it was loaded before the recipe was read."""
    (found,) = extensions.require([wanted], str(run.path))
    if found.sha256 != wanted.sha256:
        raise InputError(f"{found.source}: expected the content that {run.path} was made with, found another")
    if not is_code_file(code_name(found.source)):
        raise InputError(f"{found.source}: expected a name of letters, digits, _ and - before .py to publish")
    return Path(found.source)


def _copy(source: Path, path: Path) -> None:
    with source.open("rb") as given, atomic_file(path) as copy:
        shutil.copyfileobj(given, copy)


def _write(folder: Path, contents: Contents) -> None:
    """Write all files and then the manifest; after an error none of them is left."""
    with made_folder(folder):
        _clear(folder, set(read_manifest(folder).files) if is_published(folder) else set())
        try:
            for name, write in contents.items():
                (folder / name).parent.mkdir(exist_ok=True)
                write(folder / name)
            write_manifest(folder, contents)
        except BaseException:
            _clear(folder, set(contents))
            raise


def _clear(folder: Path, names: set[str]) -> None:
    """Remove these files and the manifest, which is first, and the folder of code if it is empty then."""
    for name in (MANIFEST, *sorted(names)):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        (folder / CODE).rmdir()
