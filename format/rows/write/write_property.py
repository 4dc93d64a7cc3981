"""The level of a codec, which each codec counts in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icecomb.format.errors import ConfigurationError
from icecomb.format.property import Property


def compression_level(
    level: Property[int | None], properties: Mapping[str, str], codec: str
) -> int | None:
    """The level of a codec; None where it is not set, or the codec has none.

    Args:
        level: The property that says it.
        properties: A table's properties.
        codec: Arrow's name of the codec.

    Raises:
        ConfigurationError: The codec has no such level.
    """
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
