"""Hive tables on `s3a:` are taken over in place, given back, and finished; their files stay where they are."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.format.errors import ValidationError

pytestmark = pytest.mark.jvm
KEYS = ("a b", "x%2Fy", "ü=1")
"""As Hive writes partitions' values into paths."""


@pytest.fixture(scope="module")
def lake(metastore, s3):
    place = {"uri": metastore.uri, "warehouse": f"s3a://{s3.bucket()}/wh"}
    with HiveCatalog("lake", {**place, **s3.settings}) as catalog:
        yield catalog


@pytest.fixture
def table(lake):
    """A partitioned Hive table of nine rows, as Spark or Hive leave it on S3A."""
    database = f"m{uuid.uuid4().hex[:10]}"
    home = f"{lake.properties['warehouse']}/{database}.db"
    lake.client.create_database(HiveDatabase(database, location=home))
    storage = StorageDescriptor(
        columns=(FieldSchema("id", "bigint"),),
        location=f"{home}/t",
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    lake.client.create_table(
        HiveTable(
            database,
            "t",
            storage=storage,
            partition_keys=(FieldSchema("k", "string"),),
            parameters={"EXTERNAL": "TRUE"},
            table_type="EXTERNAL_TABLE",
        )
    )
    partitions = []
    for number, key in enumerate(KEYS):
        place = f"{home}/t/k={key}"
        # what Hadoop leaves: the marker of a folder, and of a job
        lake.io.create_folder(place)
        lake.io.create(f"{place}/_SUCCESS", b"")
        with lake.io.create_stream(f"{place}/part-0.parquet") as out:
            ids = pa.array(range(number * 3, number * 3 + 3), pa.int64())
            pq.write_table(pa.table({"id": ids}), out)
        own = StorageDescriptor(
            columns=storage.columns,
            location=place,
            input_format=storage.input_format,
            output_format=storage.output_format,
            serde=storage.serde,
        )
        value = key.replace("%2F", "/")
        partitions.append(HivePartition(database, "t", (value,), storage=own))
    lake.client.partitions.add(partitions)
    return f"{database}.t"


def _files(lake, table):
    location = lake.client.table(*table.split(".")).storage.location
    found = {each.location: each.size for each in lake.io.list(location)}
    # the journal of a migration keeps what it knows of files in one more
    return {name: size for name, size in found.items() if "/files-" not in name}


def _rows(lake, table):
    return sorted(lake.load_table(table).scan().to_arrow()["id"].to_pylist())


def test_a_hive_table_on_s3_is_taken_over_changed_and_given_back(lake, table):
    before, entry = _files(lake, table), lake.client.table(*table.split("."))
    plan = migrate.plan(lake, table)
    assert plan.blockers == ()
    done = migrate.apply(lake, table)
    assert (done.partitions, done.files, done.rows) == (3, 3, 9)
    assert migrate.verify(lake, table).difference_count == 0
    ours = lake.load_table(table)
    parquet = {location for location in before if location.endswith(".parquet")}
    assert {task.file.file_path for task in ours.scan().plan_files()} == parquet
    ours.append(pa.table({"id": pa.array([100], pa.int64()), "k": ["new"]}))
    ours.delete("id = 4")
    assert _rows(lake, table) == [0, 1, 2, 3, 5, 6, 7, 8, 100]
    found = ours.refresh().scan("id = 5").to_arrow()["k"].to_pylist()
    assert found == ["x/y"]

    assert migrate.revert(lake, table, dry_run=False, allow_data_loss=True).done
    assert lake.client.table(*table.split(".")) == entry
    after = _files(lake, table)
    assert after.items() >= before.items()
    # what was added is kept where Hive does not look
    places = ("/t/_icecomb_migration/", "/t/data/")
    assert [one for one in after.keys() - before.keys() if not any(p in one for p in places)] == []


def test_a_migration_on_s3_is_finished(lake, table):
    migrate.apply(lake, table)
    migrate.finalize(lake, table, unverified=True)
    assert _rows(lake, table) == list(range(9))
    lake.load_table(table).overwrite(pa.table({"id": pa.array([1], pa.int64()), "k": ["new"]}))
    lake.load_table(table).expire_snapshots().older_than(dt.datetime.now(dt.timezone.utc)).commit()
    parquet = [each for each in _files(lake, table) if each.endswith(".parquet")]
    assert ["/t/data/k=new/" in each for each in parquet] == [True]


def test_what_was_added_to_a_plain_table_on_s3_is_set_aside(lake, table):
    """Hive reads every file below the folder of a table without partitions."""
    database = table.partition(".")[0]
    home = f"{lake.properties['warehouse']}/{database}.db/plain"
    with lake.io.create_stream(f"{home}/part-0.parquet") as out:
        pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), out)
    storage = replace(lake.client.table(*table.split(".")).storage, location=home)
    kind = {"parameters": {"EXTERNAL": "TRUE"}, "table_type": "EXTERNAL_TABLE"}
    lake.client.create_table(HiveTable(database, "plain", storage=storage, **kind))
    name = f"{database}.plain"
    migrate.apply(lake, name)
    lake.load_table(name).append(pa.table({"id": pa.array([2], pa.int64())}))
    (added,) = {each for each in _files(lake, name) if "/plain/data/" in each}
    migrate.revert(lake, name, dry_run=False, allow_data_loss=True)
    parquet = sorted(each for each in _files(lake, name) if each.endswith(".parquet"))
    assert parquet[1] == f"{home}/part-0.parquet"
    assert parquet[0].startswith(f"{home}/_icecomb_migration/")
    assert parquet[0].rpartition("/")[2] == added.rpartition("/")[2]


