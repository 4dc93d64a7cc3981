"""Comparison of the old Hive table and the new Iceberg table, value by value.

The Hive side is what Hive would read: the visible files of the journal's partitions, columns by
name ignoring case, partition values from the metastore's objects. The Iceberg side is the
migration's snapshot, read like any scan.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from icecomb.catalog.migrate.source.hive_type import ELEMENT, KEY, VALUE, NarrowType, Path
from icecomb.catalog.report.progress import Progress, each
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.types import NANO_TYPES, IcebergType, ListType, MapType, StructType
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.rows.values.scan_task import FileScanTask


_NONE: Final[Mapping[Path, NarrowType]] = {}
_WORKERS: Final = 4
_SHOWN: Final = 20


@dataclass(slots=True)
class ColumnDigest:
    """Statistics of one column on one side; `least` is None without values or order."""

    nulls: int = 0
    least: Any = None
    greatest: Any = None

    def add(self, other: ColumnDigest) -> None:
        """Add another digest of the same column."""
        self.nulls += other.nulls
        for value in (other.least, other.greatest):
            if value is not None:
                self.least = value if self.least is None else min(self.least, value)
                self.greatest = value if self.greatest is None else max(self.greatest, value)

    def to_json(self) -> dict[str, Any]:
        """Return the digest as JSON values; times as ISO text."""
        return {"nulls": self.nulls, "min": _plain(self.least), "max": _plain(self.greatest)}


@dataclass(slots=True)
class Side:
    """Row count and column digests of one side."""

    rows: int = 0
    columns: dict[str, ColumnDigest] = field(default_factory=dict)


@dataclass(slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        hive, iceberg: The two sides as a whole.
        partitions: Partition name to row counts on the Hive and the Iceberg side.
        differences: Sentences about the first differences; `difference_count` counts all.
        finished: Whether apply has finished.
    """

    hive: Side = field(default_factory=Side)
    iceberg: Side = field(default_factory=Side)
    partitions: dict[str, list[int]] = field(default_factory=dict)
    files: int = 0
    values: int = 0
    differences: list[str] = field(default_factory=list)
    difference_count: int = 0
    finished: bool = True

    def differ(self, what: str) -> None:
        """Record a difference."""
        self.difference_count += 1
        if len(self.differences) < _SHOWN:
            self.differences.append(what)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "equal": self.difference_count == 0,
            "migration-finished": self.finished,
            "files": self.files,
            "values-compared": self.values,
            "rows": {"hive": self.hive.rows, "iceberg": self.iceberg.rows},
            "partitions": [
                {"partition": name, "hive-rows": counts[0], "iceberg-rows": counts[1]}
                for name, counts in self.partitions.items()
            ],
            "columns": [
                {
                    "column": name,
                    "hive": self.hive.columns[name].to_json(),
                    "iceberg": self.iceberg.columns[name].to_json(),
                }
                for name in self.hive.columns
            ],
            "difference-count": self.difference_count,
            "differences": self.differences,
        }


@dataclass(frozen=True, slots=True)
class HiveColumns:
    """The columns of the two tables.

    Attributes:
        schema: Those of the Iceberg table.
        narrow: Hive's types that hold less.
        defaults: Internal values that Spark reads in files that lack a column, by its name in lower
            case.
    """

    schema: Schema
    narrow: Mapping[Path, NarrowType] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilePair:
    """One file as both sides read it.

    Attributes:
        constants: Partition column (lower case) to its value in the metastore.
        task: The Iceberg table's scan task; None if the table does not have the file.
    """

    partition: str
    location: str
    constants: Mapping[str, Any]
    task: FileScanTask


def compare_files(  # noqa: PLR0917 - what is read, what is compared, where it is noted
    io: FileIO,
    metadata: TableMetadata,
    columns: HiveColumns,
    pairs: Sequence[FilePair],
    comparison: Comparison,
    progress: Progress,
) -> None:
    """Compare every value of every pair; record differences in ``comparison``."""

    def work(pair: FilePair) -> _FileResult:
        return _compare_file(io, metadata, columns, pair)

    results = each(progress, "comparing", "files", pairs, work, _WORKERS)
    for pair, result in zip(pairs, results, strict=True):
        _take_in(comparison, pair, result)


