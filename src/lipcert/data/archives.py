"""The official addresses of data sets; the file of a data set publishes its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lipcert.data.base import DATASETS


@dataclass(frozen=True)
class Archive:
    """The address and checksum of a published data set, and the folders in which its files may be."""

    url: str
    md5: str
    folders: tuple[str, ...]  # the first is that of the archive, the others are layouts of other tools

    @property
    def folder(self) -> str:
        """Return the folder that the archive holds."""
        return self.folders[0]


_ARCHIVES: dict[str, Archive] = {}


def published(name: str, archive: Archive) -> Archive:
    """Register where the data set of this name can be downloaded."""
    _ARCHIVES[name] = archive
    return archive


def archives() -> Mapping[str, Archive]:
    """Return every archive by the name of its data set."""
    list(DATASETS)  # imports the files of all data sets
    return dict(sorted(_ARCHIVES.items()))
