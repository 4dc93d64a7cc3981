"""Row ids of a table's whole life: made, replaced, rolled back, brought back; none is used twice."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.catalog.commit import commit_status
from icecomb.catalog.lost_commits import plan_reapplication, reapply
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata_file import write_metadata

SCHEMA = pa.schema([("id", pa.int64())])
V3 = {"format-version": "3"}


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


class Ids:
    """The file of each row id that any snapshot of a table was seen to have."""

    def __init__(self):
        self.owner = {}

    def look(self, table):
        """Look at all snapshots; return the first row ids of the current one's files."""
        metadata = table.refresh().metadata
        current = []
        for snapshot in metadata.snapshots:
            for manifest in read_manifests(table.io, snapshot):
                if manifest.content is not ManifestContent.DATA:
                    continue
                for entry in manifest.fetch_manifest_entry(table.io):
                    file = entry.data_file
                    assert file.first_row_id is not None
                    end = file.first_row_id + file.record_count
                    assert end <= metadata.next_row_id
                    for number in range(file.first_row_id, end):
                        assert self.owner.setdefault(number, file.file_path) == file.file_path
                    if snapshot.snapshot_id == metadata.current_snapshot_id:
                        current.append(file.first_row_id)
        return sorted(current)


def test_a_table_that_is_created_with_rows_numbers_them_once(lake):
    with lake.create_table_transaction("db.t", SCHEMA, properties=V3) as new:
        new.append(rows(1, 2))
        new.append(rows(3))
    table = lake.load_table("db.t")
    assert Ids().look(table) == [0, 2]
    assert table.metadata.next_row_id == 3


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_replaced_table_goes_on_counting(lake, version):
    table = lake.create_table("db.t", SCHEMA, properties={"format-version": version})
    table.append(rows(1, 2))
    seen = Ids()
    if version == "3":
        seen.look(table)
    with lake.replace_table_transaction("db.t", SCHEMA, properties=V3) as new:
        new.append(rows(5, 6, 7))
    metadata = table.refresh().metadata
    assert (metadata.format_version, metadata.next_row_id) == (3, 5 if version == "3" else 3)
    lake.replace_table("db.t", SCHEMA)
    table.refresh().append(rows(8))
    if version == "3":
        assert seen.look(table) == [5]


def test_a_rolled_back_table_gives_no_id_again(lake):
    table = lake.create_table("db.t", SCHEMA, properties=V3)
    seen = Ids()
    table.append(rows(1, 2))
    first = table.metadata.current_snapshot_id
    table.append(rows(3))
    seen.look(table)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.refresh().append(rows(4))
    assert seen.look(table) == [0, 3]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4]


def test_a_staged_change_keeps_its_ids_or_gets_new_ones_when_it_is_published(lake):
    properties = {**V3, "write.wap.enabled": "true"}
    table = lake.create_table("db.t", SCHEMA, properties=properties)
    seen = Ids()
    table.append(rows(1, 2))
    for wap_id in ("a", "b"):
        table.refresh().append(rows(7), snapshot_properties={"wap.id": wap_id})
    assert seen.look(table) == [0]
    table.publish_changes("a")
    assert seen.look(table) == [0, 2]
    table.refresh().publish_changes("b")
    # not built on the head: its file is added again, under an id of its own
    metadata = table.refresh().metadata
    snapshot = metadata.current_snapshot()
    assert (snapshot.first_row_id, snapshot.added_rows) == (4, 1)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 7, 7]


def test_a_lost_commit_that_is_brought_back_gets_new_ids(lake, monkeypatch):
    monkeypatch.setattr(commit_status, "OLD_MS", -1)
    table = lake.create_table("db.t", SCHEMA, properties=V3)
    seen = Ids()
    table.append(rows(1))
    transaction = table.transaction()
    transaction.append(rows(2, 3))
    updates = transaction.apply(table.metadata).updates
    lost = update_table_metadata(table.metadata, updates, base_location=table.metadata_location)
    location = f"{table.location()}/metadata/{uuid.uuid4()}.metadata.json"
    write_metadata(table.io, lost, location)
    table.append(rows(4, 5, 6))
    reapply(table, plan_reapplication(table, location))
    assert seen.look(table) == [0, 1, 4]
    assert table.metadata.next_row_id == 6
