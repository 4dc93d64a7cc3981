"""Schemas and partition specs that Iceberg Java's library and icecomb changed: old and new files are one table for both."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from tests.interop.conftest import row_values
from tests.rings import sampled

FIRST = Schema(
    (
        NestedField(1, "id", IntegerType()),
        NestedField(2, "a", IntegerType()),
        NestedField(3, "b", StringType()),
        NestedField(4, "f", FloatType()),
        NestedField(5, "d", DecimalType(5, 2)),
        NestedField(6, "st", StructType((NestedField(7, "x", IntegerType()), NestedField(8, "y", StringType())))),
        NestedField(9, "li", ListType(10, StructType((NestedField(11, "p", IntegerType()),)))),
        NestedField(12, "ma", MapType(13, StringType(), 14, StructType((NestedField(15, "q", FloatType()),)))),
    )
)  # fmt: skip
WHO = ("java", "python")
FORMATS = ("parquet", "orc", "avro")
KINDS = [
    *sampled([pytest.param((who, "2", each)) for who in WHO for each in FORMATS], keep=1),
    *sampled([pytest.param((who, "1", "parquet")) for who in WHO[::-1]], keep=1),
]


def old(i):
    return {
        "id": i,
        "a": i * 10,
        "b": f"b{i}",
        "f": i / 4,
        "d": Decimal(i).quantize(Decimal("0.01")),
        "st": {"x": i, "y": "old"},
        "li": [{"p": i}],
        "ma": [("k", {"q": float(i)})],
    }


def new(i):
    return {
        "b": "new",
        "id": 3_000_000_000 + i,
        "added": i,
        "c": f"c{i}",
        "f": 0.1,
        "d": Decimal("1234567.89"),
        "st": {"z": 1, "x": 3_000_000_000, "y": "y"},
        "li": [{"p": 3_000_000_000}],
        "ma": [("k", {"q": 1.0, "r": 2})],
        "a": i,
    }


CHANGES = [
    ("add", "added", "int"),
    ("after", "added", "id"),
    ("type", "id", "long"),
    ("type", "f", "double"),
    ("type", "d", "decimal(12, 2)"),
    ("drop", "a"),
    ("add", "a", "int"),
    ("rename", "b", "c"),
    ("add", "b", "string"),
    ("first", "b"),
    ("type", "st.x", "long"),
    ("add", "st.z", "int"),
    ("first", "st.z"),
    ("rename", "st.y", "w"),
    ("drop", "st.w"),
    ("add", "st.y", "string"),
    ("type", "li.element.p", "long"),
    ("add", "ma.value.r", "int"),
]
TYPES = {
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "decimal(12, 2)": DecimalType(12, 2),
}


def changed_by_us(table, *change):
    kind, path, *more = change
    column = tuple(path.split("."))
    with table.update_schema() as update:
        if kind == "add":
            update.add_column(column, TYPES[more[0]])
        elif kind == "type":
            update.update_column(column, TYPES[more[0]])
        elif kind == "drop":
            update.delete_column(column)
        elif kind == "rename":
            update.rename_column(column, more[0])
        elif kind == "first":
            update.move_first(column)
        else:
            update.move_after(column, more[0])


def appended(library, name, rows, who):
    table = library.load(name)
    if who == "java":
        values = [row_values(row, table.schema()) for row in rows]
        library.iceberg.append(library.name(name), values)
    else:
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def evolved(request, library):
    """Files of two schemas by one writer; most columns of the first are gone, renamed, promoted or taken anew.

    The changes are made by turns.
    """
    who, version, file_format = request.param
    name = f"evolved_{who}_{version}_{file_format}"
    properties = {"format-version": version, "write.format.default": file_format}
    java = library.create(name, FIRST, properties=properties)
    appended(library, name, [old(i) for i in range(10)], who)
    for place, change in enumerate(CHANGES):
        if place % 2:
            library.iceberg.ask("schema", java, changes=[change])
        else:
            changed_by_us(library.load(name), *change)
    appended(library, name, [new(i) for i in range(5)], who)
    appended(library, name, [new(4)], WHO[who == "java"])
    return name


FILTERS = {
    "a is null": 10,
    "a = 3": 1,
    "a = 30": 0,
    "b is null": 10,
    "b = 'b3'": 0,
    "b = 'new'": 6,
    "c = 'b3'": 1,
    "c = 'c4'": 2,
    "added is null": 10,
    "added >= 4": 2,
    "id = 3": 1,
    "id >= 3000000000": 6,
    "id < 3000000000": 10,
    "f = 0.25": 1,
    "f < 0.2": 7,
    "d = 3.00": 1,
    "d > 1000000.00": 6,
    "not (c = 'b3')": 15,
    "a != 3 or b is null": 15,
}
NESTED = {"st.y = 'old'": 0, "st.y is null": 10, "st.x = 3": 1, "st.z is null": 10}


def test_both_read_old_and_new_files_alike(evolved, library):
    but = [] if evolved.endswith("parquet") else ["peer"]
    found = library.agree(evolved, but=but)
    schema = library.load(evolved).schema()
    assert [field.name for field in schema.fields] == [*new(0)]
    given = [new(i) for i in (0, 1, 2, 3, 4, 4)]
    values = [row_values(row, schema) for row in given]
    shown = [[*row[:-2], dict(row[-2]), row[-1]] for row in values]
    assert [row for row in found if row[0] == "new"] == sorted(shown, key=repr)
    assert sum(row[0] is None for row in found) == 10


def test_metrics_of_old_files_do_not_hide_rows(evolved, library):
    for where, count in FILTERS.items():
        but = [] if evolved == "evolved_java_2_parquet" else ["peer"]
        assert len(library.agree(evolved, where, "id", but=but)) == count, where
    for where, count in NESTED.items():
        found = library.python(evolved, where, "id")
        assert found == library.java(evolved, where, "id"), where
        assert len(found) == count, where
        # where a struct may be null, fields in it may be that nobody counted
        planned = library.iceberg.plan(library.name(evolved), where)
        assert planned.items() <= library.plan(evolved, where).items(), where


def test_an_older_snapshot_is_read_with_its_own_schema(evolved, library):
    table = library.load(evolved)
    first = table.snapshots()[0].snapshot_id
    scan = table.scan(snapshot_id=first)
    found = library.arrow_rows(scan.to_arrow())
    assert found == library.java(evolved, snapshot=first)
    assert len(library.arrow_rows(scan.filter("a = 30 and b = 'b3'").to_arrow())) == 1
    where = {"type": "eq", "term": "a", "value": 30}
    assert len(library.java(evolved, where, snapshot=first)) == 1


BY_TIME = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "k", IntegerType()),
        NestedField(3, "ts", TimestampType()),
    )
)
SPECS = [
    [],
    [("add", "bucket[3]", "id", "id_bucket")],
    [("remove", "k")],
    [("remove", "id_bucket"), ("add", "truncate[5]", "id", "five")],
    [("add", "month", "ts", "ts_month")],
    [("add", "identity", "k", "k")],
]
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone


@pytest.fixture(scope="module", params=sampled(["2", "1"], keep=1))
def respecified(request, library):
    """Rows under six partition specs, changed by turns and each appended to by both."""
    name = f"respecified_v{request.param}"
    properties = {"format-version": request.param}
    java = library.create(name, BY_TIME, [("identity", "k", "k")], properties)
    for place, changes in enumerate(SPECS):
        if place % 2:
            with library.load(name).update_spec() as update:
                for kind, *more in changes:
                    if kind == "add":
                        update.add_field(more[1], more[0], more[2])
                    else:
                        update.remove_field(more[0])
        elif changes:
            library.iceberg.ask("spec", java, changes=changes)
        for who, first in (("java", place * 10), ("python", place * 10 + 5)):
            rows = [{"id": i, "k": i % 2, "ts": moment(i)} for i in range(first, first + 5)]
            appended(library, name, rows, who)
    return name


def moment(i):
    return EPOCH + dt.timedelta(days=10 * i - 579)


def test_all_specs_are_one_table(respecified, library):
    early, late = dt.datetime(1969, 1, 1), dt.datetime(1969, 6, 1)  # noqa: DTZ001
    for where, matches in {
        None: lambda _: True,
        "id = 23": lambda i: i == 23,
        "id in (6, 7, 46, 57)": lambda i: i in {6, 7, 46, 57},
        "k = 1": lambda i: i % 2 == 1,
        "k = 1 and id > 35": lambda i: i % 2 == 1 and i > 35,
        "ts < '1969-01-01T00:00:00'": lambda i: moment(i) < early,
        "ts >= '1969-06-01T00:00:00' and k = 0": lambda i: moment(i) >= late and i % 2 == 0,
        "not (id < 50)": lambda i: i >= 50,
    }.items():
        peer = [] if respecified.endswith("2") else ["peer"]
        found = library.agree(respecified, where, but=peer)
        expected = [i for i in range(60) if matches(i)]
        assert sorted(row[0] for row in found) == expected, where
        assert expected


def test_the_metadata_of_both_says_the_same(respecified, library):
    theirs = library.iceberg.metadata(library.name(respecified))
    ours = library.load(respecified)
    assert theirs["location"] == ours.metadata_location
    assert theirs["schema"] == ours.schema().to_json()
    assert theirs["spec"]["fields"] == ours.spec().to_json()["fields"]
    shown = [(s.snapshot_id, s.parent_snapshot_id) for s in ours.snapshots()]
    assert [(s["id"], s["parent"]) for s in theirs["snapshots"]] == shown


def test_a_dropped_column_that_came_back_has_its_values_for_all_readers(library):
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "st", StructType(NestedField(3, "x", LongType()), NestedField(4, "y", LongType()))),
        NestedField(5, "s", StringType()),
    )  # fmt: skip
    name = library.create("undeleted", schema)
    library.iceberg.append(name, [[1, [10, 11], "a"]])
    table = library.catalog.load_table(name)
    for column in ("s", "st.x"):
        with table.update_schema() as update:
            update.delete_column(column)
    library.iceberg.append(name, [[2, [21]]])
    with table.refresh().update_schema() as update:
        update.undelete_column("s").undelete_column("st.x")
    assert library.agree("undeleted") == [[1, [11, 10], "a"], [2, [21, None], None]]
