"""Tables that PyPaimon wrote are read by us, schemas that we evolved by it; rows stay the same after an import."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.paimon.schema_change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    UpdateDescription,
    UpdateType,
)
from icecomb.catalog.paimon.source import schema_use
from icecomb.catalog.paimon.table_import import ImportBlockedError, plan_import, run_import
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import CorruptFileError, TableAlreadyExistsError

EVENING = dt.datetime.fromisoformat("1969-12-31T23:59:59.000999")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("small", pa.int32()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("yes", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("spot", pa.struct([("x", pa.int32()), ("y", pa.float64())])),
        ("marks", pa.map_(pa.string(), pa.int32())),
    ]
)


def rows(*numbers):
    return pa.Table.from_pylist(
        [
            {
                "id": n,
                "name": f"a rather long name {n}" if n % 3 else f"n{n}",
                "price": Decimal(n) / 4,
                "small": None if n % 4 == 0 else n,
                "day": dt.date(1969, 12, 30) + dt.timedelta(days=n % 5),
                "at": EVENING + dt.timedelta(seconds=n % 3),
                "yes": n % 2 == 0,
                "tags": [f"t{n}", None] if n % 2 else None,
                "spot": {"x": n, "y": n / 2} if n % 3 else None,
                "marks": [("a", n)],
            }
            for n in numbers
        ],
        schema=SCHEMA,
    )


def by_id(table):
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def brought_over(pypaimon, lake, name):
    """The rows of the Iceberg table made of a Paimon table."""
    run_import(plan_import(pypaimon.source(name)), lake, f"db.{name}")
    return by_id(lake.load_table(f"db.{name}").scan().to_arrow())


def test_a_table_of_pypaimon_is_read_and_brought_over_with_its_ids_and_rows(pypaimon, lake):
    source = pypaimon.make("plain", rows(*range(5)), rows(*range(5, 9)))
    schema = source.schemas.latest()
    assert [[f.field_id, f.name] for f in schema.fields] == [
        row[:2] for row in pypaimon.schema("plain")
    ]
    snapshot = source.snapshots.latest()
    assert (snapshot.snapshot_id, sum(f.row_count for f in source.snapshots.files(snapshot))) == (
        2,
        9,
    )

    before = {p: p.read_bytes() for p in Path(source.location).rglob("*") if p.is_file()}
    assert (
        brought_over(pypaimon, lake, "plain")
        == by_id(pypaimon.read("plain"))
        == by_id(rows(*range(9)))
    )
    assert {p: p.read_bytes() for p in Path(source.location).rglob("*") if p.is_file()} == before
    table = lake.load_table("db.plain")
    assert [f.field_id for f in table.schema().fields] == [f.field_id for f in schema.fields]
    assert table.properties["gc.enabled"] == "false"
    assert table.current_snapshot().summary["paimon.snapshot-id"] == "2"
    table.append(rows(100))
    assert len(by_id(table.scan().to_arrow())) == 10


@pytest.mark.parametrize(
    "keys",
    [["day"], ["name", "yes"], ["small"], ["price", "at"], ["id", "day", "name"]],
    ids="-".join,
)
def test_partitions_of_all_types_are_those_of_the_rows(pypaimon, lake, keys):
    name = "by_" + "_".join(keys)
    pypaimon.make(name, rows(0, 1, 2, 3), rows(4, 5), partition=keys)
    assert brought_over(pypaimon, lake, name) == by_id(rows(*range(6)))
    table = lake.load_table(f"db.{name}")
    assert [f.name for f in table.spec().fields] == keys
    for row in rows(1, 5).to_pylist():
        condition = " and ".join(f"{key} = {_literal(row[key])}" for key in keys)
        expected = [
            r["id"] for r in rows(*range(6)).to_pylist() if all(r[k] == row[k] for k in keys)
        ]
        assert sorted(table.scan(row_filter=condition).to_arrow()["id"].to_pylist()) == expected


def _literal(value):
    return str(value).lower() if isinstance(value, bool | int | Decimal) else f"'{_iso(value)}'"


def _iso(value):
    return value.isoformat() if isinstance(value, dt.date) else value


def test_rows_that_were_overwritten_stay_behind(pypaimon, lake):
    pypaimon.make("overwritten", rows(1, 2), rows(3))
    pypaimon.write("overwritten", rows(4, 5), overwrite=True)
    pypaimon.write("overwritten", rows(6))
    assert brought_over(pypaimon, lake, "overwritten") == by_id(rows(4, 5, 6))


def test_orc_files_are_brought_over(pypaimon, lake):
    pypaimon.make("orc", rows(1, 2, 3), options={"file.format": "orc"})
    assert brought_over(pypaimon, lake, "orc") == by_id(rows(1, 2, 3))


def test_schemas_that_we_evolved_are_read_and_written_by_pypaimon_and_all_files_come_over(
    pypaimon, lake
):
    source = pypaimon.make("evolved", rows(1, 2), partition=["day"])
    source.schemas.evolve(
        [
            RenameColumn(("name",), "title"),
            DropColumn(("price",)),
            AddColumn(
                ("extra",), parse_type("ROW<a INT, b ARRAY<STRING>>"), "new", Position("FIRST")
            ),
            AddColumn(("spot", "z"), parse_type("STRING")),
            RenameColumn(("spot", "x"), "east"),
            UpdateType(("small",), parse_type("BIGINT")),
            MoveColumn(("yes",), Position("AFTER", "id")),
            UpdateDescription(("id",), "the number"),
        ]
    )
    ours = source.schemas.latest()
    theirs = pypaimon.schema("evolved")
    assert [[f.field_id, f.name, f.description] for f in ours.fields] == [
        [i, n, d] for i, n, _, d in theirs
    ]
    assert [n for _, n, _, _ in theirs][:3] == ["extra", "id", "yes"]
    evolved = pypaimon.read("evolved").schema
    new = [
        {
            "id": 3,
            "title": "c",
            "day": dt.date(2024, 1, 1),
            "small": 2**40,
            "extra": {"a": 1, "b": ["x"]},
        }
    ]
    pypaimon.write("evolved", pa.Table.from_pylist(new, schema=evolved))

    expected = by_id(pypaimon.read("evolved"))
    assert [row["small"] for row in expected] == [1, 2, 2**40]
    assert brought_over(pypaimon, lake, "evolved") == expected
    assert [
        (use.schema_id, bool(use.users)) for use in schema_use(source.schemas, source.snapshots)
    ] == [(0, True), (1, True)]
    source.schemas.evolve([DropColumn(("extra",))])
    source.schemas.evolve([DropColumn(("yes",))])
    assert [
        use.schema_id for use in schema_use(source.schemas, source.snapshots) if not use.users
    ] == [2]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columns_that_paimon_dropped_do_not_fill_later_ones(pypaimon, lake, kind):
    name = f"dropped_{kind}"
    data = rows(1).select(["id", "name", "small", "marks"])
    source = pypaimon.make(name, data, options={"file.format": kind})
    source.schemas.evolve([DropColumn(("small",)), DropColumn(("marks",))])
    assert brought_over(pypaimon, lake, name) == [{"id": 1, "name": "a rather long name 1"}]
    table = lake.load_table(f"db.{name}")
    with table.update_schema() as update:
        for column in ("one", "two", "three", "small", "marks"):
            update.add_column(column, "int")
    (row,) = table.scan().to_arrow().to_pylist()
    new = dict.fromkeys(("one", "two", "three", "small", "marks"))
    assert row == {"id": 1, "name": "a rather long name 1", **new}


def test_tables_and_files_that_iceberg_cannot_read_are_refused_with_all_reasons(pypaimon, lake):
    key = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32())])
    pypaimon.make(
        "keyed",
        pa.table({"id": [1], "v": [1]}, schema=key),
        primary=["id"],
        options={"bucket": "1"},
    )
    pypaimon.make("avro", rows(1).select(["id", "name"]), options={"file.format": "avro"})
    pypaimon.make("retyped", rows(1)).schemas.evolve([UpdateType(("small",), parse_type("STRING"))])
    pypaimon.make("reused", rows(1)).schemas.evolve(
        [DropColumn(("name",)), RenameColumn(("small",), "name")]
    )
    for name, reason in {
        "keyed": "it has a primary key (id)",
        "avro": "it has 1 data files neither Parquet nor ORC, the first is data-",
        "retyped": "1 data files were written with schema-0: small changed from int to string",
        "reused": "data files have no field ids: In schema-0 the name 'name' means the field of id 1",
    }.items():
        plan = plan_import(pypaimon.source(name))
        assert any(reason in blocker.message for blocker in plan.blockers), plan.blockers
        with pytest.raises(ImportBlockedError):
            run_import(plan, lake, f"db.{name}")
        assert not lake.table_exists(f"db.{name}")


def test_a_table_without_data_comes_over_empty(pypaimon, lake):
    pypaimon.make("empty", rows())
    assert brought_over(pypaimon, lake, "empty") == []


def test_a_taken_name_is_left_alone(pypaimon, lake):
    pypaimon.make("twice", rows(1))
    brought_over(pypaimon, lake, "twice")
    with pytest.raises(TableAlreadyExistsError):
        brought_over(pypaimon, lake, "twice")


def test_damaged_files_of_a_table_are_named_and_nothing_is_made(pypaimon, lake):
    source = pypaimon.make("damaged", rows(1, 2))
    folder = Path(source.location)
    data = next(folder.rglob("*.parquet"))
    manifest = next(p for p in folder.glob("manifest/manifest-*") if "list" not in p.name)
    latest = folder / "snapshot" / "snapshot-1"
    snapshot = json.loads(latest.read_text())
    lying = json.dumps({**snapshot, "totalRecordCount": 3}).encode()
    for path, content, said in (
        (data, None, "Data file data-.* is missing"),
        (data, data.read_bytes()[:-20], "data-"),
        (manifest, manifest.read_bytes()[:-5], "truncated or damaged Avro"),
        (latest, b'{"id": 1', "truncated or not a snapshot file"),
        (latest, lying, "says 3 rows, its data files have 2"),
    ):
        good = path.read_bytes()
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CorruptFileError, match=said):
            plan_import(source)
        path.write_bytes(good)
    assert plan_import(source).rows == 2
