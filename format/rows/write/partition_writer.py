"""Writing of rows to the files of their partitions, with bounded memory and open files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import internal_array
from icecomb.format.errors import FileIOError, IcecombError, UnsupportedError, ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.parquet.writer import ParquetOptions, dictionary_columns
from icecomb.format.rows.values.data_metrics import new_data_file
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import LocationProvider
from icecomb.format.spec.arrow_schema import field_to_pyarrow
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema, children, walk, with_children
from icecomb.format.spec.transform import HourTransform, VoidTransform
from icecomb.format.spec.types import (
    SHAPE_TYPES,
    NestedField,
    StructType,
    UnknownType,
)
from icecomb.format.spec.values.temporal import human_timestamp
from icecomb.format.storage.file_io import FileIO

BUFFERED_BYTES = 256 << 20
OPEN_FILES = 64
_FULL = 0.95
"""The fraction of the target size at which a file gets no more row groups."""
_LEAST_RATIO = 0.01


class OpenDataFile:
    """A data or delete file being written, which appears at its location when it is closed."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        settings: FileSettings,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
    ) -> None:
        self.settings = settings
        self._location = location
        self._spec = spec
        self._partition = partition
        self._stored = StoredColumns(settings.schema)
        self._creation: AbstractContextManager[BinaryIO] = io.create_stream(location)
        self._stream = self._creation.__enter__()
        try:
            with writing(location):
                stored = replace(settings, schema=self._stored.schema)
                self._writer = settings.options.open(self._stream, stored)
        except BaseException as problem:
            self.abort(problem)
            raise

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._writer.bytes_written

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches, in Parquet as one row group."""
        with writing(self._location):
            self._writer.write([self._stored.of(batch) for batch in batches])

    def close(self) -> DataFile:
        """Finish the file and return its description."""
        settings = self.settings
        with writing(self._location):
            metrics = self._writer.close()
            size = self._stream.tell()
            self._creation.__exit__(None, None, None)
        file_format = settings.options.file_format
        written = new_data_file(
            self._location, size, metrics, self._spec, self._partition, file_format=file_format
        )
        return replace(
            written,
            content=settings.content,
            equality_ids=settings.equality_ids,
            sort_order_id=settings.sort_order_id,
            has_exact_bounds=True,
        )

    def abort(self, problem: BaseException) -> None:
        """Discard the file."""
        try:
            self._creation.__exit__(type(problem), problem, problem.__traceback__)
        except BaseException as raised:
            if raised is not problem:
                raise


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Name the file in system errors (disk full, quota, lost connection) and in Arrow's."""
    try:
        yield
    except IcecombError:
        raise
    except (OSError, pa.ArrowException) as problem:
        raise FileIOError(
            f"Cannot write data file {location}: {problem}",
            hint="Check that there is space, and that the values are valid for their types.",
            path=location,
        ) from problem


