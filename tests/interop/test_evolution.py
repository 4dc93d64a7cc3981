"""The same evolution by Iceberg Java's SQL and by ours gives the same table, which both then read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.name_mapping import create_name_mapping
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import MergeAppend
from icecomb.format.sort import NullOrder
from icecomb.format.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

pytestmark = pytest.mark.jvm

COLUMNS = (
    "id INT NOT NULL, Name STRING, price DECIMAL(9,2), ts TIMESTAMP, place STRUCT<x: FLOAT, y: FLOAT>, "
    "points ARRAY<STRUCT<z: INT>>, m MAP<STRING, STRUCT<n: INT>>"
)
ROW = "SELECT {n}, 'a', 1.5, TIMESTAMP '2024-01-0{n} 10:00:00', named_struct('x', 1f, 'y', 2f), array(named_struct('z', 1)), map('k', named_struct('n', 1))"
NESTED = StructType(
    (NestedField(1, "a", LongType()), NestedField(2, "b", ListType(3, IntegerType())))
)


@pytest.fixture(scope="module")
def namespace(catalog: Any) -> Iterator[str]:
    catalog.create_namespace("evolution")
    yield "evolution"
    for name in catalog.client.table_names("evolution"):
        catalog.drop_table(("evolution", name), purge_requested=True)
    catalog.drop_namespace("evolution")


@pytest.fixture
def pair(catalog: Any, iceberg_java: Any, namespace: str, request: Any) -> Callable[..., Any]:
    """Two equal tables: one for Java's statements, one for our calls."""
    counter = iter(range(100))

    def make(
        version: int = 2, rows: int = 0
    ) -> tuple[Callable[[str], Any], Any, Callable[[], Any]]:
        name = f"{request.node.originalname[5:25]}_{version}_{next(counter)}"
        for side in ("java", "ours"):
            iceberg_java.sql(
                f"CREATE TABLE ice.{namespace}.{side}_{name} ({COLUMNS}) USING iceberg "
                f"PARTITIONED BY (days(ts), Name) TBLPROPERTIES ('format-version'='{version}', "
                "'write.metadata.metrics.column.place.x'='full', 'write.metadata.metrics.column.price'='none')"
            )
            mapping = create_name_mapping(
                catalog.load_table((namespace, f"{side}_{name}")).schema()
            )
            iceberg_java.sql(
                f"ALTER TABLE ice.{namespace}.{side}_{name} SET TBLPROPERTIES "
                f"('schema.name-mapping.default'='{mapping.to_json()}')"
            )
            for n in range(1, rows + 1):
                iceberg_java.sql(f"INSERT INTO ice.{namespace}.{side}_{name} {ROW.format(n=n)}")

        def sql(text: str) -> Any:
            return iceberg_java.sql(
                text.replace("{t}", f"ice.{namespace}.java_{name}").replace(
                    "{name}", f"{namespace}.java_{name}"
                )
            )

        return (
            sql,
            catalog.load_table((namespace, f"ours_{name}")),
            lambda: catalog.load_table((namespace, f"java_{name}")),
        )

    return make


def state(table: Any) -> dict[str, Any]:
    """What evolution changes, without what differs by nature."""
    metadata = table.metadata
    schema = metadata.schema().to_json()
    mapping = metadata.name_mapping()
    return {
        "version": metadata.format_version,
        "schema": schema,
        "schemas": len(metadata.schemas),
        "spec": metadata.spec().to_json(),
        "specs": len(metadata.partition_specs),
        "order": metadata.sort_order().to_json(),
        "ids": (metadata.last_column_id, metadata.last_partition_id),
        "mapping": sorted(map(mapped, json.loads(mapping.to_json()))),
        "metrics": {k: v for k, v in metadata.properties.items() if "metrics.column" in k},
    }


def mapped(field: Any) -> tuple[Any, ...]:
    inner = tuple(sorted(map(mapped, field.get("fields", ()))))
    return field.get("field-id"), tuple(sorted(field["names"])), inner


