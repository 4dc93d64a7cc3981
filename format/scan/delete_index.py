"""An index of delete files by the data files whose rows they may delete (spec: Scan Planning).

A position delete file applies to data files of its partition that are not newer; when all its rows
name one data file it applies only to that file. The deletion vector of a data file stands for all
position deletes of it: other ones are left out, as in Iceberg Java. An equality delete file applies
to data files of its partition that are older, and that may hold values that it deletes; one of an
unpartitioned spec applies to such data files of all partitions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, repeat
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, binaries, integers
from icecomb.format.arrow.number_view import Longs, group_numbers, numbers_of, truths_of
from icecomb.format.expressions.comparison import bounds_column, known_bounds
from icecomb.format.expressions.manifest_metrics import BOUNDS
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import DataFile, DataFileContent, ManifestFile
from icecomb.format.rows.deletes.deletion_vector import damaged_vector, several_vectors
from icecomb.format.rows.deletes.position_delete import PathRange, path_range
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH
from icecomb.format.spec.promotion import can_promote
from icecomb.format.spec.types import DoubleType, FloatType, PrimitiveType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.errors import CorruptFileError
    from icecomb.format.spec.schema import Schema

DELETE_STATISTICS = ("null_value_counts", *BOUNDS)
"""The statistics of delete manifests that the index needs."""

_FILE_BYTES = 1000
"""The memory of a delete file, measured: a vector takes 263, and 686 when a task asked for it."""

PartitionKey = tuple[Hashable, ...]
_Mask = npt.NDArray[np.bool_]
_Ranks = npt.NDArray[np.uint64]

_NOT_COMPARED: Final = (FloatType, DoubleType, UUIDType)
_MOST_PAIRS: Final = 1 << 22
"""The maximum number of pairs of a data file and a delete file compared at once."""


class _BySequence:
    """Delete files, ordered by the newest data file they apply to."""

    __slots__ = ("_files", "_known", "_numbers", "_pending")

    def __init__(self) -> None:
        self._pending: list[tuple[int, DataFile]] = []
        self._numbers: list[int] = []
        self._files: list[DataFile] = []
        self._known: dict[int, tuple[DataFile, ...]] = {}

    def add(self, applies_up_to: int, file: DataFile) -> None:
        self._pending.append((applies_up_to, file))

    def settle(self) -> None:
        if self._pending:
            ordered = sorted(
                [*zip(self._numbers, self._files, strict=True), *self._pending],
                key=lambda pair: pair[0],
            )
            self._numbers = [number for number, _ in ordered]
            self._files = [file for _, file in ordered]
            self._pending, self._known = [], {}

    def files_for(self, sequence_number: int) -> tuple[DataFile, ...]:
        self.settle()
        first = bisect_left(self._numbers, sequence_number)
        found = self._known.get(first)
        if found is None:
            found = self._known[first] = tuple(self._files[first:])
        return found


class _ByPath(_BySequence):
    """Position delete files of one partition that name a range of data files."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        super().__init__()
        self._ranges: dict[str, PathRange] = {}

    def add_range(self, applies_up_to: int, file: DataFile, paths: PathRange) -> None:
        self.add(applies_up_to, file)
        if paths.lower is not None or paths.upper is not None:
            self._ranges[file.file_path] = paths

    def files_for_path(self, sequence_number: int, path: str) -> tuple[DataFile, ...]:
        files = self.files_for(sequence_number)
        if not self._ranges or not files:
            return files
        wanted = path.encode()
        return tuple(
            file
            for file in files
            if (paths := self._ranges.get(file.file_path)) is None or paths.covers(wanted)
        )


