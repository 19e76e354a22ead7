"""Models of the Hugging Face Hub, by names such as hf://owner/name and hf://owner/name@revision.

The package huggingface_hub downloads, and keeps what it downloaded in its cache. `HF_ENDPOINT` names another
server, `HF_HOME` another place of the cache.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lipcert
from lipcert.errors import InputError, LipcertError, reason
from lipcert.models.manifest import CODE, FILES, MANIFEST, check_published, is_published
from lipcert.strict_files import shown

if TYPE_CHECKING:
    from huggingface_hub import HfUri

PREFIX = "hf://"

_EXPECTED = f"expected {PREFIX}OWNER/NAME or {PREFIX}OWNER/NAME@REVISION"


@cache
def downloaded(name: str) -> Path:
    """Download a model unless it is in the cache, compare it with its manifest, and return its folder.

    A process asks the hub once per name, so all that it reads of a model is of one commit.
    """
    address = hub_address(name)
    folder = _download(name, address)
    if not is_published(folder):
        raise InputError(f"{name}: expected a model of `lipcert publish`, found no {MANIFEST} in it")
    # Below the folder of a model in the cache are those of its commits.
    check_published(folder, name, f"remove {folder.parents[1]} to download it again, or tell its author")
    return folder


def hub_address(name: str) -> HfUri:
    """Parse the name of a model on the hub."""
    require_hub(name)
    from huggingface_hub import parse_hf_uri

    try:
        address = parse_hf_uri(name)
    except ValueError as error:
        raise InputError(f"{shown(name)}: {_EXPECTED} ({shown(reason(error).strip(), 200)})") from None
    if address.type != "model" or address.path_in_repo:
        raise InputError(f"{shown(name)}: {_EXPECTED}: a whole model, no file or data set")
    return address


def require_hub(what: str) -> None:
    """Raise one line if the package that talks to the hub is not installed."""
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise InputError(
            f"{what}: huggingface_hub is missing; pip install 'lipcert[hub]' brings it"
        ) from None


def _download(name: str, address: HfUri) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        with talking_to_the_hub():
            folder = snapshot_download(
                address.id,
                revision=address.revision,
                allow_patterns=[MANIFEST, *FILES, f"{CODE}/*.py"],
                library_name="lipcert",
                library_version=lipcert.__version__,
                tqdm_class=_bars(),
            )
    except RevisionNotFoundError:
        raise InputError(f"{name}: the model has no revision {address.revision or 'main'}") from None
    except RepositoryNotFoundError:
        raise InputError(
            f"{name}: no such model at {endpoint()}, or you may not read it: `hf auth login` logs you in"
        ) from None
    except Exception as error:
        # Besides its own errors the package passes on those of the network, the disk and its HTTP client.
        raise hub_failure(f"{name}: cannot be downloaded from {endpoint()}", error) from error
    return Path(folder)


def _bars() -> Any:
    """Return bars that are hidden where stderr is not a terminal."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bars(tqdm):
        """The bars of huggingface_hub, of which one is always shown."""

        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **{**given, "disable": not sys.stderr.isatty()})  # type: ignore[no-untyped-call]

    return Bars


@contextlib.contextmanager
def talking_to_the_hub() -> Iterator[None]:
    """Keep huggingface_hub's log of every retry off the terminal: one line tells what failed in the end."""
    from huggingface_hub.utils.logging import get_verbosity, set_verbosity

    before = get_verbosity()
    set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        set_verbosity(before)


def endpoint() -> str:
    """Return the address of the hub."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def hub_failure(what: str, error: BaseException) -> LipcertError:
    """Return one line for an error inside huggingface_hub, which often wraps the one that tells more."""
    cause = error.__cause__ or error
    return LipcertError(f"{what} ({type(cause).__name__}: {shown(reason(cause), 200)})")
