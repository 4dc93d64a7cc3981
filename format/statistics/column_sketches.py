"""Sketches of the distinct values of columns, read from a snapshot or from what it added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import UNREADABLE, IcecombError
from icecomb.format.input_limit import whole_number
from icecomb.format.rows.deletes.puffin_file import PuffinReader
from icecomb.format.rows.read.arrow_scan import BATCH_ROWS, ArrowScan
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.snapshot import Operation, ancestors_of
from icecomb.format.spec.types import PrimitiveType, UUIDType
from icecomb.format.statistics.statistics_file import BLOB_TYPE, ThetaSketch, newest_statistics

if TYPE_CHECKING:
    from icecomb.format.rows.deletes.puffin_file import Blob
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.own_folders import OwnFolders
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_MOST_VALUES: Final = 1 << 21
"""Values of a batch, of which several are in memory at once."""
_LEAST_ROWS: Final = 1 << 12


class ColumnSketches:
    """The sketches of some columns of one snapshot, planned on construction.

    A column that has a sketch of an ancestor, after which there are only appends, goes on from it.

    Args:
        field_ids: Field ids of the columns: of primitive types, in no list or map.
        own: The folders of the table: a statistics file elsewhere is not used.

    Attributes:
        kept: What the snapshot's own statistics file has about other fields, with the bytes as
            they are stored.
        unused: The reason why an older statistics file is not used; None if there is none.
        unread: The rows to read, with the columns to read of them.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        snapshot: Snapshot,
        schema: Schema,
        field_ids: Sequence[int],
        *,
        own: OwnFolders,
    ) -> None:
        self._own = own
        self._metadata = metadata
        # hashes of values, and blobs, are copied into the table
        self._io = io.to_copy()
        self._snapshot = snapshot
        self._schema = schema
        self._sketches = {field_id: ThetaSketch() for field_id in field_ids}
        self.kept: list[tuple[Blob, bytes]] = []
        self.unused: str | None = None
        self._bases: dict[int, int] = {}
        try:
            self._take_older()
        except UNREADABLE as error:
            self._sketches = {field_id: ThetaSketch() for field_id in field_ids}
            self.kept, self._bases = [], {}
            self.unused = error.message if isinstance(error, IcecombError) else str(error)
        self.unread = tuple(self._planned())

    @property
    def is_known(self) -> bool:
        """Whether the snapshot's own statistics file has all of it."""
        return not self.unread

    def add(self, field_id: int, content: bytes, source: str) -> None:
        """Add the values of a sketch in compact form; `source` is for errors."""
        self._sketches[field_id].add_sketch(content, source)

    def read(self, advance: Callable[[int], None]) -> None:
        """Add the values of the rows to read; `advance` takes numbers of rows read."""
        for part in self.unread:
            columns = [(column_path(self._schema, each), each) for each in part.field_ids]
            for batch in part.batches(self._io):
                for path, field_id in columns:
                    kind = self._schema.find_type(field_id)
                    assert isinstance(kind, PrimitiveType)  # noqa: S101 - as the caller promised
                    self._sketches[field_id].add(_values(batch, path), kind)
                advance(batch.num_rows)

    @property
    def sketches(self) -> Mapping[int, ThetaSketch]:
        """The sketches by field id."""
        return self._sketches

    def _take_older(self) -> None:
        """Add the sketches of the newest statistics file, as far as only appends came after it."""
        file = newest_statistics(self._metadata, self._snapshot.snapshot_id)
        if file is None:
            return
        appended = dict(_before_appends(self._metadata, self._snapshot))
        path = str(file["statistics-path"])
        if self._own.outside([path]):
            self.unused = f"{path} is outside of the table's folders"
            return
        reader = PuffinReader(self._io.read(path), path)
        for blob in reader.blobs:
            field_id = blob.fields[0] if len(blob.fields) == 1 else None
            is_sketch = blob.type == BLOB_TYPE and field_id in self._sketches
            if is_sketch and field_id is not None:
                base = appended.get(blob.snapshot_id)
                if base is not None and self._is_alike(base, field_id):
                    self._sketches[field_id].add_sketch(reader.content(blob), path)
                    self._bases[field_id] = blob.snapshot_id
            elif file.get("snapshot-id") == self._snapshot.snapshot_id:
                self.kept.append((blob, reader.stored(blob)))

    def _is_alike(self, base: Snapshot, field_id: int) -> bool:
        """Return whether values of a column had the same bytes in an older snapshot."""
        older = self._metadata.schema()
        if base.schema_id is not None:
            older = self._metadata.schema_by_id(base.schema_id)
        kind = self._schema.find_type(field_id)
        # Spark hashes the text of a UUID, the specification its 16 bytes
        return (
            older.contains(field_id)
            and older.find_type(field_id) == kind
            and not isinstance(kind, UUIDType)
        )

    def _planned(self) -> Iterator[UnreadRows]:
        """Yield what is to be read: once for all columns that go on from the same snapshot."""
        by_base: dict[int | None, list[int]] = {}
        for field_id in self._sketches:
            by_base.setdefault(self._bases.get(field_id), []).append(field_id)
        last = self._snapshot.snapshot_id
        for base, field_ids in by_base.items():
            if base == last:
                continue
            names = [self._schema.find_column_name(field_id) or "" for field_id in field_ids]
            scan: TableScan
            if base is None:
                scan = TableScan(self._metadata, self._io, snapshot_id=last)
                counted: Iterable[Snapshot] = [self._snapshot]
                rows, size = "total-records", "total-files-size"
            else:
                read = replace(self._metadata, current_schema_id=self._schema.schema_id)
                appends = IncrementalAppendScan(
                    read, self._io, from_snapshot_id=base, to_snapshot_id=last
                )
                scan, counted = appends, appends.snapshots()
                rows, size = "added-records", "added-files-size"
            yield UnreadRows(
                scan.select(*names),
                field_ids,
                base,
                sum(_number(snapshot.summary, rows) for snapshot in counted),
                sum(_number(snapshot.summary, size) for snapshot in counted),
            )


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Columns to read from the same files.

    Attributes:
        base: The snapshot whose values are known: only rows appended to it are read; None to read
            all rows.
        row_count: The number of rows, as far as summaries tell.
        size: The bytes of the files, as far as summaries tell.
    """

    scan: TableScan
    field_ids: Sequence[int]
    base: int | None
    row_count: int
    size: int

    def batches(self, io: FileIO) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""
        scan = self.scan
        rows = max(_LEAST_ROWS, min(BATCH_ROWS, _MOST_VALUES // len(self.field_ids)))
        reader = ArrowScan(
            scan.metadata,
            io,
            scan.projection(),
            ordered=False,
            batch_size=rows,
            schema=scan.schema(),
        )
        return reader.to_record_batches(scan.plan_files())


def column_path(schema: Schema, field_id: int) -> list[str]:
    """Return the names that lead to a column: its own, after those of the structs around it."""
    names = []
    at: int | None = field_id
    while at is not None:
        names.append(schema.find_field(at).name)
        at = schema.find_parent_id(at)
    return names[::-1]


def _before_appends(metadata: TableMetadata, snapshot: Snapshot) -> Iterator[tuple[int, Snapshot]]:
    """Yield a snapshot, and its ancestors after which there are only appends, by id."""
    for ancestor in ancestors_of(metadata, snapshot.snapshot_id):
        yield ancestor.snapshot_id, ancestor
        if ancestor.operation != Operation.APPEND:
            return


def _values(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _number(summary: Mapping[str, str] | None, key: str) -> int:
    return whole_number((summary or {}).get(key, "")) or 0