class DeleteFileIndex:
    """The delete files of a snapshot, looked up by data file.

    Args:
        types: Types of the columns whose values are compared; see
            `equality_ranges.comparable_columns`.

    Attributes:
        others: The delete files other than deletion vectors, in the order in which they were
            added.
        ranges: The ranges of values that the equality delete files among them delete.
    """

    def __init__(self, types: Mapping[int, PrimitiveType] = MappingProxyType({})) -> None:
        self.ranges = EqualityRanges(types)
        self._newest = -1
        self.others: list[DataFile] = []
        self._global: _BySequence | None = None
        self._equality: dict[PartitionKey, _BySequence] = {}
        self._position: dict[PartitionKey, _ByPath] = {}
        self._by_path: dict[str, _BySequence] = {}
        self._vectors = VectorIndex()

    @property
    def nbytes(self) -> int:
        """The approximate size of the index in memory, in bytes."""
        return (len(self.others) + len(self._vectors)) * _FILE_BYTES

    @property
    def files(self) -> list[DataFile]:
        """All delete files: `others`, then deletion vectors by their indices."""
        vectors = map(self._vectors.vector, range(len(self._vectors)))
        return [*self.others, *vectors]

    def __bool__(self) -> bool:
        return bool(self._vectors) or self._has_files

    @property
    def _has_files(self) -> bool:
        return bool(self._global or self._equality or self._position or self._by_path)

    def add(
        self,
        columns: ManifestColumns,
        rows: Sequence[int] | None = None,
        *,
        unpartitioned: bool = False,
    ) -> None:
        """Add the delete files of a manifest with `DELETE_STATISTICS`; all rows by default.

        Args:
            unpartitioned: Whether its spec has no fields, so that equality deletes are global.
        """
        vectors = columns.vectors if rows is None else columns.vectors.take(integers(rows))
        if vectors.true_count:
            plain = columns.without_statistics()
            if rows is None and vectors.true_count == len(columns):
                self._vectors.add(plain, range(len(columns)), *_distinct_keys(columns, None))
                return
            is_vector = truths_of(vectors)
            chosen = np.arange(len(columns)) if rows is None else np.array(rows)
            own, rows = chosen[is_vector].tolist(), chosen[~is_vector].tolist()
            self._vectors.add(plain, own, *_distinct_keys(columns, integers(own)))
            if not rows:
                return
        indices = None if rows is None else integers(rows)
        lower, upper = (_path_bounds(columns, name, indices) for name in BOUNDS)
        numbers = _picked(columns.column("sequence_number"), indices)
        files = columns.without_statistics().data_files(rows)
        self.others += files
        self.ranges.add(columns, indices, files)
        keys = partition_keys(columns, indices)
        for file, number, key, low, high in zip(files, numbers, keys, lower, upper, strict=True):
            sequence_number = number or 0
            if file.content is DataFileContent.EQUALITY_DELETES:
                self._add_equality(file, sequence_number, key, unpartitioned=unpartitioned)
                continue
            paths = path_range(low, high)
            path = file.referenced_data_file
            if path is None:
                path = paths.only
            if path is not None:
                self._by_path.setdefault(path, _BySequence()).add(sequence_number, file)
                continue
            found = self._position.get(key)
            if found is None:
                found = self._position[key] = _ByPath()
            found.add_range(sequence_number, file, paths)

    def settle(self) -> None:
        """Sort everything now, so that several threads may look up files afterwards."""
        groups = [*self._equality.values(), *self._position.values(), *self._by_path.values()]
        for group in groups if self._global is None else [*groups, self._global]:
            group.settle()
        self._vectors.settle()

    def files_for(
        self, columns: ManifestColumns, rows: Sequence[int] | None = None
    ) -> list[tuple[DataFile, ...]]:
        """Return the delete files that may apply to each data file; all rows by default.

        If `columns` has bounds, equality deletes of other values are left out.
        """
        found, vectors = self.lazy_files_for(columns, rows)
        return [
            files if index < 0 else (*files, self._vectors.vector(index))
            for files, index in zip(found, vectors, strict=True)
        ]

    def lazy_files_for(
        self, columns: ManifestColumns, rows: Sequence[int] | None = None
    ) -> tuple[list[tuple[DataFile, ...]], list[int]]:
        """Return what `files_for` does, with deletion vectors as indices: see `vector`.

        The index of a data file's vector is -1 if there is none.
        """
        count = len(columns) if rows is None else len(rows)
        found: list[tuple[DataFile, ...]] = [()] * count
        vectors = [-1] * count
        if not self:
            return found, vectors
        indices = None if rows is None else integers(rows)
        paths = _picked(columns.column("file_path"), indices)
        if self._vectors:
            ages = columns.column("sequence_number").fill_null(ZERO)
            ages = numbers_of(ages if indices is None else ages.take(indices))
            keys = _distinct_keys(columns, indices)
            vectors = self._vectors.indices(paths, ages, *keys).tolist()
        if not self._has_files:
            return found, vectors
        numbers = _picked(columns.column("sequence_number"), indices)
        in_ranges = bool(self.ranges) and columns.statistics.issuperset(BOUNDS)
        ranges = self.ranges.compared(columns, indices) if in_ranges else None
        alike: dict[tuple[int, PartitionKey], list[int]] = {}
        for at, alike_by in enumerate(zip(numbers, partition_keys(columns, indices), strict=True)):
            alike.setdefault(alike_by, []).append(at)
        for (number, key), members in alike.items():
            files = self._equality_files(number or 0, key)
            if files and ranges is not None:
                for at, those in zip(members, ranges.reaching(files, members), strict=True):
                    found[at] = those
            elif files:
                for at in members:
                    found[at] = files
            if key not in self._position and not self._by_path:
                continue
            for at in members:
                if vectors[at] < 0:
                    found[at] += self._position_files(number or 0, key, paths[at])
        return found, vectors

    def vector(self, index: int) -> DataFile:
        """Return a deletion vector by its index, always the same object."""
        return self._vectors.vector(index)

    def files_for_data_file(
        self, sequence_number: int, key: PartitionKey, path: str, *, is_own: bool = True
    ) -> tuple[DataFile, ...]:
        """Return the delete files for one data file, whatever values they delete.

        Args:
            sequence_number: The file's data sequence number, or a later one.
            key: The file's partition, as `partition_keys` returns it.
            is_own: Whether the number is that of the file, so that no deletion vector is older.
        """
        found = self._equality_files(sequence_number, key)
        index = self._vectors.index(path)
        if index is None:
            return found + self._position_files(sequence_number, key, path)
        if is_own:
            self._vectors.check(index, sequence_number, key)
        return (*found, self._vectors.vector(index))

    def may_reach(self, manifest: ManifestFile) -> bool:
        """Return whether bounds of a manifest's data files can rule out equality deletes."""
        first = manifest.min_sequence_number
        return bool(self.ranges) and (first is None or first <= self._newest)

    def _position_files(
        self, sequence_number: int, key: PartitionKey, path: str
    ) -> tuple[DataFile, ...]:
        found: tuple[DataFile, ...] = ()
        if (position := self._position.get(key)) is not None:
            found = position.files_for_path(sequence_number, path)
        if (exact := self._by_path.get(path)) is not None:
            found += exact.files_for(sequence_number)
        return found

    def _equality_files(self, sequence_number: int, key: PartitionKey) -> tuple[DataFile, ...]:
        found: tuple[DataFile, ...] = ()
        if self._global is not None:
            found = self._global.files_for(sequence_number)
        if (equality := self._equality.get(key)) is not None:
            found += equality.files_for(sequence_number)
        return found

    def _add_equality(
        self, file: DataFile, sequence_number: int, key: PartitionKey, *, unpartitioned: bool
    ) -> None:
        self._newest = max(self._newest, sequence_number - 1)
        if unpartitioned:
            if self._global is None:
                self._global = _BySequence()
            self._global.add(sequence_number - 1, file)
        else:
            self._equality.setdefault(key, _BySequence()).add(sequence_number - 1, file)


