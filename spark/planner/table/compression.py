"""How files are compressed: options and settings, and the properties that they precede."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.property import table_property as known

if TYPE_CHECKING:
    from icecomb.format.property.property import Property
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.options import Options

_CODEC: Final = "compression-codec"
_LEVEL: Final = "compression-level"
_STRATEGY: Final = "compression-strategy"
_COMPRESSION: Final[Mapping[str, Mapping[str, Property[Any]]]] = {
    _CODEC: {
        "parquet": known.PARQUET_CODEC,
        "orc": known.ORC_CODEC,
        "avro": known.AVRO_CODEC,
    },
    _LEVEL: {"parquet": known.PARQUET_LEVEL, "avro": known.AVRO_LEVEL},
    _STRATEGY: {"orc": known.ORC_STRATEGY},
}
"""The properties of formats by the name of the option, and of the setting, that precedes them."""


def codec(file_format: str, properties: Mapping[str, str], options: Options) -> str:
    """Return Iceberg's name of the codec of a format's files."""
    found: str = options.of(_COMPRESSION[_CODEC][file_format], properties, _CODEC, _CODEC)
    return found


def codec_level(file_format: str, properties: Mapping[str, str], options: Options) -> int | None:
    """Return the level of that codec; None if it is not set."""
    known_level: Property[int | None] = _COMPRESSION[_LEVEL][file_format]
    return options.of(known_level, properties, _LEVEL, _LEVEL)


def strategy(properties: Mapping[str, str], options: Options) -> str:
    """Return whether the codec of ORC files saves time or space."""
    found: str = options.of(known.ORC_STRATEGY, properties, _STRATEGY, _STRATEGY)
    return found


def write_properties(metadata: TableMetadata, options: Options) -> dict[str, str]:
    """Return properties by which the planner writes files as tasks would with these options.

    They are those that options and settings precede, as in Iceberg Java (SparkWriteConf).
    """
    data_format = known.DATA_FORMAT.of(metadata.properties)
    formats = {data_format}
    if metadata.format_version < 3:  # deletion vectors are not compressed
        formats.add(known.DELETE_FORMAT.of(metadata.properties, default=data_format))
    found: dict[str, str] = {}
    for name, by_format in _COMPRESSION.items():
        if options.text(name, name) is None:
            continue
        for each in formats & by_format.keys():
            one = by_format[each]
            text = str(options.of(one, {}, name, name))
            found |= {one.key: text, one.key.replace("write.", "write.delete.", 1): text}
    return found
