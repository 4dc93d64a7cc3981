"""Rewritten delete files that are not yet committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from icecomb.format.maintenance.file_group import RewriteGroup
from icecomb.format.maintenance.live_files import LiveDelete

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.storage.file_io import FileIO

DeleteGroup: TypeAlias = RewriteGroup[LiveDelete]


class NamedFile(NamedTuple):
    """A data file from which rows are deleted."""

    file_path: str
    spec_id: int
    partition: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """A group of delete files, with the files that are to replace them.

    Attributes:
        number: The data sequence number of these files; None for that of the commit.
        ages: The age of each data file that mattered, by path; -1 for files that did not exist.
        replaced: Other delete files that go, because new deletion vectors stand for them, too.
    """

    group: DeleteGroup
    files: tuple[DataFile, ...]
    number: int | None
    ages: Mapping[str, int]
    replaced: tuple[DataFile, ...] = ()

    def release(self) -> None:
        """Do nothing, as no resources are held."""

    def discard(self, io: FileIO) -> None:
        """Delete the new files."""
        io.discard(dict.fromkeys(file.file_path for file in self.files))
