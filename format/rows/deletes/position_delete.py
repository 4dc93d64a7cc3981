"""Position deletes: the deleted rows of data files by number.

They stand in position delete files, or in one deletion vector for each data file, which takes the
place of all others (spec: Position Delete Files, Deletion Vectors).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.deletes.vector_reader import VectorReader
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.rows.read.data_file_reader import DataFileReader
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.types import NestedField
from icecomb.format.storage.file_io import FileIO

Positions: TypeAlias = npt.NDArray[np.int64]

_BATCH_ROWS = 1 << 18
_NAMES = NameMapping(
    tuple(MappedField(f.field_id, (f.name,)) for f in (DELETE_FILE_PATH, DELETE_FILE_POS))
)


class PositionDeletes:
    """The deleted positions of data files, read from delete files and vectors on demand.

    A delete file for several data files is read once and cached, up to a capacity.

    Args:
        io: File system that holds the delete files.
        capacity: The maximum number of positions to cache, 8 bytes each.
    """

    def __init__(self, io: FileIO, capacity: int = 1 << 24) -> None:
        self._io = io
        self._vectors = VectorReader(io)
        self._capacity = capacity
        self._lock = Lock()
        self._reading: dict[str, Lock] = {}
        self._kept: OrderedDict[str, Mapping[str, Positions]] = OrderedDict()
        self._size = 0

    def of(self, data_file: DataFile, delete_files: Iterable[DataFile]) -> Positions | None:
        """Return the distinct deleted positions of a data file, ascending; None for none.

        Args:
            data_file: The data file.
            delete_files: The position delete files that apply to it, or its deletion vector.

        Raises:
            CorruptFileError: If a delete file or the vector is damaged.
            NoSuchFileError: If it does not exist.
        """
        path = data_file.file_path
        delete_files = tuple(delete_files)
        vectors = [file for file in delete_files if file.is_deletion_vector]
        if vectors:
            deleted = self._vectors.of(path, vectors)
            return deleted if len(deleted) else None
        found = [self._from_file(path, d) for d in delete_files]
        positions = [p for p in found if len(p)]
        if not positions:
            return None
        deleted = distinct(positions)
        # drop negative positions: no rows have them, but they would count as deleted
        deleted = deleted[np.searchsorted(deleted, 0) :]
        return deleted if len(deleted) else None

    def _from_file(self, path: str, delete_file: DataFile) -> Positions:
        if only_target(delete_file) == path:
            return _read_positions(self._io, delete_file)
        with self._lock:
            turn = self._reading.setdefault(delete_file.file_path, Lock())
        with turn:
            by_path = self._kept.get(delete_file.file_path)
            if by_path is None:
                by_path = _read_by_path(self._io, delete_file)
                self._keep(delete_file.file_path, by_path)
        return by_path.get(path, np.empty(0, np.int64))

    def _keep(self, location: str, by_path: Mapping[str, Positions]) -> None:
        with self._lock:
            self._kept[location] = by_path
            self._size += _count(by_path)
            while self._size > self._capacity and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._size -= _count(dropped)


def distinct(parts: Sequence[Positions]) -> Positions:
    """Return the distinct positions in some arrays, ascending.

    Args:
        parts: The arrays, at least one; ascending ones are merged in linear time.
    """
    together = np.concatenate(parts)
    together.sort(kind="stable")  # numpy's set functions hash: a second for a million
    fresh = np.ones(len(together), np.bool_)
    np.not_equal(together[1:], together[:-1], out=fresh[1:])
    return together if fresh.all() else together[fresh]


def live_mask(deleted: Positions, position: int, rows: int) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the rows of a batch that are not deleted; None when all are live.

    Args:
        deleted: Deleted positions of the file, ascending.
        position: The number of the batch's first row in the file.
        rows: The number of rows in the batch.
    """
    begin, end = np.searchsorted(deleted, (position, position + rows))
    if begin == end:
        return None
    mask = np.ones(rows, np.bool_)
    mask[deleted[begin:end] - position] = False
    return mask


