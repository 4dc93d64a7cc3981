"""Changes of table metadata, and the requirements of commits."""

import json
import time
import uuid
from dataclasses import fields, replace

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from icecomb.format.errors import CommitFailedError, UnsupportedError, ValidationError
from icecomb.format.spec.change.requirement import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
)
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    Changes,
    RemovePartitionSpecsUpdate,
    RemovePropertiesUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPartitionStatisticsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot, SnapshotLogEntry
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, SortField, SortOrder
from icecomb.format.spec.transform import BucketTransform, IdentityTransform, VoidTransform
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType

SCHEMA = Schema((NestedField(1, "id", LongType(), True), NestedField(2, "city", StringType())))
WIDER = Schema((*SCHEMA.fields, NestedField(3, "n", IntegerType())))
NOW = 1_700_000_000_000


def table(version="2", **properties):
    return new_table_metadata(
        SCHEMA,
        UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        "/t",
        {"format-version": version, **properties},
        now_ms=NOW,
    )


def snapshot(number, parent=None, *, at=None, sequence=None):
    return Snapshot(
        number,
        parent,
        number if sequence is None else sequence,
        NOW + number * 10 if at is None else at,
        f"/t/metadata/snap-{number}.avro",
        {"operation": "append"},
        0,
    )


def appended(metadata, number, **arguments):
    parent = metadata.current_snapshot_id
    return update_table_metadata(metadata, append(number, parent, **arguments), now_ms=NOW)


def append(number, parent=None, **arguments):
    return (
        AddSnapshotUpdate(snapshot(number, parent, **arguments)),
        SetSnapshotRefUpdate("main", "branch", number),
    )


def test_no_change_gives_the_same_metadata():
    base = table(owner="me")
    updates = (
        SetPropertiesUpdate({"owner": "me"}),
        RemovePropertiesUpdate(("absent",)),
        SetLocationUpdate("/t"),
        AddSchemaUpdate(SCHEMA),
        SetCurrentSchemaUpdate(-1),
        UpgradeFormatVersionUpdate(2),
        RemoveSnapshotRefUpdate("absent"),
        RemoveSnapshotsUpdate((7,)),
    )
    assert update_table_metadata(base, updates, base_location="/t/metadata/1.json") is base


def test_an_append_moves_main_and_is_logged():
    base = table()
    metadata = appended(appended(base, 1), 2)
    assert metadata.current_snapshot() == snapshot(2, 1)
    assert metadata.refs["main"].snapshot_id == 2
    assert metadata.last_sequence_number == 2
    assert metadata.last_updated_ms == NOW + 20
    assert metadata.snapshot_log == (SnapshotLogEntry(1, NOW + 10), SnapshotLogEntry(2, NOW + 20))
    assert base.snapshots == ()
    peer = TableMetadataUtil.parse_raw(metadata.to_json())
    assert [s.snapshot_id for s in peer.snapshots] == [1, 2]
    assert TableMetadata.from_json(metadata.to_json()) == metadata


def test_an_append_does_not_decode_the_history():
    metadata = table()
    for number in range(1, 6):
        metadata = appended(metadata, number)
    read = TableMetadata.from_json(metadata.to_json())
    following = appended(read, 6)
    kept = following.snapshots._items[:5]
    assert all(new is old for new, old in zip(kept, read.snapshots._items, strict=True))
    assert all(type(item) is dict for item in kept)


def test_the_log_leaves_out_what_was_current_only_within_one_commit():
    metadata = update_table_metadata(table(), (*append(1), *append(2, 1)), now_ms=NOW)
    assert metadata.snapshot_log == (SnapshotLogEntry(2, NOW + 20),)
    assert [s.snapshot_id for s in metadata.snapshots] == [1, 2]


def test_the_log_is_cut_after_a_removed_snapshot():
    metadata = table()
    for number in (1, 2, 3, 4):
        metadata = appended(metadata, number)
    without = update_table_metadata(metadata, (RemoveSnapshotsUpdate((2,)),), now_ms=NOW)
    assert [s.snapshot_id for s in without.snapshots] == [1, 3, 4]
    assert [e.snapshot_id for e in without.snapshot_log] == [3, 4]
    assert without.snapshot_by_id(2) is None


def test_branches_and_tags_go_with_the_snapshot_they_point_to():
    metadata = appended(appended(table(), 1), 2)
    tagged = update_table_metadata(
        metadata,
        (SetSnapshotRefUpdate("v1", "tag", 1), SetSnapshotRefUpdate("b", "branch", 1)),
    )
    without = update_table_metadata(tagged, (RemoveSnapshotsUpdate((1,)),), now_ms=NOW)
    assert without.refs.keys() == {"main"}
    assert without.current_snapshot_id == 2
    assert TableMetadata.from_json(without.to_json()) == without


