"""Equality deletes: rows that equal a key in a delete file (spec: Equality Delete Files).

Nulls are equal to each other here, and so are NaNs. Delete files that compare the same columns form
one set of keys. Planning decides by sequence numbers which delete files apply to a data file.
No Python code runs per row: values become codes, and codes are looked up in sorted arrays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.number_view import mask_of
from icecomb.format.arrow.value_codes import ValueCodes
from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.lru import ReadOnce
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.rows.values.arrow_projection import FileField, Projection
from icecomb.format.rows.values.metadata_columns import LINEAGE
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import prune
from icecomb.format.spec.types import OPAQUE_TYPES, NestedField, StructType
from icecomb.format.storage.file_io import FileIO

_BATCH_ROWS = 1 << 17


class ColumnPlaces:
    """The positions in batches of columns needed by id; unselected ones are read in addition.

    Args:
        field_ids: The ids of the columns, which may be fields in structs.
        projected: The selected columns, which come first.
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
            lineage = next((f for f in LINEAGE if f.field_id == field_id), None)
            if lineage is not None:
                self._paths[field_id] = (len(projected) + len(self.extra), [])
                self.extra.append(lineage)
                continue
            schema = metadata.schema_with(field_id)
            if not schema.contains(field_id):
                raise UnsupportedError(
                    f"Equality deletes of {metadata.location} compare the column of id {field_id}, "
                    "which no schema of the table has any more",
                    hint="An expiration removed the schemas that had it: go back to a metadata "
                    "file from before, or rewrite the rows with the engine that wrote the deletes.",
                )
            (column,) = prune(schema, {field_id}).fields
            at = len(projected) + len(self.extra)
            self._paths[field_id] = (at, _descent(column, field_id))
            # A column that was dropped may be missing, even if it was required.
            self.extra.append(replace(column, required=False))

    def arrays(self, batch: pa.RecordBatch) -> dict[int, pa.Array]:
        """Return the columns of a batch by field id."""
        return {
            field_id: pc.struct_field(batch.column(at), path) if path else batch.column(at)
            for field_id, (at, path) in self._paths.items()
        }


class KeySet:
    """The set of keys of delete files that compare the same columns, one array for each."""

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
        """The size of the set in memory, in bytes."""
        return sum(v.nbytes for v in self._values) + sum(level.nbytes for level in self._levels)

    @property
    def count(self) -> int:
        """The number of distinct keys."""
        return len(self._levels[-1]) if self._levels else self._values[0].count

    def contains(self, arrays: Mapping[int, pa.Array]) -> pa.BooleanArray:
        """Return a mask of the rows, with columns by field id, that have one of the keys."""
        found, _ = self._codes(arrays)
        return mask_of(found)

    def places(self, arrays: Mapping[int, pa.Array]) -> npt.NDArray[np.int64]:
        """Return the number of each row's key, less than `count`; -1 for rows without one."""
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
    """The keys of deleted rows."""

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The field ids of the columns that are compared."""

    def contains(self, arrays: Mapping[int, pa.Array]) -> pa.BooleanArray:
        """Return a mask of the rows that have one of the keys, given the columns by field id."""


class KeySource(Protocol):
    """The source of deleted rows' keys for a reader of data files."""

    def of(self, delete_files: Sequence[DataFile]) -> Sequence[Keys]:
        """Return the keys of equality delete files."""


class EqualityKeys:
    """A bounded cache of the key sets of equality delete files, read on demand.

    Args:
        capacity: The maximum size of the cached sets in memory, in bytes; the latest one is
            always kept.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, capacity: int = 1 << 28) -> None:
        self._io = io
        self._metadata = metadata
        self._kept = ReadOnce[tuple[str, ...], "KeySet | None"](
            capacity, lambda keys: 0 if keys is None else keys.nbytes, keeps_last=True
        )

    def of(self, delete_files: Sequence[DataFile]) -> list[KeySet]:
        """Return the key sets of equality delete files, one for each set of columns."""
        groups: dict[tuple[int, ...], list[DataFile]] = defaultdict(list)
        for file in delete_files:
            groups[compared_columns(file)].append(file)
        found = (
            self._kept.of(
                tuple(sorted(f.file_path for f in files)), partial(self._key_set, ids, files)
            )
            for ids, files in groups.items()
        )
        return [keys for keys in found if keys is not None]

    def _key_set(self, field_ids: tuple[int, ...], files: list[DataFile]) -> KeySet | None:
        columns = self._columns(field_ids, files)
        return KeySet(field_ids, columns) if len(columns[0]) else None

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
    """Return the field ids of the columns that an equality delete file compares, ascending."""
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
    """Yield the keys of an equality delete file batch by batch, as columns by field id."""
    places = ColumnPlaces(field_ids, (), metadata)
    _check_types(field_ids, metadata, file)
    reader = open_data_file(io, file, metadata.name_mapping())
    try:
        missing = set(field_ids) - set(_ids(reader.fields))
        if missing:
            raise CorruptFileError(
                f"Equality delete file {file.file_path} has no column of field id {min(missing)}",
                hint="Read an older snapshot, or restore the file from a backup.",
                path=file.file_path,
            )
        projection, size = Projection(places.extra, reader.fields, {}), 0
        for position, batch in reader.batches(
            projection.leaves, reader.row_groups(), _BATCH_ROWS, use_threads=False
        ):
            arrays = places.arrays(projection.apply(batch, position))
            size += sum(array.nbytes for array in arrays.values())
            if size > unpacked_bytes():  # equal ones may take no bytes in the file
                raise CorruptFileError(
                    f"Equality delete file {file.file_path} holds keys of {size} bytes, more than "
                    f"the limit ({UNPACKED})",
                    hint="If the file is sound, set that environment variable to more.",
                    path=file.file_path,
                )
            yield arrays
    finally:
        reader.close()


def _check_types(field_ids: Sequence[int], metadata: TableMetadata, file: DataFile) -> None:
    for field_id in field_ids:
        schema = metadata.schema_with(field_id)
        kind = schema.find_type(field_id) if schema.contains(field_id) else None
        if isinstance(kind, OPAQUE_TYPES):
            name = schema.find_column_name(field_id)
            raise UnsupportedError(
                f"Equality delete file {file.file_path} compares the column {name!r} of type "
                f"{kind}: such values cannot be compared",
                hint="Rewrite the rows with the engine that wrote the deletes.",
                path=file.file_path,
                column=name,
            )


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _ids(fields: Sequence[FileField]) -> Iterator[int]:
    for f in fields:
        if f.field_id is not None:
            yield f.field_id
        yield from _ids(f.children)


def _descent(column: NestedField, field_id: int) -> list[int]:
    """Return the path of indices from a column, pruned to one field, to that field."""
    descent = []
    while column.field_id != field_id and isinstance(column.field_type, StructType):
        (column,) = column.field_type.fields
        descent.append(0)
    return descent
