"""Upload a published folder to the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

import lipcert
from lipcert.errors import InputError
from lipcert.models.downloads import PREFIX, endpoint, hub_address, hub_failure, talking_to_the_hub
from lipcert.models.manifest import MANIFEST, check_published, read_manifest


def check_upload(name: str) -> None:
    """Raise if a model cannot be uploaded under this name, before anything is written."""
    address = hub_address(f"{PREFIX}{name}")
    if address.revision is not None:
        raise InputError(f"--push: expected OWNER/NAME without a revision, got {name}")
    from huggingface_hub import get_token

    if get_token() is None:
        raise InputError("--push: expected a token of the hub; log in with `hf auth login`, or set HF_TOKEN")


def upload(folder: Path, name: str, *, private: bool = False) -> str:
    """Upload the files that the manifest names, and no other, as one commit; return its address."""
    check_published(folder, str(folder), "publish it anew")
    check_upload(name)
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(library_name="lipcert", library_version=lipcert.__version__)
    files = [*read_manifest(folder).files, MANIFEST]
    added = [CommitOperationAdd(path_in_repo=file, path_or_fileobj=folder / file) for file in files]
    message = f"Publish with lipcert {lipcert.__version__}"
    try:
        with talking_to_the_hub():
            api.create_repo(name, private=private or None, exist_ok=True)
            done = api.create_commit(name, added, commit_message=message)
    except Exception as error:  # as for downloads: of the package, the network or its HTTP client
        what = (
            f"{folder} is complete, but cannot be uploaded to {endpoint()} as {name}; "
            "--overwrite tries again, with a token that may write there"
        )
        raise hub_failure(what, error) from error
    return str(done.commit_url)
