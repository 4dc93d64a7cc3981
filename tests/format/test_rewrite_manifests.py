"""Rewriting manifests: fewer manifests, the same files with the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyiceberg.table
import pytest

from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    SetDefaultSpecUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DoubleType, LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import append, commit

IO = FileIO()
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "day", StringType()),
        NestedField(3, "weight", DoubleType()),
    )
)
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))
BY_WEIGHT = PartitionSpec(0, (PartitionField(3, 1000, parse_transform("identity"), "weight"),))
DELETES = ManifestContent.DELETES


def new_table(tmp_path, version=2, spec=BY_DAY, **properties):
    properties = {"format-version": str(version), **properties}
    return new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(tmp_path / "t"), properties)


def file(name, day="mon", **fields) -> DataFile:
    return DataFile(
        file_path=f"/t/data/{name}",
        partition=(day,),
        record_count=10,
        file_size_in_bytes=100,
        column_sizes={1: 9},
        lower_bounds={1: b"\x01" + bytes(7)},
        **fields,
    )


def deletes(name, day="mon") -> DataFile:
    return replace(file(name, day), content=DataFileContent.POSITION_DELETES, record_count=1)


def delete_rows(base, *files):
    operation = RowDelta(IO)
    for added in files:
        operation.add_deletes(added)
    return commit(base, operation)


def five_appends(base):
    for name, day in (("t1", "tue"), ("m1", "mon"), ("n", None), ("m2", "mon"), ("w", "wed")):
        base = append(base, file(name, day))
    return base


def manifests(metadata):
    return read_manifests(IO, metadata.current_snapshot())


def names(manifest) -> list[str]:
    entries = read_manifest(IO, manifest, discard_deleted=True)
    return [entry.data_file.file_path.rpartition("/")[2] for entry in entries]


def listed(metadata) -> list[list[str]]:
    return [names(manifest) for manifest in manifests(metadata)]


def live(metadata):
    """All that a scan depends on, by path."""
    return {
        entry.data_file: (
            entry.data_file,
            entry.snapshot_id,
            entry.sequence_number,
            entry.file_sequence_number,
        )
        for manifest in manifests(metadata)
        for entry in read_manifest(IO, manifest, discard_deleted=True)
    }


def summary(metadata):
    return dict(metadata.current_snapshot().summary)


@pytest.mark.parametrize("version", [1, 2])
def test_entries_are_sorted_by_partition_and_keep_their_numbers(tmp_path, version):
    before = five_appends(new_table(tmp_path, version))
    after = commit(before, RewriteManifests(IO))
    assert listed(before) == [["w"], ["m2"], ["n"], ["m1"], ["t1"]]
    assert listed(after) == [["n", "m2", "m1", "t1", "w"]]
    assert live(after) == live(before)
    (manifest,) = manifests(after)
    assert {e.status for e in read_manifest(IO, manifest)} == {ManifestEntryStatus.EXISTING}
    assert manifest.added_snapshot_id == after.current_snapshot_id
    assert manifest.sequence_number == (6 if version == 2 else 0)
    assert manifest.min_sequence_number == (1 if version == 2 else 0)
    assert (manifest.added_files_count, manifest.existing_files_count) == (0, 5)


def test_the_summary_says_what_was_done_and_keeps_the_totals(tmp_path):
    before = five_appends(new_table(tmp_path))
    after = commit(before, RewriteManifests(IO, {"app": "x"}))
    totals = {key: value for key, value in summary(before).items() if key.startswith("total-")}
    assert summary(after) == {
        "operation": "replace",
        "app": "x",
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "5",
        "entries-processed": "5",
        "changed-partition-count": "0",
        **totals,
    }
    assert totals["total-data-files"] == "5"
    assert after.current_snapshot().parent_snapshot_id == before.current_snapshot_id


def test_what_was_deleted_is_not_carried_on(tmp_path):
    table = five_appends(new_table(tmp_path))
    table = commit(table, DeleteFiles(IO).delete_data_file("/t/data/m1"))
    after = commit(table, RewriteManifests(IO))
    assert listed(after) == [["n", "m2", "t1", "w"]]
    assert [e for m in manifests(after) for e in read_manifest(IO, m) if not e.is_live] == []


def test_manifests_that_hold_only_deleted_files_vanish(tmp_path):
    table = append(new_table(tmp_path), file("a"))
    table = commit(table, DeleteFiles(IO).delete_data_file("/t/data/a"))
    after = commit(table, RewriteManifests(IO))
    assert listed(after) == []
    assert summary(after)["manifests-replaced"] == "1"
    assert summary(after)["entries-processed"] == "0"


def test_data_and_delete_manifests_are_rewritten_apart(tmp_path):
    table = five_appends(new_table(tmp_path))
    table = delete_rows(delete_rows(table, deletes("d2", "tue")), deletes("d1"))
    after = commit(table, RewriteManifests(IO))
    assert {m.content: names(m) for m in manifests(after)} == {
        ManifestContent.DATA: ["n", "m2", "m1", "t1", "w"],
        ManifestContent.DELETES: ["d1", "d2"],
    }
    assert live(after) == live(table)

    def planned(metadata):
        return {t.file: t.delete_files for t in TableScan(metadata, IO).plan_files()}

    assert planned(after) == planned(table)
    assert summary(after)["total-delete-files"] == "2"


def test_each_partition_spec_keeps_manifests_of_its_own(tmp_path):
    table = append(append(new_table(tmp_path), file("a")), file("b"))
    spec = PartitionSpec(1, (PartitionField(1, 1001, parse_transform("bucket[4]"), "id_bucket"),))
    updates = (AddPartitionSpecUpdate(spec), SetDefaultSpecUpdate(-1))
    table = update_table_metadata(table, updates)
    for name in "cd":
        table = append(table, replace(file(name), partition=(3,), spec_id=1))
    after = commit(table, RewriteManifests(IO))
    assert {m.partition_spec_id: sorted(names(m)) for m in manifests(after)} == {
        0: ["a", "b"],
        1: ["c", "d"],
    }
    assert live(after) == live(table)


def test_manifests_are_about_as_large_as_the_property_says(tmp_path):
    target = 80_000
    properties = {
        "commit.manifest.target-size-bytes": str(target),
        "write.manifest.compression-codec": "uncompressed",
    }
    table = new_table(tmp_path, **properties)
    for day in "abc":
        table = append(table, *(file(f"{day}{n:04}" + "x" * 50, day) for n in range(1000)))
    after = commit(table, RewriteManifests(IO))
    sizes = [m.manifest_length for m in manifests(after)]
    assert len(sizes) > 2
    # whole blocks count, and they are counted every 250 entries
    assert all(target <= size < 2 * target for size in sizes[:-1])
    order = [name for found in listed(after) for name in found]
    assert [name[0] for name in order] == sorted(name[0] for name in order)
    assert live(after) == live(table)


def test_few_files_are_shared_out_where_one_manifest_is_too_large(tmp_path):
    """Iceberg: `TestRewriteManifestsProcedure.testRewriteLargeManifests`."""
    table = new_table(tmp_path, **{"commit.manifest.target-size-bytes": "1"})
    table = append(table, *(file(name, day) for name, day in zip("abcd", "abcd", strict=True)))
    after = commit(table, RewriteManifests(IO))
    assert listed(after) == [["a"], ["b"], ["c"], ["d"]]
    assert live(after) == live(table)
    assert (summary(after)["manifests-replaced"], summary(after)["manifests-created"]) == ("1", "4")


def test_partition_values_that_do_not_compare_are_sorted_too(tmp_path):
    values = {"nan": float("nan"), "none": None, "two": 2.0, "minus": -1.5}
    table = new_table(tmp_path, spec=BY_WEIGHT)
    for name, value in values.items():
        table = append(table, replace(file(name), partition=(value,)))
    assert listed(commit(table, RewriteManifests(IO))) == [["none", "minus", "two", "nan"]]


def test_a_key_gives_each_cluster_its_own_manifests(tmp_path):
    before = five_appends(new_table(tmp_path))
    operation = RewriteManifests(IO).cluster_by(lambda found: found.partition[0] == "mon")
    after = commit(before, operation)
    assert sorted(map(sorted, listed(after))) == [["m1", "m2"], ["n", "t1", "w"]]
    assert live(after) == live(before)


def test_only_chosen_manifests_are_rewritten(tmp_path):
    before = five_appends(new_table(tmp_path))
    large = max(m.sequence_number for m in manifests(before))
    operation = RewriteManifests(IO).rewrite_if(lambda m: m.sequence_number < large)
    after = commit(before, operation)
    assert listed(after) == [["n", "m2", "m1", "t1"], ["w"]]
    assert manifests(after)[1] == manifests(before)[0]
    assert summary(after)["manifests-kept"] == "1"
    assert summary(after)["manifests-replaced"] == "4"


@pytest.mark.parametrize(
    "prepare",
    [
        lambda table: table,
        lambda table: append(table, file("a"), file("b", "tue")),
        lambda table: commit(five_appends(table), RewriteManifests(IO)),
    ],
    ids=["empty", "one manifest", "rewritten already"],
)
def test_no_snapshot_is_made_where_nothing_can_be_improved(tmp_path, prepare):
    table = prepare(new_table(tmp_path))
    assert commit(table, RewriteManifests(IO)) is table


def files_of(tmp_path) -> set[str]:
    return {path.name for path in Path(tmp_path / "t" / "metadata").glob("*.avro")}


def test_a_retry_keeps_what_others_added_and_writes_no_manifest_again(tmp_path):
    table = five_appends(new_table(tmp_path))
    operation = RewriteManifests(IO)
    operation.apply(table)
    written = {name for name in files_of(tmp_path) if "-m" in name}
    overtaken = append(table, file("new"))
    (others,) = {name for name in files_of(tmp_path) if "-m" in name} - written
    after = commit(overtaken, operation)
    assert {name for name in files_of(tmp_path) if "-m" in name} == written | {others}
    assert listed(after) == [["n", "m2", "m1", "t1", "w"], ["new"]]
    assert live(after) == live(overtaken)
    assert summary(after)["manifests-kept"] == "1"
    before = files_of(tmp_path)
    operation.clean_up(after)
    # the list of the first attempt goes
    (unused,) = before - files_of(tmp_path)
    assert unused.startswith(f"snap-{after.current_snapshot_id}-1-")


def test_a_retry_starts_again_when_a_rewritten_manifest_was_replaced_by_others(tmp_path):
    table = five_appends(new_table(tmp_path))
    operation = RewriteManifests(IO)
    operation.apply(table)
    overtaken = commit(table, DeleteFiles(IO).delete_data_file("/t/data/m1"))
    after = commit(overtaken, operation)
    assert listed(after) == [["n", "m2", "t1", "w"]]
    assert live(after) == live(overtaken)
    operation.clean_up(after)
    referenced = {Path(m.manifest_path).name for m in manifests(after)}
    own = {name for name in files_of(tmp_path) if name.startswith(operation.commit_uuid)}
    assert own == referenced


def test_two_rewrites_at_once_lose_nothing(tmp_path):
    table = five_appends(new_table(tmp_path))
    first, second = RewriteManifests(IO), RewriteManifests(IO)
    first.apply(table)
    between = commit(table, second)
    assert commit(between, first) is between
    assert live(between) == live(table)


def test_nothing_is_left_of_a_rewrite_that_failed(tmp_path):
    table = five_appends(new_table(tmp_path))
    before = files_of(tmp_path)
    operation = RewriteManifests(IO)
    operation.apply(table)
    operation.clean_up(None)
    assert files_of(tmp_path) == before
    assert live(commit(table, operation)) == live(table)


def test_a_branch_can_be_rewritten(tmp_path):
    table = append(append(new_table(tmp_path), file("a")), file("b"))
    table = append(append(table, file("c"), branch="audit"), file("d"), branch="audit")
    after = commit(table, RewriteManifests(IO, branch="audit"))
    assert after.current_snapshot_id == table.current_snapshot_id
    (manifest,) = read_manifests(IO, after.snapshot_by_name("audit"))
    assert sorted(names(manifest)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_rewritten_manifests(tmp_path, version):
    table = five_appends(new_table(tmp_path, version))
    if version == 2:
        table = delete_rows(delete_rows(table, deletes("d1")), deletes("d2", "tue"))
    table = commit(table, RewriteManifests(IO))
    path = tmp_path / "v.metadata.json"
    path.write_text(table.to_json())
    theirs = pyiceberg.table.StaticTable.from_metadata(str(path))
    found = {
        entry["data_file"]["file_path"].rpartition("/")[2]: (
            entry["status"],
            entry["snapshot_id"],
            entry["sequence_number"],
        )
        for entry in theirs.inspect.entries().to_pylist()
    }
    assert found == {
        data_file.file_path.rpartition("/")[2]: (0, snapshot_id, sequence_number)
        for data_file, snapshot_id, sequence_number, _ in live(table).values()
    }
    planned = {
        task.file.file_path.rpartition("/")[2]: len(task.delete_files)
        for task in theirs.scan("day in ('mon', 'tue')").plan_files()
    }
    expected = int(version == 2)
    assert planned == {"m1": expected, "m2": expected, "t1": expected}
