"""JSON form of Iceberg's internal values: literals and partition values in messages.

Dates are days, times and timestamps micro- or nanoseconds; decimals and uuids are text; bytes are
base64; the floats that JSON lacks are "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import base64
import math
import struct
import uuid
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any

from icecomb.format.spec.types import (
    NANO_TYPES,
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    StringType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# Decimal rounds to 28 digits by default; Iceberg's decimals have up to 38, and a rounded bound
# would lose rows
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])


def value_to_json(iceberg_type: IcebergType, value: Any) -> Any:
    """Convert an internal value of a type to JSON; None stays None."""
    if value is None or isinstance(iceberg_type, BooleanType | StringType):
        return value
    if isinstance(iceberg_type, FloatType | DoubleType):
        return value if math.isfinite(value) else _NAMES[str(value)]
    if isinstance(iceberg_type, DecimalType):
        return f"{value:f}"
    if isinstance(iceberg_type, UUIDType):
        return str(value)
    if isinstance(iceberg_type, FixedType | BinaryType):
        return base64.b64encode(value).decode("ascii")
    return value


def shown_to_json(iceberg_type: IcebergType, value: Any) -> Any:
    """Convert an internal value like `value_to_json`, to what Spark shows of it."""
    if value is not None and isinstance(iceberg_type, NANO_TYPES):
        return value // NANOS_PER_MICRO
    return value_to_json(iceberg_type, value)


def value_from_json(iceberg_type: IcebergType, value: Any) -> Any:
    """Convert JSON to an internal value of a type.

    `ValueError` if the JSON is not that of such a value; `ArithmeticError` if a decimal has more
    digits than the type.
    """
    if value is None:
        return None
    if isinstance(iceberg_type, BooleanType):
        return _checked(value, bool)
    if isinstance(iceberg_type, StringType):
        return _checked(value, str)
    if isinstance(iceberg_type, FloatType):
        # the shortest decimal of a float is another number as a double
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    if isinstance(iceberg_type, DoubleType):
        return float(value)
    if isinstance(iceberg_type, DecimalType):
        return Decimal(value).quantize(Decimal(1).scaleb(-iceberg_type.scale), context=_EXACT)
    if isinstance(iceberg_type, UUIDType):
        return _canonical_uuid(value)
    if isinstance(iceberg_type, FixedType | BinaryType):
        return base64.b64decode(value, validate=True)
    return _checked(value, int)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not {kind.__name__}")
    return value


def _canonical_uuid(text: str) -> uuid.UUID:
    """Parse a uuid in canonical form: Spark compares text, so other spellings differ."""
    value = uuid.UUID(text)
    if str(value) != text:
        raise ValueError(f"{text!r} is not a uuid as Spark shows it")
    return value


def partition_types(metadata: TableMetadata, spec_id: int) -> list[IcebergType]:
    """Return the types of a spec's partition values; its columns may have been dropped since."""
    spec = metadata.spec_by_id(spec_id)
    fields = spec.partition_type(metadata.schema_of(spec)).fields
    return [field.field_type for field in fields]
