"""Reading of Avro data files as record batches with their positions in the file.

Blocks of rows are decoded into columns by polars, or row by row by fastavro where there are types
that polars does not support (maps, enumerations, decimals of any length).
Field ids are in the schema (`field-id`, `element-id`, `key-id`, `value-id`; spec: Avro); files of
Hive have none and are read through the name mapping.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeAlias

import fastavro
import numpy as np
import pyarrow as pa

from icecomb.format.avro.container import AvroContainer, header_bytes
from icecomb.format.avro.container_stream import ContainerStream
from icecomb.format.avro.encoder import encode_long
from icecomb.format.avro.records import end_record, is_simple, read_table
from icecomb.format.avro.schema import plain_schema
from icecomb.format.avro.schema_size import OBJECT_CELLS, Block, check_items
from icecomb.format.errors import CorruptFileError, IcecombError, UnsupportedError
from icecomb.format.input_limit import unpacked_bytes
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.parquet.batch_limit import BATCH_BYTES
from icecomb.format.rows.read.data_file_reader import DataFileReader, reading
from icecomb.format.rows.values.arrow_projection import FileField, file_fields
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.arrow_schema import FIELD_ID_KEY
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import IcebergType, PrimitiveType
from icecomb.format.storage.file_io import FileIO

Convert: TypeAlias = Callable[[Any], Any]
Column: TypeAlias = tuple[pa.Field, Convert | None]
"""A column's field, and the conversion of fastavro's values to Arrow's."""
_Column: TypeAlias = tuple[int, pa.Field, Convert | None]
"""A column's number in the file, its field, and the conversion of values to Arrow's."""
_SYNC = bytes(16)

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.binary(16),
}
_NEAR, _FAR = 1 << 12, 1 << 18
"""Bytes per read, local and remote: in remote files skipping costs more than reading."""


