"""Writing of ORC data files, with field ids as type attributes (spec: Appendix A, ORC).

Settings come from Iceberg Java's table properties (`write.orc.*`). Times are stored as integers,
UUIDs and fixed as bytes, each with an attribute for its type. Timestamps before 1970 must be whole
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import orc

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property import table_property as known
from icecomb.format.rows.orc.type_description import fields_in_order, orc_attributes
from icecomb.format.rows.values.arrow_metrics import ArrowMetrics
from icecomb.format.rows.values.data_metrics import Metrics
from icecomb.format.rows.write.file_settings import DataFileWriter, FileSettings
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.types import (
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimeType,
    UUIDType,
    VariantType,
)

_CODECS = {
    "zlib": "zlib",
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_DICTIONARY_THRESHOLD = 0.8
"""The fraction of distinct values below which a column gets a dictionary."""
_LEAST_STRIPE = 64 << 10
_STRIPES = 8
"""The minimum number of stripes in a file of target size, as its length is known by stripes."""


@dataclass(frozen=True, slots=True)
class OrcOptions:
    """Options for writing ORC files.

    Args:
        compression: The codec, by its name in pyarrow.
        strategy: `speed` or `compression`.
        stripe_bytes: The approximate length of a stripe, in bytes.
        batch_rows: The number of rows encoded at once.
        bloom_fpp: The false-positive probability of bloom filters.
    """

    compression: str = "zlib"
    strategy: str = "speed"
    stripe_bytes: int = known.ORC_STRIPE_BYTES.default
    batch_rows: int = known.ORC_BATCH_ROWS.default
    bloom_columns: tuple[str, ...] = ()
    bloom_fpp: float = known.ORC_BLOOM_FPP.default

    @property
    def file_format(self) -> FileFormat:
        """The format, ORC."""
        return FileFormat.ORC

    @property
    def row_group_bytes(self) -> int:
        """The length of a stripe, in bytes; the writer itself makes stripes."""
        return self.stripe_bytes

    @property
    def row_group_rows(self) -> int:
        """The maximum number of rows written at once; see `FileOptions.row_group_rows`."""
        return 1 << 17

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffer in bytes; see `FileOptions.buffer_bytes`."""
        return 8 << 20

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> OrcOptions:
        """Return the options set by a table's properties."""
        names = (known.ORC_BLOOM_COLUMNS.of(properties) or "").split(",")
        return cls(
            _CODECS[known.ORC_CODEC.of(properties)],
            known.ORC_STRATEGY.of(properties),
            known.ORC_STRIPE_BYTES.of(properties),
            known.ORC_BATCH_ROWS.of(properties),
            tuple(filter(None, map(str.strip, names))),
            known.ORC_BLOOM_FPP.of(properties),
        )

    def fitting(self, target_bytes: int, open_bytes: int) -> OrcOptions:
        """Return options with smaller stripes: an open file buffers a stripe until it is full."""
        most = max(min(target_bytes // _STRIPES, open_bytes), _LEAST_STRIPE)
        return replace(self, stripe_bytes=min(self.stripe_bytes, most))

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """Implement `FileOptions.open`."""
        return OrcFileWriter(stream, settings, self)


class OrcFileWriter:
    """A writer of one ORC file to a stream, which the caller closes."""

    def __init__(self, stream: BinaryIO, settings: FileSettings, options: OrcOptions) -> None:
        _check_types(settings.schema)
        self._stream = _PatientStream(stream)
        self._unfinished = options.stripe_bytes // 2
        self._metrics = ArrowMetrics(settings.schema, settings.metrics)
        self._schema = pa.schema([_field(f) for f in settings.schema.fields])
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._stream, "wb"),
            compression=options.compression,
            compression_strategy=options.strategy,
            stripe_size=options.stripe_bytes,
            batch_size=options.batch_rows,
            dictionary_key_size_threshold=_DICTIONARY_THRESHOLD,
            bloom_filter_columns=_column_ids(settings.schema, options.bloom_columns) or None,
            bloom_filter_fpp=options.bloom_fpp,
        )
        self._empty = True

    @property
    def bytes_written(self) -> int:
        """The length of the finished stripes plus half a stripe for the unfinished one."""
        return self._stream.tell() + self._unfinished

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types."""
        for batch in batches:
            self._metrics.add(batch)
            self._write(pa.Table.from_batches([batch]))

    def close(self) -> Metrics:
        """Write the last stripe and the footer; return the metrics counted while writing."""
        if self._empty:
            self._write(self._schema.empty_table())
        self._writer.close()
        self._stream.check()
        return self._metrics.result()

    def _write(self, table: pa.Table) -> None:
        columns = [
            _whole(column.cast(f.type))
            for column, f in zip(table.columns, self._schema, strict=True)
        ]
        for column, f in zip(columns, self._schema, strict=True):
            for chunk in column.chunks:
                _check_moments(chunk, f.name)
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))
        self._stream.check()
        self._empty = False


def _check_types(schema: Schema) -> None:
    for f in walk(schema.as_struct()):
        if isinstance(f.field_type, VariantType):
            raise UnsupportedError(
                f"Column {f.name!r} is of type {f.field_type}, which ORC files cannot hold",
                hint="Set the table property write.format.default to parquet or avro.",
                column=f.name,
            )


class _PatientStream:
    """A stream that defers its errors until `check`.

    pyarrow's ORC writer ends the process when its stream fails, and writes its remaining data when
    it is garbage-collected.
    """

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._length = stream.tell()
        self._problem: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Write data; after the first error, which is kept, discard it."""
        if self._problem is None:
            try:
                self._stream.write(data)
            except BaseException as problem:  # noqa: BLE001 - raised by `check`
                self._problem = problem
        self._length += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the length so far."""
        return self._length

    def flush(self) -> None:
        """Do nothing, as nothing is buffered here."""

    def close(self) -> None:
        """Do nothing, as the owner of the stream closes it."""

    def check(self) -> None:
        """Raise the first error of the stream, if any."""
        if self._problem is not None:
            raise self._problem


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Copy a nested column, as pyarrow writes the wrong rows of a slice of structs.

    It also writes wrong values of a struct inside a null struct, unless its contents are null.
    """
    if not column.type.num_fields:
        return column
    copied = column.take(pa.array(np.arange(len(column))))
    return pa.chunked_array([_null_inside(chunk) for chunk in copied.chunks], column.type)


