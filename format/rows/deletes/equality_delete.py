"""Equality deletes: rows that equal a key in a delete file (spec: Equality Delete Files).

Nulls are equal to each other here, and so are NaNs. Delete files that compare the same columns are
one set of keys. Which delete files apply to a data file the plan decides, by sequence numbers.
Nothing is done per row in Python: values become codes, and codes are looked up in sorted arrays.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.value_codes import ValueCodes
from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.read.arrow_projection import FileField, Projection
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import prune
from icecomb.format.spec.types import NestedField, StructType
from icecomb.format.storage.file_io import FileIO

_BATCH_ROWS = 1 << 17


class ColumnPlaces:
    """Where columns asked for by id stand in batches; those not selected are read besides.

    Args:
        field_ids: The ids, also of fields in structs.
        projected: The columns that are selected, which come first.
        metadata: The table, some schema of which has each id.

    Raises:
        UnsupportedError: No schema has one of them.
    """

    def __init__(
        self,
        field_ids: Sequence[int],
        projected: Sequence[NestedField],
        metadata: TableMetadata,
    ) -> None:
        places = {f.field_id: i for i, f in enumerate(projected)}
        self.extra: list[NestedField] = []
        self._paths: dict[int, tuple[int, list[int]]] = {}
        for field_id in dict.fromkeys(field_ids):
            place = places.get(field_id)
            if place is not None:
                self._paths[field_id] = (place, [])
                continue
            schema = metadata.schema_with(field_id)
            if not schema.contains(field_id):
                raise UnsupportedError(
                    f"Equality deletes of {metadata.location} compare the column of id {field_id}, "
                    "which no schema of the table has any more",
                    hint="An expiration removed the schemas that had it: go back to a metadata "
                    "file from before, or write the rows anew with what made the deletes.",
                )
            (column,) = prune(schema, {field_id}).fields
            at = len(projected) + len(self.extra)
            self._paths[field_id] = (at, _descent(column, field_id))
            # A column that was dropped may be missing, whatever it was when it was there.
            self.extra.append(replace(column, required=False))

    def arrays(self, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """The columns by field id."""
        return {
            field_id: pc.struct_field(batch.column(at), path) if path else batch.column(at)
            for field_id, (at, path) in self._paths.items()
        }


class KeySet:
    """The keys of delete files that compare the same columns.

    Args:
        field_ids: The columns.
        columns: Their values, one array a column, a key a row.
    """

    def __init__(self, field_ids: tuple[int, ...], columns: Sequence[pa.Array]) -> None:
        self.field_ids = field_ids
        self._values = [ValueCodes(_plain(c).unique()) for c in columns]
        self._levels: list[npt.NDArray[np.int64]] = []
        if len(columns) > 1:
            codes = self._values[0].of(_plain(columns[0]))
            for column, values in zip(columns[1:], self._values[1:], strict=True):
                pairs = codes * values.count + values.of(_plain(column))
                level, codes = np.unique(pairs, return_inverse=True)
                self._levels.append(level)
                codes = codes.reshape(-1)

    @property
    def nbytes(self) -> int:
        """The memory it takes, in bytes."""
        return sum(v.nbytes for v in self._values) + sum(level.nbytes for level in self._levels)

    @property
    def count(self) -> int:
        """How many different keys there are."""
        return len(self._levels[-1]) if self._levels else self._values[0].count

    def contains(self, arrays: Mapping[int, pa.Array]) -> pa.BooleanArray:
        """Which rows have one of the keys.

        Args:
            arrays: The columns by field id.
        """
        found, _ = self._codes(arrays)
        return pa.array(found)

    def places(self, arrays: Mapping[int, pa.Array]) -> npt.NDArray[np.int64]:
        """The number of each row's key, less than `count`; -1 for those that have none."""
        found, codes = self._codes(arrays)
        return np.where(found, codes, -1)

    def _codes(
        self, arrays: Mapping[int, pa.Array]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        columns = [_plain(arrays[i]) for i in self.field_ids]
        codes = self._values[0].of(columns[0])
        found = codes >= 0
        for column, values, level in zip(columns[1:], self._values[1:], self._levels, strict=True):
            inner = values.of(column)
            pairs = codes * values.count + inner
            codes = np.minimum(np.searchsorted(level, pairs), len(level) - 1)
            found &= (inner >= 0) & (level[codes] == pairs)
        return found, codes


class Keys(Protocol):
    """Keys of deleted rows."""

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The columns that are compared."""

    def contains(self, arrays: Mapping[int, pa.Array]) -> pa.BooleanArray:
        """Which rows have one of the keys, given the columns by field id."""


class KeySource(Protocol):
    """Where a reader of data files gets the keys of deleted rows from."""

    def of(self, delete_files: Sequence[DataFile]) -> Sequence[Keys]:
        """The keys of equality delete files."""


class EqualityDeletes:
    """The key sets of equality delete files, read as they are asked for and kept within bounds.

    Args:
        io: Where the files lie.
        metadata: The table.
        capacity: How much memory the sets that are kept take at most, in bytes; the last one is
            kept in any case.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, capacity: int = 1 << 28) -> None:
        self._io = io
        self._metadata = metadata
        self._capacity = capacity
        self._lock = Lock()
        self._reading: dict[tuple[str, ...], Lock] = {}
        self._kept: OrderedDict[tuple[str, ...], KeySet | None] = OrderedDict()

    def of(self, delete_files: Sequence[DataFile]) -> list[KeySet]:
        """The key sets of equality delete files, one for each set of columns.

        Raises:
            CorruptFileError: A delete file does not say or does not have its columns.
        """
        groups: dict[tuple[int, ...], list[DataFile]] = defaultdict(list)
        for file in delete_files:
            groups[compared_columns(file)].append(file)
        found = (self._key_set(ids, files) for ids, files in groups.items())
        return [keys for keys in found if keys is not None]

    def _key_set(self, field_ids: tuple[int, ...], files: list[DataFile]) -> KeySet | None:
        name = tuple(sorted(f.file_path for f in files))
        with self._lock:
            turn = self._reading.setdefault(name, Lock())
        with turn:
            with self._lock:
                if name in self._kept:
                    self._kept.move_to_end(name)
                    return self._kept[name]
            columns = self._columns(field_ids, files)
            keys = KeySet(field_ids, columns) if len(columns[0]) else None
            with self._lock:
                self._kept[name] = keys
                self._shrink()
            return keys

    def _shrink(self) -> None:
        sizes = [0 if keys is None else keys.nbytes for keys in self._kept.values()]
        total = sum(sizes)
        for size in sizes[:-1]:
            if total <= self._capacity:
                return
            self._kept.popitem(last=False)
            total -= size

    def _columns(self, field_ids: tuple[int, ...], files: list[DataFile]) -> list[pa.Array]:
        parts: list[list[pa.Array]] = [[] for _ in field_ids]
        for file in files:
            for arrays in read_keys(self._io, self._metadata, field_ids, file):
                for part, field_id in zip(parts, field_ids, strict=True):
                    part.append(arrays[field_id])
        if not parts[0]:
            return [pa.array([], pa.null()) for _ in field_ids]
        return [pa.chunked_array(part).combine_chunks() for part in parts]