class RollingWriter:
    """A writer that collects one partition's rows into row groups, and these into files.

    The next file is opened by `create`; `target` is the approximate length of a file, in bytes.
    """

    def __init__(
        self, create: Callable[[], OpenDataFile], settings: FileSettings, target: int
    ) -> None:
        self._create = create
        self._options = settings.options
        self._target = target
        self._rows = 0
        self._batches: list[pa.RecordBatch] = []
        self._file: OpenDataFile | None = None
        self._file_bytes = 0
        self._done: list[DataFile] = []
        self._ratio = 1.0
        self.buffered = 0

    @property
    def is_open(self) -> bool:
        """True if a file is open."""
        return self._file is not None

    def add(self, batch: pa.RecordBatch) -> int:
        """Write rows; return by how many bytes the buffered rows grew (or shrank)."""
        before = self.buffered
        row_bytes = max(batch.nbytes / batch.num_rows, 0.01)
        start = 0
        while start < batch.num_rows:
            rows_left = self._options.row_group_rows - self._rows
            bytes_left = max(self._group_bytes() - self.buffered, 0)
            part = batch.slice(start, min(rows_left, int(bytes_left / row_bytes) + 1))
            start += part.num_rows
            self._batches.append(part)
            self._rows += part.num_rows
            self.buffered += part.nbytes
            if part.num_rows == rows_left or self.buffered >= self._group_bytes():
                self.flush()
        return self.buffered - before

    def flush(self) -> int:
        """Write the buffered rows as a row group; return their former size in bytes."""
        freed = self.buffered
        if self._batches:
            self._file = self._file or self._create()
            self._file.write(self._batches)
            written = self._file.bytes_written
            self._file_bytes += freed
            self._ratio = written / max(self._file_bytes, 1)
            self._batches, self._rows, self.buffered = [], 0, 0
            if written >= self._target * _FULL:
                self._finish_file()
        return freed

    def close(self) -> list[DataFile]:
        """Finish the last file and return all of them."""
        self.flush()
        self._finish_file()
        return self._done

    def abort(self, problem: BaseException) -> list[DataFile]:
        """Discard the open file; return the finished ones, for the caller to remove."""
        if self._file is not None:
            file, self._file = self._file, None
            file.abort(problem)
        return self._done

    def _finish_file(self) -> None:
        if self._file is not None:
            self._done.append(self._file.close())
            self._file, self._file_bytes = None, 0

    def _group_bytes(self) -> float:
        """Return the size in memory of a row group that hardly overshoots the file's target."""
        if self._file is None:
            left = self._target
        else:
            left = max(self._target - self._file.bytes_written, 0)
        # Encoded rows are smaller than in memory; estimate the ratio from the file so far.
        ratio = max(self._ratio, _LEAST_RATIO)
        return min(
            self._options.row_group_bytes / ratio,
            self._options.buffer_bytes,
            max(left / ratio, 1 << 20),
        )


FileOpener: TypeAlias = Callable[
    ["FileIO", str, FileSettings, PartitionSpec, tuple[Any, ...]], OpenDataFile
]
"""A function that begins a file; see `OpenDataFile`."""


