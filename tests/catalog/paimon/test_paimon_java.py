"""Tables that Paimon's Java library wrote, also with schemas that we evolved, come over with the rows that it reads."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import pytest

from icecomb.catalog.paimon.schema_change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    UpdateType,
)
from icecomb.catalog.paimon.table_import import plan_import, run_import
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.catalog.report.progress import Silent
from tests.peers.paimon_java import plain

UTC = dt.timezone.utc
COLUMNS = {
    "id": "BIGINT NOT NULL",
    "yes": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "number": "INT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "cents": "DECIMAL(9, 2)",
    "money": "DECIMAL(18, 4)",
    "huge": "DECIMAL(38, 10)",
    "day": "DATE",
    "clock": "TIME(3)",
    "second": "TIMESTAMP(0)",
    "milli": "TIMESTAMP(3)",
    "micro": "TIMESTAMP(6)",
    "instant3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "instant": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "code": "CHAR(3)",
    "name": "VARCHAR(40)",
    "text": "STRING",
    "fixed": "BINARY(4)",
    "bytes": "BYTES",
    "tags": "ARRAY<STRING>",
    "lists": "ARRAY<ARRAY<INT>>",
    "marks": "MAP<STRING, INT>",
    "bag": "MULTISET<STRING>",
    "spot": "ROW<x INT, y ROW<z DECIMAL(5, 1), w STRING>>",
    "spots": "ARRAY<ROW<a BIGINT, b MAP<INT, ROW<c DATE>>>>",
}
NOT_IN = {
    "orc": {"clock", "instant3", "instant", "fixed"},
    "parquet": {"clock", "second", "milli", "instant3"},
}
EMPTY = dict.fromkeys(COLUMNS)


def row(number, **more):
    day = "1960-06-01" if number % 2 else "2024-03-10"
    moment = dt.datetime.fromisoformat(f"{day}T23:59:59.987654")
    return {
        "id": number,
        "yes": number % 2 == 0,
        "tiny": -128 + number,
        "small": 32767 - number,
        "number": -(2**31) + number,
        "real": number / 4,
        "double": float("nan") if number == 2 else -number / 8,
        "cents": Decimal(f"-1234567.{number:02}"),
        "money": Decimal(f"12345678901234.{number:04}"),
        "huge": Decimal(f"9999999999999999999999999999.{number:010}"),
        "day": dt.date(1890 + number, 2, 28),
        "clock": dt.time(23, 59, number, 999000),
        "second": moment.replace(microsecond=0),
        "milli": moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "micro": moment,
        "instant3": moment.replace(microsecond=987000, tzinfo=UTC),
        "instant": moment.replace(tzinfo=UTC),
        "code": "abc",
        "name": f"näme {number}",
        "text": "x" * 200 + str(number),
        "fixed": bytes([0, 255, 1, number]),
        "bytes": bytes(range(number)),
        "tags": ["a", None, str(number)],
        "lists": [[1, None], [], None],
        "marks": [("a", number), ("b", None)],
        "bag": [("a", 2), ("b", 1)],
        "spot": {"x": number, "y": {"z": Decimal("0.5"), "w": None}},
        "spots": [{"a": number, "b": [(1, {"c": dt.date(2024, 1, number)})]}, None],
        **more,
    }


def brought_over(paimon_java, lake, name):
    plan = plan_import(paimon_java.source(name))
    assert plan.blockers == ()
    return rows_of(run_import(plan, lake, f"db.{name}"))


def rows_of(table, **scan):
    found = table.scan(**scan).to_arrow().to_pylist()
    return sorted(([plain(v) for v in one.values()] for one in found), key=repr)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_values_of_all_types_are_those_that_paimon_reads(paimon_java, lake, kind):
    name = f"types_{kind}"
    columns = {n: t for n, t in COLUMNS.items() if n not in NOT_IN[kind]}
    parts = [[row(1), row(2)], [row(3), {**EMPTY, "id": 4}]]
    source = paimon_java.make(name, columns, *parts, options={"file.format": kind})
    found = brought_over(paimon_java, lake, name)
    assert found == paimon_java.read(name)
    written = [[plain(one[n]) for n in columns] for part in parts for one in part]
    assert found == sorted(written, key=repr)
    table = lake.load_table(f"db.{name}")
    ids = {field.name: field.field_id for field in source.schemas.latest().fields}
    assert {field.name: field.field_id for field in table.schema().fields} == ids
    for condition, ids in {
        "micro < timestamp '1970-01-01 00:00:00'": [1, 3],
        "micro = timestamp '1960-06-01 23:59:59.987654'": [1, 3],
        "micro = timestamp '2024-03-10 23:59:59.987654'": [2],
        "day = date '1892-02-28'": [2],
        "huge > 9999999999999999999999999999.0000000002": [3],
        "cents = -1234567.01": [1],
        "tiny = -127": [1],
        "code = 'abc'": [1, 2, 3],
        "spot.x >= 2": [2, 3],
        "text is null": [4],
    }.items():
        assert table.scan(row_filter=condition).to_arrow()["id"].to_pylist() == ids, condition


@pytest.mark.full("needs Iceberg Java in Spark")
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_iceberg_java_reads_what_was_brought_over(paimon_java, catalog, iceberg_java, kind):
    columns = {n: t for n, t in COLUMNS.items() if n not in {*NOT_IN[kind], "instant", "bag"}}
    name, parts = f"spark_{kind}", [[row(1), row(2)], [{**EMPTY, "id": 3}]]
    source = paimon_java.make(
        name, columns, *parts, partition=("yes",), options={"file.format": kind}
    )
    source.schemas.evolve([RenameColumn(("text",), "words"), AddColumn(("n",), parse_type("INT"))])
    if not any(namespace == ("paimonjava",) for namespace in catalog.list_namespaces()):
        catalog.create_namespace("paimonjava")
    run_import(plan_import(source), catalog, f"paimonjava.{name}")
    chosen = [n for n in columns if n not in {"double", "text"}]
    theirs = iceberg_java.sql(
        f"SELECT {', '.join(chosen)}, words, n FROM ice.paimonjava.{name} ORDER BY id"
    )
    written = [[one[c] for c in chosen] + [one["text"], None] for part in parts for one in part]
    assert [[as_spark_says(v) for v in one] for one in written] == theirs
    for condition, ids in {
        "micro < TIMESTAMP '1970-01-01 00:00:00'": [[1]],
        "micro = TIMESTAMP '1960-06-01 23:59:59.987654'": [[1]],
        "micro = TIMESTAMP '2024-03-10 23:59:59.987654'": [[2]],
        "tiny = -127": [[1]],
        "code = 'abc'": [[1], [2]],
        "cents = -1234567.01": [[1]],
        "huge > 9999999999999999999999999999.0000000001": [[2]],
        "day = DATE '1892-02-28'": [[2]],
        "spot.x = 2": [[2]],
        "yes": [[2]],
        "words IS NULL": [[3]],
    }.items():
        sql = f"SELECT id FROM ice.paimonjava.{name} WHERE {condition} ORDER BY id"
        assert iceberg_java.sql(sql) == ids, condition


def as_spark_says(value):
    """A value as the peer of Iceberg Java prints it."""
    if isinstance(value, dict):
        return [as_spark_says(inner) for inner in value.values()]
    if isinstance(value, list):
        pairs = bool(value) and isinstance(value[0], tuple)
        if pairs:
            return {str(key): as_spark_says(inner) for key, inner in value}
        return [as_spark_says(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | dt.date):
        return str(value)
    return value


PARTITIONS = {
    "word": (
        "STRING",
        ["a", "", " ", None, "x/y=z%20 é:#?", "__DEFAULT_PARTITION__", "a rather long value", "null"],
    ),
    "day": ("DATE", [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31), dt.date(1, 1, 1)]),
    "number": ("INT", [0, -1, None, 2**31 - 1]),
    "big": ("BIGINT", [2**62, None, -5]),
    "tiny": ("TINYINT", [-128, None, 127]),
    "yes": ("BOOLEAN", [True, False, None]),
    "cents": ("DECIMAL(9, 2)", [Decimal("-0.01"), None, Decimal("1234567.89")]),
    "huge": ("DECIMAL(38, 2)", [Decimal("-0.01"), None, Decimal("123456789012345678901234.50")]),
    "milli": (
        "TIMESTAMP(3)",
        [dt.datetime(2024, 1, 1, 12, 30, 15, 123000), None, dt.datetime(1960, 6, 1, 23, 59, 59, 1000)],  # noqa: DTZ001
    ),
    "micro": (
        "TIMESTAMP(6)",
        [dt.datetime(2024, 1, 1, 12, 30, 15, 123456), None, dt.datetime(1969, 12, 31, 23, 59, 59, 1)],  # noqa: DTZ001
    ),
    "code": ("CHAR(2)", ["ab", None]),
}  # fmt: skip


@pytest.mark.parametrize("key", PARTITIONS)
def test_partitions_are_those_of_the_rows(paimon_java, lake, key):
    kind, values = PARTITIONS[key]
    columns = {"id": "INT", key: kind, "fixed": "STRING NOT NULL"}
    rows = [{"id": n, key: value, "fixed": "f"} for n, value in enumerate(values)]
    options = {"file.format": "orc" if key == "milli" else "parquet"}
    paimon_java.make(
        f"by_{key}", columns, rows, rows[:1], partition=(key, "fixed"), options=options
    )
    assert brought_over(paimon_java, lake, f"by_{key}") == paimon_java.read(f"by_{key}")
    table = lake.load_table(f"db.by_{key}")
    assert len(table.inspect.partitions()) == len(set(values))
    for one in rows:
        literal = plain(one[key])
        condition = (
            f"{key} is null" if literal is None
            else f"{key} = {json.dumps(literal)}" if not isinstance(literal, str)
            else f"{key} = '{literal}'" if not isinstance(one[key], Decimal)
            else f"{key} = {literal}"
        )  # fmt: skip
        expected = [one["id"]] * (2 if one["id"] == 0 else 1)
        assert table.scan(row_filter=condition).to_arrow()["id"].to_pylist() == expected


def test_files_of_schemas_that_we_evolved_give_the_rows_that_paimon_reads(paimon_java, lake):
    columns = {
        "id": "BIGINT",
        "small": "TINYINT",
        "price": "DECIMAL(9, 2)",
        "old": "STRING",
        "short": "VARCHAR(3)",
        "spot": "ROW<x INT, y FLOAT>",
        "spots": "ARRAY<ROW<a INT, b STRING>>",
        "marks": "MAP<STRING, ROW<n INT>>",
    }
    first = {
        "id": 1,
        "small": 7,
        "price": Decimal("1.50"),
        "old": "gone",
        "short": "abc",
        "spot": {"x": 1, "y": 0.5},
        "spots": [{"a": 1, "b": "one"}],
        "marks": [("k", {"n": 1})],
    }
    source = paimon_java.make("evolved", columns, [first], partition=("id",))
    source.schemas.evolve(
        [
            UpdateType(("small",), parse_type("INT")),
            UpdateType(("price",), parse_type("DECIMAL(18, 2)")),
            UpdateType(("short",), parse_type("STRING")),
            RenameColumn(("short",), "longer"),
            DropColumn(("old",)),
            AddColumn(("old",), parse_type("BIGINT"), None, Position("FIRST")),
            RenameColumn(("spot", "x"), "east"),
            UpdateType(("spot", "y"), parse_type("DOUBLE")),
            AddColumn(("spot", "z"), parse_type("ARRAY<STRING>")),
            MoveColumn(("marks",), Position("AFTER", "id")),
        ]
    )
    second = {
        "old": 5,
        "id": 2,
        "marks": [("k", {"n": 2})],
        "small": 70000,
        "price": Decimal("1234567890123456.25"),
        "longer": "a longer text",
        "spot": {"x": 2, "y": 0.25, "z": ["q"]},
        "spots": [{"a": 2, "b": "two"}],
    }
    paimon_java.write("evolved", [second])
    source.schemas.evolve([UpdateType(("small",), parse_type("BIGINT"))])
    paimon_java.write("evolved", [{**second, "id": 3, "small": 2**40}])
    found = brought_over(paimon_java, lake, "evolved")
    assert found == paimon_java.read("evolved")
    assert [[one[0], one[1], one[3], one[5]] for one in found] == [
        [5, 2, 70000, "a longer text"],
        [5, 3, 2**40, "a longer text"],
        [None, 1, 7, "abc"],
    ]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("INT", "SMALLINT", 70000),
        ("SMALLINT", "TINYINT", 300),
        ("VARCHAR(9)", "VARCHAR(3)", "abcdefg"),
        ("STRING", "CHAR(9)", "abc"),
        ("CHAR(3)", "CHAR(5)", "abc"),
        ("BYTES", "BINARY(4)", b"abcdefg"),
        ("TIMESTAMP(6)", "TIMESTAMP(4)", dt.datetime(2024, 1, 1, 0, 0, 0, 123456)),  # noqa: DTZ001
        ("BIGINT", "INT", 2**40),
        ("INT", "STRING", 5),
    ],
)
def test_a_cast_that_changes_values_is_refused(paimon_java, lake, old, new, value):
    name = f"cast_{old}_{new}".lower().translate(dict.fromkeys(map(ord, "()")))
    source = paimon_java.make(name, {"id": "INT", "v": old}, [{"id": 1, "v": value}])
    source.schemas.evolve([UpdateType(("v",), parse_type(new))])
    before = [[1, plain(value)]]
    assert paimon_java.read(name) != before, "Paimon itself reads it as it was"
    (blocker,) = plan_import(source).blockers
    assert blocker.message.startswith("1 data files were written with schema-0: v changed from ")


def test_a_type_that_only_older_files_have_is_a_reason_against_it(paimon_java):
    columns = {"id": "INT", "at": "TIMESTAMP(9)"}
    source = paimon_java.make("narrowed", columns, [{"id": 1, "at": None}])
    source.schemas.evolve([DropColumn(("at",))])
    (blocker,) = plan_import(source).blockers
    assert "written with schema-0: column at: TIMESTAMP(9) has no counterpart" in blocker.message


def test_instants_in_orc_files_are_refused_unless_the_writer_left_them_alone(paimon_java, lake):
    columns = {"id": "INT", "at": "ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>"}
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=UTC)
    options = {"file.format": "orc"}
    source = paimon_java.make("moved", columns, [{"id": 1, "at": [moment]}], options=options)
    (blocker,) = plan_import(source).blockers
    assert "1 data files in ORC with at ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>" in blocker.message
    options["orc.timestamp-ltz.legacy.type"] = "false"
    paimon_java.make("unmoved", columns, [{"id": 1, "at": [moment]}], options=options)
    assert brought_over(paimon_java, lake, "unmoved") == [[1, ["2024-07-01T12:00:00.000000Z"]]]


@pytest.mark.parametrize("name", sorted(NOT_IN["parquet"]))
def test_times_in_parquet_files_that_are_no_microseconds_are_refused(paimon_java, name):
    columns = {"id": "INT", name: COLUMNS[name]}
    source = paimon_java.make(f"coarse_{name}", columns, [{"id": 1, name: row(1)[name]}])
    (blocker,) = plan_import(source).blockers
    assert f"column {name!r}: it holds milliseconds, Iceberg has microseconds" in blocker.message
    assert blocker.message.endswith("filters would skip rows")
    assert blocker.remedy == "write the rows into a new table"


class Told(Silent):
    """Progress that counts."""

    done = 0

    def task(self, what, total, unit):
        assert (what, total, unit) == ("reading footers", 2, "files")
        return nullcontext(self.count)

    def count(self, number):
        self.done += number


def test_what_is_wrong_with_many_files_is_said_once(paimon_java):
    parts = [[{"id": n, "at": None}] for n in (1, 2)]
    source = paimon_java.make("coarse", {"id": "INT", "at": "TIMESTAMP(3)"}, *parts)
    told = Told()
    plan = plan_import(source, told)
    (blocker,) = plan.blockers
    assert blocker.count == told.done == len(set(blocker.places)) == 2
    assert plan.files == ()
    assert blocker.places[0] in blocker.message


def test_times_in_orc_files_are_refused(paimon_java):
    source = paimon_java.make(
        "clocks", {"id": "INT", "t": "TIME(3)"}, [{"id": 1, "t": dt.time(1)}],
        options={"file.format": "orc"},
    )  # fmt: skip
    (blocker,) = plan_import(source).blockers
    assert "Column 't' is int32 in the file and time in the table" in blocker.message


def test_what_was_overwritten_compacted_rolled_back_or_expired_stays_behind(paimon_java, lake):
    columns, rows = {"id": "INT", "p": "STRING"}, [{"id": n, "p": "ab"[n % 2]} for n in range(6)]
    source = paimon_java.make("parts", columns, rows[:3], rows[3:], partition=("p",))
    paimon_java.write("parts", [{"id": 10, "p": "a"}], overwrite={"p": "a"})
    paimon_java.write("parts", [{"id": 11, "p": "b"}])
    paimon_java.ask(do="rollback", table="parts", snapshot=3)
    expected = [[1, "b"], [10, "a"], [3, "b"], [5, "b"]]
    assert brought_over(paimon_java, lake, "parts") == paimon_java.read("parts")
    assert paimon_java.read("parts") == sorted(expected, key=repr)
    assert source.snapshots.latest().snapshot_id == 3

    one = [[{"id": n, "p": "x"}] for n in range(6)]
    options = {"bucket": "1", "bucket-key": "id", "compaction.min.file-num": "2"}
    source = paimon_java.make("compacted", columns, *one, options=options)
    paimon_java.ask(do="compact", table="compacted")
    files = len(list(Path(source.location).rglob("*.parquet")))
    plan = plan_import(source)
    assert (len(plan.files), plan.rows) == (1, 6)
    assert paimon_java.ask(do="expire", table="compacted") > 0
    assert len(list(Path(source.location).rglob("*.parquet"))) < files
    assert brought_over(paimon_java, lake, "compacted") == [[n, "x"] for n in range(6)]
