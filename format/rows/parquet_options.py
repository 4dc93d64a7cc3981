"""How Parquet files are written, by the properties of Iceberg Java (`write.parquet.*`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.write_property import compression_level, fraction, positive

if TYPE_CHECKING:
    from icecomb.format.rows.file_settings import DataFileWriter, FileSettings

CODEC = "write.parquet.compression-codec"
LEVEL = "write.parquet.compression-level"
ROW_GROUP_BYTES = "write.parquet.row-group-size-bytes"
ROW_GROUP_ROWS = "write.parquet.row-group-limit"
PAGE_BYTES = "write.parquet.page-size-bytes"
PAGE_ROWS = "write.parquet.page-row-limit"
PAGE_VERSION = "write.parquet.page-version"
DICTIONARY_BYTES = "write.parquet.dict-size-bytes"
DICTIONARY_PREFIX = "write.parquet.dict-encoding-enabled.column."
STATISTICS_PREFIX = "write.parquet.stats-enabled.column."
BLOOM_ENABLED_PREFIX = "write.parquet.bloom-filter-enabled.column."
BLOOM_FPP_PREFIX = "write.parquet.bloom-filter-fpp.column."
BLOOM_NDV_PREFIX = "write.parquet.bloom-filter-ndv.column."
BLOOM_MAX_BYTES = "write.parquet.bloom-filter-max-bytes"

_CODECS = {
    "zstd": "ZSTD",
    "gzip": "GZIP",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "brotli": "BROTLI",
    "uncompressed": "NONE",
    "none": "NONE",
}
_PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0"}
_DEFAULT_FPP = 0.01
_BLOCK_BYTES = 32
"""A bloom filter consists of blocks of this length; their number is a power of two."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The bloom filter of a column.

    Args:
        fpp: The false-positive probability it is made for.
        ndv: How many distinct values a row group has; None for as many as rows.
    """

    fpp: float = _DEFAULT_FPP
    ndv: int | None = None

    def values(self, rows: int, max_bytes: int) -> int:
        """For how many distinct values the filter of a row group is made.

        Args:
            rows: Rows of the row group.
            max_bytes: How long a filter may be.
        """
        wanted = rows if self.ndv is None else self.ndv
        blocks = 1 << max(int(math.log2(max_bytes / _BLOCK_BYTES)), 0)
        # Parquet format, Bloom Filter: bits of a filter of n values with 8 bits each set.
        bits_per_value = -8 / math.log(1 - self.fpp ** (1 / 8))
        return max(min(wanted, int(blocks * _BLOCK_BYTES * 8 / bits_per_value)), 1)


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """How Parquet files are written.

    Args:
        compression: pyarrow's name of the codec.
        level: The codec's level, None for its default.
        row_group_bytes: The length of a row group in the file, at most about.
        row_group_rows: Rows of a row group, at most.
        page_bytes: Values of a page, at most about.
        page_rows: Rows of a page, at most: the grain at which readers skip.
        page_version: The version of data pages, `1.0` or `2.0`.
        dictionary_bytes: A dictionary larger than this is given up.
        dictionaries: By column name, whether there is a dictionary; where nothing is said, a
            sample of the values decides.
        statistics: By column name, whether there are statistics; else there are.
        bloom_filters: Bloom filters by column name.
        bloom_max_bytes: The length of a bloom filter, at most.
    """

    compression: str = "ZSTD"
    level: int | None = None
    row_group_bytes: int = 128 << 20
    row_group_rows: int = 1 << 20
    page_bytes: int = 1 << 20
    page_rows: int = 20_000
    page_version: str = "1.0"
    dictionary_bytes: int = 1 << 20
    dictionaries: Mapping[str, bool] = field(default_factory=dict)
    statistics: Mapping[str, bool] = field(default_factory=dict)
    bloom_filters: Mapping[str, BloomFilter] = field(default_factory=dict)
    bloom_max_bytes: int = 1 << 20

    @property
    def file_format(self) -> FileFormat:
        """Parquet."""
        return FileFormat.PARQUET

    @property
    def buffer_bytes(self) -> int:
        """See `FileOptions.buffer_bytes`: a row group is written as a whole."""
        return max(self.row_group_bytes, 128 << 20)

    def fitting(self, target_bytes: int, open_bytes: int) -> ParquetOptions:
        """See `FileOptions.fitting`; an open file keeps nothing between row groups."""
        del target_bytes, open_bytes
        return self

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ParquetOptions:
        """The options that a table's properties set.

        Options of columns that the table does not have (any more) are passed over, as by Iceberg
        Java.

        Raises:
            ConfigurationError: A codec is unknown or a number is none.
        """
        codec = properties.get(CODEC, "zstd").lower()
        if codec not in _CODECS:
            raise ConfigurationError(
                f"{CODEC}: unknown codec {codec!r}", hint=f"Use one of: {', '.join(_CODECS)}."
            )
        version = properties.get(PAGE_VERSION, "v1").lower()
        if version not in _PAGE_VERSIONS:
            raise ConfigurationError(f"{PAGE_VERSION} must be v1 or v2, not {version!r}")
        default = cls()
        asked = _by_column(properties, BLOOM_ENABLED_PREFIX, _flag)
        fpp = _by_column(properties, BLOOM_FPP_PREFIX, fraction)
        ndv = _by_column(properties, BLOOM_NDV_PREFIX, positive)
        return cls(
            _CODECS[codec],
            compression_level(properties, LEVEL, _CODECS[codec]),
            positive(properties, ROW_GROUP_BYTES, default.row_group_bytes),
            positive(properties, ROW_GROUP_ROWS, default.row_group_rows),
            positive(properties, PAGE_BYTES, default.page_bytes),
            positive(properties, PAGE_ROWS, default.page_rows),
            _PAGE_VERSIONS[version],
            positive(properties, DICTIONARY_BYTES, default.dictionary_bytes),
            _by_column(properties, DICTIONARY_PREFIX, _flag),
            _by_column(properties, STATISTICS_PREFIX, _flag),
            {
                name: BloomFilter(fpp.get(name, _DEFAULT_FPP), ndv.get(name))
                for name, enabled in asked.items()
                if enabled
            },
            positive(properties, BLOOM_MAX_BYTES, default.bloom_max_bytes),
        )

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """See `FileOptions.open`."""
        from icecomb.format.rows.parquet_writer import ParquetFileWriter

        return ParquetFileWriter(stream, settings, self)


def _by_column(
    properties: Mapping[str, str], prefix: str, read: Callable[[Mapping[str, str], str], T]
) -> dict[str, T]:
    return {
        key.removeprefix(prefix): read(properties, key)
        for key in properties
        if key.startswith(prefix)
    }


def _flag(properties: Mapping[str, str], key: str) -> bool:
    return properties[key].lower() == "true"
