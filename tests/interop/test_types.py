"""Values of every type: what one implementation writes, all others read unchanged."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

UTC = dt.timezone.utc
HOSTILE = "\x00/..\\=%25'\"`;--\n\t\u2028\U0001f9ca\u0301"


def naive(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # noqa: DTZ001 - a timestamp without a zone


def point(first_id: int) -> StructType:
    x, y = NestedField(first_id, "x", IntegerType()), NestedField(first_id + 1, "y", StringType())
    return StructType((x, y))


SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "writer", StringType()),
        NestedField(3, "b", BooleanType()),
        NestedField(4, "i", IntegerType()),
        NestedField(5, "l", LongType()),
        NestedField(6, "f", FloatType()),
        NestedField(7, "d", DoubleType()),
        NestedField(8, "dec9", DecimalType(9, 2)),
        NestedField(9, "dec18", DecimalType(18, 18)),
        NestedField(10, "dec38", DecimalType(38, 0)),
        NestedField(11, "day", DateType()),
        NestedField(12, "ts", TimestampType()),
        NestedField(13, "tz", TimestamptzType()),
        NestedField(14, "s", StringType()),
        NestedField(15, "u", UUIDType()),
        NestedField(16, "fx", FixedType(3)),
        NestedField(17, "bi", BinaryType()),
        NestedField(18, "st", StructType((NestedField(22, "p", point(30)), NestedField(33, "d", DateType())))),
        NestedField(19, "li", ListType(34, DecimalType(5, 1))),
        NestedField(20, "ma", MapType(35, StringType(), 36, TimestamptzType())),
        NestedField(21, "deep", ListType(37, MapType(38, IntegerType(), 39, ListType(40, point(41))))),
    )
)  # fmt: skip
LOW = {
    "b": False,
    "i": -(2**31),
    "l": -(2**63),
    "f": -math.inf,
    "d": -math.inf,
    "dec9": Decimal("-9999999.99"),
    "dec18": Decimal("-0.999999999999999999"),
    "dec38": Decimal(-(10**38) + 1),
    "day": dt.date(1, 1, 1),
    "ts": naive(1901, 12, 13, 20, 45, 51, 999_999),
    "tz": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    "s": "",
    "u": uuid.UUID(int=0),
    "fx": b"\0\0\0",
    "bi": b"",
    "st": {"p": None, "d": dt.date(1969, 12, 31)},
    "li": [],
    "ma": [],
    "deep": [],
}
HIGH = {
    "b": True,
    "i": 2**31 - 1,
    "l": 2**63 - 1,
    "f": math.inf,
    "d": math.inf,
    "dec9": Decimal("9999999.99"),
    "dec18": Decimal("0.999999999999999999"),
    "dec38": Decimal(10**38 - 1),
    "day": dt.date(9999, 12, 31),
    "ts": naive(2262, 4, 11, 23, 47, 16, 854_775),
    "tz": dt.datetime(9999, 12, 30, 23, 59, 59, 999_999, UTC),
    "s": HOSTILE,
    "u": uuid.UUID(int=2**128 - 1),
    "fx": b"\xff\xff\xff",
    "bi": bytes(range(256)),
    "st": {"p": {"x": None, "y": HOSTILE}, "d": None},
    "li": [Decimal("-0.1"), None, Decimal("9999.9")],
    "ma": [("", None), (HOSTILE, dt.datetime(1969, 1, 1, tzinfo=UTC))],
    "deep": [None, [], [(1, None), (-1, [None, {"x": 1, "y": None}])]],
}
ODD = dict.fromkeys(LOW) | {
    "f": math.nan,
    "d": math.nan,
    "dec9": Decimal("0.00"),
    "u": uuid.UUID("80000000-0000-0000-7fff-000000000001"),
    "s": "x" * 40 + "\U0010ffff",
    "bi": b"\xff" * 20,
}
EDGE = dict.fromkeys(LOW) | {"f": -0.0, "d": 5e-324, "s": "\uffff" * 17, "l": 0}
ROWS = [LOW, HIGH, ODD, EDGE, dict.fromkeys(LOW)]
WRITERS = ("python", "peer", "java", "spark")


@pytest.fixture(scope="module")
def written(readers):
    """A table of each format version that all four have appended the same rows to."""
    return {version: filled(readers, version) for version in ("1", "2")}


def filled(readers, version):
    name = f"types_v{version}"
    properties = {"format-version": version}
    table = readers.catalog.create_table(readers.own(name), SCHEMA, properties=properties)
    table.append(rows_of("python"))
    peer = readers.load_peer(name)
    peer.append(rows_of("peer").cast(peer.schema().as_arrow()))
    others = ", ".join(f"`{f.name}`" for f in SCHEMA.fields[2:])
    copy = f"INSERT INTO {{ns}}.{name} SELECT id, '%s', {others} FROM {{ns}}.{name} WHERE writer = 'python'"
    readers.java_sql(copy % "java")
    readers.spark_sql(copy % "spark")
    return name


def rows_of(writer: str) -> pa.Table:
    arrow = schema_to_pyarrow(SCHEMA)
    rows = [{"id": i, "writer": writer, **row} for i, row in enumerate(ROWS)]
    columns = []
    for field in arrow:
        values = [row[field.name] for row in rows]
        if field.type == pa.uuid():
            raw = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
            columns.append(pa.ExtensionArray.from_storage(field.type, raw))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=arrow)


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_any_one_writes_all_read_unchanged(written, readers, version):
    rows = readers.agree(written[version])
    by_writer = {w: [[r[0], *r[2:]] for r in rows if r[1] == w] for w in WRITERS}
    given = [[r[0], *r[2:]] for r in readers.arrow_rows(rows_of("python"))]
    assert by_writer == dict.fromkeys(WRITERS, given)


@pytest.mark.parametrize(
    "where",
    [
        "b = false",
        "i < 0",
        "i >= 2147483647",
        "l = 0",
        "l in (-9223372036854775808, 9223372036854775807)",
        "f < 0",
        "d < 0.5",
        "dec9 = 0",
        "dec9 < -9999999.98",
        "dec18 > 0.999999999999999998",
        "dec38 >= 99999999999999999999999999999999999999",
        "day < '1970-01-01'",
        "day > '9999-12-30'",
        "ts < '1970-01-01T00:00:00'",
        "ts >= '2262-04-11T23:47:16.854775'",
        "tz < '1970-01-01T00:00:00+00:00'",
        "tz = '1969-12-31T23:59:59.999999+00:00'",
        "s = ''",
        "s is null",
        "s > 'x'",
        "s like 'xxxxxxxxxxxxxxxxxxxxxxxx%'",
        "not (l = 0) and (s is not null or b = true)",
    ],
)
def test_a_filter_finds_the_same_rows_in_the_same_files(written, readers, where):
    rows = readers.agree(written["2"], where, "id, writer")
    assert rows
    for name in written.values():
        assert readers.plan(name, where) == readers.java_plan(name, where)
    assert readers.python(written["1"], where, "id, writer") == rows


@pytest.mark.parametrize(
    "where",
    [
        "st.d is not null",
        "st.p.y is null",
        "bi = X''",
        "fx >= X'ffffff'",
        "l not in (0, 1)",
        "d <= 5e-324",
        "d != 5e-324",
    ],
)
def test_a_filter_that_pyiceberg_cannot_ask(written, readers, where):
    rows = readers.agree(written["2"], where, "id, writer", but=["peer"])
    assert rows
    for name in written.values():
        assert readers.plan(name, where) == readers.java_plan(name, where)


def test_uuids_are_ordered_as_bytes(written, readers):
    """Iceberg Java's Spark orders them as signed numbers and finds no such row; PyIceberg fails."""
    where = "u = '80000000-0000-0000-7fff-000000000001'"
    expected = [[2, writer] for writer in sorted(WRITERS)]
    for reader in (readers.python, readers.spark):
        assert reader(written["2"], where, "id, writer") == expected


