"""Numbers among the properties that say how files are written."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icecomb.format.errors import ConfigurationError


def positive(properties: Mapping[str, str], key: str, default: int = 1) -> int:
    """A property that is a positive whole number.

    Raises:
        ConfigurationError: It is not.
    """
    value = whole(properties, key, default)
    if value <= 0:
        raise ConfigurationError(f"{key} must be greater than 0, not {value}")
    return value


def whole(properties: Mapping[str, str], key: str, default: int) -> int:
    """A property that is a whole number.

    Raises:
        ConfigurationError: It is not.
    """
    try:
        return int(properties.get(key, default))
    except ValueError:
        raise ConfigurationError(f"{key} must be a whole number, not {properties[key]!r}") from None


def compression_level(properties: Mapping[str, str], key: str, codec: str) -> int | None:
    """The level of a codec; None where it is not set, or the codec has none.

    Args:
        properties: A table's properties.
        key: Which one.
        codec: Arrow's name of the codec.

    Raises:
        ConfigurationError: The codec has no such level.
    """
    level = whole(properties, key, 0)
    if key not in properties or codec == "NONE":
        return None
    if not pa.Codec.supports_compression_level(codec.lower()):
        return None
    least = pa.Codec.minimum_compression_level(codec.lower())
    most = pa.Codec.maximum_compression_level(codec.lower())
    if not least <= level <= most:
        raise ConfigurationError(f"{key} must lie between {least} and {most}, not {level}")
    return level


def fraction(properties: Mapping[str, str], key: str, default: float = 0.5) -> float:
    """A property that is a number between 0 and 1, both excluded.

    Raises:
        ConfigurationError: It is not.
    """
    try:
        value = float(properties.get(key, default))
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise ConfigurationError(f"{key} must lie between 0 and 1, not {properties[key]!r}")
    return value