@dataclass(slots=True)
class _FileResult:
    hive: Side
    iceberg: Side
    values: int = 0
    differences: list[str] = field(default_factory=list)


def _take_in(comparison: Comparison, pair: FilePair, result: _FileResult) -> None:
    comparison.files += 1
    comparison.values += result.values
    counts = comparison.partitions.setdefault(pair.partition, [0, 0])
    counts[0] += result.hive.rows
    counts[1] += result.iceberg.rows
    for total, part in ((comparison.hive, result.hive), (comparison.iceberg, result.iceberg)):
        total.rows += part.rows
        for name, digest in part.columns.items():
            total.columns.setdefault(name, ColumnDigest()).add(digest)
    for difference in result.differences:
        comparison.differ(difference)


def _compare_file(
    io: FileIO, metadata: TableMetadata, columns: HiveColumns, pair: FilePair
) -> _FileResult:
    from icecomb.format.rows.read.arrow_scan import read_task

    result = _FileResult(Side(), Side())
    hive = _hive_batches(io, pair, columns)
    iceberg = read_task(pair.task, metadata, columns.schema, io)
    wrong: dict[str, int] = {}
    for left, right in _aligned(hive, iceberg):
        for side, batch in ((result.hive, left), (result.iceberg, right)):
            _digest(side, batch)
        if left is None or right is None:
            continue
        for at, name in enumerate(left.schema.names):
            wrong[name] = wrong.get(name, 0) + _unequal(left.column(at), right.column(at))
            result.values += left.num_rows
    if result.hive.rows != result.iceberg.rows:
        result.differences.append(
            f"{pair.location}: {result.hive.rows} rows in Hive, {result.iceberg.rows} in Iceberg"
        )
    result.differences += [
        f"{pair.location}: column {name}: {count} of {result.hive.rows} values differ"
        for name, count in wrong.items()
        if count
    ]
    return result


def _hive_batches(io: FileIO, pair: FilePair, known: HiveColumns) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import schema_to_pyarrow

    schema = known.schema
    wanted = schema_to_pyarrow(schema, include_field_ids=False)
    with io.open_input(pair.location) as stream:
        read = READERS[pair.task.file.file_format]
        for batch in read(stream, pair.location, schema):
            by_name = {name.lower(): at for at, name in enumerate(batch.schema.names)}
            columns = []
            for column, target in zip(schema.fields, wanted, strict=True):
                name = column.name.lower()
                if name in pair.constants:
                    value = _internal(pair.constants[name], target.type)
                    columns.append(pa.repeat(value, batch.num_rows))
                elif name in by_name:
                    found = batch.column(by_name[name])
                    kind = column.field_type
                    columns.append(as_hive_reads(found, kind, target.type, known.narrow, (name,)))
                elif name in known.defaults:
                    value = _internal(known.defaults[name], target.type)
                    columns.append(pa.repeat(value, batch.num_rows))
                else:
                    columns.append(pa.nulls(batch.num_rows, target.type))
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def as_hive_reads(
    array: pa.Array,
    kind: IcebergType,
    target: pa.DataType,
    narrow: Mapping[Path, NarrowType] = _NONE,
    path: Path = (),
) -> pa.Array:
    """Return a file's array in the table's type, nested fields matched by name ignoring case.

    Args:
        narrow: Hive's types that hold less, of which values are cut or become null.
        path: The path of the array among these.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from icecomb.format.arrow.plain_layout import plain_array

    array = plain_array(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(kind, StructType):
        by_name = {array.type.field(at).name.lower(): at for at in range(array.type.num_fields)}
        children = []
        for at, field_ in enumerate(kind.fields):
            inner = target.field(at).type
            place = by_name.get(field_.name.lower())
            if place is None:
                children.append(pa.nulls(len(array), inner))
            else:
                part = pc.struct_field(array, place)
                below = (*path, field_.name.lower())
                children.append(as_hive_reads(part, field_.field_type, inner, narrow, below))
        return pa.StructArray.from_arrays(
            children,
            fields=[target.field(at) for at in range(target.num_fields)],
            mask=array.is_null(),
        )
    if isinstance(kind, ListType):
        return _as_hive_list(array, kind, target, narrow, path)
    if isinstance(kind, MapType):
        return _as_hive_map(array, kind, target, narrow, path)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        # INT96 holds nanoseconds, which a column of microseconds truncates.
        array = array.cast(pa.timestamp(target.unit, array.type.tz), safe=target.unit == "ns")
        return array.cast(pa.int64()).cast(target)
    cast = array.cast(target)
    return _narrowed(cast, narrow[path]) if path in narrow else cast


def _narrowed(array: pa.Array, kind: NarrowType) -> pa.Array:
    """Return values as Hive shows them in a type that holds less."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind.length:
        counted = pc.utf8_rtrim(array, " ") if kind.padded else array
        longer = pc.greater(pc.utf8_length(counted), kind.length)
        return pc.if_else(longer, pc.utf8_slice_codeunits(array, 0, kind.length), array)
    least, greatest = kind.bounds
    held = pc.and_(pc.greater_equal(array, least), pc.less_equal(array, greatest))
    return pc.if_else(held, array, pa.scalar(None, array.type))