class AvroReader(DataFileReader):
    """An open Avro file; one shorter than the bytes that its manifest states is rejected."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        name_mapping: NameMapping | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(io, location, size)
        stream = self._stream()
        with decoding(location):
            schema, self._columns = read_columns(stream.schema, location)
            self._schema = schema
            self._layout = columnar_layout(schema, [f.type for f, _ in self._columns])
            self._plain = plain_schema(schema, {})
            self._end = end_record(self._plain)[0]
        self._size = stream.size
        arrow = pa.schema([f for f, _ in self._columns])
        self.fields: tuple[FileField, ...] = file_fields(arrow, name_mapping, location)

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """Return the only group, which belongs to the part that holds the first byte."""
        return [0] if start == 0 and (length is None or length > 0) else []

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """Return None, as Avro files have no statistics."""
        del field_id, field_type
        return None

    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read columns of the whole file, by the calling thread; see `DataFileReader.batches`."""
        del use_threads
        if not row_groups:
            return
        wanted = set(columns)
        chosen = [
            (number, *column)
            for number, (column, field) in enumerate(zip(self._columns, self.fields, strict=True))
            if wanted.intersection(field.leaves)
        ]
        position = 0
        for blocks in self._chunks(batch_size):
            with decoding(self.location):
                found = self._decoded(blocks, chosen)
            rows = found.num_rows
            for start in range(0, rows, batch_size):
                yield position + start, found.slice(start, batch_size)
            position += rows
        self._compare_rows(position)

    def _chunks(self, batch_size: int) -> Iterator[list[Block]]:
        """Yield runs of adjacent blocks; one has at most `BATCH_BYTES` besides its last block."""
        rows, size, parts = 0, 0, list[Block]()
        blocks = self._stream().blocks()
        while True:
            with reading(self.location):
                block = next(blocks, None)
            if block is None:
                break
            rows += block[0]
            size += len(block[1])
            parts.append(block)
            if rows >= batch_size or size >= BATCH_BYTES:
                yield from self._size.runs(parts, unpacked_bytes())
                rows, size, parts = 0, 0, []
        if rows:
            yield from self._size.runs(parts, unpacked_bytes())

    def _stream(self) -> ContainerStream:
        """Return a stream of the file from its beginning."""
        with reading(self.location):
            self._source.seek(0)
            return ContainerStream(self._source, self.location)

    def _decoded(self, blocks: list[Block], chosen: list[_Column]) -> pa.RecordBatch:
        if not chosen:
            rows = sum(count for count, _ in blocks)
            return pa.record_batch([pa.nulls(rows)], ["_"]).select([])
        if self._layout is not None:
            self._check_memory(blocks, 1)
            found = decoded_columns(self.location, self._layout, blocks, chosen)
            if found is not None:
                return found
        runs = self._size.runs(blocks, unpacked_bytes() // OBJECT_CELLS)
        return pa.concat_batches([self._of_records(run, chosen) for run in runs])

    def _check_memory(self, blocks: list[Block], cells: int) -> None:
        rows, data = sum(count for count, _ in blocks), [block for _, block in blocks]
        most = self._size.most_memory(rows, sum(map(len, data)))
        if self._size.has_empty_items or most * cells > unpacked_bytes():
            check_items(self._plain, b"".join(data), rows, unpacked_bytes(), cells)

    def _of_records(self, run: list[Block], chosen: list[_Column]) -> pa.RecordBatch:
        self._check_memory(run, OBJECT_CELLS)
        rows, blocks = sum(count for count, _ in run), [block for _, block in run]
        records = self._records(rows + 1, [*blocks, self._end])
        if records.pop() != self._records(1, [self._end])[0]:
            raise CorruptFileError(
                f"{self.location} has rows that do not end where their blocks do",
                hint="Restore the file from a backup, or roll the table back.",
                path=self.location,
            )
        return _batch([(f, c) for _, f, c in chosen], records)

    def _records(self, rows: int, blocks: Sequence[bytes]) -> list[Any]:
        header = header_bytes(
            {"avro.schema": json.dumps(self._schema), "avro.codec": "null"}, _SYNC
        )
        sizes = encode_long(rows) + encode_long(sum(map(len, blocks)))
        return list(fastavro.reader(BytesIO(b"".join((header, sizes, *blocks, _SYNC)))))


def read_columns(stated: Any, location: str) -> tuple[Any, list[Column]]:
    """Return the parsed form of a file's schema, and its columns."""
    schema: Any = fastavro.parse_schema(stated, _write_hint=False, _force=True)
    shape = _Shape(location)
    return schema, [shape.field(f) for f in schema["fields"]]


class _Shape:
    """A converter of an Avro schema to Arrow fields and conversions of values."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._named: dict[str, Any] = {}

    def field(self, raw: dict[str, Any]) -> tuple[pa.Field, Convert | None]:
        """Return the Arrow field of a record's field, and the conversion of its values."""
        kind, nullable, convert = self._type(raw["type"])
        metadata = _id(raw, "field-id")
        return pa.field(raw["name"], kind, nullable, metadata), convert

    def _type(self, raw: Any) -> tuple[pa.DataType, bool, Convert | None]:
        """Return the Arrow type, whether it is nullable, and the conversion of values."""
        if isinstance(raw, list):
            branches = [b for b in raw if b != "null"]
            if len(branches) != 1:
                raise UnsupportedError(
                    f"Avro file {self._location} has a union of several types: {raw}",
                    hint="Rewrite it with a union of null and one type.",
                    path=self._location,
                )
            kind, _, convert = self._type(branches[0])
            return kind, len(branches) < len(raw), convert
        if isinstance(raw, str):
            if raw in _PLAIN:
                return _PLAIN[raw], raw == "null", None
            return self._type(self._named[raw])
        kind, convert = self._complex(raw)
        return kind, False, convert

    def _complex(self, raw: dict[str, Any]) -> tuple[pa.DataType, Convert | None]:
        name, logical = raw["type"], raw.get("logicalType")
        if "name" in raw:
            self._named[raw["name"]] = raw
        if logical == "decimal":
            return pa.decimal128(raw["precision"], raw.get("scale", 0)), None
        if logical == "uuid":
            return _LOGICAL["uuid"], _uuid_bytes
        if logical in _LOGICAL:
            return _LOGICAL[logical], None
        if name == "record":
            parts = [self.field(f) for f in raw["fields"]]
            return pa.struct([f for f, _ in parts]), _record(parts)
        if name == "array":
            return self._array(raw, is_map=logical == "map")
        if name == "map":
            kind, nullable, convert = self._type(raw["values"])
            key = pa.field("key", pa.string(), nullable=False, metadata=_id(raw, "key-id"))
            value = pa.field("value", kind, nullable, _id(raw, "value-id"))
            return pa.map_(key, value), lambda m: [
                (k, v if convert is None or v is None else convert(v)) for k, v in m.items()
            ]
        if name == "fixed":
            return pa.binary(raw["size"]), None
        if name == "enum":
            return pa.string(), None
        kind, _, convert = self._type(name)
        return kind, convert

    def _array(self, raw: dict[str, Any], *, is_map: bool) -> tuple[pa.DataType, Convert | None]:
        kind, nullable, convert = self._type(raw["items"])
        if is_map:
            key, value = kind.field(0), kind.field(1)
            pair = convert or (lambda entry: entry)
            return pa.map_(key.with_nullable(False), value), lambda entries: [
                tuple(pair(e).values()) for e in entries
            ]
        element = pa.field("element", kind, nullable, _id(raw, "element-id"))
        if convert is None:
            return pa.list_(element), None
        return pa.list_(element), lambda items: [i if i is None else convert(i) for i in items]


def _id(raw: dict[str, Any], key: str) -> dict[bytes, bytes] | None:
    return {FIELD_ID_KEY: str(raw[key]).encode()} if key in raw else None


def _uuid_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).bytes


