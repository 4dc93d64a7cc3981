"""Variant, a value that carries its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icecomb.format.argument import name_of_type
from icecomb.format.errors import SchemaError
from icecomb.format.variant.decoder import decode
from icecomb.format.variant.encoder import encode
from icecomb.format.variant.json_text import json_text, parse_json


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of a column of type `variant`, in its two binary parts (Parquet: Variant Encoding).

    Two variants are equal if their bytes are; equal values may have different bytes. A variant
    null is a value: it is not the null of a column.

    Args:
        metadata: The dictionary of the names of all objects' fields.
        value: The encoded value.

    Raises:
        SchemaError: If a part is not bytes.
    """

    metadata: bytes
    value: bytes

    def __post_init__(self) -> None:
        for name, part in (("metadata", self.metadata), ("value", self.value)):
            if not isinstance(part, bytes):
                raise SchemaError(
                    f"The {name} of a variant is bytes, not {name_of_type(part)}",
                    hint="Make variants by Variant.of(value) or Variant.from_json(text).",
                )

    @classmethod
    def of(cls, value: Any) -> Variant:
        """Encode a Python value.

        Each value is as narrow as it can be: integers have 8 to 64 bits, beyond that they are
        decimals; a float is a double. Datetimes have microseconds, with a time zone those of
        UTC. An Arrow or NumPy scalar decides its own type: `pa.scalar(1, pa.int64())`,
        `numpy.float32(1.5)`, `pa.scalar(1, pa.timestamp("ns"))`.

        Args:
            value: None, a boolean, number, text, bytes, date, datetime, time, UUID or scalar; a
                list or tuple of values; a mapping from text to values.

        Raises:
            SchemaError: If a value is something else, a number has more than 38 digits, or there
                are more than 500 levels.
        """
        return cls(*encode(value))

    @classmethod
    def from_json(cls, text: str | bytes) -> Variant:
        """Encode the value of JSON text, numbers with a point as decimals.

        A number with an exponent, or of more than 38 digits, is a double.

        Raises:
            SchemaError: If it is not JSON, has a name twice in an object or more than 500 levels.
        """
        return cls.of(parse_json(text))

    def to_python(self) -> Any:
        """Decode the value: objects are dicts, arrays are lists.

        Nanoseconds, and days and times before the year 1 or after 9999, come as Arrow scalars.

        Raises:
            UnsupportedError: If the version, or a type, is not known.
            ValidationError: If the bytes are not a variant, or it has more than 500 levels.
        """
        return decode(self.metadata, self.value)

    def to_json(self) -> str:
        """Return the value as JSON text.

        Dates and times are texts in the form of ISO 8601, bytes in Base64; numbers that JSON does
        not have are "NaN", "Infinity" and "-Infinity".

        Raises:
            UnsupportedError: If the version, or a type, is not known.
            ValidationError: If the bytes are not a variant, or it has more than 500 levels.
        """
        return json_text(self.to_python())
