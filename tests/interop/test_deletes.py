"""Deleted rows stay deleted, whoever deleted them and by whichever kind of delete file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DoubleType, IntegerType, LongType, NestedField, StringType
from tests.format.rows.parquet_file import data_file_from_parquet

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

MODES = ("delete", "update", "merge")
MERGE_ON_READ = ", ".join(f"'write.{mode}.mode'='merge-on-read'" for mode in MODES)


@pytest.fixture(scope="module", params=["file", "partition"])
def java_deletes(request, readers):
    """Position deletes by Iceberg Java's DELETE, UPDATE and MERGE over several appends and specs."""
    name = f"java_deletes_{request.param}"
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} (id BIGINT, k INT, s STRING) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('format-version'='2', 'write.delete.granularity'='{request.param}', {MERGE_ON_READ})"
    )
    insert = f"INSERT INTO {{ns}}.{name} SELECT id, CAST(id %% 3 AS INT), concat('v', id) FROM range(%s, %s)"
    readers.java_sql(insert % (0, 300))
    readers.java_sql(insert % (300, 600))
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id % 10 = 7")
    readers.java_sql(f"UPDATE {{ns}}.{name} SET s = 'updated', k = 9 WHERE id % 50 = 0")
    readers.java_sql(insert % (7, 8))
    readers.java_sql(f"ALTER TABLE {{ns}}.{name} REPLACE PARTITION FIELD k WITH bucket(2, id)")
    readers.java_sql(insert % (600, 700))
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id % 10 = 3")
    readers.java_sql(
        f"MERGE INTO {{ns}}.{name} t USING (SELECT id FROM range(690, 710)) m ON t.id = m.id "
        "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, k, s) VALUES (m.id, NULL, 'new')"
    )
    return name


def test_position_deletes_of_iceberg_java_are_seen(java_deletes, readers):
    rows = readers.agree(java_deletes)
    ids = sorted(row[0] for row in rows)
    kept = [i for i in range(600) if i % 10 not in (3, 7)] + [7]
    kept += [i for i in range(600, 690) if i % 10 != 3]
    merged = [691, 693, 695, 697, 699, *range(700, 710)]
    assert ids == sorted(kept + merged)
    assert readers.plan(java_deletes) == readers.java_plan(java_deletes)
    assert any(readers.plan(java_deletes).values())


@pytest.mark.parametrize(
    "where", ["id = 7", "k = 1", "k = 9 and id > 100", "s = 'updated'", "k is null", "id >= 650"]
)
def test_deletes_and_filters_go_together(java_deletes, readers, where):
    but = ["peer"] if java_deletes.endswith("file") else []
    assert readers.agree(java_deletes, where, but=but)
    assert readers.plan(java_deletes, where) == readers.java_plan(java_deletes, where)


def test_every_snapshot_before_and_between_deletes_is_read_as_it_was(java_deletes, readers):
    table = readers.load(java_deletes)
    for snapshot in table.snapshots()[1::2]:
        version = snapshot.snapshot_id
        expected = readers.java(f"{java_deletes} VERSION AS OF {version}")
        assert readers.arrow_rows(table.scan(snapshot_id=version).to_arrow()) == expected
        assert table.scan(snapshot_id=version).count() == len(expected)
        assert readers.spark(f"{java_deletes} VERSION AS OF {version}") == expected


SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "k", IntegerType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "d", DoubleType()),
    )
)
BY_K = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "k"),))


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([i % 2 if i % 7 else None for i in numbers], pa.int32()),
            "s": [f"v{i}" if i % 5 else None for i in numbers],
            "d": [float("nan") if i % 11 == 0 else i / 4 for i in numbers],
        }
    )


def delete_by_key(table, name, keys, partition):
    """Commits an equality delete file, as Flink's upserts do."""
    fields = [table.schema().find_field(column) for column in keys.column_names]
    ids = [{"PARQUET:field_id": str(field.field_id)} for field in fields]
    schema = pa.schema([f.with_metadata(i) for f, i in zip(keys.schema, ids, strict=True)])
    path = f"{table.location()}/data/{name}.parquet"
    pq.write_table(keys.cast(schema), path.removeprefix("file:"))
    file = data_file_from_parquet(table.io, path, table.schema(), table.spec(), partition)
    equality_ids = tuple(field.field_id for field in fields)
    deletes = replace(file, content=DataFileContent.EQUALITY_DELETES, equality_ids=equality_ids)
    table.commit(RowDelta(table.io).add_deletes(deletes))


@pytest.fixture(scope="module")
def deleted_by_keys(readers):
    """Equality deletes by one key, by several, by nulls and NaNs; one is of one partition only."""
    name = "equality_deletes"
    table = readers.catalog.create_table(readers.own(name), SCHEMA, partition_spec=BY_K)
    table.append(rows(0, 100))
    keys = {"id": pa.array([2, 3, 1000], pa.int64())}
    delete_by_key(table, "by_id", pa.table(keys), partition=(0,))
    table.append(rows(0, 20))
    keys = {"s": ["v24", None], "k": pa.array([0, 1], pa.int32())}
    delete_by_key(table, "by_two", pa.table(keys), partition=(1,))
    delete_by_key(table, "by_nan", pa.table({"d": [float("nan"), 3.0]}), partition=(0,))
    delete_by_key(
        table, "by_null", pa.table({"k": pa.array([None], pa.int32())}), partition=(None,)
    )
    elsewhere = {"id": pa.array([5000, 6000], pa.int64()), "s": ["v1", None]}
    delete_by_key(table, "elsewhere", pa.table(elsewhere), partition=(0,))
    table.append(rows(60, 70))
    return name


def test_equality_deletes_are_applied_as_iceberg_java_applies_them(deleted_by_keys, readers):
    found = readers.agree(deleted_by_keys, but=["peer"])
    ids = sorted(row[0] for row in found)
    assert ids.count(2) == 1
    assert ids.count(3) == 2
    assert [i for i in ids if i % 7 == 0] == [63]
    planned = readers.plan(deleted_by_keys)
    assert planned == readers.java_plan(deleted_by_keys)
    names = {path.rpartition("/")[2] for deletes in planned.values() for path in deletes}
    assert names == {f"{name}.parquet" for name in ("by_id", "by_two", "by_nan", "by_null")}


@pytest.mark.parametrize(
    "where", ["id = 2", "k = 1", "s is null", "d < 10 and k = 1", "id < 70 and k = 0"]
)
def test_equality_deletes_and_filters_go_together(deleted_by_keys, readers, where):
    assert readers.agree(deleted_by_keys, where, "id, d", but=["peer"])


def test_pyiceberg_reads_and_deletes_from_what_we_write(readers):
    name = "peer_deletes"
    readers.catalog.create_table(readers.own(name), SCHEMA, partition_spec=BY_K).append(rows(0, 50))
    readers.load_peer(name).delete("id >= 40 or id = 3")
    expected = [i for i in range(40) if i != 3]
    assert sorted(row[0] for row in readers.agree(name)) == expected
    readers.load(name).append(rows(50, 52))
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id < 39")
    assert sorted(row[0] for row in readers.agree(name)) == [39, 50, 51]
