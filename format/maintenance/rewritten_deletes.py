"""Delete files written in the place of others, not yet in the table."""

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
    """A data file of which rows are deleted."""

    file_path: str
    spec_id: int
    partition: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """A group of delete files with those that are to take their place.

    Attributes:
        group: What was read.
        files: What was written.
        number: The data sequence number of these; None for that of the commit.
        ages: How old each data file was that mattered, by its path; -1 for what was not there.
    """

    group: DeleteGroup
    files: tuple[DataFile, ...]
    number: int | None
    ages: Mapping[str, int]

    def release(self) -> None:
        """Nothing but files is held."""

    def discard(self, io: FileIO) -> None:
        """Delete the new files."""
        io.delete([file.file_path for file in self.files])
