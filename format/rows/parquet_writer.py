"""Parquet data files: field ids at every depth, page index, microsecond timestamps, no INT96.

Settings come from the table's properties of Iceberg Java (`write.parquet.*`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.errors import ConfigurationError
from icecomb.format.rows.arrow import schema_to_pyarrow
from icecomb.format.schema import Schema
from icecomb.format.types import DoubleType, FloatType, NestedField, StructType

CODEC = "write.parquet.compression-codec"
LEVEL = "write.parquet.compression-level"
ROW_GROUP_BYTES = "write.parquet.row-group-size-bytes"
ROW_GROUP_ROWS = "write.parquet.row-group-limit"
PAGE_BYTES = "write.parquet.page-size-bytes"
PAGE_ROWS = "write.parquet.page-row-limit"
DICTIONARY_BYTES = "write.parquet.dict-size-bytes"
BLOOM_ENABLED_PREFIX = "write.parquet.bloom-filter-enabled.column."
BLOOM_FPP_PREFIX = "write.parquet.bloom-filter-fpp.column."

_CODECS = {
    "zstd": "ZSTD",
    "gzip": "GZIP",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "brotli": "BROTLI",
    "uncompressed": "NONE",
    "none": "NONE",
}
_DEFAULT_FPP = 0.01


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """How Parquet files are written.

    Args:
        compression: pyarrow's name of the codec.
        level: The codec's level, None for its default.
        row_group_bytes: Values of a row group in memory, at most about.
        row_group_rows: Rows of a row group, at most.
        page_bytes: Values of a page, at most about.
        page_rows: Rows of a page, at most: the grain at which readers skip.
        dictionary_bytes: A dictionary larger than this is given up.
        bloom_filters: False-positive probability by dotted column name.
    """

    compression: str = "ZSTD"
    level: int | None = None
    row_group_bytes: int = 128 << 20
    row_group_rows: int = 1 << 20
    page_bytes: int = 1 << 20
    page_rows: int = 20_000
    dictionary_bytes: int = 1 << 20
    bloom_filters: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ParquetOptions:
        """The options that a table's properties set.

        Raises:
            ConfigurationError: A codec is unknown or a number is none.
        """
        codec = properties.get(CODEC, "zstd").lower()
        if codec not in _CODECS:
            raise ConfigurationError(
                f"{CODEC}: unknown codec {codec!r}", hint=f"Use one of: {', '.join(_CODECS)}."
            )
        default = cls()
        bloom = {
            key.removeprefix(BLOOM_ENABLED_PREFIX): _fpp(properties, key)
            for key, value in properties.items()
            if key.startswith(BLOOM_ENABLED_PREFIX) and value.lower() == "true"
        }
        return cls(
            _CODECS[codec],
            _number(properties, LEVEL, 0) if LEVEL in properties else None,
            positive(properties, ROW_GROUP_BYTES, default.row_group_bytes),
            positive(properties, ROW_GROUP_ROWS, default.row_group_rows),
            positive(properties, PAGE_BYTES, default.page_bytes),
            positive(properties, PAGE_ROWS, default.page_rows),
            positive(properties, DICTIONARY_BYTES, default.dictionary_bytes),
            bloom,
        )


class ParquetFileWriter:
    """Writes one Parquet file; every call writes whole row groups.

    Args:
        stream: Where the file goes; the caller closes it.
        schema: The table's schema.
        options: How to write.
        dictionaries: The Parquet paths of the columns that get a dictionary; None for all.
    """

    def __init__(
        self,
        stream: BinaryIO,
        schema: Schema,
        options: ParquetOptions,
        dictionaries: Sequence[str] | None = None,
    ) -> None:
        self._stream = stream
        self._options = options
        self._schema = schema_to_pyarrow(schema)
        self._nan_paths = list(_floating(schema.fields, ()))
        self._nan_counts = dict.fromkeys((number for number, _ in self._nan_paths), 0)
        self._writer = pq.ParquetWriter(
            stream,
            self._schema,
            version="2.6",
            compression=options.compression,
            compression_level=options.level,
            use_dictionary=True if dictionaries is None else list(dictionaries),
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            data_page_size=options.page_bytes,
            max_rows_per_page=options.page_rows,
            dictionary_pagesize_limit=options.dictionary_bytes,
            bloom_filter_options={
                name: {"fpp": fpp, "ndv": options.row_group_rows}
                for name, fpp in options.bloom_filters.items()
            }
            or None,
        )
        self._writer.add_key_value_metadata({"iceberg.schema": json.dumps(schema.to_json())})

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._stream.tell()

    @property
    def nan_counts(self) -> dict[int, int]:
        """NaN values so far by field id, of the columns that can have any."""
        return self._nan_counts

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types, as row groups."""
        table = pa.Table.from_batches(batches)
        for number, path in self._nan_paths:
            self._nan_counts[number] += _count_nan(table, path)
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> pq.FileMetaData:
        """Write the footer and return it."""
        self._writer.close()
        return self._writer.writer.metadata


def positive(properties: Mapping[str, str], key: str, default: int) -> int:
    """A property that is a positive whole number.

    Raises:
        ConfigurationError: It is not.
    """
    value = _number(properties, key, default)
    if value <= 0:
        raise ConfigurationError(f"{key} must be greater than 0, not {value}")
    return value


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(properties.get(key, default))
    except ValueError:
        raise ConfigurationError(f"{key} must be a whole number, not {properties[key]!r}") from None


def _fpp(properties: Mapping[str, str], enabled_key: str) -> float:
    key = BLOOM_FPP_PREFIX + enabled_key.removeprefix(BLOOM_ENABLED_PREFIX)
    try:
        fpp = float(properties.get(key, _DEFAULT_FPP))
    except ValueError:
        fpp = 0.0
    if not 0 < fpp < 1:
        raise ConfigurationError(f"{key} must lie between 0 and 1, not {properties[key]!r}")
    return fpp


def _floating(
    fields: Sequence[NestedField], path: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Ids and index paths of the columns, outside lists and maps, that can hold NaN."""
    for index, f in enumerate(fields):
        if isinstance(f.field_type, (FloatType, DoubleType)):
            yield f.field_id, (*path, index)
        elif isinstance(f.field_type, StructType):
            yield from _floating(f.field_type.fields, (*path, index))


def _count_nan(table: pa.Table, path: tuple[int, ...]) -> int:
    column: Any = table.column(path[0])
    if len(path) > 1:
        column = pc.struct_field(column, list(path[1:]))
    return sum(pc.is_nan(chunk).true_count for chunk in column.chunks)