def _record(parts: list[tuple[pa.Field, Convert | None]]) -> Convert | None:
    converts = [(f.name, c) for f, c in parts if c is not None]
    if not converts:
        return None

    def convert(record: dict[str, Any]) -> dict[str, Any]:
        changed = {n: c(record[n]) for n, c in converts if record[n] is not None}
        return {**record, **changed}

    return convert


def _batch(
    columns: list[tuple[pa.Field, Convert | None]], rows: list[dict[str, Any]]
) -> pa.RecordBatch:
    arrays = []
    for field, convert in columns:
        values = [r[field.name] for r in rows]
        if convert is not None:
            values = [v if v is None else convert(v) for v in values]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f for f, _ in columns]))


@contextmanager
def decoding(location: str) -> Iterator[None]:
    """Name the file in errors of fastavro, whose decoders raise exceptions of any type."""
    try:
        yield
    except (IcecombError, MemoryError):
        raise
    except Exception as problem:
        detail = str(problem) or type(problem).__name__
        raise CorruptFileError(
            f"Cannot read data file {location}: {detail}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from problem


def columnar_layout(schema: Any, kinds: Sequence[pa.DataType]) -> Any:
    """Return the layout of a file's records for polars; None if it lacks one of the types."""
    try:
        plain = plain_schema(schema, {})
    except (KeyError, TypeError, ValueError):
        return None
    names = [f"c{number}" for number in range(len(kinds))]
    fields = [{**f, "name": n} for f, n in zip(plain["fields"], names, strict=True)]
    known = is_simple(plain) and all(
        _decodable(f["type"], kind) for f, kind in zip(fields, kinds, strict=True)
    )
    return {**plain, "fields": fields} if known else None


def decoded_columns(
    location: str,
    layout: Any,
    blocks: Sequence[Block],
    chosen: Sequence[tuple[int, pa.Field, Any]],
) -> pa.RecordBatch | None:
    """Decode the rows of uncompressed blocks; return None if they are invalid in any way.

    Args:
        layout: The layout that `columnar_layout` returned.
        chosen: Numbers of the columns to decode, with their Arrow fields.
    """
    names = [f"c{number}" for number, *_ in chosen]
    mark, ends = end_record(layout)
    counts, parts = zip(*blocks, (1, mark), strict=True)
    rows = sum(counts) - 1
    container = AvroContainer(location, {}, None, rows + 1, parts, counts)
    try:
        table = read_table(container, layout, frozenset(names) | _telling(names, ends))
        if table.slice(rows).to_pylist() != [{name: ends[name] for name in table.column_names}]:
            return None
        table = table.slice(0, rows)
        arrays = [
            _typed(_one(table.column(name)), field.type)
            for name, (_, field, _) in zip(names, chosen, strict=True)
        ]
    except (CorruptFileError, pa.ArrowException):
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f for _, f, _ in chosen]))