class PartitionWriter:
    """A writer of batches into files of one partition each, of about the target size.

    Rows of a partition keep their order. At most 64 files are open and some 256 MiB of rows are
    buffered: beyond that, the partition with the largest buffer writes a row group early, and the
    file of the least recently used partition is finished early.

    Args:
        target: The approximate length of a file, in bytes.
        name: A function from a file's number to its name, without the extension.
        open_file: Begins a file; batches may have more columns than the schema if it handles them.
    """

    def __init__(
        self,
        io: FileIO,
        locations: LocationProvider,
        settings: FileSettings,
        spec: PartitionSpec,
        *,
        target: int,
        name: Callable[[int], str],
        open_file: FileOpener = OpenDataFile,
    ) -> None:
        self._io = io
        self._schema = settings.schema
        self._spec = spec
        self._target = target
        each = BUFFERED_BYTES // (1 if spec.is_unpartitioned else OPEN_FILES)
        self._settings = replace(settings, options=settings.options.fitting(target, each))
        self._locations = locations
        self._open_file = open_file
        self._split = PartitionSplit(spec, self._schema, locations.root)
        numbers = count(1)
        extension = settings.options.file_format.value.lower()
        self._next_name: Callable[[], str] = lambda: f"{name(next(numbers))}.{extension}"
        # In the order of last use, so that the first is the one to close when too many are open.
        self._partitions: dict[tuple[Any, ...], RollingWriter] = {}
        self._buffered = 0
        self._done: list[DataFile] = []

    def write(self, batch: pa.RecordBatch, *, clustered: bool = False) -> None:
        """Write rows; if `clustered`, partitions that are not in this batch are complete."""
        self._choose_dictionaries(batch)
        present = set()
        for partition, rows in self._split.split(batch):
            key = tuple(_signed(value) for value in partition)
            present.add(key)
            writer = self._partitions.pop(key, None)
            if writer is None:
                writer = RollingWriter(self._new_file(partition), self._settings, self._target)
            self._partitions[key] = writer
            self._buffered += writer.add(rows)
        if clustered:
            for key in [k for k in self._partitions if k not in present]:
                self._finish(key)
        self._keep_bounds()

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        with self._io.side_by_side(self._locations.root):
            for key in list(self._partitions):
                self._finish(key)
        return self._done

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        for writer in self._partitions.values():
            self._done += writer.abort(problem)
        self._partitions.clear()
        self._io.discard([f.file_path for f in self._done])
        self._done = []

    def _choose_dictionaries(self, batch: pa.RecordBatch) -> None:
        options = self._settings.options
        if isinstance(options, ParquetOptions) and self._settings.dictionaries is None:
            limit = options.dictionary_bytes
            own = batch.select(range(len(self._schema.fields)))
            chosen = dictionary_columns(self._schema.fields, own, limit)
            self._settings = replace(self._settings, dictionaries=tuple(chosen))

    def _keep_bounds(self) -> None:
        while self._buffered > BUFFERED_BYTES:
            largest = max(self._partitions.values(), key=lambda w: w.buffered)
            self._buffered -= largest.flush()
        while sum(w.is_open for w in self._partitions.values()) > OPEN_FILES:
            oldest = next(k for k, w in self._partitions.items() if w.is_open)
            self._finish(oldest)

    def _finish(self, key: tuple[Any, ...]) -> None:
        writer = self._partitions[key]
        self._buffered -= writer.buffered
        # On an error the writer must remain, to be aborted.
        self._done += writer.close()
        del self._partitions[key]

    def _new_file(self, partition: tuple[Any, ...]) -> Callable[[], OpenDataFile]:
        path = self._spec.partition_to_path(partition, self._schema) if partition else None

        def create() -> OpenDataFile:
            location = self._locations.new_data_location(self._next_name(), path)
            return self._open_file(self._io, location, self._settings, self._spec, partition)

        return create


def _signed(value: Any) -> Any:
    """Return the value as a key: the two zeros are different partitions, as in Iceberg Java."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


class StoredColumns:
    """The stored part of rows; the attribute `schema` has the columns of the files."""

    def __init__(self, schema: Schema) -> None:
        self._rows = schema.fields
        self.schema = schema
        if not schema.fields:
            raise UnsupportedError(
                "The table has no columns, so that data files would have none",
                hint="Add a column first.",
            )
        kinds = [f.field_type for f in walk(schema.as_struct())]
        self._whole = not any(
            isinstance(kind, (UnknownType, *SHAPE_TYPES)) or kind == StructType() for kind in kinds
        )
        if self._whole:
            return
        fields = tuple(_stored(schema.fields, ""))
        if not fields:
            raise UnsupportedError(
                "All columns are of type unknown, so that data files would have none",
                hint="Give a column another type first.",
            )
        self.schema = Schema(fields, schema.schema_id)
        self._arrow = pa.schema([field_to_pyarrow(f, include_field_ids=False) for f in fields])

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the stored columns of a batch of rows."""
        if self._whole:
            return batch
        arrays = _kept(self._rows, batch.columns, self.schema.fields, list(self._arrow))
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)


def _stored(fields: Sequence[NestedField], prefix: str) -> list[NestedField]:
    return [
        _stored_field(f, f"{prefix}{f.name}")
        for f in fields
        if not isinstance(f.field_type, UnknownType)
    ]