def test_the_command_migrates_on_s3(lake, table, icecomb, s3, monkeypatch):
    for key, value in s3.settings.items():
        variable = key.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"ICECOMB_CATALOG__DEFAULT__{variable}", value)
    code, out, err = icecomb("migrate", "plan", table)
    assert code == 0, err
    code, _, err = icecomb("migrate", "apply", table)
    assert code == 0, err
    assert _rows(lake, table) == list(range(9))
    assert s3.settings["s3.secret-access-key"] not in out + err


def test_a_file_is_added_once_whichever_scheme_names_it(lake):
    database = f"m{uuid.uuid4().hex[:10]}"
    lake.create_namespace(database)
    target = lake.create_table(f"{database}.t", pa.schema([("id", pa.int64())]))
    file = f"{lake.properties['warehouse']}/given/ü b%20+.parquet"
    with lake.io.create_stream(file) as out:
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), out)
    target.add_files([file])
    with pytest.raises(ValidationError, match="already"):
        target.add_files([file.replace("s3a://", "s3://")])
    assert target.refresh().scan().to_arrow()["id"].to_pylist() == [1, 2]


def test_where_hive_reads_another_folder_than_iceberg_would_nothing_is_taken_over(lake, table):
    """Hadoop leaves empty parts out of paths; in a store of objects they are there."""
    database = table.partition(".")[0]
    entry = lake.client.table(*table.split("."))
    moved = f"{entry.storage.location}//k=z"
    own = replace(entry.storage, location=moved.replace("//k", "/k"))
    lake.client.partitions.add([HivePartition(database, "t", ("z",), storage=own)])
    (found,) = lake.client.partitions.named(database, "t", ["k=z"])
    changed = replace(found, storage=replace(found.storage, location=moved))
    lake.client.partitions.alter(database, "t", [changed])
    (found,) = lake.client.partitions.named(database, "t", ["k=z"])
    assert found.storage.location == moved
    plan = migrate.plan(lake, table, migrate.Choices(accept=frozenset({"missing-partitions"})))
    (blocker,) = plan.blockers
    assert (blocker.code, blocker.places) == ("ambiguous-location", (moved,))
