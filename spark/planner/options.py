"""Options of one query or write, and settings of its session.

Names are Iceberg's; settings begin with ``spark.sql.iceberg.``. An option takes precedence over a
setting, a setting over a table property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icecomb.format.property import table_property as known

if TYPE_CHECKING:
    from icecomb.format.property.property import Property
    from icecomb.format.spec.metadata import TableMetadata


T = TypeVar("T")
PREFIX: Final = "spark.sql.iceberg."
"""The prefix of settings."""


class Options:
    """The options, case-insensitive, of one query or write, and its session's settings."""

    def __init__(
        self, options: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._spelled = options
        self._options = {key.lower(): text for key, text in options.items()}
        self._settings = settings or {}

    def text(self, option: str, setting: str | None = None) -> str | None:
        """Return the text of an option, else of a setting; None if neither is set."""
        return next((text for _, text in self._said(option, setting)), None)

    def of(
        self,
        known: Property[T],
        properties: Mapping[str, str],
        option: str | None,
        setting: str | None = None,
        *,
        default: T | None = None,
    ) -> T:
        """Return the value of an option, else of a setting, else of a table property.

        Args:
            setting: The name of the setting, without `PREFIX`.
            default: A default instead of the property's own.
        """
        for key, text in self._said(option, setting):
            return known.read(text, key)
        return known.of(properties, default=default)

    def spark(self, known: Property[T]) -> T:
        """Return the value of one of Spark's own settings."""
        return known.of(self._settings)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return settings and options with a prefix, without it, in their own spelling.

        Args:
            prefix: The prefix of options; settings have `PREFIX` before it.
        """
        found = {
            key[len(PREFIX + prefix) :]: text
            for key, text in self._settings.items()
            if key.startswith(PREFIX + prefix)
        }
        return found | {
            key[len(prefix) :]: text
            for key, text in self._spelled.items()
            if key.lower().startswith(prefix)
        }

    def _said(self, option: str | None, setting: str | None) -> Iterator[tuple[str, str]]:
        if option is not None and option in self._options:
            yield option, self._options[option]
        if setting is not None and (key := PREFIX + setting) in self._settings:
            yield key, self._settings[key]


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