def _telling(names: Sequence[str], ends: Mapping[str, Any]) -> frozenset[str]:
    """Return a column that distinguishes the end record from a row, if none of these does."""
    telling = [
        n for n, end in ends.items() if isinstance(end, (str, int, float)) and end is not True
    ]
    return frozenset(() if set(telling).intersection(names) else telling[:1])


def _decodable(plain: Any, kind: pa.DataType) -> bool:
    if isinstance(plain, list):
        plain = next(branch for branch in plain if branch != "null")
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return isinstance(plain, dict) and plain["type"] == "fixed"
    if pa.types.is_struct(kind):
        parts = [f["type"] for f in plain["fields"]]
        return all(_decodable(p, f.type) for p, f in zip(parts, kind, strict=True))
    if pa.types.is_map(kind):
        parts = [f["type"] for f in plain["items"]["fields"]]
        return _decodable(parts[0], kind.key_type) and _decodable(parts[1], kind.item_type)
    if pa.types.is_list(kind):
        return _decodable(plain["items"], kind.value_type)
    return not pa.types.is_null(kind)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return _decimals(array, kind)
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary()).cast(kind)
    if pa.types.is_struct(kind):
        return _struct(array, list(kind))
    if pa.types.is_map(kind):
        entries = _struct(array.values, [kind.key_field, kind.item_field])
        return _lists(array, kind, entries)
    if pa.types.is_list(kind):
        return _lists(array, kind, _typed(array.values, kind.value_type))
    return array.cast(kind)


def _struct(array: pa.StructArray, fields: list[pa.Field]) -> pa.StructArray:
    parts = [_typed(array.field(i), f.type) for i, f in enumerate(fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def _lists(array: pa.LargeListArray, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Return the lists or maps with other contents."""
    offsets = array.offsets.cast(pa.int32())
    validity = None
    if array.null_count:
        validity = pa.array(np.asarray(array.is_valid())).buffers()[1]
    buffers = [validity, offsets.buffers()[1]]
    return pa.Array.from_buffers(
        kind, len(array), buffers, array.null_count, offsets.offset, [values]
    )


def _decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert big-endian two's complements of one length to decimals."""
    valid = np.asarray(array.is_valid())
    numbers = array.drop_null().cast(pa.binary())
    out = np.zeros((len(array), 16), np.uint8)
    if len(numbers):
        offsets = np.frombuffer(numbers.buffers()[1], np.int32)[numbers.offset :]
        data = np.frombuffer(numbers.buffers()[2], np.uint8)[offsets[0] : offsets[len(numbers)]]
        digits = data.reshape(len(numbers), -1)[:, -16:]
        filled = np.repeat((digits[:, :1] >> 7) * np.uint8(255), 16, axis=1)
        filled[:, 16 - digits.shape[1] :] = digits
        out[valid] = filled[:, ::-1]
    buffers = [pa.array(valid).buffers()[1], pa.py_buffer(out)]
    return pa.Array.from_buffers(kind, len(array), buffers)


class AvroHeader(FileTail):
    """The header of a file, and the row counts of its blocks; the rows are skipped."""

    file_format = FileFormat.AVRO

    def __init__(self, source: pa.NativeFile, location: str) -> None:
        with reading(location):
            near = isinstance(source, pa.OSFile)
            stream = ContainerStream(source, location, _NEAR if near else _FAR)
            self.stated = stream.schema
            with decoding(location):
                _, columns = read_columns(stream.schema, location)
            rows = stream.count_records()
        super().__init__(pa.schema([field for field, _ in columns]), rows)

    def columns(
        self,
        fields: Sequence[FileField],
        kinds: Mapping[int, PrimitiveType],
        wanted: Container[int],
    ) -> dict[int, ColumnSummary]:
        """Implement `FileTail.columns`: a column that is not a union with null has no nulls."""
        found = {}
        for f, arrow in zip(fields, self.schema, strict=True):
            kind = None if f.field_id is None else kinds.get(f.field_id)
            if f.field_id in wanted and f.field_id is not None and kind and not arrow.nullable:
                values = ChunkStatistics(self.record_count, 0)
                found[f.field_id] = ColumnSummary(kind, None, values)
        return found