def _count(by_path: Mapping[str, Positions]) -> int:
    return sum(len(p) for p in by_path.values())


def only_target(delete_file: DataFile) -> str | None:
    """Return the only data file to which a delete file refers, if its metrics prove it."""
    if delete_file.referenced_data_file is not None:
        return delete_file.referenced_data_file
    lower = (delete_file.lower_bounds or {}).get(DELETE_FILE_PATH.field_id)
    upper = (delete_file.upper_bounds or {}).get(DELETE_FILE_PATH.field_id)
    return lower.decode() if lower is not None and lower == upper else None


def positions_by_path(io: FileIO, delete_file: DataFile) -> Mapping[str, Positions]:
    """Return all positions in a delete file by data file, in the order of the delete file.

    Args:
        io: File system that holds the delete file.
        delete_file: The position delete file, or a deletion vector.

    Raises:
        CorruptFileError: If the delete file is damaged.
    """
    target = only_target(delete_file)
    if target is not None and delete_file.is_deletion_vector:
        return {target: VectorReader(io).positions(delete_file)}
    if target is not None:
        return {target: _read_positions(io, delete_file)}
    return _read_by_path(io, delete_file)


def _read_positions(io: FileIO, delete_file: DataFile) -> Positions:
    table = _read(io, delete_file, with_path=False)
    return _numbers(table.column(0).combine_chunks())


def _read_by_path(io: FileIO, delete_file: DataFile) -> dict[str, Positions]:
    table = _read(io, delete_file, with_path=True).unify_dictionaries()
    if not table.num_rows:
        return {}
    paths = table.column(0).combine_chunks()
    codes = _numbers(paths.indices)
    positions = _numbers(table.column(1).combine_chunks())
    order = np.argsort(codes, kind="stable")
    names = paths.dictionary.to_pylist()
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return {
        name: positions[order[starts[i] : starts[i + 1]]].copy() for i, name in enumerate(names)
    }


def _numbers(integers: pa.Array) -> npt.NDArray[Any]:
    """Return integers, with -1 for null: the number of no row and of no path."""
    return numbers_of(integers.fill_null(-1) if integers.null_count else integers)


def _read(io: FileIO, delete_file: DataFile, *, with_path: bool) -> pa.Table:
    reader = open_data_file(io, delete_file, _NAMES, dictionaries=(DELETE_FILE_PATH.name,))
    wanted = (DELETE_FILE_PATH, DELETE_FILE_POS) if with_path else (DELETE_FILE_POS,)
    try:
        columns = [_column(reader, f) for f in wanted]
        leaves = [leaf for c in columns for leaf in c.leaves]
        batches = [
            _normalised(batch, columns)
            for _, batch in reader.batches(
                leaves, reader.row_groups(), _BATCH_ROWS, use_threads=False
            )
        ]
    finally:
        reader.close()
    kinds = (pa.dictionary(pa.int32(), pa.string()), pa.int64())[-len(wanted) :]
    schema = pa.schema([pa.field(f.name, k) for f, k in zip(wanted, kinds, strict=True)])
    return pa.Table.from_batches(batches, schema)


def _column(reader: DataFileReader, wanted: NestedField) -> FileField:
    found = next((f for f in reader.fields if f.field_id == wanted.field_id), None)
    if found is None:
        raise CorruptFileError(
            f"Delete file {reader.location} has no column {wanted.name}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=reader.location,
        )
    return found


def _normalised(batch: pa.RecordBatch, columns: list[FileField]) -> pa.RecordBatch:
    arrays = [batch.column(c.name) for c in columns]
    if len(arrays) == 2:
        path = arrays[0]
        if path.type != pa.dictionary(pa.int32(), pa.string()):
            plain = path.dictionary_decode() if pa.types.is_dictionary(path.type) else path
            arrays[0] = plain.cast(pa.string()).dictionary_encode()
    names = [DELETE_FILE_PATH.name, DELETE_FILE_POS.name][-len(arrays) :]
    return pa.RecordBatch.from_arrays(arrays, names)
