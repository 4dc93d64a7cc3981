"""Partition statistics of tables in a folder: Iceberg Java reads ours and goes on from them, and we read its."""

from __future__ import annotations

import uuid

import pytest

from icecomb.catalog import load_catalog
from icecomb.format.inspect.partition_statistics import FILE_COUNTS, PartitionCounter
from icecomb.format.inspect.partition_statistics_file import (
    read_statistics,
    stated_counts,
    stated_partitions,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
    UUIDType,
)
from tests.rings import sampled

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "t", TimestamptzType()),
    NestedField(5, "u", UUIDType()),
    NestedField(6, "c", DecimalType(9, 2)),
    NestedField(7, "y", BinaryType()),
)
SPEC = [
    ("identity", "s", "s"),
    ("identity", "day", "day"),
    ("hour", "t", "t_hour"),
    ("identity", "u", "u"),
    ("identity", "c", "c"),
    ("identity", "y", "y"),
]
UPDATES = ("last_updated_at", "last_updated_snapshot_id")


def rows(*ids):
    """Rows in three partitions, one of which is null in all fields."""
    return [
        [i, None, None, None, None, None, None]
        if i % 3 == 2
        else [
            i,
            "äb"[: i % 3],
            f"1969-12-{30 + i % 3}",
            f"19{69 + i % 3}-01-01T00:30:00",
            str(uuid.UUID(int=i % 3)),
            f"{i % 3 - 1}.50",
            "00ff"[: 2 + 2 * (i % 3)],
        ]
        for i in ids
    ]


@pytest.fixture(scope="module")
def folder(metastore):
    """Our catalog on the folder of the library's tables."""
    catalog = load_catalog(
        "files", type="hadoop", warehouse=f"{metastore.warehouse.as_uri()}/hadoop"
    )
    catalog.create_namespace_if_not_exists("partition_statistics")
    return catalog


def counted(table):
    """Our full count of the current snapshot."""
    counter = PartitionCounter(table.metadata, table.io)
    return counter.of_manifests(read_manifests(table.io, table.current_snapshot()))


def plain(counts, without=()):
    kept = [
        {name: value for name, value in row.items() if name not in without}
        for row in counts.to_pylist()
        if any(row[name] for name in FILE_COUNTS)
    ]
    return sorted(kept, key=repr)


def numbers(shown, without=("partition", *UPDATES)):
    """What Iceberg Java shows of partitions that have files, without their values."""
    kept = [row for row in shown if any(row[name] for name in FILE_COUNTS)]
    return [{k: v for k, v in row.items() if k not in without} for row in kept]


@pytest.mark.parametrize("version", sampled(["3", "2"], keep=1))
def test_iceberg_java_reads_and_continues_our_partition_statistics_and_we_read_its(
    iceberg_library, folder, version
):
    name = f"hadoop:partition_statistics.v{version}"
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    iceberg_library.create(name, SCHEMA, SPEC, properties)
    iceberg_library.append(name, rows(0, 1, 2, 3))
    iceberg_library.append(name, rows(4, 5))
    table = folder.load_table(f"partition_statistics.v{version}")
    table.maintenance.compute_partition_stats()

    ours = iceberg_library.ask("partition_statistics", name)
    iceberg_library.ask("remove_partition_statistics", name)
    theirs = iceberg_library.ask("compute_partition_statistics", name)
    assert ours == iceberg_library.ask("partition_statistics", name)
    assert [row["data_record_count"] for row in ours] == [2, 2, 2]
    table.refresh()
    [file] = table.metadata.partition_statistics
    assert file["statistics-path"] == theirs
    counter = PartitionCounter(table.metadata, table.io)
    read = read_statistics(counter, table.io, file)
    assert plain(read.counts) == plain(counted(table))
    # of appends only it is as good as one of ours
    used = stated_counts(counter, table.io, table.metadata, table.current_snapshot())
    assert plain(used) == plain(counted(table))

    # a file deleted, a row of another one, another spec, and Iceberg Java's count of what changed since ours
    iceberg_library.ask("remove_partition_statistics", name)
    table.refresh().maintenance.compute_partition_stats()
    table.delete("id = 3 or id = 2")
    with table.update_spec() as update:
        update.remove_field("day")
        update.add_field("id", "bucket[2]")
    table.append(table.scan("id = 1").to_arrow())
    iceberg_library.ask("compute_partition_statistics", name)
    continued = iceberg_library.ask("partition_statistics", name)
    table.refresh()
    current = table.metadata.current_snapshot_id
    [file] = [f for f in table.metadata.partition_statistics if f["snapshot-id"] == current]
    counter = PartitionCounter(table.metadata, table.io)
    read = read_statistics(counter, table.io, file)
    assert not read.has_live_updates
    assert plain(read.counts, UPDATES) == plain(counted(table), UPDATES)
    assert stated_counts(counter, table.io, table.metadata, table.current_snapshot()) is None
    assert stated_partitions(counter, table.io, table.metadata, table.current_snapshot())
    iceberg_library.ask("remove_partition_statistics", name)
    table.refresh().maintenance.compute_partition_stats()
    assert numbers(iceberg_library.ask("partition_statistics", name)) == numbers(continued)
    assert sum(row["dv_count"] or 0 for row in continued) == (1 if version == "3" else 0)


def test_we_read_the_avro_files_that_iceberg_java_writes_of_tables_in_avro(iceberg_library, folder):
    name = "hadoop:partition_statistics.avro"
    iceberg_library.create(name, SCHEMA, SPEC, {"write.format.default": "avro"})
    iceberg_library.append(name, rows(0, 1, 2, 3, 4))
    assert iceberg_library.ask("compute_partition_statistics", name).endswith(".avro")
    table = folder.load_table("partition_statistics.avro")
    [file] = table.metadata.partition_statistics
    read = read_statistics(PartitionCounter(table.metadata, table.io), table.io, file)
    assert plain(read.counts) == plain(counted(table))
    # a snapshot keeps the file that it has
    done = table.maintenance.compute_partition_stats()
    assert done.partition_statistics_file == file["statistics-path"]