SCHEMA_STEPS: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "ADD COLUMNS (city STRING COMMENT 'where', place.w STRUCT<a: BIGINT, b: ARRAY<INT>>, points.element.w DOUBLE, m.value.k STRING)",
        lambda u: (
            u.add_column("city", StringType(), "where")
            .add_column("place.w", NESTED)
            .add_column("points.element.w", DoubleType())
            .add_column(("m", "value", "k"), StringType())
        ),
    ),
    ("RENAME COLUMN price TO cost", lambda u: u.rename_column("price", "cost")),
    ("RENAME COLUMN place.x TO east", lambda u: u.rename_column("place.x", "east")),
    ("ALTER COLUMN id TYPE BIGINT", lambda u: u.update_column("id", LongType())),
    ("ALTER COLUMN cost TYPE DECIMAL(20,2)", lambda u: u.update_column("cost", DecimalType(20, 2))),
    ("ALTER COLUMN place.east TYPE DOUBLE", lambda u: u.update_column("place.east", DoubleType())),
    (
        "ALTER COLUMN points.element.z TYPE BIGINT",
        lambda u: u.update_column("points.z", LongType()),
    ),
    ("ALTER COLUMN city COMMENT 'town'", lambda u: u.update_column("city", doc="town")),
    ("ALTER COLUMN ts FIRST", lambda u: u.move_first("ts")),
    ("ALTER COLUMN place.y AFTER w", lambda u: u.move_after("place.y", "place.w")),
    ("ALTER COLUMN Name AFTER m", lambda u: u.move_after("Name", "m")),
    ("SET IDENTIFIER FIELDS id", lambda u: u.set_identifier_fields("id")),
    ("DROP IDENTIFIER FIELDS id", lambda u: u.set_identifier_fields()),
    ("ALTER COLUMN id DROP NOT NULL", lambda u: u.make_column_optional("id")),
    ("DROP COLUMN place.y", lambda u: u.delete_column("place.y")),
    ("DROP COLUMN cost", lambda u: u.delete_column("cost")),
    ("ADD COLUMN cost BIGINT", lambda u: u.add_column("cost", LongType())),
]


@pytest.mark.parametrize("version", [1, 2])
def test_schemas_evolve_as_by_iceberg_java(pair: Any, version: int) -> None:
    sql, ours, java = pair(version)
    for statement, change in SCHEMA_STEPS:
        sql(f"ALTER TABLE {{t}} {statement}")
        with ours.update_schema() as update:
            change(update)
        assert state(ours) == state(java()), statement


SPEC_STEPS: list[tuple[str, Callable[[Any], Any]]] = [
    ("ADD PARTITION FIELD bucket(16, id)", lambda u: u.add_field("id", "bucket[16]")),
    ("ADD PARTITION FIELD truncate(4, Name)", lambda u: u.add_field("Name", "truncate[4]")),
    (
        "ADD PARTITION FIELD truncate(10, id) AS tens",
        lambda u: u.add_field("id", "truncate[10]", "tens"),
    ),
    ("DROP PARTITION FIELD Name", lambda u: u.remove_field("Name")),
    ("DROP PARTITION FIELD tens", lambda u: u.remove_field("tens")),
    (
        "REPLACE PARTITION FIELD ts_day WITH hours(ts)",
        lambda u: u.remove_field("ts_day").add_field("ts", "hour"),
    ),
    ("ADD PARTITION FIELD Name", lambda u: u.add_identity("Name")),
    (
        "ADD PARTITION FIELD truncate(10, id) AS decade",
        lambda u: u.add_field("id", "truncate[10]", "decade"),
    ),
    (
        "REPLACE PARTITION FIELD ts_hour WITH days(ts) AS day",
        lambda u: u.remove_field("ts_hour").add_field("ts", "day", "day"),
    ),
]


