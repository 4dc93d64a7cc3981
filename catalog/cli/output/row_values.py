"""Conversion of a batch's rows to Python values, also of values that Python does not have."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def row_values(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Convert rows to dicts; times that Python does not have are ISO 8601 text.

    Those are dates and times before year 1 and after 9999, and all times in nanoseconds.
    """
    if not any(_has_nanoseconds(field.type) for field in batch.schema):
        with suppress(OverflowError, ValueError):
            rows: list[dict[str, Any]] = batch.to_pylist()
            return rows
    columns = [[_value(scalar) for scalar in column] for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _has_nanoseconds(kind: pa.DataType) -> bool:
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import child_fields

    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(field.type) for field in child_fields(kind))


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    from icecomb.format.spec.values.temporal import human_date, iso_timestamp, iso_timestamp_ns

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(child) for name, child in scalar.items()}
    if isinstance(scalar, pa.MapScalar):
        return [tuple(_value(entry).values()) for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values]
    if pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ns":
        return iso_timestamp_ns(scalar.value) + ("+00:00" if scalar.type.tz else "")
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_date(scalar.type):
            return human_date(scalar.value)
        return iso_timestamp(scalar.value) + ("+00:00" if scalar.type.tz else "")
