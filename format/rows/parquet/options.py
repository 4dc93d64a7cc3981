"""Options for writing Parquet files, from Iceberg Java's properties (`write.parquet.*`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property import table_property as known
from icecomb.format.property.property import Property

if TYPE_CHECKING:
    from icecomb.format.rows.write.file_settings import DataFileWriter, FileSettings


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
        from icecomb.format.rows.parquet.writer import ParquetFileWriter

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
