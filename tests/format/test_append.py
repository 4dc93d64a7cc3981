from __future__ import annotations

import re
import threading
from dataclasses import replace

import pyiceberg.table
import pytest

from icecomb.format.errors import CommitFailedError, ConfigurationError, ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.snapshot_producer import new_snapshot_id
from icecomb.format.spec.change.update import (
    Changes,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import SnapshotRef
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import commit

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))


def new_table(tmp_path, version=2, spec=BY_DAY, **properties) -> TableMetadata:
    properties = {"format-version": str(version), **properties}
    return new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(tmp_path / "t"), properties)


def data_file(name, day="mon", records=10, size=100, **fields) -> DataFile:
    return DataFile(
        file_path=f"/t/data/{name}",
        partition=(day,),
        record_count=records,
        file_size_in_bytes=size,
        **fields,
    )


def append(*files, **options) -> FastAppend:
    operation = FastAppend(IO, **options)
    for file in files:
        operation.append_data_file(file)
    return operation


def check(changes: Changes, table: TableMetadata) -> None:
    for requirement in changes.requirements:
        requirement.check(table)


def live_paths(metadata: TableMetadata, snapshot=None) -> list[str]:
    snapshot = snapshot or metadata.current_snapshot()
    return [
        entry.data_file.file_path.rpartition("/")[2]
        for manifest in read_manifests(IO, snapshot)
        for entry in read_manifest(IO, manifest, discard_deleted=True)
    ]


def metadata_files(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "t" / "metadata").iterdir())


@pytest.mark.parametrize("version", [1, 2])
def test_appends_build_on_each_other(tmp_path, version):
    table = new_table(tmp_path, version)
    first = commit(table, append(data_file("a"), data_file("b", "tue")))
    second = commit(first, append(data_file("c")))
    assert live_paths(second) == ["c", "a", "b"]
    assert live_paths(second, first.current_snapshot()) == ["a", "b"]
    snapshot = second.current_snapshot()
    assert snapshot.parent_snapshot_id == first.current_snapshot_id
    assert snapshot.sequence_number == second.last_sequence_number == (2 if version == 2 else 0)
    assert snapshot.schema_id == second.current_schema_id
    assert snapshot.timestamp_ms >= first.last_updated_ms
    numbers = [m.sequence_number for m in read_manifests(IO, snapshot)]
    assert numbers == ([2, 1] if version == 2 else [0, 0])
    assert second.refs["main"].snapshot_id == snapshot.snapshot_id


