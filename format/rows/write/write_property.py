"""Compression levels, whose range depends on the codec."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import Property


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
