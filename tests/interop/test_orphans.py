"""remove_orphan_files here and in Iceberg Java: the same orphans, the same refusals."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField, StringType

pytestmark = pytest.mark.full("Iceberg Java's procedures in a second Spark")

NAMESPACE = "orphaned"
NUMBERS = itertools.count(1)
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "_k", StringType())))
REFUSED = (PySparkException, AssertionError)


@pytest.fixture(scope="module", autouse=True)
def namespace(catalog):
    catalog.create_namespace_if_not_exists(NAMESPACE)


def _folder(table):
    return Path("/" + table.location().removeprefix("file:").lstrip("/"))


def _age(folder):
    then = time.time() - 7 * 86_400
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def _left(table, *names):
    for name in names:
        path = _folder(table) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")


@pytest.fixture
def table(catalog, iceberg_java):
    """A table that Python and Iceberg Java wrote, with a branch, a staged snapshot and deletes."""
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    spec = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "_k"),))
    made = catalog.create_table(
        name,
        SCHEMA,
        partition_spec=spec,
        properties={"write.wap.enabled": "true", "write.delete.mode": "merge-on-read"},
    )
    made.append(pa.table({"id": [1, 2, 3], "_k": ["a", "b", None]}))
    iceberg_java.table(f"INSERT INTO ice.{name} VALUES (4, 'a'), (5, 'b')")
    made.refresh()
    with made.manage_snapshots() as manage:
        manage.create_branch(made.current_snapshot().snapshot_id, "side")
    made.append(pa.table({"id": [6], "_k": ["c"]}), branch="side")
    made.append(pa.table({"id": [7], "_k": ["d"]}), {"wap.id": "staged"})
    iceberg_java.table(f"DELETE FROM ice.{name} WHERE id = 4")
    made.refresh()
    made.delete("id = 1")
    with made.update_properties() as update:
        update.set("write.metadata.previous-versions-max", "2")
    for i in range(4):
        with made.update_properties() as update:
            update.set("turn", str(i))
    return made


def _found(rows):
    return {Path("/" + row[0].removeprefix("file:").lstrip("/")) for row in rows}


def test_iceberg_java_finds_the_same_orphans(spark, iceberg_java, table):
    name = ".".join(table.name())
    _left(
        table,
        "data/_k=a/left.parquet",
        "data/_other/left.parquet",
        "data/.left.parquet.crc",
        "data/_SUCCESS",
        "metadata/left-m0.avro",
        "metadata/00001-left.metadata.json",
        "elsewhere/left.orc",
        "_icecomb_migration/1/left.json",
        "_icecomb_quarantine/2024-01-01T000000Z/left.parquet",
    )
    _age(_folder(table))
    _left(table, "data/_k=a/young.parquet")
    theirs = _found(
        iceberg_java.table(f"CALL ice.system.remove_orphan_files('{name}', dry_run => true)")[1]
    )
    call = f"CALL lake.system.remove_orphan_files('{name}', dry_run => true)"
    assert _found(spark.sql(call).collect()) == theirs
    inner = {str(path.relative_to(_folder(table))) for path in theirs}
    assert {"data/_k=a/left.parquet", "metadata/left-m0.avro", "elsewhere/left.orc"} <= inner
    before = iceberg_java.table(f"SELECT * FROM ice.{name} ORDER BY id")[1]
    done = spark.sql(f"CALL lake.system.remove_orphan_files('{name}')")
    assert done.dtypes == [("orphan_file_location", "string")]
    assert _found(done.collect()) == theirs
    assert not any(path.exists() for path in theirs)
    assert (_folder(table) / "data/_k=a/young.parquet").exists()
    again = f"CALL ice.system.remove_orphan_files(table => '{name}', dry_run => true)"
    assert iceberg_java.table(again)[1] == []
    assert iceberg_java.table(f"SELECT * FROM ice.{name} ORDER BY id")[1] == before
    assert [row[0] for row in before] == [2, 3, 5]
    side = iceberg_java.table(f"SELECT id FROM ice.{name}.branch_side ORDER BY id")[1]
    assert [row[0] for row in side] == [1, 2, 3, 4, 5, 6]


def test_pyiceberg_reads_the_table_afterwards(spark, pyiceberg, table):
    _left(table, "data/left.parquet")
    _age(_folder(table))
    name = ".".join(table.name())
    assert len(spark.sql(f"CALL lake.system.remove_orphan_files('{name}')").collect()) >= 1
    rows = pyiceberg.load_table(name).scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [2, 3, 5]


@pytest.mark.parametrize(
    "arguments",
    [
        "older_than => TIMESTAMP '2999-01-01 00:00:00'",
        "max_concurrent_deletes => 0",
        "prefix_mismatch_mode => 'SOME'",
        "older_than => current_timestamp()",
    ],
)
def test_both_refuse_the_same_arguments(spark, iceberg_java, table, arguments):
    name = ".".join(table.name())
    call = f"remove_orphan_files(table => '{name}', dry_run => true, {arguments})"
    for run in (
        lambda: iceberg_java.table(f"CALL ice.system.{call}"),
        lambda: spark.sql(f"CALL lake.system.{call}").collect(),
    ):
        with pytest.raises(REFUSED):
            run()


def test_both_take_the_same_arguments(spark, iceberg_java, table):
    name = ".".join(table.name())
    _left(table, "data/_k=a/left.parquet", "data/_k=b/left.parquet")
    _age(_folder(table))
    for arguments in (
        "max_concurrent_deletes => 4",
        "older_than => TIMESTAMP '2020-01-01 00:00:00'",
        f"location => '{table.location()}/data/_k=a'",
        "prefix_mismatch_mode => 'ignore'",
        "equal_schemes => map('s3a,s3n', 's3'), equal_authorities => map('a', 'b')",
        "prefix_listing => true",
        "stream_results => true",
    ):
        call = f"remove_orphan_files(table => '{name}', dry_run => true, {arguments})"
        theirs = _found(iceberg_java.table(f"CALL ice.system.{call}")[1])
        assert _found(spark.sql(f"CALL lake.system.{call}").collect()) == theirs, arguments


def test_both_refuse_a_table_whose_files_may_belong_to_others(spark, iceberg_java, table):
    with table.update_properties() as update:
        update.set("gc.enabled", "false")
    name = ".".join(table.name())
    with pytest.raises(REFUSED):
        iceberg_java.table(f"CALL ice.system.remove_orphan_files('{name}')")
    with pytest.raises(REFUSED, match=r"gc\.enabled"):
        spark.sql(f"CALL lake.system.remove_orphan_files('{name}')").collect()