def partition_keys(columns: ManifestColumns, indices: pa.Array | None) -> Iterable[PartitionKey]:
    """Return a hashable key of each file's partition: its spec id, and its values as stored.

    NaN equals NaN, and -0.0 does not equal 0.0.
    """
    spec_id = columns.manifest.partition_spec_id
    count = len(columns) if indices is None else len(indices)
    values = []
    for position, column in enumerate(columns.partition_columns):
        found = _picked(columns.partition(position), indices)
        if isinstance(column.field_type, (FloatType, DoubleType)):
            found = [None if value is None else value.hex() for value in found]
        values.append(found)
    return zip([spec_id] * count, *values, strict=True)


def _distinct_keys(
    columns: ManifestColumns, indices: pa.Array | None
) -> tuple[Longs, list[PartitionKey]]:
    """Return `partition_keys` as the distinct ones and, for each file, the index of its own."""
    count = len(columns) if indices is None else len(indices)
    kinds = [column.field_type for column in columns.partition_columns]
    if any(isinstance(kind, (FloatType, DoubleType)) for kind in kinds):
        # Arrow does not tell 0.0 from -0.0
        keys = list(partition_keys(columns, indices))
        return np.arange(count), keys
    values = [columns.partition(at) for at in range(len(kinds))]
    if indices is not None:
        values = [array.take(indices) for array in values]
    codes, first = group_numbers(values, count)
    rows = integers(first.tolist())
    return codes, list(partition_keys(columns, rows if indices is None else indices.take(rows)))


