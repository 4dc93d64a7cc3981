"""What a commit to a table with a long history does: no more than one to a new table."""

import json

from icecomb.format.spec.change.update import (
    AddSnapshotUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def table(location="/t", **properties) -> TableMetadata:
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, properties
    )


def appended(metadata, number) -> TableMetadata:
    parent, location = metadata.current_snapshot_id, f"/t/metadata/snap-{number}.avro"
    snapshot = Snapshot(number, parent, number, number, location, {"operation": "append"}, 0)
    updates = (AddSnapshotUpdate(snapshot), SetSnapshotRefUpdate("main", "branch", number))
    return update_table_metadata(metadata, updates)


def test_the_text_of_a_history_is_the_same_however_it_came_together():
    base = appended(appended(table(), 1), 2)
    base.to_json()
    one, other = appended(base, 3), appended(base, 4)
    unread = appended(appended(one, 5), 6)
    shorter = update_table_metadata(unread, (RemoveSnapshotsUpdate((2,)),))
    again = appended(TableMetadata.from_json(shorter.to_json()), 7)
    for metadata, numbers in [
        (base, [1, 2]),
        (one, [1, 2, 3]),
        (other, [1, 2, 4]),
        (unread, [1, 2, 3, 5, 6]),
        (shorter, [1, 3, 5, 6]),
        (again, [1, 3, 5, 6, 7]),
    ]:
        for _ in range(2):
            out = json.loads(metadata.to_json())
            assert [item["snapshot-id"] for item in out["snapshots"]] == numbers
            assert out["snapshots"] == [s.to_json() for s in metadata.snapshots]
            assert out["snapshot-log"] == [e.to_json() for e in metadata.snapshot_log]
            assert out["snapshot-log"][-1]["snapshot-id"] == numbers[-1]


def test_a_commit_makes_the_text_of_the_new_snapshot_only(monkeypatch):
    counted = []
    to_json = Snapshot.to_json
    monkeypatch.setattr(Snapshot, "to_json", lambda s: counted.append(s.snapshot_id) or to_json(s))
    metadata = table()
    for number in range(1, 31):
        metadata = appended(metadata, number)
        metadata.to_json()
    assert counted == list(range(1, 31))
