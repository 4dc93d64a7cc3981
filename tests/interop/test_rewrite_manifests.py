"""Iceberg Java reads manifests that we rewrote, and goes on with the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))


def rows(*pairs: tuple[int, str]) -> pa.Table:
    numbers, days = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(numbers, pa.int64()), "day": pa.array(days)})


@pytest.fixture
def table(catalog: Any) -> Any:
    catalog.create_namespace_if_not_exists("manifests")
    identifier = ("manifests", "t")
    table = catalog.create_table(
        identifier,
        SCHEMA,
        partition_spec=BY_DAY,
        properties={
            "write.delete.mode": "merge-on-read",
            "write.format.default": "parquet",
            "write.wap.enabled": "true",
        },
    )
    yield table
    catalog.drop_table(identifier)


def test_iceberg_java_reads_rewritten_manifests(table: Any, iceberg_java: Any) -> None:
    name = "ice.manifests.t"
    for n in range(3):
        table.append(rows((n, "mon"), (10 + n, "tue")))
    # Java's position delete: its manifest is rewritten, too
    iceberg_java.sql(f"INSERT INTO {name} VALUES (20, 'mon'), (21, 'mon'), (22, 'wed')")
    iceberg_java.sql(f"DELETE FROM {name} WHERE id = 20")
    iceberg_java.sql(f"INSERT INTO {name} VALUES (30, 'tue'), (31, 'tue')")
    iceberg_java.sql(f"DELETE FROM {name} WHERE id = 31")
    entries = (
        "SELECT data_file.file_path, snapshot_id, sequence_number, file_sequence_number "
        f"FROM {name}.entries WHERE status < 2 ORDER BY 1"
    )
    content = f"SELECT id, day FROM {name} ORDER BY id"
    before, planned = iceberg_java.sql(entries), iceberg_java.plan(name)
    expected = iceberg_java.sql(content)
    assert [n for n, _ in expected] == [0, 1, 2, 10, 11, 12, 21, 22, 30]

    table.refresh().rewrite_manifests()
    assert len(read_manifests(table.io, table.current_snapshot())) == 2
    assert iceberg_java.sql(entries) == before
    assert iceberg_java.plan(name) == planned
    assert iceberg_java.sql(content) == expected
    summary = iceberg_java.sql(
        "SELECT operation, summary['manifests-replaced'], summary['entries-processed'] "
        f"FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    assert summary == [["replace", "7", str(len(before))]]

    # and back: Java rewrites ours, and deletes from what we rewrote
    iceberg_java.sql(f"DELETE FROM {name} WHERE day = 'tue'")
    iceberg_java.sql("CALL ice.system.rewrite_manifests(table => 'manifests.t')")
    left = [n for n, day in expected if day != "tue"]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == left


def test_what_one_stages_the_other_publishes(table: Any, iceberg_java: Any) -> None:
    name = "ice.manifests.t"
    table.append(rows((1, "mon")))
    table.append(rows((2, "mon")), {"wap.id": "ours"})
    iceberg_java.sql(f"INSERT INTO {name} VALUES (3, 'tue')")
    found = iceberg_java.sql(f"SELECT id FROM {name} ORDER BY id")
    assert found == [[1], [3]]
    iceberg_java.sql("CALL ice.system.publish_changes('manifests.t', 'ours')")
    assert iceberg_java.sql(f"SELECT id FROM {name} ORDER BY id") == [[1], [2], [3]]
    iceberg_java.sql("SET spark.wap.id = theirs")
    iceberg_java.sql(f"INSERT INTO {name} VALUES (4, 'tue')")
    iceberg_java.sql("RESET spark.wap.id")
    table.refresh().append(rows((5, "mon")))
    table.publish_changes("theirs")
    found = iceberg_java.sql(f"SELECT id FROM {name} ORDER BY id")
    assert found == [[1], [2], [3], [4], [5]]