def _path_bounds(
    columns: ManifestColumns, name: str, indices: pa.Array | None
) -> list[bytes | None]:
    return _picked(columns.statistic(name, DELETE_FILE_PATH.field_id), indices)


def _picked(array: pa.Array, indices: pa.Array | None) -> list:  # type: ignore[type-arg]
    return _chosen(array, indices).to_pylist()  # type: ignore[no-any-return]


_NONE: Final = -1
_BLOCK: Final = 1024
"""The number of vectors whose `DataFile` objects are built together."""


class VectorIndex:
    """The deletion vectors of a snapshot, numbered from 0."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._parts: list[_Part] = []
        self._starts: list[int] = []
        self._keys: dict[Hashable, int] = {}
        self._numbers: Longs = np.empty(0, np.int64)
        self._partitions: Longs = np.empty(0, np.int64)
        self._pending: list[tuple[Longs, Longs]] = []

    def __len__(self) -> int:
        return len(self._indices)

    def add(
        self, columns: ManifestColumns, rows: Sequence[int], codes: Longs, keys: Sequence[Hashable]
    ) -> None:
        """Add the vectors among a delete manifest's rows.

        Args:
            codes: For each of these rows, the index of its partition in `keys`.
            keys: Distinct partitions, as `partition_keys` returns them.
        """
        start, part = len(self._indices), _Part(columns, rows)
        targets = part.column("referenced_data_file")
        paths = targets.to_pylist()
        if targets.null_count:
            raise damaged_vector(part.file(paths.index(None)), "does not name its data file")
        self._parts.append(part)
        self._starts.append(start)
        self._indices.update(zip(paths, range(start, start + len(paths)), strict=True))
        if len(self._indices) < start + len(paths):
            raise self._repeated()
        known = [self._keys.setdefault(key, len(self._keys)) for key in keys]
        numbers = numbers_of(part.column("sequence_number").fill_null(ZERO))
        self._pending.append((numbers, np.array(known, np.int64)[codes]))

    def settle(self) -> None:
        """Prepare look-ups, so that several threads may do them afterwards."""
        if self._pending:
            numbers, partitions = zip(*self._pending, strict=True)
            self._numbers = np.concatenate([self._numbers, *numbers])
            self._partitions = np.concatenate([self._partitions, *partitions])
            self._pending = []

    def index(self, path: str) -> int | None:
        """Return the index of a data file's vector; None if it has none."""
        return self._indices.get(path)

    def indices(
        self, paths: Sequence[str], numbers: Longs, codes: Longs, keys: Sequence[Hashable]
    ) -> Longs:
        """Return the indices of data files' vectors, -1 for those that have none.

        Args:
            numbers: Their data sequence numbers.
            codes: For each of them, the index of its partition in `keys`.
            keys: Distinct partitions, as `partition_keys` returns them.
        """
        self.settle()
        places = map(self._indices.get, paths, repeat(_NONE))
        found: Longs = np.fromiter(places, np.int64, len(paths))
        there = np.flatnonzero(found != _NONE)
        known = np.array([self._keys.get(key, _NONE) for key in keys], np.int64)
        own = found[there]
        older = self._numbers[own] < numbers[there]
        elsewhere = self._partitions[own] != known[codes[there]]
        for at in np.flatnonzero(older | elsewhere)[:1]:
            row = int(there[at])
            self.check(int(own[at]), int(numbers[row]), keys[int(codes[row])])
        return found

    def check(self, index: int, sequence_number: int, key: Hashable) -> None:
        """Check that a vector is not older than its data file, nor of another partition."""
        self.settle()
        number = int(self._numbers[index])
        if number < sequence_number:
            problem = f"has sequence number {number}, less than {sequence_number} of its data file"
            raise damaged_vector(self.vector(index), problem)
        partition = int(self._partitions[index])
        if self._keys.get(key) != partition:
            own = list(self._keys)[partition]
            problem = f"has spec and partition {own}, and its data file has {key}"
            raise damaged_vector(self.vector(index), problem)

    def vector(self, index: int) -> DataFile:
        """Return a vector by its index, always the same object."""
        number = bisect_right(self._starts, index) - 1
        return self._parts[number].file(index - self._starts[number])

    def _repeated(self) -> CorruptFileError:
        seen: dict[str, DataFile] = {}
        for part in self._parts:
            for at, path in enumerate(part.column("referenced_data_file").to_pylist()):
                if path in seen:
                    return several_vectors(path, seen[path], part.file(at))
                seen[path] = part.file(at)
        raise AssertionError


