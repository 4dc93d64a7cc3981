"""Position deletes: the deleted rows of data files by number.

They stand in position delete files, or in one deletion vector for each data file, which takes the
place of all others (spec: Position Delete Files, Deletion Vectors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.errors import CorruptFileError
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.lru import ReadOnce
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.deletes.deletion_vector import VectorReader, check_stated_rows
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.rows.read.data_file_reader import DataFileReader
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.types import NestedField
from icecomb.format.storage.file_io import FileIO

Positions: TypeAlias = npt.NDArray[np.int64]

_NONE: Positions = np.empty(0, np.int64)
_BATCH_ROWS = 1 << 18
_ROW_BYTES = 12
"""The code of a path, and a position."""
_ARROW = pa.schema(
    [
        pa.field(DELETE_FILE_PATH.name, pa.dictionary(pa.int32(), pa.string())),
        pa.field(DELETE_FILE_POS.name, pa.int64()),
    ]
)
_NAMES = NameMapping(
    tuple(MappedField(f.field_id, (f.name,)) for f in (DELETE_FILE_PATH, DELETE_FILE_POS))
)


class PositionDeletes:
    """The deleted positions of data files, read from delete files and vectors on demand.

    Args:
        capacity: The maximum number of positions to cache, 8 bytes each.
    """

    def __init__(self, io: FileIO, capacity: int = 1 << 24) -> None:
        self._io = io
        self._vectors = VectorReader(io)
        self._kept = ReadOnce[str, Mapping[str, Positions]](capacity, _count, keeps_last=True)

    def of(self, data_file: DataFile, delete_files: Iterable[DataFile]) -> Positions | None:
        """Return the distinct deleted positions of a data file, ascending; None for none."""
        path = data_file.file_path
        delete_files = tuple(delete_files)
        vectors = [file for file in delete_files if file.is_deletion_vector]
        if vectors:
            check_stated_rows(vectors[0], data_file.record_count)
            deleted = self._vectors.of(path, vectors)
            return deleted if len(deleted) else None
        found = [self._from_file(path, d) for d in delete_files]
        positions = [p for p in found if len(p)]
        if not positions:
            return None
        return distinct(positions)

    def _from_file(self, path: str, delete_file: DataFile) -> Positions:
        if only_target(delete_file) == path:
            return _read_by_path(self._io, delete_file).get(path, _NONE)
        read = partial(_read_by_path, self._io, delete_file)
        return self._kept.of(delete_file.file_path, read).get(path, _NONE)


def distinct(parts: Sequence[Positions]) -> Positions:
    """Return the distinct positions in at least one array, ascending; linear if these ascend."""
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
    return path_range(lower, upper).only


def positions_by_path(io: FileIO, delete_file: DataFile) -> Mapping[str, Positions]:
    """Return all positions in a delete file by data file, in the order of the delete file."""
    target = only_target(delete_file)
    if target is not None and delete_file.is_deletion_vector:
        return {target: VectorReader(io).positions(delete_file)}
    return _read_by_path(io, delete_file)


def _read_by_path(io: FileIO, delete_file: DataFile) -> dict[str, Positions]:
    table = _read(io, delete_file).unify_dictionaries()
    if not table.num_rows:
        return {}
    paths, numbers = (column.combine_chunks() for column in table.columns)
    codes, positions = numbers_of(paths.indices), numbers_of(numbers)
    if len(paths.dictionary) == 1:
        return {paths.dictionary[0].as_py(): positions}
    order = np.argsort(codes, kind="stable")
    names = paths.dictionary.to_pylist()
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return {
        name: positions[order[starts[i] : starts[i + 1]]].copy() for i, name in enumerate(names)
    }


def _read(io: FileIO, delete_file: DataFile) -> pa.Table:
    reader = open_data_file(io, delete_file, _NAMES, dictionaries=(DELETE_FILE_PATH.name,))
    try:
        columns = [_column(reader, f) for f in (DELETE_FILE_PATH, DELETE_FILE_POS)]
        leaves = [leaf for c in columns for leaf in c.leaves]
        _check_count(reader.row_count or 0, reader.location)
        batches = []
        for first, batch in reader.batches(
            leaves, reader.row_groups(), _BATCH_ROWS, use_threads=False
        ):
            _check_count(first + batch.num_rows, reader.location)
            batches.append(_checked(_normalised(batch, columns), reader.location))
    finally:
        reader.close()
    return pa.Table.from_batches(batches, _ARROW)


def _check_count(rows: int, location: str) -> None:
    """Refuse more rows than memory is for: equal ones take no bytes in the file."""
    if rows * _ROW_BYTES > unpacked_bytes():
        raise CorruptFileError(
            f"Delete file {location} holds {rows} rows, more than the limit allows ({UNPACKED})",
            hint="If the file is sound, set that environment variable to more.",
            path=location,
        )


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
    path, position = (batch.column(c.name) for c in columns)
    if path.type != _ARROW.field(0).type:
        plain = path.dictionary_decode() if pa.types.is_dictionary(path.type) else path
        path = plain.cast(pa.string()).dictionary_encode()
    return pa.RecordBatch.from_arrays([path, position], schema=_ARROW)


def _checked(batch: pa.RecordBatch, location: str) -> pa.RecordBatch:
    """Refuse rows that delete nothing, as Iceberg Java does: another row may be meant."""
    path, position = batch.columns
    if path.null_count or position.null_count:
        found = f"a null in {(DELETE_FILE_PATH if path.null_count else DELETE_FILE_POS).name}"
    elif batch.num_rows and (least := numbers_of(position).min()) < 0:
        found = f"position {least}"
    else:
        return batch
    raise CorruptFileError(
        f"Delete file {location} holds {found}",
        hint="Restore the file from a backup, or read an older snapshot.",
        path=location,
    )


_NO_PATHS: Final = (0, 16)
"""The lengths of what is not a whole path: writers truncate bounds to 16 characters
(`write.metadata.metrics.default`)."""


@dataclass(frozen=True, slots=True)
class PathRange:
    """The paths of data files that a delete file may name.

    Attributes:
        lower: A path that is not above any of them, in UTF-8; None if unknown.
        upper: The beginning of a path that is not below any of them; None if unknown.
        only: The only path, if there is one.
    """

    lower: bytes | None
    upper: bytes | None
    only: str | None = None

    def covers(self, path: bytes) -> bool:
        """Return whether the delete file may name a data file."""
        if self.lower is not None and path < self.lower:
            return False
        # some writers truncate upper bounds without raising them
        return self.upper is None or path <= self.upper or path.startswith(self.upper)


def path_range(lower: bytes | None, upper: bytes | None) -> PathRange:
    """Return what the bounds of the column `file_path` say, as far as they can be right.

    Others say nothing: a delete file that is taken for one about other data files would bring
    deleted rows back.
    """
    first, last = _text(lower), _text(upper)
    lower, upper = lower if first is not None else None, upper if last is not None else None
    if lower is not None and upper is not None and lower > upper:
        return PathRange(None, None)
    is_whole = first is not None and first == last and len(first) not in _NO_PATHS
    return PathRange(lower, upper, first if is_whole else None)


def _text(bound: bytes | None) -> str | None:
    try:
        return None if bound is None else bound.decode()
    except UnicodeDecodeError:
        return None
