"""Writing of deletion vectors: all those of an operation in one Puffin file.

A vector stands for all position deletes of its data file, so that it is the union of those that
apply so far and of the new ones; readers ignore the others. Delete files about that data file alone
must be removed by the commit that adds the vector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from icecomb.format.errors import REPEATED_FILE_OR_COPY, ValidationError
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    FileIdentity,
)
from icecomb.format.rows.deletes.deletion_vector import (
    BLOB_TYPE,
    REFERENCED_DATA_FILE,
    VectorReader,
    decode_vector,
    encode_vector,
)
from icecomb.format.rows.deletes.position_delete import (
    PositionDeletes,
    Positions,
    distinct,
    only_target,
)
from icecomb.format.rows.deletes.position_delete_writer import DeleteTarget, PositionDeleteWriter
from icecomb.format.rows.deletes.puffin_file import PuffinWriter
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.rows.write.location_provider import load_location_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_NONE: Final = np.empty(0, np.int64)


class DeletionVectorWriter:
    """A writer of the deletion vectors of one operation, whose id is in the file name."""

    def __init__(self, io: FileIO, metadata: TableMetadata, operation_id: str) -> None:
        self._io = io
        self._locations = load_location_provider(io, metadata.location, metadata.properties)
        self._operation_id = operation_id
        self._vectors: dict[str, tuple[DeleteTarget, bytes, int]] = {}
        self._written: str | None = None

    def add(self, file: DeleteTarget, positions: Positions) -> None:
        """Delete rows, by ascending positions, of a data file, which may be given several times."""
        if not len(positions):
            return
        known = self._vectors.get(file.file_path)
        if known is not None:
            positions = distinct((decode_vector(known[1], known[2]), positions))
        self._vectors[file.file_path] = file, encode_vector(positions), len(positions)

    def close(self) -> list[DataFile]:
        """Write the file, and return the vectors in it."""
        if not self._vectors:
            return []
        name = f"{0:05d}-0-{self._operation_id}-{1:05d}-deletes.puffin"
        location = self._locations.new_data_location(name)
        self._written = location
        with self._io.create_stream(location) as stream:
            puffin = PuffinWriter(stream)
            blobs = [
                puffin.add(
                    content,
                    BLOB_TYPE,
                    [ROW_POSITION.field_id],
                    {REFERENCED_DATA_FILE: path, "cardinality": str(count)},
                )
                for path, (_, content, count) in self._vectors.items()
            ]
            size = puffin.finish()
        return [
            DataFile(
                content=DataFileContent.POSITION_DELETES,
                file_path=location,
                file_format=FileFormat.PUFFIN,
                partition=file.partition,
                record_count=count,
                file_size_in_bytes=size,
                referenced_data_file=file.file_path,
                content_offset=blob.offset,
                content_size_in_bytes=blob.length,
                spec_id=file.spec_id,
            )
            for (file, _, count), blob in zip(self._vectors.values(), blobs, strict=True)
        ]

    def abort(self) -> None:
        """Remove the file, if it was written."""
        self._vectors = {}
        if self._written is not None:
            self._io.discard(self._written)


def several_targets(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """Return the data files that more than one of these deletion vectors is about, with those."""
    found: dict[str, list[DataFile]] = {}
    for file in files:
        if file.is_deletion_vector:
            found.setdefault(file.referenced_data_file or "", []).append(file)
    return {path: vectors for path, vectors in found.items() if len(vectors) > 1}


def joined_vectors(
    io: FileIO, writer: DeletionVectorWriter, several: Mapping[str, Sequence[DataFile]]
) -> list[DataFile]:
    """Write one deletion vector for each data file, with the rows of all those it has."""
    reader = VectorReader(io)
    for path, vectors in several.items():
        target = replace(vectors[0], file_path=path)
        writer.add(target, distinct([reader.positions(vector) for vector in vectors]))
    return writer.close()


class OlderDeletes:
    """The position deletes that data files have so far."""

    def __init__(self, io: FileIO) -> None:
        self._deletes = PositionDeletes(io)
        self._known: dict[str, frozenset[FileIdentity]] = {}
        self._unlike: set[str] = set()
        self._taken: set[str] = set()

    def take(self, task: FileScanTask) -> None:
        """Note a data file, with all its deletes, that gets a vector; a table may repeat it."""
        self._taken.add(task.file_path)
        self.note(task)

    def note(self, task: FileScanTask) -> None:
        """Note a data file, with all deletes that apply to it, that loses rows."""
        self._known.setdefault(task.file_path, _identities(task))
        self.see(task)

    def see(self, task: FileScanTask) -> None:
        """Note a data file, with all deletes that apply to it, that may get no vector.

        It raises ValidationError if it gets one, and other deletes apply to another entry of it:
        the vector would delete rows of both, and stand for the position deletes of both.
        """
        path, own = task.file_path, _identities(task)
        # the older of two entries has the deletes, and is not the only one that loses rows
        if (own or path in self._known) and self._known.setdefault(path, own) != own:
            self._unlike.add(path)
        if path in self._unlike and path in self._taken:
            raise ValidationError(
                f"Cannot delete rows of {path} by a deletion vector: the table has it more than "
                "once, and only some of its rows are deleted in all places",
                hint=REPEATED_FILE_OR_COPY,
                path=path,
            )

    def differ(self, path: str) -> bool:
        """Return whether other deletes apply to another entry of a data file, as far as seen."""
        return path in self._unlike

    def joined(
        self, task: FileScanTask, positions: Positions = _NONE, *, own: bool = False
    ) -> tuple[Positions, list[DataFile]]:
        """Return what a new vector of a data file deletes, and the delete files that it replaces.

        Args:
            positions: The positions of more rows to delete, ascending.
            own: Whether it leaves out what only delete files for several data files delete: it
                then stands for a delete file, beside which these stay.
        """
        self.take(task)
        replaced = replaced_by(task)
        before = self._deletes.of(task.file, replaced if own else _positional(task))
        return positions if before is None else distinct((before, positions)), replaced


def replaced_by(task: FileScanTask) -> list[DataFile]:
    """Return the delete files that go when a data file gets a vector: those about it alone."""
    return [file for file in _positional(task) if only_target(file) == task.file_path]


def delete_writer(
    io: FileIO, metadata: TableMetadata, operation_id: str
) -> PositionDeleteWriter | DeletionVectorWriter:
    """Return a writer of what the table's format version deletes rows by position with."""
    if metadata.format_version < 3:
        return PositionDeleteWriter(io, metadata, operation_id)
    return DeletionVectorWriter(io, metadata, operation_id)


def _identities(task: FileScanTask) -> frozenset[FileIdentity]:
    # a vector applies to all entries
    return frozenset(f.identity for f in _positional(task) if not f.is_deletion_vector)


def _positional(task: FileScanTask) -> list[DataFile]:
    return [f for f in task.delete_files if f.content is DataFileContent.POSITION_DELETES]
