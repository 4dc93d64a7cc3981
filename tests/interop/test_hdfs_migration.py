"""A Hive table on a highly available HDFS is taken over and given back while the name nodes change roles."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Iterator

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
from tests.peers.hdfs import Hdfs
from tests.peers.hive_metastore import HiveMetastore

pytestmark = pytest.mark.full("a highly available HDFS and Hive 3")

FOLDER = "hdfs://ns1/warehouse/made.db/t"
TRASH = f"hdfs://ns1/user/{getpass.getuser()}/.Trash/Current"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    cluster = Hdfs(tmp_path_factory.mktemp("hdfs-ha"), ha=True).start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def lake(cluster: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveCatalog]:
    """Our catalog on a metastore that knows the nameservice; what is deleted goes to the trash."""
    folder = tmp_path_factory.mktemp("metastore")
    metastore = HiveMetastore("3.1.3", folder, core=cluster.client_settings).start().wait()
    mine = {"hdfs.user": getpass.getuser(), "hdfs.trash": "true"}
    place = {"uri": metastore.uri, "warehouse": "hdfs://ns1/warehouse"}
    catalog = HiveCatalog("ha", {**place, **cluster.client_settings, **mine})
    yield catalog
    catalog.close()
    metastore.stop()


def make_hive_table(lake: HiveCatalog) -> dict[str, int]:
    """Ten rows in each of three partitions; the files and their lengths."""
    lake.client.create_database(HiveDatabase("made", location="hdfs://ns1/warehouse/made.db"))
    storage = StorageDescriptor(
        columns=(FieldSchema("id", "bigint"),),
        location=FOLDER,
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    keys = (FieldSchema("m", "int"),)
    lake.client.create_table(
        HiveTable(
            "made",
            "t",
            storage=storage,
            partition_keys=keys,
            parameters={"EXTERNAL": "TRUE"},
            table_type="EXTERNAL_TABLE",
        )
    )
    partitions = []
    for month in range(3):
        place = f"{FOLDER}/m={month}"
        with lake.io.create_stream(f"{place}/part-0.parquet") as out:
            ids = pa.array(range(month * 10, month * 10 + 10), pa.int64())
            pq.write_table(pa.table({"id": ids}), out)
        own = StorageDescriptor(
            columns=storage.columns,
            location=place,
            input_format=storage.input_format,
            output_format=storage.output_format,
            serde=storage.serde,
        )
        partitions.append(HivePartition("made", "t", (str(month),), storage=own))
    lake.client.partitions.add(partitions)
    return {each.location: each.size for each in lake.io.list(FOLDER)}


def test_migration_goes_on_while_name_nodes_change_roles(lake: HiveCatalog, cluster: Hdfs) -> None:
    before = make_hive_table(lake)
    assert len(before) == 3
    change = threading.Thread(target=cluster.admin, args=("-failover", "nn1", "nn2"))
    change.start()
    migrate.apply(lake, "made.t")
    change.join()
    assert cluster.active() == "nn2"
    table = lake.load_table("made.t")
    assert {task.file.file_path for task in table.scan().plan_files()} == set(before)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(30))

    change = threading.Thread(target=cluster.admin, args=("-failover", "nn2", "nn1"))
    change.start()
    table.append(pa.table({"id": pa.array([100], pa.int64()), "m": pa.array([1], pa.int32())}))
    table.delete("id = 5")
    change.join()
    expected = sorted({*range(30), 100} - {5})
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == expected
    made = {each.location for each in lake.io.list(FOLDER)} - set(before)

    migrate.revert(lake, "made.t", dry_run=False, allow_data_loss=True)
    entry = lake.client.table("made", "t")
    assert entry.storage.location == FOLDER
    assert "metadata_location" not in entry.parameters
    assert {each.location: each.size for each in lake.io.list(FOLDER)}.items() >= before.items()
    after = [each.location for each in lake.io.list(FOLDER)]
    set_aside = {location.rpartition("/")[2] for location in after}
    assert {location.rpartition("/")[2] for location in made} <= set_aside


def test_what_is_purged_is_in_the_trash(lake: HiveCatalog) -> None:
    lake.create_namespace_if_not_exists("made")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = lake.create_table("made.u", rows.schema)
    table.append(rows)
    files = {each.location: each.size for each in lake.io.list(table.location())}
    assert len(files) == 5
    lake.drop_table("made.u", purge_requested=True)
    assert list(lake.io.list(table.location())) == []
    trash = table.location().replace("hdfs://ns1", TRASH)
    kept = {each.location.replace(TRASH, "hdfs://ns1"): each.size for each in lake.io.list(trash)}
    assert kept == files