def compared_columns(file: DataFile) -> tuple[int, ...]:
    """The field ids of the columns that an equality delete file compares, ascending.

    Raises:
        CorruptFileError: It does not say.
    """
    if not file.equality_ids:
        raise CorruptFileError(
            f"Equality delete file {file.file_path} does not say what it compares",
            hint="The metadata is damaged: read an older snapshot.",
            path=file.file_path,
        )
    return tuple(sorted(file.equality_ids))


def read_keys(
    io: FileIO, metadata: TableMetadata, field_ids: tuple[int, ...], file: DataFile
) -> Iterator[dict[int, pa.Array]]:
    """The keys of an equality delete file, batch by batch: columns by field id.

    Args:
        io: Where the file lies.
        metadata: The table.
        field_ids: The columns that it compares.
        file: The file.

    Raises:
        CorruptFileError: It does not have its columns.
    """
    places = ColumnPlaces(field_ids, (), metadata)
    reader = open_data_file(io, file, metadata.name_mapping())
    try:
        missing = set(field_ids) - set(_ids(reader.fields))
        if missing:
            raise CorruptFileError(
                f"Equality delete file {file.file_path} has no column of field id {min(missing)}",
                hint="Read an older snapshot, or restore the file from a backup.",
                path=file.file_path,
            )
        projection = Projection(places.extra, reader.fields, {})
        for position, batch in reader.batches(
            projection.leaves, reader.row_groups(), _BATCH_ROWS, use_threads=False
        ):
            yield places.arrays(projection.apply(batch, position))
    finally:
        reader.close()


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _ids(fields: Sequence[FileField]) -> Iterator[int]:
    for f in fields:
        if f.field_id is not None:
            yield f.field_id
        yield from _ids(f.children)


def _descent(column: NestedField, field_id: int) -> list[int]:
    """The indices that lead from a column, pruned to one field, to that field."""
    descent = []
    while column.field_id != field_id and isinstance(column.field_type, StructType):
        (column,) = column.field_type.fields
        descent.append(0)
    return descent
