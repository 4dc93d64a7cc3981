"""Writing of Parquet data files: field ids, page index, microsecond timestamps, no INT96.

Options come from Iceberg Java's properties (`write.parquet.*`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.arrow.number_view import array_of
from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property import table_property as known
from icecomb.format.property.property import Property
from icecomb.format.rows.parquet.compact_protocol import BYTE, STRUCT, Struct, read_struct
from icecomb.format.rows.parquet.footer import parquet_metrics
from icecomb.format.rows.parquet.raw_footer import FIELD_ID, LOGICAL, MAGIC, SCHEMA
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.rows.values.data_metrics import Metrics, MetricsKind
from icecomb.format.rows.write.file_settings import DataFileWriter, FileSettings
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.types import (
    BooleanType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    VariantType,
)

_SAMPLE_ROWS = 1 << 14
_FEWEST_ROWS = 1 << 10
_CODECS = {
    "zstd": "ZSTD",
    "gzip": "GZIP",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "lz4_raw": "LZ4",
    "brotli": "BROTLI",
    "uncompressed": "NONE",
    "none": "NONE",
}
_PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0"}
_LEAST_PAGE_BYTES = 64
"""pyarrow loses the only row of a row group, if it has a list and pages six bytes or less."""
_BLOCK_BYTES = 32
"""A bloom filter consists of blocks of this length; their number is a power of two."""


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The bloom filter of a column.

    Args:
        fpp: The false-positive probability for which it is sized.
        ndv: The number of distinct values in a row group; None for the number of rows.
    """

    fpp: float = known.PARQUET_BLOOM_FPP.default
    ndv: int | None = None

    def values(self, rows: int, max_bytes: int) -> int:
        """Return the number of distinct values for which a row group's filter is sized."""
        wanted = rows if self.ndv is None else self.ndv
        blocks = 1 << max(int(math.log2(max_bytes / _BLOCK_BYTES)), 0)
        # Parquet format, Bloom Filter: bits of a filter of n values with 8 bits each set.
        bits_per_value = -8 / math.log(1 - self.fpp ** (1 / 8))
        return max(min(wanted, int(blocks * _BLOCK_BYTES * 8 / bits_per_value)), 1)


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Options for writing Parquet files; sizes are in bytes.

    Args:
        compression: The codec, by its name in pyarrow.
        level: The codec's level; None for its default.
        row_group_bytes: The approximate maximum size of a row group in the file.
        page_bytes: The approximate maximum size of a page's values.
        page_rows: The maximum number of rows in a page, the unit in which readers skip.
        page_version: The version of data pages, `1.0` or `2.0`.
        dictionary_bytes: The size beyond which a dictionary is abandoned.
        dictionaries: Whether there is a dictionary, by column name; for columns not listed, a
            sample of the values decides.
        statistics: Whether there are statistics, by column name; True for columns not listed.
        shredded_by: The number of rows that decide how variants are shredded; None to write
            them whole.
    """

    compression: str = "ZSTD"
    level: int | None = None
    row_group_bytes: int = known.PARQUET_ROW_GROUP_BYTES.default
    row_group_rows: int = known.PARQUET_ROW_GROUP_ROWS.default
    page_bytes: int = known.PARQUET_PAGE_BYTES.default
    page_rows: int = known.PARQUET_PAGE_ROWS.default
    page_version: str = "1.0"
    dictionary_bytes: int = known.PARQUET_DICTIONARY_BYTES.default
    dictionaries: Mapping[str, bool] = field(default_factory=dict)
    statistics: Mapping[str, bool] = field(default_factory=dict)
    bloom_filters: Mapping[str, BloomFilter] = field(default_factory=dict)
    bloom_max_bytes: int = known.PARQUET_BLOOM_MAX_BYTES.default

    @property
    def file_format(self) -> FileFormat:
        """The format, Parquet."""
        return FileFormat.PARQUET

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffer in bytes: at least a row group, which is written as a whole."""
        return max(self.row_group_bytes, 128 << 20)

    def fitting(self, target_bytes: int, open_bytes: int) -> ParquetOptions:
        """Return the options unchanged: an open file keeps nothing between row groups."""
        del target_bytes, open_bytes
        return self

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ParquetOptions:
        """Return the options set by a table's properties, but for columns that it does not have."""
        codec = _CODECS[known.PARQUET_CODEC.of(properties)]
        fpp = known.PARQUET_BLOOM_FPP.of_each(properties)
        ndv = known.PARQUET_BLOOM_NDV.of_each(properties)
        return cls(
            codec,
            compression_level(known.PARQUET_LEVEL, properties, codec),
            known.PARQUET_ROW_GROUP_BYTES.of(properties),
            known.PARQUET_ROW_GROUP_ROWS.of(properties),
            known.PARQUET_PAGE_BYTES.of(properties),
            known.PARQUET_PAGE_ROWS.of(properties),
            _PAGE_VERSIONS[known.PARQUET_PAGE_VERSION.of(properties)],
            known.PARQUET_DICTIONARY_BYTES.of(properties),
            known.PARQUET_DICTIONARY.of_each(properties),
            known.PARQUET_STATISTICS.of_each(properties),
            {
                name: BloomFilter(fpp.get(name, known.PARQUET_BLOOM_FPP.default), ndv.get(name))
                for name, enabled in known.PARQUET_BLOOM.of_each(properties).items()
                if enabled
            },
            known.PARQUET_BLOOM_MAX_BYTES.of(properties),
        )

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """Implement `FileOptions.open`."""
        return ParquetFileWriter(stream, settings, self)


