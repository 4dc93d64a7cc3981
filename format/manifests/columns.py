"""A manifest as Arrow columns: decoded as a whole, with objects only for requested files.

Planning examines thousands of files to keep a few, so it works on columns; `DataFile` and
`ManifestEntry` values are created only for chosen rows. Manifests never change, so decoded ones are
cached: see `cache`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.avro.schema import from_avro
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    FileIdentity,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.schema import STATISTICS
from icecomb.format.spec.types import PrimitiveType, UUIDType

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.spec.partition import PartitionSpec

ENTRY_COLUMNS: Final = {
    "status": "int32",
    "snapshot_id": "int64",
    "sequence_number": "int64",
    "file_sequence_number": "int64",
}
FILE_COLUMNS: Final = {
    "content": "int32",
    "file_path": "large_string",
    "file_format": "large_string",
    "record_count": "int64",
    "file_size_in_bytes": "int64",
    "key_metadata": "large_binary",
    "sort_order_id": "int32",
    "first_row_id": "int64",
    "referenced_data_file": "large_string",
    "content_offset": "int64",
    "content_size_in_bytes": "int64",
}
LIST_COLUMNS: Final = {"split_offsets": "int64", "equality_ids": "int32"}


@dataclass(frozen=True, slots=True)
class PartitionTupleField:
    """One field of a manifest's partition tuples.

    Attributes:
        field_id: Id of the partition field; None if the writer left it out.
        name: Name in the file, escaped for Avro.
        field_type: Type of the values; None if the file has only nulls.
    """

    field_id: int | None
    name: str
    field_type: PrimitiveType | None


class ManifestColumns:
    """The entries of one manifest, one per row, with inherited values filled in.

    All columns but statistics are always present; one that the writer left out is all null.

    Attributes:
        manifest: The manifest; the first one if several are joined.
        is_shared: Whether the columns are slices of arrays shared with other manifests.
        has_exact_bounds: Whether icecomb wrote all the live files; see `DataFile`.
    """

    def __init__(
        self,
        manifest: ManifestFile,
        columns: Mapping[str, pa.Array],
        partition_columns: tuple[PartitionTupleField, ...],
        partition: tuple[pa.Array, ...],
        *,
        is_shared: bool = False,
        has_exact_bounds: bool = False,
        parts: Sequence[ManifestColumns] = (),
    ) -> None:
        self.manifest = manifest
        self.is_shared = is_shared
        self.has_exact_bounds = has_exact_bounds
        self._parts = parts
        self.partition_columns = partition_columns
        self.statistics = frozenset(columns) & frozenset(STATISTICS)
        self._columns = columns
        self._partition = partition

    def __len__(self) -> int:
        return len(self._columns["status"])

    @property
    def types(self) -> dict[str | int, pa.DataType]:
        """The Arrow types of the columns by name, and of the partition fields by position."""
        found: dict[str | int, pa.DataType] = {n: a.type for n, a in self._columns.items()}
        return found | {at: array.type for at, array in enumerate(self._partition)}

    @property
    def names(self) -> list[str]:
        """The names of the columns, without the partition."""
        return list(self._columns)

    def column(self, name: str) -> pa.Array:
        """Return a column by its name in the specification; it must have been requested.

        Statistics are lists of (key, value) structs; `statistic` picks one column id.
        """
        try:
            return self._columns[name]
        except KeyError:
            raise ValidationError(
                f"Column {name!r} of {self.manifest.manifest_path} was not read",
                hint="Ask for it: read_manifest_columns(..., columns=[...])."
                if name in STATISTICS
                else f"There are {', '.join(self._columns)}.",
            ) from None

    def manifest_of(self, row: int) -> ManifestFile:
        """Return the manifest that an entry was read from."""
        for part in self._parts:
            if row < len(part):
                return part.manifest
            row -= len(part)
        return self.manifest

    def partition(self, position: int) -> pa.Array:
        """Return the values of the partition field at a position in the spec.

        They are internal: dates as days, times and timestamps as microseconds, UUIDs as 16 bytes.
        """
        return self._partition[position]

    def statistic(self, name: str, column_id: int) -> pa.Array:
        """Return one column's count or bound in each file; null where the file has none."""
        import numpy as np
        import pyarrow as pa

        lists = self.column(name)
        if not len(lists):
            return _key_values(lists)[1].slice(0, 0)
        offsets = _numbers(lists.offsets)
        keys, values = _key_values(lists)
        # the column may be a slice, with values of other rows before and after it
        first, last = offsets[0], offsets[-1]
        hits = first + np.flatnonzero(_numbers(keys)[first:last] == column_id)
        rows = np.searchsorted(offsets, hits, side="right") - 1
        picked = np.full(len(lists), -1, dtype=np.int64)
        picked[rows] = hits
        found = np.packbits(picked >= 0, bitorder="little")
        buffers = [pa.py_buffer(found), pa.py_buffer(picked)]
        return values.take(pa.Array.from_buffers(pa.int64(), len(lists), buffers))

    @cached_property
    def live(self) -> pa.Array:
        """Boolean mask of the rows that belong to the snapshot: all but the deleted ones."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from icecomb.format.arrow.array_build import scalar

        deleted = scalar(ManifestEntryStatus.DELETED.value, pa.int32())
        return pc.not_equal(self._columns["status"], deleted)

    @cached_property
    def vectors(self) -> pa.Array:
        """Boolean mask of the deletion vectors; see `DataFile.is_deletion_vector`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from icecomb.format.arrow.array_build import scalar

        positions = scalar(DataFileContent.POSITION_DELETES.value, pa.int32())
        formats = pc.utf8_upper(self._columns["file_format"])
        puffin = pc.equal(formats, scalar(FileFormat.PUFFIN.value, formats.type))
        return pc.and_(pc.equal(self._columns["content"], positions), puffin)

    def identities(self, mask: pa.BooleanArray) -> list[FileIdentity]:
        """Return the `DataFile.identity` of the files that a mask selects."""
        names = ("file_path", "content_offset", "content_size_in_bytes")
        parts = (self._columns[name].filter(mask).to_pylist() for name in names)
        return list(zip(*parts, strict=True))

    @cached_property
    def content_lengths(self) -> pa.Array:
        """The `DataFile.content_length` of each file."""
        import pyarrow.compute as pc

        own = self._columns["content_size_in_bytes"]
        return pc.coalesce(own, self._columns["file_size_in_bytes"])

    @property
    def nbytes(self) -> int:
        """The size of the columns in memory, in bytes."""
        # columns that the writer left out may be one array of nulls
        distinct = {id(array): array for array in (*self._columns.values(), *self._partition)}
        return sum(array.nbytes for array in distinct.values())

    def data_files(self, rows: Sequence[int] | None = None) -> list[DataFile]:
        """Return the files of the chosen rows (None: all), with the statistics that were read."""
        indices = _indices(rows)
        count = len(self) if rows is None else len(rows)
        columns: dict[str, Iterable[Any]] = {
            name: _values(name, array, indices) for name, array in self._columns.items()
        }
        columns["content"] = map(_CONTENTS.__getitem__, columns["content"])
        columns["file_format"] = map(_FORMATS.__getitem__, columns["file_format"])
        columns["partition"] = self.partition_tuples(rows)
        columns["spec_id"] = repeat(self.manifest.partition_spec_id)
        columns["has_exact_bounds"] = repeat(self.has_exact_bounds)
        # filling column by column takes a third of the constructor's time
        files = list(map(object.__new__, repeat(DataFile, count)))
        for name, fill in _FILL.items():
            deque(map(fill, files, columns.get(name, _ABSENT)), maxlen=0)
        return files

    def entries(self, rows: Sequence[int] | None = None) -> list[ManifestEntry]:
        """Return the entries of the chosen rows; see `data_files`."""
        indices = _indices(rows)
        fields = [_values(name, self._columns[name], indices) for name in ENTRY_COLUMNS]
        return [
            ManifestEntry(
                status=_STATUSES[status],
                snapshot_id=snapshot_id,
                sequence_number=sequence,
                file_sequence_number=file_sequence,
                data_file=file,
            )
            for status, snapshot_id, sequence, file_sequence, file in zip(
                *fields, self.data_files(rows), strict=True
            )
        ]

    def partition_tuples(self, rows: Sequence[int] | None = None) -> list[tuple[Any, ...]]:
        """Return the partitions of the chosen rows as internal values."""
        indices = _indices(rows)
        if not self._partition:
            return [()] * (len(self) if rows is None else len(rows))
        values = [
            _internal(column.field_type, _picked(array, indices))
            for column, array in zip(self.partition_columns, self._partition, strict=True)
        ]
        return list(zip(*values, strict=True))

    def named_by(self, manifest: ManifestFile, spec: PartitionSpec | None) -> ManifestColumns:
        """Return the same rows as a table describes the manifest, its partition fields in order.

        Args:
            manifest: The manifest as a list of that table describes it.
            spec: The partition spec of the manifest in that table; None for the file's own order.
        """
        places: Sequence[int] = range(len(self.partition_columns))
        if spec is not None:
            by_id = {self.partition_columns[at].field_id: at for at in places}
            ids = [field.field_id for field in spec.fields]
            if len(ids) == len(places) and set(ids) == set(by_id):
                places = [by_id[field_id] for field_id in ids]
        if self.manifest == manifest and [*places] == [*range(len(places))]:
            return self
        return ManifestColumns(
            manifest,
            self._columns,
            tuple(self.partition_columns[at] for at in places),
            tuple(self._partition[at] for at in places),
            is_shared=self.is_shared,
            has_exact_bounds=self.has_exact_bounds,
        )

    def on_its_own(self) -> ManifestColumns:
        """Return a copy that shares no arrays with other manifests."""
        from icecomb.format.arrow.array_build import integers

        rows = integers(range(len(self)))
        return ManifestColumns(
            self.manifest,
            of_each(self._columns, lambda array: array.take(rows)),
            self.partition_columns,
            tuple(array.take(rows) for array in self._partition),
            has_exact_bounds=self.has_exact_bounds,
        )

    def without_statistics(self, keep: Iterable[str] = ()) -> ManifestColumns:
        """Return the same rows with only these statistics."""
        dropped = self.statistics - frozenset(keep)
        columns = {name: array for name, array in self._columns.items() if name not in dropped}
        return ManifestColumns(
            self.manifest,
            columns,
            self.partition_columns,
            self._partition,
            is_shared=self.is_shared,
            has_exact_bounds=self.has_exact_bounds,
        )


