"""Default values of columns: what Iceberg Java's library adds icecomb reads, and the other way round."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DateType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.rings import sampled

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StructType(NestedField(3, "a", LongType()))),
    NestedField(4, "l", ListType(5, StructType(NestedField(6, "p", LongType())))),
    NestedField(7, "m", MapType(8, StringType(), 9, StructType(NestedField(10, "q", LongType())))),
)
OLD = [
    [1, [1], [[1], None], [["k", [1]]]],
    [2, None, [], [["k", None]]],
    [3, [None], None, None],
]
TIME = dt.datetime(2024, 1, 31, 12, 0, 0, 1)  # noqa: DTZ001
ZONED = TIME.replace(tzinfo=dt.timezone.utc)
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
DEFAULTS = {
    "b": ("boolean", True, True),
    "i": ("int", -7, -7),
    "n": ("long", 1 << 40, 1 << 40),
    "f": ("float", 0.5, 0.5),
    "d": ("double", 0.1, 0.1),
    "dec9": ("decimal(9, 2)", "-1.50", Decimal("-1.50")),
    "dec38": ("decimal(38, 3)", "1.500", Decimal("1.500")),
    "day": ("date", "1969-12-31", dt.date(1969, 12, 31)),
    "t": ("time", "12:00:00.000001", dt.time(12, 0, 0, 1)),
    "ts": ("timestamp", "2024-01-31T12:00:00.000001", TIME),
    "tz": ("timestamptz", "2024-01-31T12:00:00.000001+00:00", ZONED),
    "t_x": ("string", "prefix ä", "prefix ä"),
    "u": ("uuid", str(ID), ID),
    "fx": ("fixed[2]", "00ff", b"\x00\xff"),
    "bin": ("binary", "fe", b"\xfe"),
}
"""The type of each added column, and its default in metadata and in Python."""
FILTERS = {
    "i = -7": 3,
    "i < 0": 3,
    "i > 0": 1,
    "i is null": 1,
    "i is not null": 4,
    "i != -7": 1,
    "i in (-7, 8)": 4,
    "n >= 1099511627776": 3,
    "b = true": 3,
    "dec9 < -1.49": 3,
    "day < '1970-01-01'": 3,
    "ts = '2024-01-31T12:00:00.000001'": 3,
    "t_x like 'prefix%'": 3,
    "t_x not like 'prefix%'": 1,
    "t_x is null": 1,
    "d = 0.1 and id > 1": 2,
}
"""Filters, and how many rows they are true for: three old ones, one of other values, one of nulls."""


@pytest.fixture(scope="module", params=sampled(["parquet", "avro"], keep=1))
def file_format(request):
    return request.param


def properties(file_format):
    return {"format-version": "3", "write.format.default": file_format}


def later(row_id, value):
    """A row of the table with all columns, as Iceberg Java takes it."""
    some = {
        "i": 8,
        "n": 8,
        "dec9": "8.00",
        "day": "2024-02-01",
        "t_x": "other",
        "d": 8.0,
        "b": False,
    }
    some["ts"] = "2024-02-01 00:00:00"
    values = [some.get(name) if value else None for name in DEFAULTS]
    return [row_id, None, None, None, *values]


@pytest.fixture(scope="module")
def by_java(file_format, library):
    """A table to which Iceberg Java added columns with defaults after three rows."""
    name = f"defaults_java_{file_format}"
    theirs = library.create(name, SCHEMA, properties=properties(file_format))
    library.iceberg.append(theirs, OLD)
    changes = [["add", n, kind, raw] for n, (kind, raw, _) in DEFAULTS.items()]
    library.iceberg.ask("schema", theirs, changes=changes)
    library.iceberg.append(theirs, [later(4, value=True), later(5, value=False)])
    return name


def test_defaults_of_iceberg_java_are_read_in_every_type(file_format, by_java, library):
    rows = library.agree(by_java, but=["peer"])
    if file_format == "parquet":
        library.agree(by_java, columns=", ".join(("id", *DEFAULTS)))
    shown = library.arrow_rows(pa.table({n: [value] for n, (*_, value) in DEFAULTS.items()}))
    assert [row[4:] for row in rows[:3]] == shown * 3


def test_filters_find_the_rows_that_iceberg_java_finds_by_defaults(by_java, library):
    counts = {where: len(library.agree(by_java, where, "id", but=["peer"])) for where in FILTERS}
    assert counts == FILTERS


def test_columns_inside_of_others_have_the_defaults_that_iceberg_java_gave_them(
    file_format, library
):
    name = f"defaults_inside_{file_format}"
    theirs = library.create(name, SCHEMA, properties=properties(file_format))
    library.iceberg.append(theirs, OLD)
    changes = [
        ["add", "s.x", "long", 7],
        ["add", "l.element.y", "date", "1970-01-02"],
        ["add", "m.value.z", "string", "z"],
        ["add", "need", "int", 5, True],
    ]
    library.iceberg.ask("schema", theirs, changes=changes)
    library.iceberg.ask("schema", theirs, changes=[["default", "s.x", 8], ["default", "need", 6]])
    assert library.agree(name, but=["peer"]) == [
        [1, [1, 7], [[1, "1970-01-02"], None], {"k": [1, "z"]}, 5],
        [2, None, [], {"k": None}, 5],
        [3, [None, 7], None, None, 5],
    ]
    table = library.load(name)
    table.append(pa.table({"id": [4], "s": [{"a": 4}]}))
    assert library.agree(name, but=["peer"])[-1] == [4, [4, 8], None, None, 6]


def test_iceberg_java_reads_the_defaults_of_icecomb(file_format, library):
    name = f"defaults_python_{file_format}"
    table = library.catalog.create_table(
        library.own(name), SCHEMA, properties=properties(file_format)
    )
    library.iceberg.append(library.name(name), OLD)
    table.refresh()
    with table.update_schema() as update:
        for column, (kind, _, value) in DEFAULTS.items():
            update.add_column(column, kind, default_value=value)
        update.add_column("need", "int", required=True, default_value=5)
        update.add_column("s.x", "date", default_value=dt.date(1970, 1, 2))
        update.add_column(("l", "y"), "long", default_value=6)
        update.add_column(("m", "z"), "string", default_value="z")
    with table.update_schema() as update:
        update.set_default_value("i", 8).set_default_value("day", None)
        update.rename_column("n", "m_n").update_column("i", "long").update_column("f", "double")
    table.append(pa.table({"id": [4], "s": [{"a": 4}]}))
    table.append(pa.table({"id": [5], "i": pa.array([None], pa.int32())}))
    rows = library.agree(name, but=["peer"])
    assert [row[5] for row in rows] == [-7, -7, -7, 8, None]
    assert [row[11] for row in rows] == ["1969-12-31"] * 3 + [None] * 2
    assert rows[3][1] == [4, "1970-01-02"]
    assert [row[-1] for row in rows] == [5] * 5
    if file_format == "parquet":
        # PyIceberg takes null lists for empty ones
        plain = [f.name for f in table.schema().fields if f.field_type.is_primitive]
        library.agree(name, columns=", ".join(plain))
    theirs = library.iceberg.metadata(library.name(name))["schema"]
    ours = library.load(name).schema().to_json()
    # Iceberg Java writes bytes with capitals
    assert str(theirs).lower() == str(ours).lower()


def test_defaults_of_both_go_on_together(file_format, library):
    name = f"defaults_both_{file_format}"
    table = library.catalog.create_table(
        library.own(name), SCHEMA, properties=properties(file_format)
    )
    table.append(pa.table({"id": [1]}))
    with table.update_schema() as update:
        update.add_column("x", "long", default_value=7)
    library.iceberg.append(library.name(name), [[2, None, None, None, None]])
    library.iceberg.ask(
        "schema",
        library.name(name),
        changes=[["default", "x", 8], ["add", "y", "date", "1970-01-02"]],
    )
    table.refresh().append(pa.table({"id": [3]}))
    rows = library.agree(name, but=["peer"])
    assert [[row[0], *row[4:]] for row in rows] == [
        [1, 7, "1970-01-02"],
        [2, None, "1970-01-02"],
        [3, 8, "1970-01-02"],
    ]
    field = library.load(name).schema().find_field("y")
    assert field == NestedField(field.field_id, "y", DateType(), initial_default=1, write_default=1)
    for where, count in {"x = 7": 1, "x >= 7": 2, "x is null": 1, "y < '1970-01-02'": 0}.items():
        assert len(library.agree(name, where, "id", but=["peer"])) == count


def test_nanoseconds_have_defaults(file_format, metastore, iceberg_library):
    """In a folder, as Hive's metastore has no such type."""
    warehouse = f"{metastore.warehouse.as_uri()}/hadoop"
    catalog = load_catalog("files", type="hadoop", warehouse=warehouse)
    catalog.create_namespace_if_not_exists("defaults")
    name = f"defaults.nanos_{file_format}"
    theirs = f"hadoop:{name}"
    iceberg_library.create(theirs, SCHEMA, properties=properties(file_format))
    iceberg_library.append(theirs, OLD)
    text, nanos = "2017-11-16T22:31:08.123456789", 1510871468123456789
    changes = [["add", "t", "timestamp_ns", text], ["add", "z", "timestamptz_ns", f"{text}+00:00"]]
    iceberg_library.ask("schema", theirs, changes=changes)
    table = catalog.load_table(name)
    with table.update_schema() as update:
        update.add_column("y", "timestamp_ns", default_value=text)
    table.append(pa.table({"id": [4]}))
    found = table.scan().to_arrow()
    for column in "tzy":
        assert found[column].cast(pa.int64()).to_pylist() == [nanos] * 4
    shown = text.replace("T", " ")
    assert [row[-3:] for row in iceberg_library.scan(theirs)] == [[shown] * 3] * 4
    assert table.scan(f"t = '{text}' and y > '2017-11-16T22:31:08.123456788'").count() == 4
