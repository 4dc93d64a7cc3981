"""What was published is not published again, also once the first publication has expired from `main`."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError

FAR = datetime(2100, 1, 1, tzinfo=timezone.utc)


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture(params=["1", "2"])
def table(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.wap.enabled": "true", "format-version": request.param}
    table = catalog.create_table("db.t", rows().schema, properties=properties)
    table.append(rows(1))
    return table


@pytest.fixture
def staged(table):
    """A staged snapshot that a tag keeps."""
    table.append(rows(3), {"wap.id": "load"})
    found = next(s for s in table.snapshots() if s.summary.get("wap.id") == "load")
    table.manage_snapshots().create_tag(found.snapshot_id, "audit").commit()
    return found.snapshot_id


def publish(table, snapshot_id, by_wap_id):
    if by_wap_id:
        table.publish_changes("load")
    else:
        table.manage_snapshots().cherry_pick(snapshot_id).commit()


def forget(table, count=2):
    """Others go on, and all but their last snapshot expires."""
    for number in range(count):
        table.append(rows(100 + number))
    table.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()


@pytest.mark.parametrize("moved_on", [False, True], ids=["fast forward", "applied again"])
@pytest.mark.parametrize("by_wap_id", [False, True])
def test_it_is_refused_after_the_first_one_has_expired(table, staged, moved_on, by_wap_id):
    if moved_on:
        table.append(rows(2))
    publish(table, staged, by_wap_id)
    forget(table)
    before = ids(table)
    assert before.count(3) == 1
    with pytest.raises(ValidationError, match="published already, by a snapshot that has expired"):
        publish(table, staged, by_wap_id)
    assert ids(table) == before


def test_it_is_refused_also_if_its_rows_were_moved_by_a_compaction(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    forget(table)
    with pytest.raises(ValidationError, match="published already"):
        publish(table, staged, by_wap_id=True)


def test_what_another_writer_published_is_known_by_its_files(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=False)
    with table.transaction() as transaction:
        transaction.remove_properties("icecomb.published-snapshots")
    forget(table)
    with pytest.raises(ValidationError, match="1 of the 1 files that it added are in the table"):
        publish(table, staged, by_wap_id=False)
    assert ids(table).count(3) == 1


def test_what_waited_long_is_published_once(table, staged):
    """Ancestors of main expired meanwhile, and none of them was a publication."""
    forget(table, 3)
    publish(table, staged, by_wap_id=True)
    assert ids(table).count(3) == 1
    with pytest.raises(ValidationError, match="already"):
        publish(table, staged, by_wap_id=True)


def test_what_was_rolled_back_may_be_published_again(table, staged):
    before = table.current_snapshot().snapshot_id
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    assert ids(table) == [1]
    publish(table, staged, by_wap_id=True)
    assert ids(table) == [1, 3]


def test_another_load_of_the_same_id_is_refused_too(table, staged):
    table.append(rows(2))
    table.manage_snapshots().cherry_pick(staged).commit()
    table.append(rows(3), {"wap.id": "load"})
    again = [s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "load"][-1]
    table.manage_snapshots().create_tag(again, "again").commit()
    forget(table)
    with pytest.raises(ValidationError, match="already"):
        table.manage_snapshots().cherry_pick(again).commit()


def test_the_note_has_only_snapshots_that_are_there(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    assert table.properties["icecomb.published-snapshots"] == str(staged)
    table.manage_snapshots().remove_tag("audit").commit()
    forget(table)
    table.append(rows(4), {"wap.id": "next"})
    table.append(rows(5))
    table.publish_changes("next")
    [found] = [s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "next"]
    assert table.properties["icecomb.published-snapshots"] == str(found)