def test_the_summary_is_the_one_iceberg_java_writes(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a", records=3, size=10)))
    # of the same two appends by Iceberg Java 1.11, without its version
    assert dict(table.current_snapshot().summary) == {
        "operation": "append",
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "0",
        "added-data-files": "1",
        "added-records": "3",
        "added-files-size": "10",
        "changed-partition-count": "1",
        "total-records": "3",
        "total-files-size": "10",
        "total-data-files": "1",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    table = commit(table, append(data_file("b", "tue", records=5, size=11)))
    assert dict(table.current_snapshot().summary) == {
        "operation": "append",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "0",
        "added-data-files": "1",
        "added-records": "5",
        "added-files-size": "11",
        "changed-partition-count": "1",
        "total-records": "8",
        "total-files-size": "21",
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


@pytest.mark.parametrize("unknown", [None, "many"])
def test_a_total_that_is_not_known_is_not_made_up(tmp_path, unknown):
    table = commit(new_table(tmp_path), append(data_file("a")))
    snapshot = table.current_snapshot()
    summary = {k: v for k, v in snapshot.summary.items() if k != "total-records"}
    if unknown:
        summary["total-records"] = unknown
    table = replace(table, snapshots=(replace(snapshot, summary=summary),))
    found = commit(table, append(data_file("b"))).current_snapshot().summary
    assert "total-records" not in found
    assert found["total-data-files"] == "2"


def test_the_summary_has_the_callers_keys_and_describes_few_partitions(tmp_path):
    table = new_table(tmp_path, **{"write.summary.partition-limit": "2"})
    files = [data_file("a", "a b"), data_file("b", "a b"), data_file("c", None)]
    summary = (
        commit(table, append(*files, snapshot_properties={"x": "y"})).current_snapshot().summary
    )
    assert summary["x"] == "y"
    assert summary["changed-partition-count"] == "2"
    assert summary["partition-summaries-included"] == "true"
    assert (
        summary["partitions.day=a+b"] == "added-data-files=2,added-records=20,added-files-size=200"
    )
    assert (
        summary["partitions.day=null"] == "added-data-files=1,added-records=10,added-files-size=100"
    )
    many = [data_file(str(i), str(i)) for i in range(3)]
    summary = commit(table, append(*many)).current_snapshot().summary
    assert not [key for key in summary if key.startswith("partitions.")]


def test_files_are_named_as_iceberg_java_names_them(tmp_path):
    operation = append(data_file("a"))
    table = commit(new_table(tmp_path), operation)
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    manifest, manifest_list = metadata_files(tmp_path)
    assert re.fullmatch(rf"({uuid})-m0\.avro", manifest)
    assert manifest_list == f"snap-{table.current_snapshot_id}-1-{operation.commit_uuid}.avro"
    assert manifest == f"{operation.commit_uuid}-m0.avro"


def test_metadata_files_go_where_the_table_wants_them(tmp_path):
    table = new_table(tmp_path, **{"write.metadata.path": f"file:{tmp_path}/elsewhere/"})
    snapshot = commit(table, append(data_file("a"))).current_snapshot()
    assert snapshot.manifest_list.startswith(f"file:{tmp_path}/elsewhere/snap-")
    assert len(list((tmp_path / "elsewhere").iterdir())) == 2
    assert not (tmp_path / "t").exists()


def test_snapshot_ids_are_positive_and_different():
    ids = {new_snapshot_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(0 <= snapshot_id < 2**63 for snapshot_id in ids)


def test_a_retry_uses_the_manifests_again_and_builds_on_the_other_commit(tmp_path):
    table = new_table(tmp_path)
    late = append(data_file("late"))
    early = append(data_file("early"))
    changes = late.apply(table)
    table = commit(table, early)
    with pytest.raises(CommitFailedError):
        check(changes, table)
    written = set(metadata_files(tmp_path))
    first_id = changes.updates[0].snapshot.snapshot_id
    table = commit(table, late)
    assert live_paths(table) == ["late", "early"]
    assert table.current_snapshot_id == first_id
    new = set(metadata_files(tmp_path)) - written
    assert new == {f"snap-{first_id}-2-{late.commit_uuid}.avro"}
    manifests = read_manifests(IO, table.current_snapshot())
    assert [m.sequence_number for m in manifests] == [2, 1]
    late.clean_up(table)
    left = metadata_files(tmp_path)
    assert f"snap-{first_id}-1-{late.commit_uuid}.avro" not in left
    assert f"snap-{first_id}-2-{late.commit_uuid}.avro" in left
    assert live_paths(table) == ["late", "early"]


def test_what_was_not_committed_is_deleted_and_nothing_else(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a")))
    before = metadata_files(tmp_path)
    operation = append(data_file("b"))
    operation.apply(table)
    operation.apply(table)
    assert len(metadata_files(tmp_path)) == len(before) + 3
    operation.clean_up(None)
    assert metadata_files(tmp_path) == before
    # and it can be tried again after that
    assert live_paths(commit(table, operation)) == ["b", "a"]


def test_a_commit_that_lost_against_others_is_cleaned_up(tmp_path):
    table = new_table(tmp_path)
    operation = append(data_file("b"))
    operation.apply(table)
    other = commit(table, append(data_file("a")))
    operation.clean_up(other)
    assert live_paths(other) == ["a"]
    assert len(metadata_files(tmp_path)) == 2


def test_many_files_make_several_manifests(tmp_path):
    table = new_table(tmp_path, **{"commit.manifest.target-size-bytes": "2000"})
    files = [data_file(f"{i:0200d}") for i in range(1200)]
    table = commit(table, append(*files))
    manifests = read_manifests(IO, table.current_snapshot())
    assert len(manifests) > 1
    assert sum(m.added_files_count for m in manifests) == 1200
    assert len(set(live_paths(table))) == 1200


def test_files_of_several_specs_go_to_manifests_of_their_own(tmp_path):
    table = new_table(tmp_path)
    table = replace(table, partition_specs=(*table.partition_specs, PartitionSpec(1, ())))
    plain = replace(data_file("p"), partition=(), spec_id=1)
    table = commit(table, append(data_file("a"), plain, data_file("b")))
    found = {
        m.partition_spec_id: m.added_files_count
        for m in read_manifests(IO, table.current_snapshot())
    }
    assert found == {0: 2, 1: 1}


def test_a_path_is_added_once(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a"), data_file("a")))
    assert live_paths(table) == ["a"]
    assert table.current_snapshot().summary["added-data-files"] == "1"


@pytest.mark.parametrize(
    "file",
    [
        data_file("a", spec_id=7),
        replace(data_file("a"), partition=()),
        data_file("a", records=-1),
    ],
)
def test_a_file_that_does_not_fit_the_table_leaves_no_trace(tmp_path, file):
    with pytest.raises(ValidationError, match="a"):
        append(data_file("good"), file).apply(new_table(tmp_path))
    assert not (tmp_path / "t").exists()


def test_delete_files_are_not_appended():
    with pytest.raises(ValidationError, match="holds deletes"):
        append(data_file("a", content=DataFileContent.POSITION_DELETES))


def test_a_property_that_is_no_number_is_named(tmp_path):
    table = new_table(tmp_path)
    table = replace(table, properties={"commit.manifest.target-size-bytes": "big"})
    with pytest.raises(ConfigurationError, match="target-size-bytes"):
        append(data_file("a")).apply(table)


def test_a_new_branch_starts_where_main_is_and_others_keep_their_settings(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a")))
    ref = SnapshotRef(table.current_snapshot_id, "branch", 5, 6000, 7000)
    table = replace(table, refs={**table.refs, "dev": ref})
    table = commit(table, append(data_file("b"), branch="dev"))
    assert live_paths(table) == ["a"]
    assert live_paths(table, table.snapshot_by_name("dev")) == ["b", "a"]
    head = table.refs["dev"]
    assert (head.min_snapshots_to_keep, head.max_snapshot_age_ms, head.max_ref_age_ms) == (
        5,
        6000,
        7000,
    )
    table = commit(table, append(data_file("c"), branch="new"))
    assert live_paths(table, table.snapshot_by_name("new")) == ["c", "a"]
    assert table.snapshot_by_name("new").parent_snapshot_id == table.current_snapshot_id
    assert table.snapshot_by_name("new").summary["total-data-files"] == "2"


def test_a_tag_takes_no_commit(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a")))
    tag = SnapshotRef(table.current_snapshot_id, "tag")
    with pytest.raises(ValidationError, match="tag"):
        append(data_file("b"), branch="v1").apply(replace(table, refs={**table.refs, "v1": tag}))


def test_a_staged_snapshot_moves_no_branch(tmp_path):
    table = commit(new_table(tmp_path), append(data_file("a")))
    staged = commit(table, append(data_file("b"), stage_only=True))
    assert staged.current_snapshot_id == table.current_snapshot_id
    assert len(staged.snapshots) == 2
    assert live_paths(staged, staged.snapshots[-1]) == ["b", "a"]


def test_a_commit_to_a_dropped_and_recreated_table_is_refused(tmp_path):
    changes = append(data_file("a")).apply(new_table(tmp_path))
    other = new_table(tmp_path)
    with pytest.raises(CommitFailedError):
        check(changes, other)


def test_version_1_manifests_stay_valid_in_version_2(tmp_path):
    table = commit(new_table(tmp_path, 1), append(data_file("a")))
    late = append(data_file("late"))
    late.apply(table)
    table = update_table_metadata(table, [UpgradeFormatVersionUpdate(2)])
    table = commit(table, late)
    found = [
        (e.data_file.file_path, e.sequence_number, e.file_sequence_number)
        for m in read_manifests(IO, table.current_snapshot())
        for e in read_manifest(IO, m)
    ]
    assert found == [("/t/data/late", 1, 1), ("/t/data/a", 0, 0)]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_plans_the_files_we_appended(tmp_path, version):
    table = new_table(tmp_path, version)
    for day in ("mon", "tue", None):
        table = commit(table, append(data_file(f"{day}-1", day), data_file(f"{day}-2", day)))
    table = update_table_metadata(table, [SetPropertiesUpdate({"a": "b"})])
    path = tmp_path / "v.metadata.json"
    path.write_text(table.to_json())
    theirs = pyiceberg.table.StaticTable.from_metadata(str(path))
    assert len(list(theirs.scan().plan_files())) == 6
    (one, two) = theirs.scan(row_filter="day = 'tue'").plan_files()
    assert {one.file.file_path, two.file.file_path} == {"/t/data/tue-1", "/t/data/tue-2"}
    assert theirs.current_snapshot().summary["total-records"] == "60"
    assert theirs.inspect.manifests().num_rows == 3


def test_appends_of_several_threads_do_not_disturb_each_other(tmp_path):
    table = new_table(tmp_path)
    errors = []

    def work(name: str) -> None:
        try:
            append(data_file(name)).apply(table)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(metadata_files(tmp_path)) == 16