class _Part:
    """The vectors of one manifest."""

    def __init__(self, columns: ManifestColumns, rows: Sequence[int]) -> None:
        self._columns = columns
        self._rows = rows
        self._lock = Lock()
        self._blocks: dict[int, list[DataFile]] = {}

    def column(self, name: str) -> pa.Array:
        found = self._columns.column(name)
        return found if len(self._rows) == len(found) else found.take(pa.array(self._rows))

    def file(self, at: int) -> DataFile:
        block, within = divmod(at, _BLOCK)
        files = self._blocks.get(block)
        if files is None:
            with self._lock:
                files = self._blocks.get(block)
                if files is None:
                    rows = self._rows[block * _BLOCK : (block + 1) * _BLOCK]
                    files = self._blocks[block] = self._columns.data_files(rows)
        return files[within]


def comparable_columns(schemas: Iterable[Schema]) -> dict[int, PrimitiveType]:
    """Return the types of the columns whose bounds can be compared, the widest each has had.

    A table that was replaced may have reused an id for a column of another type: its files have
    bounds of either type, so the column is left out.

    Args:
        schemas: All schemas of a table: a delete file may name a column that was dropped since.
    """
    found: dict[int, PrimitiveType] = {}
    unlike: set[int] = set()
    for field in chain.from_iterable(schema.fields for schema in schemas):
        kind = field.field_type
        if not isinstance(kind, PrimitiveType) or isinstance(kind, _NOT_COMPARED):
            unlike.add(field.field_id)
            continue
        known = found.setdefault(field.field_id, kind)
        if can_promote(known, kind):
            found[field.field_id] = kind
        elif not can_promote(kind, known):
            unlike.add(field.field_id)
    return {field_id: kind for field_id, kind in found.items() if field_id not in unlike}


class EqualityRanges:
    """The ranges of values that equality delete files delete; data files outside keep all rows.

    A column of a delete file is compared when the file's metrics say that it deletes no null there
    and give both bounds; one of a data file when it has both bounds. NaN is not covered by bounds,
    and writers disagree on the order of UUIDs: columns of these types are not compared, nor are
    columns inside of structs, lists and maps. For `types` see `comparable_columns`.
    """

    def __init__(self, types: Mapping[int, PrimitiveType]) -> None:
        self._types = types
        self._ranges: dict[int, _Ranges] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def add(
        self, columns: ManifestColumns, indices: pa.Array | None, files: Sequence[DataFile]
    ) -> None:
        """Add the equality delete files among `files`, those of the rows at `indices`.

        The manifest has `null_value_counts` and both bounds; None as `indices` means all rows.
        """
        named = {field_id for file in files for field_id in file.equality_ids or ()}
        for field_id in named & self._types.keys():
            nulls = _picked(columns.statistic("null_value_counts", field_id), indices)
            lower, upper = (bound.to_pylist() for bound in self._bounds(columns, field_id, indices))
            for file, count, low, high in zip(files, nulls, lower, upper, strict=True):
                if (
                    file.content is DataFileContent.EQUALITY_DELETES
                    and field_id in (file.equality_ids or ())
                    and count == 0
                    and low is not None
                    and high is not None
                ):
                    self._ranges.setdefault(field_id, _Ranges()).add(file.file_path, low, high)

    def compared(self, columns: ManifestColumns, indices: pa.Array | None) -> ComparedRanges:
        """Return the ranges prepared for comparison with those of data files with both bounds.

        Args:
            indices: Indices of the manifest's rows to compare; None for all.
        """
        return ComparedRanges(
            [
                ranges.compared(*self._bounds(columns, field_id, indices))
                for field_id, ranges in self._ranges.items()
            ]
        )

    def _bounds(
        self, columns: ManifestColumns, field_id: int, indices: pa.Array | None
    ) -> list[pa.Array]:
        kind = self._types[field_id]
        lower, upper = (
            bounds_column(_chosen(columns.statistic(name, field_id), indices), kind)
            for name in BOUNDS
        )
        found = (bound.values for bound in known_bounds(lower, upper))
        return [
            values.cast(pa.int64() if pa.types.is_integer(values.type) else pa.large_binary())
            for values in found
        ]


