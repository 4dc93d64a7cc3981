"""Instructions for tasks that write files: each format's schema and settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.avro.schema import avro_schema
from icecomb.format.errors import ConfigurationError
from icecomb.format.property import table_property as known
from icecomb.format.rows.orc.type_description import fields_in_order, orc_attributes, orc_type
from icecomb.spark.planner.options import codec, codec_level, strategy
from icecomb.spark.planner.protocol.writes import FileInstructions
from icecomb.spark.schema import spark_schema

if TYPE_CHECKING:
    from icecomb.format.property.property import Property
    from icecomb.format.spec.schema import Schema
    from icecomb.spark.planner.options import Options

_PARQUET_SETTINGS: Final[Mapping[str, Property[Any]]] = {
    "parquet.block.size": known.PARQUET_ROW_GROUP_BYTES,
    "parquet.page.size": known.PARQUET_PAGE_BYTES,
    "parquet.page.row.count.limit": known.PARQUET_PAGE_ROWS,
    "parquet.dictionary.page.size": known.PARQUET_DICTIONARY_BYTES,
    "parquet.writer.version": known.PARQUET_PAGE_VERSION,
    "parquet.page.size.row.check.min": known.PARQUET_CHECK_MIN_ROWS,
    "parquet.page.size.row.check.max": known.PARQUET_CHECK_MAX_ROWS,
    "parquet.bloom.filter.max.bytes": known.PARQUET_BLOOM_MAX_BYTES,
    "parquet.bloom.filter.adaptive.enabled": known.PARQUET_BLOOM_ADAPTIVE,
}
_PARQUET_COLUMN_SETTINGS: Final[Mapping[str, Property[Any]]] = {
    "parquet.bloom.filter.enabled": known.PARQUET_BLOOM,
    "parquet.bloom.filter.fpp": known.PARQUET_BLOOM_FPP,
    "parquet.bloom.filter.expected.ndv": known.PARQUET_BLOOM_NDV,
    "parquet.enable.dictionary": known.PARQUET_DICTIONARY,
    "parquet.column.statistics.enabled": known.PARQUET_STATISTICS,
}
_PARQUET_LEVELS: Final = {
    "zstd": "parquet.compression.codec.zstd.level",
    "gzip": "zlib.compress.level",
}
_GZIP_LEVELS: Final = (
    *("NO_COMPRESSION", "BEST_SPEED", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT"),
    "BEST_COMPRESSION",
)
"""Hadoop's names of the levels."""

_AVRO_CODECS: Final = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
    "none": "null",
}
_AVRO_LEVELS: Final = {"deflate": 9, "zstandard": 1}
"""Iceberg Java's defaults."""


def file_instructions(  # noqa: PLR0917 - six independent inputs
    file_format: str,
    schema: Schema,
    target_bytes: int,
    metrics: Mapping[str, str],
    properties: Mapping[str, str],
    options: Options,
) -> FileInstructions:
    """Return the instructions for writing files of a format.

    Args:
        file_format: ``parquet``, ``orc`` or ``avro``.
        target_bytes: The size at which a file is full.
        metrics: Metrics modes by field id.
        properties: The table's properties, as they apply to these files.
    """
    text = _schema_text(schema)
    writers: Mapping[str, Callable[[Mapping[str, str], Options], dict[str, str]]] = {
        "parquet": partial(_parquet, schema),
        "orc": _orc,
        "avro": _avro,
    }
    file_schema: str | None = None
    attributes: tuple[Mapping[str, str], ...] = ()
    if file_format == "orc":
        fields = schema.as_struct().fields
        file_schema = orc_type(schema.as_struct())
        # the first type is that of a row
        attributes = ({}, *map(orc_attributes, fields_in_order(fields)))
    elif file_format == "avro":
        file_schema = json.dumps(avro_schema(schema.as_struct(), "table"), ensure_ascii=False)
    return FileInstructions(
        format=file_format,
        schema=spark_schema(schema),
        file_schema=file_schema,
        attributes=attributes,
        target_bytes=target_bytes,
        writer=writers[file_format](properties, options),
        metrics=metrics,
        metadata={} if file_format == "orc" else {"iceberg.schema": text},
    )


def _parquet(schema: Schema, properties: Mapping[str, str], options: Options) -> dict[str, str]:
    name = codec("parquet", properties, options)
    # Parquet's name of none
    settings = {"compression": "uncompressed" if name == "none" else name}
    level = codec_level("parquet", properties, options)
    if level is not None and name in _PARQUET_LEVELS:
        settings[_PARQUET_LEVELS[name]] = _gzip_level(level) if name == "gzip" else str(level)
    for hadoop_name, one in _PARQUET_SETTINGS.items():
        settings[hadoop_name] = _text(one.of(properties))
    _check_row_checks(properties)
    # it loads the writer of Parquet
    from icecomb.format.rows.parquet.writer import parquet_paths

    paths = {schema.find_column_name(i): path for i, path in parquet_paths(schema.fields).items()}
    for hadoop_name, family in _PARQUET_COLUMN_SETTINGS.items():
        for name, value in family.of_each(properties).items():
            # settings of missing columns are ignored, as by Iceberg Java
            if name in paths and value is not None:
                settings[f"{hadoop_name}#{paths[name]}"] = _text(value)
    return settings


def _gzip_level(level: int) -> str:
    if not 0 <= level < len(_GZIP_LEVELS):
        raise ConfigurationError(
            f"The compression-level of gzip cannot be {level}",
            hint=f"{known.PARQUET_LEVEL} and the like may be 0 to {len(_GZIP_LEVELS) - 1} for it.",
        )
    return _GZIP_LEVELS[level]


def _text(value: object) -> str:
    """Convert a value to the text of a Parquet setting."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_row_checks(properties: Mapping[str, str]) -> None:
    first, often = (
        each.of(properties) for each in (known.PARQUET_CHECK_MIN_ROWS, known.PARQUET_CHECK_MAX_ROWS)
    )
    if often < first:
        raise ConfigurationError(
            f"{known.PARQUET_CHECK_MAX_ROWS} is {often}, less than {first}, which is "
            f"{known.PARQUET_CHECK_MIN_ROWS}",
            hint="Set it to at least as much.",
        )


def _orc(properties: Mapping[str, str], options: Options) -> dict[str, str]:
    name = codec("orc", properties, options)
    return {
        # ORC's name of none
        "orc.compress": "NONE" if name == "uncompressed" else name.upper(),
        "orc.compression.strategy": strategy(properties, options).upper(),
        "orc.stripe.size": str(known.ORC_STRIPE_BYTES.of(properties)),
        "orc.block.size": str(known.ORC_BLOCK_BYTES.of(properties)),
        "orc.row.batch.size": str(known.ORC_BATCH_ROWS.of(properties)),
        "orc.bloom.filter.columns": known.ORC_BLOOM_COLUMNS.of(properties) or "",
        "orc.bloom.filter.fpp": str(known.ORC_BLOOM_FPP.of(properties)),
    }


def _avro(properties: Mapping[str, str], options: Options) -> dict[str, str]:
    name = _AVRO_CODECS[codec("avro", properties, options)]
    level = codec_level("avro", properties, options)
    level = _AVRO_LEVELS.get(name) if level is None else level
    return {"codec": name} if level is None else {"codec": name, "level": str(level)}


def _schema_text(schema: Schema) -> str:
    return json.dumps(schema.to_json(), separators=(",", ":"))