@pytest.mark.parametrize("version", [1, 2])
def test_partition_specs_evolve_as_by_iceberg_java(pair: Any, version: int) -> None:
    sql, ours, java = pair(version)
    for statement, change in SPEC_STEPS:
        sql(f"ALTER TABLE {{t}} {statement}")
        with ours.update_spec() as update:
            change(update)
        assert state(ours) == state(java()), statement


def test_sort_orders_and_the_format_version_evolve_as_by_iceberg_java(pair: Any) -> None:
    sql, ours, java = pair(1)
    steps = [
        ("id DESC, Name", lambda u: u.desc("id").asc("Name")),
        ("bucket(4, id), ts ASC NULLS LAST", None),
        ("id DESC, Name", lambda u: u.desc("id").asc("Name")),
    ]
    for text, change in steps:
        sql(f"ALTER TABLE {{t}} WRITE ORDERED BY {text}")
        with ours.update_sort_order() as update:
            if change is None:
                update.asc("id", "bucket[4]").asc("ts", null_order=NullOrder.NULLS_LAST)
            else:
                change(update)
        assert state(ours) == state(java()), text
    sql("ALTER TABLE {t} WRITE UNORDERED")
    ours.update_sort_order().commit()
    sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='2')")
    with ours.update_properties() as properties:
        properties.set("format-version", "2")
    assert state(ours) == state(java())


def refs(table: Any) -> dict[str, Any]:
    order = [snapshot.snapshot_id for snapshot in table.snapshots()]
    return {
        name: {**ref.to_json(), "snapshot-id": order.index(ref.snapshot_id)}
        for name, ref in table.refs().items()
    }


def test_branches_and_tags_are_as_by_iceberg_java(pair: Any) -> None:
    sql, ours, java = pair(2, rows=2)
    there = [s.snapshot_id for s in java().snapshots()]
    here = [s.snapshot_id for s in ours.snapshots()]
    day = 24 * 3600 * 1000
    sql(
        f"ALTER TABLE {{t}} CREATE BRANCH b AS OF VERSION {there[0]} RETAIN 7 DAYS "
        "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS"
    )
    sql(f"ALTER TABLE {{t}} CREATE TAG tag AS OF VERSION {there[1]} RETAIN 5 DAYS")
    with ours.manage_snapshots() as manage:
        manage.create_branch(here[0], "b", 7 * day, 3 * day, 2).create_tag(here[1], "tag", 5 * day)
    assert refs(ours) == refs(java())
    sql("CALL ice.system.fast_forward('{name}', 'b', 'main')")
    ours.manage_snapshots().fast_forward("b", "main").commit()
    assert refs(ours) == refs(java())
    sql(f"CALL ice.system.rollback_to_snapshot('{{name}}', {there[0]})")
    sql("ALTER TABLE {t} DROP TAG tag")
    ours.manage_snapshots().rollback_to_snapshot(here[0]).remove_tag("tag").commit()
    assert refs(ours) == refs(java())
    assert len(ours.history()) == len(java().history())


def test_a_staged_snapshot_is_picked_as_by_iceberg_java(pair: Any) -> None:
    sql, ours, java = pair(2, rows=1)
    summaries = []
    for table in (java(), ours):
        moved = [task.file for task in table.scan().plan_files()]
        staged = FastAppend(table.io, {"wap.id": "w"}, stage_only=True)
        staged.append_data_file(moved[0])
        table.commit(staged)
        table.commit(MergeAppend(table.io).append_data_file(moved[0]))
        if table is ours:
            table.manage_snapshots().cherry_pick(staged.snapshot_id).commit()
        else:
            sql(f"CALL ice.system.cherrypick_snapshot('{{name}}', {staged.snapshot_id})")
            table.refresh()
        found = dict(table.current_snapshot().summary)
        assert found.pop("source-snapshot-id") == str(staged.snapshot_id)
        summaries.append(
            {
                k: v
                for k, v in found.items()
                if not k.startswith(("engine", "app", "spark", "iceberg"))
            }
        )
    # the two tables' files were written one by one
    sizes = [summary.pop("total-files-size") for summary in summaries]
    sizes += [summary.pop("added-files-size") for summary in summaries]
    assert all(int(size) > 0 for size in sizes)
    assert summaries[1] == summaries[0]
    assert summaries[0]["published-wap-id"] == "w"