def compression_level(
    level: Property[int | None], properties: Mapping[str, str], codec: str
) -> int | None:
    """Return the level of a codec; None if it is not set, or the codec has no levels."""
    said = level.of(properties)
    if said is None or codec == "NONE":
        return None
    if not pa.Codec.supports_compression_level(codec.lower()):
        return None
    least = pa.Codec.minimum_compression_level(codec.lower())
    most = pa.Codec.maximum_compression_level(codec.lower())
    if not least <= said <= most:
        raise ConfigurationError(
            f"Property {level.key} cannot be '{said}'",
            hint=f"It may be a whole number from {least} to {most}.",
            property=level.key,
        )
    return said


class _Writer(pq.ParquetWriter):  # type: ignore[misc] # pyarrow has no types
    """A writer that is closed only by `close`: a file that is given up gets no footer."""

    def __del__(self) -> None:
        """Write nothing: the stream is closed."""


class ParquetFileWriter:
    """A writer of one Parquet file; every `write` makes one row group.

    The caller closes `stream`; `notes` are more texts by key for the footer.
    """

    def __init__(
        self,
        stream: BinaryIO,
        settings: FileSettings,
        options: ParquetOptions,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        variants = variant_ids(settings.schema)
        self._annotated = AnnotatedStream(stream, variants) if variants else None
        self._stream = self._annotated or stream
        self._notes = notes
        self._settings = settings
        self._options = options
        self._nan_paths = list(_paths(settings.schema.fields, (FloatType, DoubleType), ()))
        self._variant_paths = list(_paths(settings.schema.fields, (VariantType,), ()))
        self._variant_nulls = dict.fromkeys((number for number, _ in self._variant_paths), 0)
        self._nan_counts = dict.fromkeys((number for number, _ in self._nan_paths), 0)
        self._writer: pq.ParquetWriter | None = None

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._stream.tell()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types, as a row group."""
        table = pa.Table.from_batches(batches)
        if self._writer is None:
            # The first row group determines the size of bloom filters.
            self._writer = self._open(table.num_rows)
        for number, path in self._nan_paths:
            self._nan_counts[number] += _count_nan(table, path)
        for number, path in self._variant_paths:
            self._variant_nulls[number] += _column(table, path).null_count
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> Metrics:
        """Write the footer and return its metrics."""
        writer = self._writer or self._open(0)
        if self._annotated is not None:
            self._annotated.hold()
        writer.close()
        if self._annotated is not None:
            self._annotated.release()
        footer = writer.writer.metadata
        schema = self._settings.schema
        fields = file_fields(footer.schema.to_arrow_schema(), None, "the file being written")
        config = self._settings.metrics
        metrics = parquet_metrics(footer, fields, schema, config, self._nan_counts)
        for number, nulls in self._variant_nulls.items():
            if config.mode(number).kind is not MetricsKind.NONE:
                metrics.value_counts[number] = footer.num_rows
                metrics.null_value_counts[number] = nulls
        return metrics

    def _open(self, rows: int) -> pq.ParquetWriter:
        options, schema = self._options, self._settings.schema
        paths = parquet_paths(schema.fields)
        statistics = _columns(schema, options.statistics, paths)
        writer = _Writer(
            self._stream,
            schema_to_pyarrow(schema),
            version="2.6",
            compression=options.compression,
            compression_level=options.level,
            use_dictionary=self._dictionaries(paths),
            write_statistics=[p for i, p in paths.items() if statistics.get(i, True)],
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            data_page_size=max(options.page_bytes, _LEAST_PAGE_BYTES),
            data_page_version=options.page_version,
            max_rows_per_page=options.page_rows,
            dictionary_pagesize_limit=options.dictionary_bytes,
            bloom_filter_options={
                paths[number]: {
                    "fpp": bloom.fpp,
                    "ndv": bloom.values(rows, options.bloom_max_bytes),
                }
                for number, bloom in _columns(schema, options.bloom_filters, paths).items()
                # A bloom filter of two values is useless; Parquet has none for booleans and groups.
                if not isinstance(schema.find_type(number), (BooleanType, VariantType))
            }
            or None,
        )
        texts = {"iceberg.schema": json.dumps(schema.to_json()), **self._notes}
        writer.add_key_value_metadata(texts)
        return writer

    def _dictionaries(self, paths: Mapping[int, str]) -> list[str]:
        sampled = self._settings.dictionaries
        chosen = set(paths.values() if sampled is None else sampled)
        asked = _columns(self._settings.schema, self._options.dictionaries, paths)
        return [p for i, p in paths.items() if asked.get(i, p in chosen)]


def _columns(
    schema: Schema, by_name: Mapping[str, Any], paths: Mapping[int, str]
) -> dict[int, Any]:
    """Return settings by field id from those by column name; ignore unknown columns."""
    ids = {
        schema.find_field(name).field_id: value
        for name, value in by_name.items()
        if schema.contains(name)
    }
    return {number: value for number, value in ids.items() if number in paths}


def _paths(
    fields: Sequence[NestedField], kinds: tuple[type[IcebergType], ...], path: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield ids and index paths of the columns of these types outside lists and maps."""
    for index, f in enumerate(fields):
        if isinstance(f.field_type, kinds):
            yield f.field_id, (*path, index)
        elif isinstance(f.field_type, StructType):
            yield from _paths(f.field_type.fields, kinds, (*path, index))


def _column(table: pa.Table, path: tuple[int, ...]) -> pa.ChunkedArray:
    column = table.column(path[0])
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def _count_nan(table: pa.Table, path: tuple[int, ...]) -> int:
    return sum(pc.is_nan(chunk).true_count for chunk in _column(table, path).chunks)


_VARIANT = 16
"""The number of the annotation in the union LogicalType (parquet.thrift)."""
_SPECIFICATION_VERSION = 1
_END_BYTES = 4 + len(MAGIC)


def variant_ids(schema: Schema) -> frozenset[int]:
    """Return the ids of the variants in a schema, at every depth."""
    fields = walk(schema.as_struct())
    return frozenset(f.field_id for f in fields if isinstance(f.field_type, VariantType))


class AnnotatedStream:
    """A stream to which pyarrow writes a Parquet file; the caller closes `stream`.

    Args:
        variants: The field ids of the file's variants.
    """

    closed = False

    def __init__(self, stream: BinaryIO, variants: Collection[int]) -> None:
        self._stream = stream
        self._variants = variants
        self._held: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        """Write data, or hold it after `hold`."""
        if self._held is None:
            return self._stream.write(data)
        self._held.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written, with those that are held."""
        return self._stream.tell() + sum(map(len, self._held or ()))

    def flush(self) -> None:
        """Do nothing: the caller flushes the file's stream."""

    def close(self) -> None:
        """Do nothing: the caller closes the file's stream."""

    def hold(self) -> None:
        """Hold what is written from now on, which ends with the footer."""
        self._held = []

    def release(self) -> None:
        """Write what is held, with the annotations in the footer."""
        data = b"".join(self._held or ())
        self._held = None
        length = int.from_bytes(data[-_END_BYTES : -len(MAGIC)], "little")
        begin = len(data) - _END_BYTES - length
        footer, _ = read_struct(data, begin)
        for element in footer[SCHEMA].values:
            if element.get(FIELD_ID) in self._variants:
                element.put(LOGICAL, STRUCT, _annotation())
        encoded = footer.encoded()
        self._stream.write(data[:begin] + encoded + len(encoded).to_bytes(4, "little") + MAGIC)


def _annotation() -> Struct:
    version = Struct([(1, (BYTE, _SPECIFICATION_VERSION))])
    return Struct([(_VARIANT, (STRUCT, version))])


def dictionary_columns(
    fields: tuple[NestedField, ...], batch: pa.RecordBatch, limit: int
) -> list[str]:
    """Return the Parquet paths of the columns that get a dictionary of at most `limit` bytes.

    Parquet writers build a dictionary for every column and abandon it once it is too large. That
    work is wasted in each row group of each file, which is most of the cost of writing many
    partitions. A sample shows in advance which columns have too many distinct values.
    """
    sample = batch
    if batch.num_rows > _SAMPLE_ROWS:
        rows = np.linspace(0, batch.num_rows - 1, _SAMPLE_ROWS).astype(np.int64)
        sample = batch.take(array_of(rows))
    chosen: list[str] = []
    for f, array in zip(fields, sample.columns, strict=True):
        if not f.field_type.is_primitive or _repeats(array, limit):
            chosen.extend(parquet_paths((f,)).values())
    return chosen


def _repeats(array: pa.Array, limit: int) -> bool:
    """Return whether a dictionary of all values would probably fit."""
    values = array.storage if isinstance(array, pa.ExtensionArray) else array
    rows = len(values) - values.null_count
    if rows < _FEWEST_ROWS:
        return True
    most = limit / max(values.nbytes / rows, 1)
    # The expected number of distinct values in the sample, if `most` are equally frequent.
    expected = most * -math.expm1(-rows / most)
    return bool(pc.count_distinct(values).as_py() <= expected)


def parquet_paths(fields: Sequence[NestedField]) -> dict[int, str]:
    """Return the dotted Parquet path of each primitive column, by field id, in order.

    The path of a variant is that of its metadata, which mostly repeats.
    """
    return {number: path for f in fields for number, path in _column_paths(f, f.name)}


def _column_paths(field: NestedField, path: str) -> Iterator[tuple[int, str]]:
    kind: IcebergType = field.field_type
    if isinstance(kind, StructType):
        for f in kind.fields:
            yield from _column_paths(f, f"{path}.{f.name}")
    elif isinstance(kind, ListType):
        yield from _column_paths(kind.element_field, f"{path}.list.element")
    elif isinstance(kind, MapType):
        yield from _column_paths(kind.key_field, f"{path}.key_value.key")
        yield from _column_paths(kind.value_field, f"{path}.key_value.value")
    elif isinstance(kind, VariantType):
        yield field.field_id, f"{path}.metadata"
    else:
        yield field.field_id, path