def of_each(
    columns: Mapping[str, pa.Array], make: Callable[[pa.Array], pa.Array]
) -> dict[str, pa.Array]:
    """Return columns with each array replaced, those that are one array by one array."""
    distinct = {id(array): array for array in columns.values()}
    made = {number: make(array) for number, array in distinct.items()}
    return {name: made[id(array)] for name, array in columns.items()}


def joined(manifests: Iterable[ManifestColumns], rows: int = 10_000) -> Iterator[ManifestColumns]:
    """Yield the entries of one spec's manifests in order, joining those of small manifests.

    Operations on columns cost about the same for one entry as for a thousand.
    """
    parts: list[ManifestColumns] = []
    count = 0
    for columns in manifests:
        if parts and (count + len(columns) > rows or not _fits(parts[0], columns)):
            yield _join(parts)
            parts, count = [], 0
        parts.append(columns)
        count += len(columns)
    if parts:
        yield _join(parts)


def _fits(first: ManifestColumns, other: ManifestColumns) -> bool:
    """Return whether arrays of two manifests, of any writers, have the same types."""
    return first.partition_columns == other.partition_columns and first.types == other.types


def seems_another(columns: ManifestColumns, length: int) -> bool:
    """Return whether a decoded manifest contradicts its description in the manifest list.

    It may be another manifest then, or another writer's list may be wrong.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from icecomb.format.arrow.array_build import scalar

    manifest = columns.manifest
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    if length != manifest.manifest_length:
        return True
    if None not in counts and sum(map(int, filter(None, counts))) != len(columns):
        return True
    # files are added and deleted by the snapshot that added the manifest
    if manifest.added_snapshot_id is None:
        return False
    own = pc.not_equal(columns.column("status"), scalar(_EXISTING, pa.int32()))
    added_by = scalar(manifest.added_snapshot_id, pa.int64())
    ours = pc.equal(columns.column("snapshot_id"), added_by)
    return bool(pc.any(own).as_py()) and not pc.any(pc.and_(own, ours)).as_py()


def _join(parts: Sequence[ManifestColumns]) -> ManifestColumns:
    import pyarrow as pa

    first = parts[0]
    if len(parts) == 1:
        return first
    return ManifestColumns(
        first.manifest,
        {name: pa.concat_arrays([part.column(name) for part in parts]) for name in first.names},
        first.partition_columns,
        tuple(
            pa.concat_arrays([part.partition(at) for part in parts])
            for at in range(len(first.partition_columns))
        ),
        has_exact_bounds=all(part.has_exact_bounds for part in parts),
        parts=parts,
    )


def cache_key(manifest: ManifestFile) -> tuple[Any, ...]:
    """Return the cache key of decoded columns: the file, and the values its entries inherit.

    Any table may name the file, so that nothing that only a table's own files say, such as the
    order of its partition fields, may be in what is kept: see `ManifestColumns.named_by`.
    """
    return (
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.sequence_number,
        manifest.added_snapshot_id,
        manifest.partition_spec_id,
        manifest.first_row_id,
    )


_EXISTING: Final = ManifestEntryStatus.EXISTING.value
_STATUSES: Final = {status.value: status for status in ManifestEntryStatus}
_CONTENTS: Final = {content.value: content for content in DataFileContent}


_FILL: Final = {field.name: DataFile.__dict__[field.name].__set__ for field in fields(DataFile)}
_ABSENT: Final = repeat(None)


class _Formats(dict[str, FileFormat]):
    def __missing__(self, name: str) -> FileFormat:
        self[name] = FileFormat(name)
        return self[name]


_FORMATS: Final = _Formats()


def _key_values(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    pairs = lists.values
    key = 1 if pairs.type[1].name == "key" else 0
    return pairs.field(key), pairs.field(1 - key)


def _indices(rows: Sequence[int] | None) -> pa.Array | range | None:
    from icecomb.format.arrow.array_build import integers

    if rows is None or (isinstance(rows, range) and rows.step == 1):
        return rows
    return integers(list(rows))


def _picked(array: pa.Array, indices: pa.Array | range | None) -> pa.Array:
    if isinstance(indices, range):
        return array.slice(indices.start, len(indices))
    return array if indices is None else array.take(indices)


def _numbers(integers: pa.Array) -> Any:
    """Return integers without nulls as a numpy view."""
    from icecomb.format.arrow.number_view import numbers_of

    return numbers_of(integers)


def _values(name: str, array: pa.Array, indices: pa.Array | range | None) -> list[Any]:
    """Return a column's Python values, without an Arrow scalar per row if possible."""
    import pyarrow as pa

    array = _picked(array, indices)
    if array.null_count == len(array):
        return [None] * len(array)
    if name in STATISTICS:
        return mappings(array)
    if name in LIST_COLUMNS:
        return _tuples(array)
    if pa.types.is_integer(array.type) and not array.null_count:
        return list(_numbers(array).tolist())
    return list(array.to_pylist())


def _tuples(lists: pa.Array) -> list[tuple[int, ...] | None]:
    offsets = _numbers(lists.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    numbers = _values("", lists.values.slice(first, last - first), None)
    bounds = (offsets - first).tolist()
    valid = lists.is_valid().to_pylist()
    return [
        tuple(numbers[start:end]) if there else None
        for there, start, end in zip(valid, bounds[:-1], bounds[1:], strict=True)
    ]


def mappings(lists: pa.Array) -> list[dict[int, Any] | None]:
    """Return a statistic as Python values: each file's counts or bounds by column id."""
    offsets = _numbers(lists.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    keys, values = _key_values(lists)
    key_list = _numbers(keys.slice(first, last - first)).tolist()
    value_list = _values("", values.slice(first, last - first), None)
    bounds = (offsets - first).tolist()
    valid = lists.is_valid().to_pylist()
    return [
        dict(zip(key_list[start:end], value_list[start:end], strict=True)) if there else None
        for there, start, end in zip(valid, bounds[:-1], bounds[1:], strict=True)
    ]


def _internal(field_type: PrimitiveType | None, array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    if isinstance(field_type, UUIDType):
        return [from_avro(field_type, value) for value in values]
    return list(values)