def _as_hive_list(
    array: pa.Array,
    kind: ListType,
    target: pa.DataType,
    narrow: Mapping[Path, NarrowType],
    path: Path,
) -> pa.Array:
    import pyarrow as pa

    inner = (narrow, path + ELEMENT)
    values = as_hive_reads(array.flatten(), kind.element_type, target.value_type, *inner)
    offsets, mask = _offsets(array)
    made = pa.ListArray.from_arrays(offsets, values, mask=mask)
    return made.cast(target)


def _as_hive_map(
    array: pa.Array,
    kind: MapType,
    target: pa.DataType,
    narrow: Mapping[Path, NarrowType],
    path: Path,
) -> pa.Array:
    import pyarrow as pa

    entries = array.cast(
        pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
    ).flatten()
    of_keys, of_values = (narrow, path + KEY), (narrow, path + VALUE)
    keys = as_hive_reads(entries.field(0), kind.key_type, target.key_type, *of_keys)
    values = as_hive_reads(entries.field(1), kind.value_type, target.item_type, *of_values)
    offsets, mask = _offsets(array)
    return pa.MapArray.from_arrays(offsets, keys, values, mask=mask).cast(target)


def _offsets(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = (
        array.cast(pa.list_(pa.struct([("k", array.type.key_type), ("v", array.type.item_type)])))
        if pa.types.is_map(array.type)
        else array
    )
    lengths = pc.fill_null(pc.list_value_length(plain), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), ends]), array.is_null()


def _internal(value: Any, target: pa.DataType) -> pa.Scalar:
    import pyarrow as pa

    if value is not None and (pa.types.is_date32(target) or pa.types.is_timestamp(target)):
        storage = pa.int32() if pa.types.is_date32(target) else pa.int64()
        return pa.scalar(value, storage).cast(target)
    return pa.scalar(value, target)


