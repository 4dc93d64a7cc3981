"""Every metadata table of a table that Iceberg Java wrote, and of one we wrote, as Iceberg Java shows it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from icecomb.format.inspect.inspection import NAMES, TIME_TRAVELLING
from icecomb.format.spec.types import IcebergType, ListType, MapType, StructType

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

NAMESPACE = "inspected"
MERGE_ON_READ = "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.distribution-mode'='none')"
EVERY_TYPE = (
    "id bigint, s string, d date, ts timestamp, tn timestamp_ntz, x double, f float, p decimal(9,2), b boolean, "
    "bin binary, st struct<a:int,`b.c`:string>, l array<int>, m map<string,int>"
)
EVERY_VALUE = (
    "id, concat('v', id), date'2024-01-01', timestamp'2024-01-01 10:00:00', "
    "timestamp_ntz'1969-12-31 23:59:59.999999', double(id) / 3, float(id), cast(id - 9.55 as decimal(9,2)), "
    "id % 2 = 0, cast('ab' as binary), named_struct('a', int(id), 'b.c', 'q'), array(int(id)), map('k', int(id))"
)
STORIES = {
    "evolved": (
        f"CREATE TABLE {{t}} ({EVERY_TYPE}) USING iceberg PARTITIONED BY (bucket(4, id), d) {MERGE_ON_READ}",
        f"INSERT INTO {{t}} SELECT {EVERY_VALUE} FROM range(1, 20)",
        "INSERT INTO {t} (id, d, x) VALUES (50, date'2024-01-02', double('NaN'))",
        "DELETE FROM {t} WHERE id = 3",
        "ALTER TABLE {t} ADD PARTITION FIELD truncate(s, 2)",
        "ALTER TABLE {t} ADD PARTITION FIELD month(ts)",
        "ALTER TABLE {t} DROP PARTITION FIELD d",
        "INSERT INTO {t} (id, s, ts) VALUES (60, 'hello', timestamp'2024-02-02 00:00:00.123456')",
        "ALTER TABLE {t} CREATE TAG kept RETAIN 5 DAYS",
        "ALTER TABLE {t} CREATE BRANCH other WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
        "DELETE FROM {t} WHERE id = 50",
        "ALTER TABLE {t} RENAME COLUMN x TO y",
    ),
    "vectors": (
        f"CREATE TABLE {{t}} (id bigint, day string) USING iceberg PARTITIONED BY (day) {MERGE_ON_READ}",
        "INSERT INTO {t} SELECT id, if(id < 9, 'mon', 'tue') FROM range(1, 20)",
        "INSERT INTO {t} SELECT id, 'mon' FROM range(20, 30)",
        "DELETE FROM {t} WHERE id IN (3, 11)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')",
        "DELETE FROM {t} WHERE id IN (4, 5, 22)",
        "DELETE FROM {t} WHERE id = 5 OR id = 23",
        "ALTER TABLE {t} DROP PARTITION FIELD day",
        "INSERT INTO {t} VALUES (40, 'wed'), (41, 'wed')",
        "DELETE FROM {t} WHERE id = 40",
    ),
    "unpartitioned": (
        "CREATE TABLE {t} (id int NOT NULL, s string) USING iceberg TBLPROPERTIES ('format-version'='1')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, null)",
        "INSERT OVERWRITE {t} VALUES (3, 'c')",
        "ALTER TABLE {t} DROP COLUMN s",
        "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
    ),
    "voided": (
        "CREATE TABLE {t} (id bigint, day string) USING iceberg PARTITIONED BY (day) TBLPROPERTIES ('format-version'='1')",
        "INSERT INTO {t} VALUES (1, 'mon'), (2, null)",
        "ALTER TABLE {t} DROP PARTITION FIELD day",
        "INSERT INTO {t} VALUES (3, 'tue')",
    ),
    "empty": ("CREATE TABLE {t} (id int) USING iceberg",),
    "ours": (
        f"CREATE TABLE {{t}} (id bigint, day string) USING iceberg PARTITIONED BY (day) {MERGE_ON_READ}",
        pa.table({"id": [1, 2, 3], "day": ["mon", "mon", None]}),
        pa.table({"id": [5], "day": pa.array([None], pa.string())}),
        pa.table({"id": pa.array([4], pa.int64()), "day": ["tue"]}),
        "DELETE FROM {t} WHERE id = 2",
    ),
}


@pytest.fixture(scope="module")
def tables(catalog: Catalog, iceberg_java: Any) -> Iterator[dict[str, Any]]:
    """The tables of all stories, loaded by our catalog."""
    iceberg_java.sql(f"CREATE NAMESPACE ice.{NAMESPACE}")
    for name, steps in STORIES.items():
        for step in steps:
            if isinstance(step, str):
                iceberg_java.sql(step.replace("{t}", f"ice.{NAMESPACE}.{name}"))
            else:
                catalog.load_table((NAMESPACE, name)).append(step)
    yield {name: catalog.load_table((NAMESPACE, name)) for name in STORIES}
    for name in STORIES:
        catalog.drop_table((NAMESPACE, name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("story", STORIES)
def test_columns_are_those_of_iceberg_java(
    tables: dict[str, Any], iceberg_java: Any, story: str, name: str
) -> None:
    described = []
    for row in iceberg_java.sql(f"DESCRIBE ice.{NAMESPACE}.{story}.{name}"):
        if not row[0] or row[0].startswith("#"):
            break
        described.append(row)
    schema = tables[story].inspect.scan(name).schema
    assert [[f.name, spark_type(f.field_type), f.doc] for f in schema.fields] == described


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("story", STORIES)
def test_rows_are_those_of_iceberg_java(
    tables: dict[str, Any], iceberg_java: Any, story: str, name: str
) -> None:
    ours = getattr(tables[story].inspect, name)()
    theirs = iceberg_java.sql(f"SELECT * FROM ice.{NAMESPACE}.{story}.{name}")
    assert ordered(arrow_rows(ours)) == ordered(theirs)


@pytest.mark.parametrize("name", TIME_TRAVELLING)
def test_rows_of_every_snapshot_are_those_of_iceberg_java(
    tables: dict[str, Any], iceberg_java: Any, name: str
) -> None:
    table = tables["evolved"]
    for snapshot in table.snapshots():
        ours = getattr(table.inspect, name)(snapshot.snapshot_id)
        theirs = iceberg_java.sql(
            f"SELECT * FROM ice.{NAMESPACE}.evolved.{name} VERSION AS OF {snapshot.snapshot_id}"
        )
        assert ordered(arrow_rows(ours)) == ordered(theirs)


FILTERS = {
    "files": (
        "partition.d = DATE '2024-01-01' AND content = 0",
        "partition.s_trunc_2 IS NULL",
        "readable_metrics.id.lower_bound >= 10",
        "NOT (spec_id = 0 OR record_count > 1)",
    ),
    "entries": ("status = 2", "data_file.partition.id_bucket IN (0, 3) AND status < 2"),
    "partitions": ("partition.d = DATE '2024-01-01'", "position_delete_record_count > 0"),
    "position_deletes": ("pos >= 0", "spec_id = 0", "spec_id > 5"),
    "all_manifests": ("added_delete_files_count > 0",),
}


@pytest.mark.parametrize(("name", "text"), [(n, text) for n in FILTERS for text in FILTERS[n]])
def test_filters_select_the_rows_that_iceberg_java_selects(
    tables: dict[str, Any], iceberg_java: Any, name: str, text: str
) -> None:
    ours = getattr(tables["evolved"].inspect, name)(row_filter=text)
    theirs = iceberg_java.sql(f"SELECT * FROM ice.{NAMESPACE}.evolved.{name} WHERE {text}")
    assert ordered(arrow_rows(ours)) == ordered(theirs)


def spark_type(kind: IcebergType) -> str:
    """How Spark's DESCRIBE spells a type."""
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{f.name}:{spark_type(f.field_type)}' for f in kind.fields)}>"
    if isinstance(kind, ListType):
        return f"array<{spark_type(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.value_type)}>"
    names = {"long": "bigint", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}
    return names.get(str(kind), str(kind).replace(", ", ","))


def arrow_rows(table: pa.Table) -> list[list[Any]]:
    """Rows in the form in which the other process sends them."""
    rows = table.to_pylist()
    return [[plain(row[f.name], f.type) for f in table.schema] for row in rows]


def plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return [plain(value[field.name], field.type) for field in kind]
    if pa.types.is_map(kind):
        return {str(key): plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [plain(item, kind.value_type) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    return str(value) if isinstance(value, Decimal | dt.date) else value


def ordered(rows: list[list[Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