def test_a_table_whose_current_snapshot_is_removed_is_empty():
    metadata = appended(appended(table(), 1), 2)
    empty = update_table_metadata(metadata, (RemoveSnapshotsUpdate((2,)),), now_ms=NOW)
    assert empty.current_snapshot() is None
    assert empty.refs == {}
    assert empty.snapshot_log == ()
    assert [s.snapshot_id for s in empty.snapshots] == [1]
    assert TableMetadata.from_json(empty.to_json()) == empty


def test_a_rollback_is_logged_with_its_own_time():
    metadata = appended(appended(table(), 1), 2)
    back = update_table_metadata(
        metadata, (SetSnapshotRefUpdate("main", "branch", 1),), now_ms=NOW + 500
    )
    assert back.current_snapshot_id == 1
    assert back.snapshot_log[-1] == SnapshotLogEntry(1, NOW + 500)
    assert back.last_updated_ms == NOW + 500


def test_a_clock_that_is_behind_never_moves_a_log_back():
    metadata = appended(table(), 1, at=NOW + 100_000)
    following = appended(metadata, 2, at=NOW - 100_000)
    times = [e.timestamp_ms for e in following.snapshot_log]
    assert times == sorted(times)
    assert following.last_updated_ms >= metadata.last_updated_ms


def test_changes_within_a_millisecond_have_times_of_their_own(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: NOW * 1_000_000)
    metadata, times = table(), []
    for n in range(3):
        metadata = update_table_metadata(metadata, (SetPropertiesUpdate({"n": str(n)}),))
        times.append(metadata.last_updated_ms)
    assert len(set(times)) == 3
    assert times == sorted(times)


def test_branches_and_tags_leave_main_alone():
    metadata = appended(appended(table(), 1), 2)
    changed = update_table_metadata(
        metadata,
        (
            AddSnapshotUpdate(snapshot(3, 1)),
            SetSnapshotRefUpdate("audit", "branch", 3, 1000, 2000, 3),
            SetSnapshotRefUpdate("v1", "tag", 1, 1000),
        ),
    )
    assert changed.current_snapshot_id == 2
    assert changed.snapshot_by_name("audit").snapshot_id == 3
    assert changed.refs["audit"].min_snapshots_to_keep == 3
    assert changed.snapshot_log == metadata.snapshot_log
    assert TableMetadata.from_json(changed.to_json()).refs == changed.refs
    removed = update_table_metadata(changed, (RemoveSnapshotRefUpdate("audit"),))
    assert sorted(removed.refs) == ["main", "v1"]


def test_without_main_the_table_is_empty_and_remembers():
    metadata = update_table_metadata(appended(table(), 1), (RemoveSnapshotRefUpdate("main"),))
    assert metadata.current_snapshot() is None
    assert [s.snapshot_id for s in metadata.snapshots] == [1]
    assert TableMetadata.from_json(metadata.to_json()).current_snapshot_id is None


@pytest.mark.parametrize(
    "updates",
    [
        (AddSnapshotUpdate(snapshot(1)),),
        (*append(5, 1), AddSnapshotUpdate(snapshot(5, 1, sequence=9))),
        (SetSnapshotRefUpdate("main", "branch", 9),),
        (SetSnapshotRefUpdate("main", "tag", 1),),
        (SetSnapshotRefUpdate("v", "tag", 1, None, 5),),
        (SetSnapshotRefUpdate("v", "branch", 1, 0),),
        (SetCurrentSchemaUpdate(7),),
        (SetCurrentSchemaUpdate(-1),),
        (SetDefaultSpecUpdate(7),),
        (SetDefaultSpecUpdate(-1),),
        (SetDefaultSortOrderUpdate(7),),
        (SetPropertiesUpdate({"uuid": "x"}),),
        (SetPropertiesUpdate({"a": None}),),
        (UpgradeFormatVersionUpdate(1),),
        (RemoveSchemasUpdate((0,)),),
        (RemovePartitionSpecsUpdate((0,)),),
        (
            AddPartitionSpecUpdate(
                PartitionSpec(1, (PartitionField(9, 1000, IdentityTransform(), "x"),))
            ),
        ),
        (AddSortOrderUpdate(SortOrder(1, (SortField(9),))),),
        (SetStatisticsUpdate({"statistics-path": "/x"}),),
        (SetPropertiesUpdate({"write.metadata.previous-versions-max": "many"}),),
    ],
)
def test_a_change_that_does_not_fit_is_refused(updates):
    base = appended(table(), 1)
    with pytest.raises(ValidationError):
        update_table_metadata(base, updates, base_location="/t/metadata/1.json")


def test_a_stale_sequence_number_is_a_conflict():
    metadata = appended(appended(table(), 1), 2)
    with pytest.raises(CommitFailedError):
        appended(metadata, 3, sequence=2)