def _stored_field(field: NestedField, path: str) -> NestedField:
    kind = field.field_type
    if isinstance(kind, SHAPE_TYPES):
        raise UnsupportedError(
            f"Column {path!r} is of type {kind}: such values cannot be written",
            hint="Write rows with an engine that has the type, or drop the column.",
            column=path,
        )
    if kind == StructType():
        raise UnsupportedError(
            f"Column {path!r} is a struct without fields: data files cannot store it",
            hint="Add a field to it first, or drop the column.",
            column=path,
        )
    inside = children(kind)
    if not inside:
        return field
    kept = _stored(inside, f"{path}.")
    if not kept or (len(kept) < len(inside) and not isinstance(kind, StructType)):
        raise UnsupportedError(
            f"Column {path!r} of type {kind} cannot be written: a file cannot leave out what is "
            "unknown in it",
            hint="Give what is unknown in it another type, or drop the column.",
            column=path,
        )
    return replace(field, field_type=with_children(kind, kept))


def _kept(
    rows: Sequence[NestedField],
    arrays: Sequence[pa.Array],
    stored: Sequence[NestedField],
    arrows: Sequence[pa.Field],
) -> list[pa.Array]:
    by_id = {f.field_id: (f, array) for f, array in zip(rows, arrays, strict=True)}
    return [
        _part(*by_id[f.field_id], f, arrow.type) for f, arrow in zip(stored, arrows, strict=True)
    ]


def _part(row: NestedField, array: pa.Array, stored: NestedField, kind: pa.DataType) -> pa.Array:
    """Return the stored part of an array."""
    if row.field_type == stored.field_type:
        return array
    inside, kept = children(row.field_type), children(stored.field_type)
    if pa.types.is_struct(kind):
        parts = [array.field(i) for i in range(len(inside))]
        found = _kept(inside, parts, kept, list(kind))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(found, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        entries = _kept(inside, [array.keys, array.items], kept, fields)
        values: pa.Array = pa.StructArray.from_arrays(entries, fields=fields)
    else:
        (values,) = _kept(inside, [array.values], kept, [kind.value_field])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], array.null_count, array.offset, [values]
    )


_DENSE_GROUPS = 1 << 16