def _aligned(
    left: Iterable[pa.RecordBatch], right: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Yield pieces of equal length of two streams; pieces without partner if one is longer."""
    sides = (_rows(left), _rows(right))
    pieces = [next(side, None) for side in sides]
    while pieces[0] is not None and pieces[1] is not None:
        rows = min(pieces[0].num_rows, pieces[1].num_rows)
        yield pieces[0].slice(0, rows), pieces[1].slice(0, rows)
        for at, side in enumerate(sides):
            piece = pieces[at]
            if piece is not None:
                rest = piece.slice(rows)
                pieces[at] = rest if rest.num_rows else next(side, None)
    for piece in (pieces[0], *sides[0]):
        if piece is not None:
            yield piece, None
    for piece in (pieces[1], *sides[1]):
        if piece is not None:
            yield None, piece


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _digest(side: Side, batch: pa.RecordBatch | None) -> None:
    if batch is None:
        return
    side.rows += batch.num_rows
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        least, greatest = _extremes(column)
        digest = ColumnDigest(column.null_count, least, greatest)
        side.columns.setdefault(name, ColumnDigest()).add(digest)


def _extremes(column: pa.Array) -> tuple[Any, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(column.type) or len(column) == column.null_count:
        return None, None
    found: Mapping[str, Any] = pc.min_max(column).as_py()
    least, greatest = found["min"], found["max"]
    # A column of only NaN has no order.
    return (None, None) if least != least else (least, greatest)  # noqa: PLR0124


def _unequal(left: pa.Array, right: pa.Array) -> int:
    if left.equals(right):
        return 0
    same: Callable[[Any, Any], bool] = lambda a, b: a == b or repr(a) == repr(b)  # noqa: E731
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return sum(not same(a, b) for a, b in pairs)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


RowReader: TypeAlias = "Callable[[pa.NativeFile, str, Schema], Iterator[pa.RecordBatch]]"
"""A reader of an open file of some name for a schema; columns keep the file's names."""
_BATCH_ROWS: Final = 65_536
_OBJECTS: Final = 1 << 14
"""Number of rows of Python objects at a time."""


def _parquet(stream: pa.NativeFile, _: str, schema: Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    # INT96 counts nanoseconds, which overflow before 1677 and after 2262.
    fine = any(isinstance(f.field_type, NANO_TYPES) for f in walk(schema.as_struct()))
    with pq.ParquetFile(stream, coerce_int96_timestamp_unit="ns" if fine else "us") as file:
        yield from file.iter_batches(_BATCH_ROWS)


def _orc(stream: pa.NativeFile, location: str, _: Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from icecomb.format.rows.orc.fallback import read_columns
    from icecomb.format.rows.orc.file_tail import open_file
    from icecomb.format.rows.orc.reader import Padding

    file, schema, tail = open_file(stream, location)
    padding = Padding(schema, tail.padded)
    for number in range(file.nstripes):
        try:
            stripe = file.read_stripe(number)
        except pa.ArrowInvalid:  # times out of the range of nanoseconds
            every = range(len(schema))
            arrays = read_columns(stream, location, schema, number, every)
            stripe = pa.RecordBatch.from_arrays(arrays, schema.names)
        yield padding.removed(stripe)


def _avro(stream: pa.NativeFile, _: str, schema: Schema) -> Iterator[pa.RecordBatch]:
    import fastavro
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import schema_to_pyarrow

    kinds = {f.name.lower(): f.field_type for f in schema.fields}
    arrows = {f.name.lower(): f.type for f in schema_to_pyarrow(schema, include_field_ids=False)}
    reader = fastavro.reader(stream)
    stated: Any = reader.writer_schema
    names = [f["name"] for f in stated["fields"] if f["name"].lower() in kinds]
    records: Iterator[Any] = iter(reader)
    while some := list(islice(records, _OBJECTS)):
        arrays = [
            pa.array(
                [_value(record[name], kinds[name.lower()]) for record in some],
                arrows[name.lower()],
            )
            for name in names
        ]
        # An extra column keeps the rows of a file that has none of the table's columns.
        yield pa.RecordBatch.from_arrays([*arrays, pa.nulls(len(some))], [*names, ""])


READERS: Final[Mapping[FileFormat, RowReader]] = {
    FileFormat.PARQUET: _parquet,
    FileFormat.ORC: _orc,
    FileFormat.AVRO: _avro,
}


def _value(value: Any, kind: IcebergType) -> Any:
    """Convert a fastavro value for Arrow by a type; names of fields ignore case."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        by_name = {name.lower(): inner for name, inner in value.items()}
        return {f.name: _value(by_name.get(f.name.lower()), f.field_type) for f in kind.fields}
    if isinstance(kind, ListType):
        return [_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        pairs = value.items()
        return [(_value(k, kind.key_type), _value(v, kind.value_type)) for k, v in pairs]
    return value