class ComparedRanges:
    """Ranges of equality delete files and of data files, compared; see `EqualityRanges`."""

    def __init__(self, columns: Sequence[_Compared]) -> None:
        self._columns = columns

    def reaching(
        self, files: tuple[DataFile, ...], rows: Sequence[int]
    ) -> list[tuple[DataFile, ...]]:
        """Return, for each data file, the equality delete files that may delete its rows."""
        columns = [
            (column, [(at, column.places[f.file_path]) for at, f in enumerate(files)
                      if f.file_path in column.places])
            for column in self._columns
        ]  # fmt: skip
        step = max(_MOST_PAIRS // len(files), 1)
        found: list[tuple[DataFile, ...]] = []
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            reached: _Mask = np.ones((len(part), len(files)), dtype=bool)
            for column, known in columns:
                if known:
                    at, places = zip(*known, strict=True)
                    reached[:, at] &= column.overlap(part, places)
            found += [
                files if row.all() else tuple(compress(files, row.tolist())) for row in reached
            ]
        return found


class _Ranges:
    """The ranges of one column, one for each delete file."""

    __slots__ = ("_arrays", "_highs", "_lows", "_places")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._lows: list[Any] = []
        self._highs: list[Any] = []
        self._arrays: list[pa.Array] = []

    def add(self, path: str, low: Any, high: Any) -> None:
        self._places[path] = len(self._lows)
        self._lows.append(low)
        self._highs.append(high)
        self._arrays = []

    def compared(self, lower: pa.Array, upper: pa.Array) -> _Compared:
        arrays = self._arrays
        if not arrays:
            make = binaries if isinstance(self._lows[0], bytes) else integers
            arrays = self._arrays = [make(self._lows), make(self._highs)]
        known = pc.and_(lower.is_valid(), upper.is_valid()).to_numpy(zero_copy_only=False)
        # ranks compare like the values, whatever type these have
        ranks = pc.rank(pa.concat_arrays([lower, upper, *arrays]), tiebreaker="dense").to_numpy()
        ends = np.cumsum([len(lower), len(upper), len(self._lows)])
        return _Compared(self._places, known, *np.split(ranks, ends))


@dataclass(frozen=True, slots=True)
class _Compared:
    """The ends of one column's ranges, as ranks among all of them."""

    places: Mapping[str, int]
    known: _Mask
    lower: _Ranks
    upper: _Ranks
    lows: _Ranks
    highs: _Ranks

    def overlap(self, rows: Sequence[int], places: Sequence[int]) -> _Mask:
        """Return whether each data file may have values in the range of each delete file."""
        at, of = np.asarray(rows), np.asarray(places)
        below = self.upper[at, None] < self.lows[of]
        above = self.lower[at, None] > self.highs[of]
        apart: _Mask = (below | above) & self.known[at, None]
        return ~apart


def _chosen(array: pa.Array, indices: pa.Array | None) -> pa.Array:
    return array if indices is None else array.take(indices)