class PartitionSplit:
    """A splitter of a table's batches by its partition spec.

    Batches have the schema's columns in its order; `root` is the data folder, for errors.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, root: str) -> None:
        self._schema = schema
        self._root = root
        self._sources = [
            (None if isinstance(f.transform, VoidTransform) else field_path(schema, f.source_id), f)
            for f in spec.fields
        ]

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
        """Yield each partition tuple of a batch with its rows, in their order.

        ValidationError is raised if a decimal, rounded down, has too many digits for a partition
        value, or a timestamp is more hours from 1970 than an int holds.
        """
        if not self._sources:
            yield (), batch
            return
        keys = [self._key(batch, path, field) for path, field in self._sources]
        codes, groups = _combined(keys, batch.num_rows)
        if len(groups) == 1:
            yield _values(keys, groups[0]), batch
            return
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        for i, group in enumerate(groups):
            rows = pa.array(order[starts[i] : starts[i + 1]])
            yield _values(keys, group), batch.take(rows)

    def _key(
        self, batch: pa.RecordBatch, path: tuple[int, ...] | None, field: PartitionField
    ) -> _Key | None:
        if path is None:
            return None
        array = batch.column(path[0])
        if len(path) > 1:
            array = pc.struct_field(array, list(path[1:]))
        if not pa.types.is_decimal(array.type):
            labels = field.transform.apply_array(array)
            if isinstance(field.transform, HourTransform) and labels.type != pa.int32():
                raise self._too_far(field, array, labels)
            return _Key(labels)
        try:
            results = field.transform.apply_array(array)
        except ValidationError as problem:
            raise self._no_room(field, array) from problem
        if pa.types.is_decimal(results.type) and results.type != array.type:
            try:
                results = results.cast(array.type)
            except pa.ArrowInvalid as problem:
                raise self._no_room(field, array) from problem
        return _Key(results)

    def _too_far(self, field: PartitionField, array: pa.Array, hours: pa.Array) -> ValidationError:
        """Return the error for a timestamp whose hours do not fit an int."""
        column = self._schema.find_column_name(field.source_id)
        row = pc.index(pc.abs(hours), pc.max(pc.abs(hours))).as_py()
        micros = array.view(pa.int64())[row].as_py()
        return ValidationError(
            f"Cannot write rows to {self._root}: column {column!r} has {human_timestamp(micros)}, "
            f"which is {hours[row]} hours from 1970: a partition by {field.transform} is an int, "
            "and cannot have it",
            hint="Partition by days (table.update_spec()), or write a nearer timestamp or null.",
            path=self._root,
            column=column,
        )

    def _no_room(self, field: PartitionField, array: pa.Array) -> ValidationError:
        """Return the error for a column whose least value, rounded down, does not fit its type."""
        column = self._schema.find_column_name(field.source_id)
        return ValidationError(
            f"Cannot write rows to {self._root}: column {column!r} has {pc.min(array)}, whose "
            f"partition value by {field.transform} has more digits than {array.type}",
            hint="Partition by another transform (table.update_spec()), or give the column more "
            "digits: table.update_schema().update_column(...).",
            path=self._root,
            column=column,
        )


class _Key:
    """One partition field of a batch: a code for each row, and the internal value of each code."""

    def __init__(self, array: pa.Array) -> None:
        plain = internal_array(array)
        encoded = plain.dictionary_encode(null_encoding="encode")
        self.codes: npt.NDArray[np.int64] = np.asarray(encoded.indices).astype(np.int64)
        values = encoded.dictionary
        if array.type == pa.uuid():
            values = pa.ExtensionArray.from_storage(pa.uuid(), values)
        self.values = [_one_nan(v) for v in values.to_pylist()]


def _one_nan(value: Any) -> Any:
    # NaN differs from itself, but a single NaN object is still found as a key.
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _combined(keys: list[_Key | None], rows: int) -> tuple[npt.NDArray[Any], list[tuple[int, ...]]]:
    """Return a group number for each row, and the codes of each group."""
    real = [k for k in keys if k is not None]
    total = math.prod(len(k.values) for k in real)
    codes: npt.NDArray[Any] = np.zeros(rows, np.int64)
    if total < 1 << 62:
        for k in real:
            codes = codes * len(k.values) + k.codes
        present, codes = _renumbered(codes, total)
        return codes, [_decomposed(int(c), real) for c in present]
    stacked = np.stack([k.codes for k in real], axis=1)
    rows_present, codes = np.unique(stacked, axis=0, return_inverse=True)
    return codes.reshape(-1), [tuple(int(c) for c in row) for row in rows_present]


def _renumbered(
    codes: npt.NDArray[np.int64], total: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    if total > _DENSE_GROUPS:
        present, inverse = np.unique(codes, return_inverse=True)
        return present, inverse.reshape(-1)
    present = np.flatnonzero(np.bincount(codes, minlength=total))
    # numpy sorts small unsigned numbers by radix.
    numbers = np.zeros(total, np.uint16)
    numbers[present] = np.arange(len(present), dtype=np.uint16)
    return present, numbers[codes]


def _decomposed(code: int, keys: list[_Key]) -> tuple[int, ...]:
    parts: list[int] = []
    for k in reversed(keys):
        code, part = divmod(code, len(k.values))
        parts.append(part)
    return tuple(reversed(parts))


def _values(keys: list[_Key | None], group: tuple[int, ...]) -> tuple[Any, ...]:
    codes = iter(group)
    return tuple(None if k is None else k.values[next(codes)] for k in keys)


def field_path(schema: Schema, field_id: int) -> tuple[int, ...]:
    """Return the path of indices from a batch of the table to a field in structs."""
    chain = [field_id]
    while (parent := schema.find_parent_id(chain[0])) is not None:
        chain.insert(0, parent)
    path = []
    fields = schema.fields
    for number in chain:
        index = next(i for i, f in enumerate(fields) if f.field_id == number)
        path.append(index)
        fields = getattr(fields[index].field_type, "fields", ())
    return tuple(path)
