"""A metadata file by itself: a table that can be read, never changed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NoReturn

from icecomb.catalog.pointer import Described, MetadataVersion
from icecomb.format.errors import UnsupportedError

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


class StaticPointer:
    """See `icecomb.catalog.pointer.MetadataPointer`: it points at one file for ever.

    Args:
        io: Reads the file.
        location: The metadata file.
    """

    def __init__(self, io: FileIO, location: str) -> None:
        self._io = io
        self._location = location

    @property
    def name(self) -> str:
        """The file."""
        return self._location

    def check_writable(self, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """See `MetadataPointer.check_writable`.

        Raises:
            UnsupportedError: If always.
        """
        raise UnsupportedError(
            f"{self._location} was opened as a metadata file: such a table can only be read",
            hint="open the table by its catalog, or by its folder, to change it",
            path=self._location,
        )

    def load(self) -> MetadataVersion:
        """See `MetadataPointer.load`."""
        from icecomb.format.spec.metadata_file import read_metadata

        return MetadataVersion(self._location, read_metadata(self._io, self._location))

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """See `check_writable`."""
        self.check_writable(metadata)

    def swap(self, expected: MetadataVersion | None, new: MetadataVersion) -> NoReturn:  # noqa: ARG002
        """See `check_writable`."""
        self.check_writable(new.metadata)

    def discard(self, new: MetadataVersion) -> None:
        """See `MetadataPointer.discard`: nothing is ever staged."""

    def queue(self, base: MetadataVersion | None = None) -> AbstractContextManager[bool]:  # noqa: ARG002
        """See `MetadataPointer.queue`."""
        return nullcontext(False)

    def ask_for_turn(self, base: MetadataVersion) -> bool:  # noqa: ARG002
        """See `MetadataPointer.ask_for_turn`."""
        return False

    def exclusive(self, metadata: Described) -> AbstractContextManager[bool]:  # noqa: ARG002
        """See `MetadataPointer.exclusive`."""
        return nullcontext(False)
