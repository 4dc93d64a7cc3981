"""Z-values beside bits that are put together one by one."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.errors import ValidationError
from icecomb.format.maintenance.row_order import ZValue
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import BucketTransform, IdentityTransform
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

NOWHERE = PartitionSpec(0, ())
UTC = dt.timezone.utc
ASCENDING: dict[IcebergType, list[Any]] = {
    BooleanType(): [False, True],
    IntegerType(): [-(2**31), -256, -1, 0, 1, 255, 256, 2**31 - 1],
    LongType(): [-(2**63), -(2**40), -1, 0, 1, 2**40, 2**63 - 1],
    FloatType(): [-math.inf, -1.5, -1e-30, -0.0, 0.0, 1e-30, 1.5, math.inf, math.nan],
    DoubleType(): [-math.inf, -1e300, -1.5, -0.0, 0.0, 1.5, 1e300, math.inf, math.nan],
    DecimalType(9, 2): [Decimal("-99.99"), Decimal("-0.01"), Decimal(0), Decimal("0.01")],
    DateType(): [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 1, 1)],
    TimeType(): [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999999)],
    TimestampType(): [dt.datetime.fromisoformat(day) for day in ("0001-01-01", "1969-12-31", "2024-01-01")],
    TimestamptzType(): [dt.datetime(1969, 12, 31, tzinfo=UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)],
    StringType(): ["", "\x01", "a", "aa", "b", "é", "\U0001f600"],
    BinaryType(): [b"", b"\x01", b"\x7f", b"\x80", b"\xff"],
    FixedType(2): [b"\x00\x00", b"\x00\x01", b"\x7f\xff", b"\x80\x00", b"\xff\xff"],
    UUIDType(): [uuid.UUID(int=0), uuid.UUID(int=2**64), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)],
}  # fmt: skip
"""Values of each type from the least to the greatest."""


def z_values(
    schema: Schema, rows: dict[str, list[Any]], names: list[str], **limits: int
) -> list[bytes]:
    """The z-values of some rows."""
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    arrays = []
    for field in arrow:
        values = rows[field.name]
        if isinstance(field.type, pa.ExtensionType):
            raw = pa.array([v and v.bytes for v in values], field.type.storage_type)
            arrays.append(pa.ExtensionArray.from_storage(field.type, raw))
        else:
            arrays.append(pa.array(values, field.type))
    given_limits = {"most_bytes": 2**31 - 1, "text_bytes": 8} | limits
    value = ZValue.of(schema, NOWHERE, names, **given_limits)
    return value.values(pa.record_batch(arrays, schema=arrow)).to_pylist()


@pytest.mark.parametrize("kind", ASCENDING, ids=str)
def test_one_column_alone_is_in_the_order_of_its_values_nulls_first(kind):
    schema = Schema((NestedField(1, "c", kind),))
    found = z_values(schema, {"c": [None, *ASCENDING[kind]]}, ["c"])
    assert found == sorted(found)
    assert len(set(found[1:])) == len(ASCENDING[kind]) - (
        kind in {StringType(), BinaryType()} and 0
    )


def long_bits(value: int | None) -> str:
    """The bits of a whole number, ordered as numbers are, nulls as zeros."""
    return f"{0 if value is None else value + 2**63:064b}"


def double_bits(value: float | None) -> str:
    """Those of a floating number, by the specification's total order."""
    if value is None:
        return "0" * 64
    [raw] = struct.unpack(">Q", struct.pack(">d", value))
    return f"{raw ^ (2**64 - 1) if raw >> 63 else raw | 2**63:064b}"


def text_bits(value: str | None, width: int) -> str:
    """Those of the first bytes of a text."""
    raw = (value or "").encode()[:width].ljust(width, b"\0")
    return "".join(f"{byte:08b}" for byte in raw)


def interleaved(columns: list[str], most_bytes: int) -> bytes:
    """One bit of each column in turn, as long as it has some."""
    bits = "".join(
        column[at] for at in range(max(map(len, columns))) for column in columns if at < len(column)
    )[: most_bytes * 8]
    return bytes(int(bits[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(bits), 8))


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.text("aAé\U0001f9ca", max_size=12),
        ),
        max_size=20,
    ),
    text_bytes=st.sampled_from([1, 3, 8, 20]),
    most_bytes=st.sampled_from([1, 5, 16, 2**31 - 1]),
    order=st.permutations(["l", "d", "t"]),
)
def test_bits_of_all_columns_come_in_turn(rows, text_bytes, most_bytes, order):
    kinds = (("l", LongType()), ("d", DoubleType()), ("t", StringType()))
    schema = Schema(tuple(NestedField(i, *kind) for i, kind in enumerate(kinds, 1)))
    columns = {name: [row[at] for row in rows] for at, name in enumerate("ldt")}
    found = z_values(schema, columns, order, text_bytes=text_bytes, most_bytes=most_bytes)
    expected = []
    for number, double, text in rows:
        bits = {"l": long_bits(number), "d": double_bits(double), "t": text_bits(text, text_bytes)}
        expected.append(interleaved([bits[name] for name in order], most_bytes))
    assert found == expected


def test_columns_inside_of_structs_and_slices_count_too():
    inner = StructType((NestedField(2, "x", IntegerType()),))
    schema = Schema((NestedField(1, "st", inner),))
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    rows = [{"x": value} for value in (9, -3, None, 4)] + [None]
    batch = pa.record_batch([pa.array(rows, arrow.field(0).type)], schema=arrow)
    value = ZValue.of(schema, NOWHERE, ["st.x"], most_bytes=8, text_bytes=8)
    zeros = bytes(8)
    as_number = [
        int.from_bytes(z, "big") - 2**63 if z != zeros else None
        for z in value.values(batch).to_pylist()
    ]
    assert as_number == [9, -3, None, 4, None]
    assert value.values(batch.slice(1, 3)).to_pylist() == value.values(batch).to_pylist()[1:4]


def test_what_cannot_be_z_ordered_is_refused():
    items = ListType(3, IntegerType(), element_required=False)
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "items", items)))
    limits = {"most_bytes": 8, "text_bytes": 8}
    with pytest.raises(ValidationError, match="has no order"):
        ZValue.of(schema, NOWHERE, ["items"], **limits)
    by_id = PartitionSpec(0, (PartitionField(1, 1000, IdentityTransform(), "id"),))
    with pytest.raises(ValidationError, match="only by columns that the table is partitioned by"):
        ZValue.of(schema, by_id, ["id"], **limits)
    by_bucket = PartitionSpec(0, (PartitionField(1, 1000, BucketTransform(4), "id_bucket"),))
    assert ZValue.of(schema, by_bucket, ["id"], **limits)