def files(table: Any) -> dict[str, int]:
    """How many files of each kind there are."""
    root = Path(table.location().removeprefix("file:"))
    names = [path.name for path in root.rglob("*") if not path.name.startswith(".")]
    lists = [name for name in names if name.startswith("snap-")]
    return {
        "data": sum(name.endswith(".parquet") for name in names),
        "lists": len(lists),
        "manifests": sum(name.endswith(".avro") for name in names) - len(lists),
    }


def test_expiration_leaves_the_files_that_iceberg_java_leaves(pair: Any) -> None:
    sql, ours, java = pair(2, rows=2)
    target = f"ice.evolution.{ours.name()[-1]}"
    for statement in (
        "DELETE FROM {x} WHERE id = 1",
        f"INSERT INTO {{x}} {ROW.format(n=3)}",
        "DELETE FROM {x} WHERE id = 2",
    ):
        sql(statement.replace("{x}", "{t}"))
        sql(statement.replace("{x}", target))
    ours.refresh()
    tagged = [(t, t.snapshots()[1].snapshot_id) for t in (java(), ours)]
    for table, snapshot_id in tagged:
        table.manage_snapshots().create_tag(snapshot_id, "kept").commit()
    assert files(ours) == files(java())
    time.sleep(1.1)
    at = sql("SELECT string(current_timestamp())")[0][0]
    sql(f"CALL ice.system.expire_snapshots(table => '{{name}}', older_than => TIMESTAMP '{at}')")
    with ours.expire_snapshots() as expire:
        expire.older_than(int(time.time() * 1000))
    assert refs(ours) == refs(java())
    assert files(ours) == files(java())
    assert len(expire.result.snapshot_ids) == 3
    assert sql(f"SELECT id FROM {target}") == [[3]]
    assert sorted(sql(f"SELECT id FROM {target} VERSION AS OF 'kept'")) == [[1], [2]]


def test_java_reads_what_was_written_before_and_after_our_changes(pair: Any) -> None:
    sql, ours, _ = pair(2, rows=1)
    with ours.transaction() as transaction:
        with transaction.update_schema() as update:
            update.rename_column("Name", "title").add_column("city", StringType())
            update.update_column("id", LongType()).rename_column("place.x", "east")
            update.delete_column("price").add_column("price", StringType())
        with transaction.update_spec() as update:
            update.remove_field("Name").add_field("city", "truncate[1]")
        transaction.append(
            pa.table(
                {
                    "id": pa.array([2**40], pa.int64()),
                    "title": ["b"],
                    "city": ["Paris"],
                    "price": ["cheap"],
                    "place": [{"east": 5.0, "y": 6.0}],
                }
            ).cast(
                pa.schema(
                    [
                        pa.field("id", pa.int64(), nullable=False),
                        ("title", pa.string()),
                        ("city", pa.string()),
                        ("price", pa.string()),
                        ("place", pa.struct([("east", pa.float32()), ("y", pa.float32())])),
                    ]
                )
            )
        )
    target = f"ice.evolution.{ours.name()[-1]}"
    rows = sql(f"SELECT id, title, city, price, place.east FROM {target} ORDER BY id")
    assert rows == [[1, "a", None, None, 1.0], [2**40, "b", "Paris", "cheap", 5.0]]
    assert sql(f"SELECT title FROM {target} WHERE city = 'Paris'") == [["b"]]
    sql(f"INSERT INTO {target} (id, title, city) VALUES (3, 'c', 'Rome')")
    found = ours.refresh().scan("city = 'Rome'").to_arrow().to_pydict()
    assert (found["id"], found["title"]) == ([3], ["c"])