def test_version_1_counts_no_sequence_numbers():
    metadata = appended(appended(table("1"), 1, sequence=0), 2, sequence=0)
    assert metadata.last_sequence_number == 0
    assert "sequence-number" not in metadata.to_json()


def test_a_version_1_table_is_upgraded_in_place():
    old = appended(table("1"), 1, sequence=0)
    old = replace(old, table_uuid=None)
    new = update_table_metadata(old, (UpgradeFormatVersionUpdate(2),))
    out = json.loads(new.to_json())
    assert out["format-version"] == 2
    assert out["last-sequence-number"] == 0
    assert new.table_uuid is not None
    assert "schema" not in out
    assert new.snapshots == old.snapshots
    TableMetadataUtil.parse_raw(new.to_json())
    assert appended(TableMetadata.from_json(new.to_json()), 2, sequence=1).last_sequence_number == 1


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_upgrade_to_version_3_begins_row_ids_at_0_and_changes_nothing_else(version):
    old = appended(table(version), 1, sequence=0 if version == "1" else 1)
    old = replace(old, extra={"next-row-id": 7, "more": [1]})
    new = update_table_metadata(old, (UpgradeFormatVersionUpdate(3),))
    assert (new.format_version, new.next_row_id, new.extra) == (3, 0, {"more": [1]})
    assert new.snapshots == old.snapshots
    changed = {"format_version", "extra", "last_updated_ms"}
    assert {f.name for f in fields(new) if getattr(new, f.name) != getattr(old, f.name)} <= changed
    assert json.loads(new.to_json())["next-row-id"] == 0
    with pytest.raises(ValidationError, match="go back"):
        update_table_metadata(new, (UpgradeFormatVersionUpdate(2),))


def test_an_upgrade_to_version_4_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="v4"):
        update_table_metadata(table(), (UpgradeFormatVersionUpdate(4),))


def with_rows(number, first, rows, parent=None):
    return replace(snapshot(number, parent), first_row_id=first, added_rows=rows)


def test_snapshots_of_version_3_move_the_next_row_id():
    base = table("3")
    first = update_table_metadata(base, (AddSnapshotUpdate(with_rows(1, 0, 5)),))
    assert first.next_row_id == 5
    # also two of one transaction, and one that takes no ids
    rest = (AddSnapshotUpdate(with_rows(2, 5, 0, 1)), AddSnapshotUpdate(with_rows(3, 5, 2, 2)))
    assert update_table_metadata(first, rest).next_row_id == 7


def test_a_snapshot_whose_row_ids_are_taken_is_to_be_made_again():
    base = update_table_metadata(table("3"), (AddSnapshotUpdate(with_rows(1, 0, 5)),))
    with pytest.raises(CommitFailedError, match=r"first-row-id 4 .* below .* next-row-id 5"):
        update_table_metadata(base, (AddSnapshotUpdate(with_rows(2, 4, 1, 1)),))


def test_a_snapshot_of_an_older_version_does_not_fit_a_table_of_version_3():
    with pytest.raises(ValidationError, match="no first-row-id"):
        update_table_metadata(table("3"), (AddSnapshotUpdate(snapshot(1)),))


def test_row_ids_end_at_the_largest_long():
    with pytest.raises(ValidationError, match="Next-row-id"):
        update_table_metadata(table("3"), (AddSnapshotUpdate(with_rows(1, 2**63 - 1, 1)),))


def test_a_schema_is_added_under_the_next_id_and_used_again():
    first = update_table_metadata(table(), (AddSchemaUpdate(WIDER), SetCurrentSchemaUpdate(-1)))
    assert first.current_schema_id == 1
    assert first.last_column_id == 3
    back = update_table_metadata(first, (AddSchemaUpdate(SCHEMA), SetCurrentSchemaUpdate(-1)))
    assert back.current_schema_id == 0
    assert [s.schema_id for s in back.schemas] == [0, 1]
    assert back.last_column_id == 3
    cleaned = update_table_metadata(back, (RemoveSchemasUpdate((1,)),))
    assert [s.schema_id for s in cleaned.schemas] == [0]


def test_a_spec_is_added_under_the_next_id_and_used_again():
    spec = PartitionSpec(0, (PartitionField(1, 1000, BucketTransform(4), "id_bucket"),))
    updates = (AddPartitionSpecUpdate(spec), SetDefaultSpecUpdate(-1))
    metadata = update_table_metadata(table(), updates)
    assert metadata.default_spec_id == 1
    assert metadata.last_partition_id == 1000
    again = update_table_metadata(metadata, updates)
    assert again is metadata


