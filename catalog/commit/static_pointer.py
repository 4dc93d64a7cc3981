"""The pointer of a table opened by its metadata file, which can be read, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from icecomb.catalog.commit.pointer import Described, MetadataVersion
from icecomb.catalog.commit.version_line import table_folder
from icecomb.format.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from icecomb.format.holding import Holding
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


class StaticPointer:
    """A `MetadataPointer` that always points to one file."""

    def __init__(self, io: FileIO, location: str) -> None:
        self._io = io
        self._location = location

    @property
    def name(self) -> str:
        """The file's location."""
        return self._location

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the storage."""
        return self._io.properties

    def check_writable(self, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """Refuse every table, as `MetadataPointer.check_writable`."""
        raise UnsupportedError(
            f"{self._location} was opened as a metadata file: such a table can only be read",
            hint="Open the table by its catalog, or by its folder, to change it.",
            path=self._location,
        )

    def check_deletable(self, metadata: TableMetadata) -> NoReturn:
        """Refuse, as `check_writable`."""
        self.check_writable(metadata)

    def own_folders(self) -> Sequence[str]:
        """Implement `WriteGuard.own_folders`: there is only the folder that the file is in."""
        return (table_folder(self._location),)

    def load(self) -> MetadataVersion:
        """Implement `MetadataPointer.load`."""
        from icecomb.format.spec.metadata_file import read_metadata

        return MetadataVersion(self._location, read_metadata(self._io, self._location))

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """Refuse, as `check_writable`."""
        self.check_writable(metadata)

    def swap(self, expected: MetadataVersion | None, new: MetadataVersion) -> NoReturn:  # noqa: ARG002
        """Refuse, as `check_writable`."""
        self.check_writable(new.metadata)

    def discard(self, new: MetadataVersion) -> None:
        """Implement `MetadataPointer.discard`: nothing is ever staged."""

    def queue(self, held: Holding, base: MetadataVersion | None = None) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.queue`: there is nothing to wait for."""
        return False

    def wait_in_queue(self, base: MetadataVersion) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.wait_in_queue`: there is no queue."""
        return False

    def exclusive(self, held: Holding, metadata: Described) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.exclusive`: there are no locks."""
        return False