def _null_inside(array: pa.Array) -> pa.Array:
    """Return the array with null contents inside null structs, at any depth."""
    kind = array.type
    if not kind.num_fields:
        return array
    if pa.types.is_struct(kind):
        children = [_null_inside(child) for child in array.flatten()]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        entries = [_null_inside(array.keys), _null_inside(array.items)]
        inside = pa.StructArray.from_arrays(entries, fields=fields)
    else:
        inside = _null_inside(array.values)
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), buffers, array.null_count, array.offset, [inside]
    )


def _check_moments(array: pa.Array, path: str) -> None:
    """Reject timestamps that pyarrow would write so that other readers get other values.

    For a fraction of a second before 1970 it writes a negative number of nanoseconds.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        counts = np.asarray(array.view(pa.int64()).drop_null())
        second = 1_000_000_000 if kind.unit == "ns" else 1_000_000
        wrong = counts[(counts < 0) & (counts % second != 0)]
        if len(wrong):
            raise UnsupportedError(
                f"Column {path!r} has timestamps before 1970 that are not whole seconds "
                f"({int(wrong[0])} {'nano' if kind.unit == 'ns' else 'micro'}seconds): they cannot "
                "be written to ORC",
                hint="Write Parquet, or round them.",
                column=path,
            )
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _check_moments(array.field(i), f"{path}.{kind.field(i).name}")
    elif pa.types.is_map(kind):
        _check_moments(array.keys, f"{path}.key")
        _check_moments(array.items, f"{path}.value")
    elif pa.types.is_list(kind):
        _check_moments(array.values, f"{path}.element")


def _field(field: NestedField) -> pa.Field:
    kind = field.field_type
    attributes = {key.encode(): text.encode() for key, text in orc_attributes(field).items()}
    return pa.field(field.name, _type(kind), not field.required, attributes)


def _type(kind: IcebergType) -> pa.DataType:
    """Return the Arrow type that pyarrow writes as the ORC type of the specification."""
    if isinstance(kind, StructType):
        return pa.struct([_field(f) for f in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(_field(kind.element_field))
    if isinstance(kind, MapType):
        return pa.map_(_field(kind.key_field), _field(kind.value_field))
    if isinstance(kind, TimeType):
        return pa.int64()
    if isinstance(kind, UUIDType | FixedType):
        return pa.binary()
    return type_to_pyarrow(kind)


def _column_ids(schema: Schema, names: Sequence[str]) -> list[int]:
    """Return the numbers of columns in the file, where types precede their inner ones."""
    wanted = {schema.find_field(name).field_id for name in names if schema.contains(name)}
    return [i for i, f in enumerate(fields_in_order(schema.fields), 1) if f.field_id in wanted]