@pytest.mark.parametrize(
    "where",
    [
        "i > 2147483646 and i < 0",
        "dec38 = 1",
        "s = 'xxx'",
        "ts > '2262-04-11T23:47:16.854775'",
        "day > '9999-12-31'",
    ],
)
def test_a_filter_that_finds_nothing_agrees(written, readers, where):
    assert readers.agree(written["2"], where, "id") == []


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_files_are_skipped_by_is_what_iceberg_java_writes(written, readers, version):
    files = {f.lower_bounds[2].decode(): f for f in readers.files(written[version])}
    assert sorted(files) == sorted(WRITERS)
    java = metrics(files["java"])
    assert metrics(files["python"]) == java
    assert metrics(files["spark"]) == java


def metrics(file):
    """All but those of the column that names the writer."""
    kept = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    return {
        name: {field_id: v for field_id, v in (getattr(file, name) or {}).items() if field_id != 2}
        for name in kept
    }


@pytest.mark.parametrize("version", ["1", "2"])
def test_times_of_day_are_read_and_written_as_by_pyiceberg(readers, version):
    """Iceberg's Spark integration has no type for them."""
    name = f"times_v{version}"
    schema = Schema((NestedField(1, "t", TimeType()), NestedField(2, "n", LongType())))
    times = [None, dt.time(0), dt.time(23, 59, 59, 999_999)]
    rows = pa.table({"t": pa.array(times, pa.time64("us")), "n": [0, 1, 2]})
    table = readers.catalog.create_table(
        readers.own(name), schema, properties={"format-version": version}
    )
    table.append(rows)
    readers.load_peer(name).append(rows)
    for where in (None, "t > '12:00:00'", "t is null", "t <= '00:00:00'"):
        found = readers.python(name, where)
        assert found == readers.peer(name, where)
        assert len(found) == (6 if where is None else 2)