def test_version_1_needs_partition_field_ids_without_gaps():
    gap = PartitionSpec(1, (PartitionField(1, 1001, BucketTransform(4), "b"),))
    with pytest.raises(ValidationError, match="1000, 1001"):
        update_table_metadata(table("1"), (AddPartitionSpecUpdate(gap),))
    void = PartitionSpec(1, (PartitionField(1, 1000, VoidTransform(), "a"), *gap.fields))
    assert update_table_metadata(table("1"), (AddPartitionSpecUpdate(void),)).specs()[1] == void


def test_a_sort_order_is_added_under_the_next_id_and_used_again():
    updates = (AddSortOrderUpdate(SortOrder(9, (SortField(2),))), SetDefaultSortOrderUpdate(-1))
    metadata = update_table_metadata(table(), updates)
    assert metadata.default_sort_order_id == 1
    assert update_table_metadata(metadata, updates) is metadata
    back = (AddSortOrderUpdate(UNSORTED_SORT_ORDER), SetDefaultSortOrderUpdate(-1))
    assert update_table_metadata(metadata, back).default_sort_order_id == 0


def test_a_schema_must_keep_the_columns_the_spec_needs():
    spec = PartitionSpec(1, (PartitionField(2, 1000, IdentityTransform(), "city"),))
    metadata = update_table_metadata(
        table(), (AddPartitionSpecUpdate(spec), SetDefaultSpecUpdate(-1))
    )
    narrow = Schema(SCHEMA.fields[:1])
    with pytest.raises(ValidationError, match="partition spec"):
        update_table_metadata(metadata, (AddSchemaUpdate(narrow), SetCurrentSchemaUpdate(-1)))


def test_the_metadata_log_is_trimmed():
    metadata = table(**{"write.metadata.previous-versions-max": "3"})
    for number in range(1, 7):
        metadata = update_table_metadata(
            metadata,
            (SetPropertiesUpdate({"n": str(number)}),),
            base_location=f"/t/metadata/{number}.json",
            now_ms=NOW + number,
        )
    assert [e.metadata_file for e in metadata.metadata_log] == [
        f"/t/metadata/{number}.json" for number in (4, 5, 6)
    ]
    assert [e.timestamp_ms for e in metadata.metadata_log] == [NOW + 3, NOW + 4, NOW + 5]


def test_statistics_files_come_and_go_with_their_snapshot():
    metadata = appended(appended(table(), 1), 2)
    file = {"snapshot-id": 1, "statistics-path": "/t/1.stats"}
    other = {"snapshot-id": 1, "statistics-path": "/t/2.stats"}
    with_files = update_table_metadata(
        metadata,
        (SetStatisticsUpdate(file), SetStatisticsUpdate(other), SetPartitionStatisticsUpdate(file)),
    )
    assert with_files.statistics == (other,)
    assert with_files.partition_statistics == (file,)
    assert update_table_metadata(with_files, (RemoveStatisticsUpdate(1),)).statistics == ()
    gone = update_table_metadata(with_files, (RemoveSnapshotsUpdate((1,)),))
    assert (gone.statistics, gone.partition_statistics) == ((), ())


def test_properties_and_location_are_changed():
    new_id = uuid.uuid4()
    changes = Changes((), (SetPropertiesUpdate({"a": "1", "b": "2"}),)) + Changes(
        (AssertCreate(),),
        (RemovePropertiesUpdate(("a",)), SetLocationUpdate("/u"), AssignUUIDUpdate(new_id)),
    )
    metadata = update_table_metadata(table(), changes.updates)
    assert metadata.properties["b"] == "2"
    assert "a" not in metadata.properties
    assert metadata.location == "/u"
    assert metadata.table_uuid == new_id
    assert changes.requirements == (AssertCreate(),)


def test_requirements_hold_on_unchanged_metadata_only():
    base = appended(table(), 1)
    spec = PartitionSpec(1, (PartitionField(1, 1000, BucketTransform(4), "b"),))
    changed = update_table_metadata(
        base,
        (
            AssignUUIDUpdate(uuid.uuid4()),
            *append(2, 1),
            AddSchemaUpdate(WIDER),
            SetCurrentSchemaUpdate(-1),
            AddPartitionSpecUpdate(spec),
            SetDefaultSpecUpdate(-1),
            AddSortOrderUpdate(SortOrder(1, (SortField(2),))),
            SetDefaultSortOrderUpdate(-1),
        ),
    )
    for requirement in (
        AssertTableUUID(base.table_uuid),
        AssertRefSnapshotId("main", 1),
        AssertLastAssignedFieldId(base.last_column_id),
        AssertCurrentSchemaId(0),
        AssertLastAssignedPartitionId(999),
        AssertDefaultSpecId(0),
        AssertDefaultSortOrderId(0),
    ):
        requirement.check(base)
        for found in (changed, None):
            with pytest.raises(CommitFailedError):
                requirement.check(found)
    AssertRefSnapshotId("absent", None).check(base)
    AssertCreate().check(None)
    with pytest.raises(CommitFailedError):
        AssertCreate().check(base)
