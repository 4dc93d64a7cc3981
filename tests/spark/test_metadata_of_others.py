"""What another writer says of its files, and what Spark makes of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField, StringType
from tests.catalog.metadata_of_others import tell_otherwise

pytestmark = pytest.mark.full(
    "the rules are shown on values: tests/catalog/test_metadata_of_others.py"
)

SCHEMA = Schema(NestedField(1, "p", StringType()), NestedField(2, "id", LongType()))
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))


@pytest.fixture
def make(catalog, spark):
    """Makes tables in the metastore that Spark has not seen yet."""
    made = []
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.of_others")

    def table(name, **properties):
        found = catalog.create_table(
            f"of_others.{name}", SCHEMA, partition_spec=SPEC, properties=properties
        )
        made.append(f"of_others.{name}")
        for place, numbers in (("a", [1, 2, 5]), ("b", [3, 4])):
            found.append(
                pa.table({"p": [place] * len(numbers), "id": pa.array(numbers, pa.int64())})
            )
        return found

    yield table
    for name in made:
        catalog.drop_table(name)


def test_minima_and_maxima_are_not_taken_from_bounds_that_are_wider_than_a_file(make, spark):
    """ClickHouse stated the bounds of all files of an INSERT for each of them."""
    own, other = make("own"), make("other")
    query = "SELECT min(id), max(id), count(id) FROM lake.of_others.{} WHERE p = 'b'"
    assert "LocalTableScan" in explained(spark, query.format("own"))

    def stamped(record):
        record["lower_bounds"][2], record["upper_bounds"][2] = (
            n.to_bytes(8, "little") for n in (1, 5)
        )

    tell_otherwise(other, stamped)
    for name in ("own", "other"):
        assert [*map(tuple, spark.sql(query.format(name)).collect())] == [(3, 4, 2)]
        groups = spark.sql(
            f"SELECT p, max(id), count(*) FROM lake.of_others.{name} GROUP BY p ORDER BY p"
        )
        assert [*map(tuple, groups.collect())] == [("a", 5, 3), ("b", 4, 2)]
    assert own.scan().count() == 5


def explained(spark, query):
    return spark.sql(query)._jdf.queryExecution().executedPlan().toString()


def said(size, rows):
    def file(record):
        if record["content"] == 1:
            record["file_size_in_bytes"], record["record_count"] = size, rows

    return file


@pytest.mark.parametrize("rows", [3, 2_000_000], ids=["read by the planner", "read by executors"])
def test_rows_of_position_deletes_that_delete_nothing_are_refused(make, spark, rows):
    for number, (path, position, found) in enumerate(
        [(None, 1, "a null in file_path"), ("a", None, "a null in pos"), ("a", -1, "position -1")]
    ):
        name = f"wrong_{rows}_{number}"
        table = make(name, **{"format-version": "2", "write.delete.mode": "merge-on-read"})
        table.delete("id = 1")
        [deletes] = [d for task in table.scan().plan_files() for d in task.delete_files]
        local = Path(deletes.file_path.removeprefix("file:"))
        written = pq.read_table(local)
        target = written["file_path"][0].as_py()
        right = rows - 1
        wrong = pa.table(
            [[target] * right + [path and target], [0] * right + [position]],
            schema=pa.schema([field.with_nullable(True) for field in written.schema]),
        )
        pq.write_table(wrong, local)

        tell_otherwise(table, said(local.stat().st_size, rows))
        with pytest.raises(Exception, match=f"Delete file .* holds {found}"):
            spark.sql(f"SELECT * FROM lake.of_others.{name}").collect()
