"""Expiration of snapshots and the files that only they need."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from icecomb.format.errors import ConfigurationError, NoSuchSnapshotError, ValidationError
from icecomb.format.evolution.property_update import UpdateLocation
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.evolution.spec_update import UpdateSpec
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend, MergeAppend
from icecomb.format.operation.expiry.expire import Expiration, ExpireSnapshots
from icecomb.format.operation.overwrite import DeleteFiles, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.operation.snapshot_management import ManageSnapshots
from icecomb.format.spec.change.update import (
    AddSnapshotUpdate,
    RemoveSchemasUpdate,
    SetStatisticsUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.own_folders import named_folders
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import SnapshotRef
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))
DAY_MS = 24 * 3600 * 1000
NOW = int(time.time() * 1000)


class Story:
    """A table that operations change, each a day after the one before; the last one was today."""

    def __init__(self, folder, days, version=2, **properties):
        self.folder = Path(folder)
        properties = {"format-version": str(version), **properties}
        self.at = NOW - int(days * DAY_MS)
        self.metadata = new_table_metadata(
            SCHEMA, BY_DAY, UNSORTED_SORT_ORDER, str(folder), properties, now_ms=self.at
        )

    def do(self, operation):
        self.at += DAY_MS
        changes = operation.apply(self.metadata)
        updates = [
            replace(u, snapshot=replace(u.snapshot, timestamp_ms=self.at))
            if isinstance(u, AddSnapshotUpdate)
            else u
            for u in changes.updates
        ]
        self.metadata = update_table_metadata(self.metadata, updates, now_ms=self.at)
        return getattr(operation, "snapshot_id", None)

    def append(self, *names, day="mon", **options):
        operation = FastAppend(IO, **options)
        for name in names:
            operation.append_data_file(self.file(name, day))
        return self.do(operation)

    def file(self, name, day="mon", **fields):
        path = self.folder / "data" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return DataFile(
            file_path=str(path), partition=(day,), record_count=1, file_size_in_bytes=9, **fields
        )

    def delete(self, *names):
        operation = DeleteFiles(IO)
        for name in names:
            operation.delete_data_file(str(self.folder / "data" / name))
        return self.do(operation)

    def folders(self):
        return named_folders(self.metadata)

    def expire(self, change=lambda _: None):
        expire = ExpireSnapshots(self.metadata, IO, folders=self.folders)
        change(expire)
        changes = expire.apply(self.metadata)
        for requirement in changes.requirements:
            requirement.check(self.metadata)
        self.metadata = update_table_metadata(self.metadata, changes.updates)
        expire.clean_up(self.metadata)
        return expire.result

    @property
    def data(self):
        return sorted(path.name for path in (self.folder / "data").iterdir())

    @property
    def ids(self):
        return [s.snapshot_id for s in self.metadata.snapshots]

    @property
    def metadata_files(self):
        return {str(path) for path in (self.folder / "metadata").iterdir()}


def test_by_default_snapshots_older_than_five_days_expire(tmp_path):
    story = Story(tmp_path, 8.5)
    ids = [story.append(f"{n}") for n in range(8)]
    result = story.expire()
    assert result.snapshot_ids == tuple(ids[:3])
    assert story.ids == ids[3:]
    assert story.data == [f"{n}" for n in range(8)]
    assert result.files.data_files == ()
    assert len(result.files.manifest_lists) == 3


@pytest.mark.parametrize("version", [1, 2])
def test_files_that_only_expired_snapshots_need_are_deleted(tmp_path, version):
    story = Story(tmp_path, 4, version)
    ids = [story.append("a", "b"), story.append("c"), story.delete("a")]
    story.append("d")
    before = story.metadata_files
    result = story.expire(lambda e: e.retain_last(1).older_than(NOW + DAY_MS))
    assert story.data == ["b", "c", "d"]
    assert [Path(path).name for path in result.files.data_files] == ["a"]
    assert result.snapshot_ids == tuple(ids)
    assert before - story.metadata_files == {*result.files.manifests, *result.files.manifest_lists}
    assert len(result.files.manifests) == 1
    assert result.files.unreadable == ()
    assert result.problem is None


def test_a_dry_run_lists_and_changes_nothing(tmp_path):
    story = Story(tmp_path, 3)
    story.append("a")
    story.delete("a")
    story.append("b")
    before = (story.metadata, story.data, story.metadata_files)
    committed = []
    append, folders = committed.append, story.folders
    with ExpireSnapshots(story.metadata, IO, append, folders=folders, dry_run=True) as expire:
        expire.older_than(NOW + DAY_MS)
    assert committed == []
    assert (story.metadata, story.data, story.metadata_files) == before
    planned = expire.result
    assert planned == story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert planned.files.files
    assert story.data == ["b"]


def test_rewritten_manifests_keep_the_files_they_name(tmp_path):
    story = Story(tmp_path, 4, **{"commit.manifest.min-count-to-merge": "2"})
    story.append("a")
    story.append("b")
    story.do(MergeAppend(IO).append_data_file(story.file("c")))
    result = story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert story.data == ["a", "b", "c"]
    assert len(result.files.manifests) == 2
    assert len(result.snapshot_ids) == 2


def test_delete_files_and_statistics_are_deleted_too(tmp_path):
    story = Story(tmp_path, 4)
    story.append("a")
    deletes = story.file("d", content=DataFileContent.POSITION_DELETES)
    delta = story.do(RowDelta(IO).add_deletes(deletes))
    story.metadata = update_table_metadata(
        story.metadata,
        [SetStatisticsUpdate({"snapshot-id": delta, "statistics-path": f"{tmp_path}/s.stats"})],
    )
    rewrite = RewriteFiles(IO).rewrite_files([story.file("a"), deletes], [story.file("b")])
    story.do(rewrite.validate_from_snapshot(delta))
    story.append("c")
    result = story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert [Path(path).name for path in result.files.data_files] == ["a"]
    assert result.files.statistics_files == (f"{tmp_path}/s.stats",)
    assert result.files.delete_files == (deletes.file_path,)
    assert story.data == ["b", "c"]


def test_branches_and_tags_keep_their_snapshots_and_files(tmp_path):
    story = Story(tmp_path, 6)
    first = story.append("a")
    second = story.append("b")
    story.do(ManageSnapshots(story.metadata).create_tag(first, "t").create_branch(second, "dev"))
    on_branch = story.append("x", branch="dev")
    head = story.delete("a", "b")
    last = story.append("c")
    story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert story.ids == [first, on_branch, last]
    assert story.data == ["a", "b", "c", "x"]
    assert head not in story.ids
    with pytest.raises(ValidationError, match="'t' points to it"):
        ExpireSnapshots(story.metadata, IO, folders=story.folders).by_id(first)
    story.do(ManageSnapshots(story.metadata).remove_tag("t").remove_branch("dev"))
    story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert story.ids == [last]
    assert story.data == ["c"]


def test_limits_of_a_branch_go_before_those_of_the_call(tmp_path):
    story = Story(tmp_path, 6)
    ids = [story.append(f"{n}") for n in range(6)]
    story.metadata = update_table_metadata(
        story.metadata,
        ManageSnapshots(story.metadata)
        .set_min_snapshots_to_keep("main", 4)
        .apply(story.metadata)
        .updates,
    )
    story.expire(lambda e: e.older_than(NOW + DAY_MS).retain_last(1))
    assert story.ids == ids[2:]
    limited = ManageSnapshots(story.metadata).set_min_snapshots_to_keep("main", 1)
    limited.set_max_snapshot_age_ms("main", 2 * DAY_MS + DAY_MS // 2)
    story.metadata = update_table_metadata(story.metadata, limited.apply(story.metadata).updates)
    story.expire(lambda e: e.older_than(0))
    assert story.ids == ids[3:]


def test_old_references_expire_but_never_main(tmp_path):
    story = Story(tmp_path, 6, **{"history.expire.max-ref-age-ms": str(3 * DAY_MS)})
    ids = [story.append(f"{n}") for n in range(3)]
    manage = ManageSnapshots(story.metadata).create_tag(ids[0], "old")
    manage.create_tag(ids[0], "kept", max_ref_age_ms=100 * DAY_MS).create_branch(ids[1], "branch")
    story.do(manage)
    result = story.expire()
    assert result.refs == ("branch", "old")
    assert story.metadata.refs == {
        "main": SnapshotRef(ids[2]),
        "kept": story.metadata.refs["kept"],
    }


def test_the_tables_own_settings_count(tmp_path):
    story = Story(
        tmp_path,
        6,
        **{
            "history.expire.max-snapshot-age-ms": str(DAY_MS // 2),
            "history.expire.min-snapshots-to-keep": "3",
        },
    )
    ids = [story.append(f"{n}") for n in range(6)]
    story.expire()
    assert story.ids == ids[3:]
    story.metadata = replace(
        story.metadata, properties={"history.expire.min-snapshots-to-keep": "few"}
    )
    with pytest.raises(ConfigurationError, match="few"):
        story.expire()


def test_given_ids_alone_expire_alone(tmp_path):
    story = Story(tmp_path, 9)
    ids = [story.append(f"{n}") for n in range(4)]
    result = story.expire(lambda e: e.by_ids([ids[1], ids[2]]))
    assert result.snapshot_ids == (ids[1], ids[2])
    assert story.ids == [ids[0], ids[3]]
    assert story.data == ["0", "1", "2", "3"]
    with pytest.raises(NoSuchSnapshotError):
        ExpireSnapshots(story.metadata, IO, folders=story.folders).by_id(ids[1])
    with pytest.raises(ValidationError, match="'main' points to it"):
        ExpireSnapshots(story.metadata, IO, folders=story.folders).by_id(ids[3])


def test_snapshots_under_no_reference_expire_by_age(tmp_path):
    story = Story(tmp_path, 4)
    story.append("a")
    staged_old = story.append("staged", stage_only=True)
    main = story.append("b")
    staged_new = story.append("young", stage_only=True)
    limit = datetime.fromtimestamp((NOW - DAY_MS // 2) / 1000, timezone.utc)
    story.expire(lambda e: e.older_than(limit))
    assert story.ids == [main, staged_new]
    assert staged_old not in story.ids
    assert story.data == ["a", "b", "young"]


def test_a_rolled_back_snapshot_goes_with_its_files(tmp_path):
    story = Story(tmp_path, 4)
    first = story.append("a")
    story.append("wrong")
    story.do(ManageSnapshots(story.metadata).rollback_to_snapshot(first))
    story.append("b")
    story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert story.data == ["a", "b"]


def test_a_picked_snapshot_keeps_its_files_when_the_source_expires(tmp_path):
    story = Story(tmp_path, 5)
    story.append("a")
    staged = story.append("staged", stage_only=True)
    story.append("b")
    story.do(ManageSnapshots(story.metadata, IO).cherry_pick(staged))
    story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert len(story.ids) == 1
    assert story.data == ["a", "b", "staged"]


def test_tables_that_share_files_are_left_alone(tmp_path):
    story = Story(tmp_path, 9, **{"gc.enabled": "false"})
    story.append("a")
    for call in (lambda e: e.plan(), lambda e: e.apply(story.metadata)):
        with pytest.raises(ValidationError, match=r"gc\.enabled"):
            call(ExpireSnapshots(story.metadata, IO, folders=story.folders))


def test_files_stay_when_told(tmp_path):
    story = Story(tmp_path, 3)
    story.append("a")
    story.delete("a")
    story.append("b")
    before = story.metadata_files
    result = story.expire(lambda e: e.older_than(NOW + DAY_MS).clean_expired_files(clean=False))
    assert story.data == ["a", "b"]
    assert story.metadata_files == before
    assert result == Expiration(result.snapshot_ids)


def test_nothing_is_deleted_when_a_manifest_that_stays_cannot_be_read(tmp_path):
    story = Story(tmp_path, 3)
    story.append("a")
    story.delete("a")
    head = story.append("b")
    kept = story.metadata.snapshot_by_id(head).manifest_list
    Path(kept).rename(f"{kept}.lost")
    before = (story.data, story.metadata_files)
    result = story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert (story.data, story.metadata_files) == before
    assert result.files.files == ()
    assert kept in result.problem


def test_what_an_unreadable_expired_manifest_named_stays_and_is_reported(tmp_path):
    story = Story(tmp_path, 4)
    first = story.append("a")
    story.delete("a")
    story.append("b")
    story.delete("b")
    lost = story.metadata.snapshot_by_id(first).manifest_list
    Path(lost).write_bytes(b"broken")
    result = story.expire(lambda e: e.older_than(NOW + DAY_MS))
    assert result.files.unreadable == (lost,)
    assert len(story.ids) == 1
    assert story.data == ["a"]


def test_schemas_and_specs_that_nothing_needs_can_go_too(tmp_path):
    story = Story(tmp_path, 5)
    story.append("a")
    story.do(UpdateSchema(story.metadata).add_column("x", LongType()))
    story.do(UpdateSpec(story.metadata).add_field("id", "bucket[2]"))
    story.do(UpdateSpec(story.metadata).add_field("id", "truncate[2]"))
    story.do(FastAppend(IO))
    story.expire(lambda e: e.older_than(NOW + DAY_MS).clean_expired_metadata(clean=True))
    assert [s.schema_id for s in story.metadata.schemas] == [1]
    assert [s.spec_id for s in story.metadata.partition_specs] == [0, 2]


@pytest.mark.parametrize("by_others", [False, True], ids=["here", "by Iceberg Java"])
def test_files_partitioned_by_a_dropped_column_stay_so_when_metadata_is_cleaned(
    tmp_path, by_others
):
    story = Story(tmp_path, 8)
    story.do(UpdateSchema(story.metadata).add_column("n", LongType()))
    story.do(UpdateSpec(story.metadata).add_field("n", "identity"))
    files = [replace(story.file(n), partition=("mon", 7), spec_id=1) for n in "ab"]
    story.do(FastAppend(IO).append_data_file(files[0]).append_data_file(files[1]))
    story.do(UpdateSpec(story.metadata).remove_field("n"))
    story.do(UpdateSchema(story.metadata).add_column("m", LongType()))
    story.do(UpdateSchema(story.metadata).delete_column("n"))
    story.append("c")
    story.expire(lambda e: e.older_than(NOW + DAY_MS).clean_expired_metadata(clean=True))
    assert [s.schema_id for s in story.metadata.schemas] == [2, 3]
    if by_others:  # RemoveSnapshots.cleanExpiredMetadata keeps the schemas of snapshots only
        story.metadata = update_table_metadata(story.metadata, (RemoveSchemasUpdate((2,)),))
    story.delete("a")  # which writes the manifest of the old spec anew
    (manifest,) = [
        m for m in read_manifests(IO, story.metadata.current_snapshot()) if m.partition_spec_id == 1
    ]
    spec = story.metadata.spec_by_id(1)
    left = [e for e in read_manifest(IO, manifest, spec=spec) if e.data_file == files[1]]
    assert [e.data_file.partition for e in left] == [("mon", 7)]


def test_the_schema_of_a_dropped_column_stays_while_rows_are_deleted_by_it(tmp_path):
    story = Story(tmp_path, 8)
    story.do(UpdateSchema(story.metadata).add_column("n", LongType()))
    deletes = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": (3,)}
    story.append("a")
    story.do(RowDelta(IO).add_deletes(story.file("d", **deletes)))
    story.do(UpdateSchema(story.metadata).delete_column("n"))
    story.append("b")
    story.expire(lambda e: e.older_than(NOW + DAY_MS).clean_expired_metadata(clean=True))
    assert story.metadata.current_schema_id == 0  # without the column, as at first
    assert [s.schema_id for s in story.metadata.schemas] == [0, 1]
    assert story.metadata.schema_with(3).find_type(3) == LongType()


def test_an_expiration_is_worked_out_again_on_a_newer_base(tmp_path):
    story = Story(tmp_path, 4)
    first = story.append("a")
    second = story.append("b")
    expire = (
        ExpireSnapshots(story.metadata, IO, folders=story.folders)
        .older_than(NOW + DAY_MS)
        .by_id(first)
    )
    assert expire.apply(story.metadata).updates
    story.do(ManageSnapshots(story.metadata).create_tag(second, "t"))
    third = story.append("c")
    metadata = update_table_metadata(story.metadata, expire.apply(story.metadata).updates)
    assert [s.snapshot_id for s in metadata.snapshots] == [second, third]
    story.do(ManageSnapshots(story.metadata).create_tag(first, "first"))
    with pytest.raises(ValidationError, match="'first' points to it"):
        expire.apply(story.metadata)
    expire.clean_up(None)
    assert story.data == ["a", "b", "c"]


def test_an_empty_table_has_nothing_to_expire(tmp_path):
    story = Story(tmp_path, 1)
    assert story.expire() == Expiration()
    with pytest.raises(ValidationError, match="must be 1 to"):
        ExpireSnapshots(story.metadata, IO, folders=story.folders).retain_last(0)


def test_files_outside_of_the_tables_folders_are_left_and_told(tmp_path, caplog):
    """A path in metadata may be anybody's."""
    home, old = tmp_path / "home", tmp_path / "old"
    home.mkdir()
    old.mkdir()
    (tmp_path / "t").mkdir()
    story = Story(tmp_path / "t", days=10)
    paths = [str(each / "thesis.odt") for each in (home, old)]
    append, removal = FastAppend(IO), DeleteFiles(IO)
    for path in paths:
        Path(path).touch()
        append.append_data_file(replace(story.file("a"), file_path=path))
        removal.delete_data_file(path)
    story.do(append.append_data_file(story.file("a")))
    story.do(removal)
    story.delete("a")
    story.append("b")
    plan = ExpireSnapshots(story.metadata, IO, folders=story.folders).retain_last(1).plan()
    assert plan.files.data_files == (str(tmp_path / "t/data/a"),)
    assert list(plan.outside) == paths
    [said] = [one.getMessage() for one in caplog.records]
    assert f"2 files outside of the table's folders: {home} (1), {old} (1)" in said
    found = story.expire(lambda expire: expire.retain_last(1))
    assert (list(found.outside), len(found.files.data_files)) == (paths, 1)
    assert (home / "thesis.odt").exists()
    assert (old / "thesis.odt").exists()
    assert story.data == ["b"]


def test_files_in_a_folder_that_was_the_tables_are_deleted(tmp_path):
    (tmp_path / "t").mkdir()
    story = Story(tmp_path / "t", days=10)
    story.append("a")
    story.do(UpdateLocation(str(tmp_path / "u")))
    story.delete("a")
    found = story.expire(lambda expire: expire.retain_last(1))
    assert (found.outside, story.data) == ((), [])
