"""A published example of a file-system table, made again by the same operations.

A Flink job of Iceberg 0.13 wrote it to a table of version 1 with two partitions: two appends, two
overwrites of one partition, a compaction of the other, and one more append. The sizes of its data
files follow from the sums in the summaries.
"""

from __future__ import annotations

import re

import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.format.manifests.manifest import DataFile, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import ReplacePartitions, RewriteFiles
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType

SCHEMA = Schema((NestedField(1, "user_id", LongType()), NestedField(2, "birthday", StringType())))
BY_BIRTHDAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "birthday"),))
JOB = {
    "flink.job-id": "5f0ae342d300cfb6f2239425144aaa10",
    "flink.max-committed-checkpoint-id": "9223372036854775807",
}
NO_DELETES = {
    "total-delete-files": "0",
    "total-position-deletes": "0",
    "total-equality-deletes": "0",
}
SUMMARIES = [
    {
        "operation": "append", **JOB,
        "added-data-files": "2", "added-records": "2", "added-files-size": "2487",
        "changed-partition-count": "2",
        "total-records": "2", "total-files-size": "2487", "total-data-files": "2", **NO_DELETES,
    },
    {
        "operation": "append", **JOB,
        "added-data-files": "2", "added-records": "2", "added-files-size": "2487",
        "changed-partition-count": "2",
        "total-records": "4", "total-files-size": "4974", "total-data-files": "4", **NO_DELETES,
    },
    {
        "operation": "overwrite", "replace-partitions": "true", **JOB,
        "added-data-files": "1", "deleted-data-files": "2",
        "added-records": "1", "deleted-records": "2",
        "added-files-size": "1244", "removed-files-size": "2459",
        "changed-partition-count": "1",
        "total-records": "3", "total-files-size": "3759", "total-data-files": "3", **NO_DELETES,
    },
    {
        "operation": "overwrite", "replace-partitions": "true", **JOB,
        "added-data-files": "1", "deleted-data-files": "1",
        "added-records": "1", "deleted-records": "1",
        "added-files-size": "1251", "removed-files-size": "1244",
        "changed-partition-count": "1",
        "total-records": "3", "total-files-size": "3766", "total-data-files": "3", **NO_DELETES,
    },
    {
        "operation": "replace",
        "added-data-files": "1", "deleted-data-files": "2",
        "added-records": "2", "deleted-records": "2",
        "added-files-size": "1422", "removed-files-size": "2515",
        "changed-partition-count": "1",
        "total-records": "3", "total-files-size": "2673", "total-data-files": "2", **NO_DELETES,
    },
    {
        "operation": "append", **JOB,
        "added-data-files": "1", "added-records": "1", "added-files-size": "1258",
        "changed-partition-count": "1",
        "total-records": "4", "total-files-size": "3931", "total-data-files": "3", **NO_DELETES,
    },
]  # fmt: skip
MANIFESTS_OF_EACH = [1, 1, 3, 2, 3, 1]
"""How many manifests each commit wrote, by the folder's listing."""
NEWER = {"manifests-created", "manifests-kept", "manifests-replaced"}
"""What later versions of Iceberg count as well."""
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def published(snapshot):
    """The summary, as Iceberg 0.13 would have written it."""
    return {key: value for key, value in snapshot.summary.items() if key not in NEWER}


@pytest.fixture
def table(tmp_path):
    catalog = load_catalog("hadoop", type="hadoop", warehouse=tmp_path)
    catalog.create_namespace("iceberg_db")
    table = catalog.create_table(
        "iceberg_db.my_user", SCHEMA, partition_spec=BY_BIRTHDAY, properties={"format-version": "1"}
    )

    def file(name, birthday, size, records=1):
        return DataFile(
            file_path=f"{table.location()}/data/birthday={birthday}/{name}.parquet",
            partition=(birthday,),
            record_count=records,
            file_size_in_bytes=size,
        )

    def append(*files):
        operation = FastAppend(table.io, JOB)
        for added in files:
            operation.append_data_file(added)
        table.commit(operation)

    old, kept = "2022-02-01", "2022-02-02"
    small = [file("b1", kept, 1258), file("b2", kept, 1257)]
    append(file("a1", old, 1229), small[0])
    append(file("a2", old, 1230), small[1])
    table.commit(ReplacePartitions(table.io, JOB).append_data_file(file("a3", old, 1244)))
    table.commit(ReplacePartitions(table.io, JOB).append_data_file(file("a4", old, 1251)))
    table.commit(RewriteFiles(table.io).rewrite_files(small, [file("b3", kept, 1422, records=2)]))
    append(file("c1", "2022-02-03", 1258))
    return table


def test_the_snapshots_say_what_the_example_says(table):
    assert [published(snapshot) for snapshot in table.snapshots()] == SUMMARIES
    created = [int(snapshot.summary["manifests-created"]) for snapshot in table.snapshots()]
    assert created == MANIFESTS_OF_EACH
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    parents = [snapshot.parent_snapshot_id for snapshot in table.snapshots()]
    assert parents == [None, *ids[:-1]]
    assert [entry.snapshot_id for entry in table.history()] == ids
    assert {snapshot.schema_id for snapshot in table.snapshots()} == {0}
    times = [snapshot.timestamp_ms for snapshot in table.snapshots()]
    assert times == sorted(times)


def test_the_metadata_folder_holds_the_files_of_the_example(table, tmp_path):
    folder = tmp_path / "iceberg_db" / "my_user" / "metadata"
    found = {path.name for path in folder.iterdir()}
    expected = {f"v{number}.metadata.json" for number in range(1, 8)} | {"version-hint.text"}
    for snapshot, manifests in zip(table.snapshots(), MANIFESTS_OF_EACH, strict=True):
        name = snapshot.manifest_list.rpartition("/")[2]
        match = re.fullmatch(rf"snap-{snapshot.snapshot_id}-1-({UUID})\.avro", name)
        assert match, name
        expected |= {name, *(f"{match[1]}-m{number}.avro" for number in range(manifests))}
    assert len(found) == 25
    assert found == expected
    assert (folder / "version-hint.text").read_text() == "7"


def test_every_version_shows_the_table_as_it_was_then(table):
    for number in range(1, 8):
        version = open_table(f"{table.location()}/metadata/v{number}.metadata.json")
        assert [published(snapshot) for snapshot in version.snapshots()] == SUMMARIES[: number - 1]
        assert len(version.metadata.metadata_log) == number - 1
        files = sum(1 for _ in version.scan().plan_files())
        assert files == (int(SUMMARIES[number - 2]["total-data-files"]) if number > 1 else 0)


def test_the_manifests_of_a_compaction_keep_what_it_removed(table):
    compaction = table.snapshots()[4]
    entries = [
        (entry.data_file.file_path.rpartition("/")[2], entry.status)
        for manifest in read_manifests(table.io, compaction)
        for entry in read_manifest(table.io, manifest)
        if entry.snapshot_id == compaction.snapshot_id
    ]
    assert sorted(entries) == [
        ("b1.parquet", ManifestEntryStatus.DELETED),
        ("b2.parquet", ManifestEntryStatus.DELETED),
        ("b3.parquet", ManifestEntryStatus.ADDED),
    ]
