"""Which version an object is pinned to that threads share."""

from __future__ import annotations

import copy
import pickle
import threading
from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.catalog.commit.pinned import later
from icecomb.catalog.commit.pointer import MetadataVersion, ViewMetadataVersion
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.spec.view import ViewDefinition, new_view_metadata, with_properties

ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def versions(lake):
    """The versions of a table, oldest first; each change is a later version."""
    table = lake.create_table("db.t", ROWS.schema)
    found = [table._version]

    def keep():
        found.append(table._version)

    table.append(ROWS)
    keep()
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    keep()
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    keep()
    with table.update_properties() as update:
        update.set("a", "b")
    keep()
    return found


def forgetful(version):
    """The version, with a log that names nothing."""
    return replace(version, metadata=replace(version.metadata, metadata_log=()))


def renamed(version):
    """The version in a file whose name tells nothing."""
    folder = version.location.rpartition("/")[0]
    return replace(version, location=f"{folder}/metadata.json")


@pytest.mark.parametrize("told", [lambda v: v, forgetful, lambda v: renamed(forgetful(v))])
def test_of_two_versions_the_later_one_stays_in_whatever_order_they_come(versions, told):
    seen, *others = map(told, versions)
    for at, older in enumerate(others):
        for newer in others[at + 1 :]:
            assert later(seen, newer, older) is newer
            assert later(seen, older, newer) is newer


def test_what_is_found_counts_where_nobody_moved_the_object(versions):
    """Also if the table was set back, as a repair does."""
    assert later(versions[-1], versions[-1], versions[0]) is versions[0]


def test_a_new_table_of_the_name_is_later(lake, versions):
    lake.purge_table("db.t")
    new = lake.create_table("db.t", ROWS.schema)._version
    seen, old = versions[0], versions[-1]
    assert later(seen, old, new) is new
    assert later(seen, new, old) is new
    assert later(old, new, seen) is new


def test_a_table_that_gets_its_uuid_late_stays_the_same_one(versions):
    older, newer = versions[1], versions[2]
    old = replace(older, metadata=replace(older.metadata, table_uuid=None))
    assert later(versions[0], old, newer) is newer
    assert later(versions[0], newer, old) is newer


def test_a_later_version_of_a_view_stays():
    schema = Schema((NestedField(1, "id", LongType()),))
    first = new_view_metadata(
        ViewDefinition(schema, {"spark": "SELECT 1"}, ("db",), None, {}), "l", {}
    )
    second = with_properties(first, {"a": "b"}, ())
    files = [f"l/metadata/0000{number}-1b2c.gz.metadata.json" for number in range(3)]
    seen, older, newer = map(ViewMetadataVersion, files, (first, first, second))
    assert later(seen, newer, older) is newer
    assert later(seen, older, newer) is newer


@pytest.mark.parametrize("slow", ["commit", "refresh"])
def test_a_thread_that_comes_back_late_does_not_set_the_object_back(lake, monkeypatch, slow):
    """Between a commit's swap and its end lies the deletion of expired files."""
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    swapped, go_on = threading.Event(), threading.Event()

    def wait():
        if threading.current_thread().name == "late":
            swapped.set()
            assert go_on.wait(60)

    load, delete = table._pointer.load, table.io.delete

    def slow_load():
        found = load()
        wait()
        return found

    if slow == "refresh":
        monkeypatch.setattr(table._pointer, "load", slow_load)
        late = threading.Thread(target=table.refresh, name="late")
    else:
        monkeypatch.setattr(table.io, "delete", lambda *a, **k: wait() or delete(*a, **k))
        expire = table.expire_snapshots().older_than(1 << 52).retain_last(1)
        table.append(ROWS)
        late = threading.Thread(target=expire.commit, name="late")
    late.start()
    assert swapped.wait(60)
    table.append(pa.table({"id": pa.array([777], pa.int64())}))
    newest = table.metadata_location
    go_on.set()
    late.join()
    assert table.metadata_location == newest
    table.delete("id = 777")
    assert 777 not in table.refresh().scan().to_arrow()["id"].to_pylist()


def test_a_copy_moves_on_by_itself(lake):
    table = lake.create_table("db.t", ROWS.schema)
    copies = [copy.copy(table), pickle.loads(pickle.dumps(table))]  # noqa: S301 - our own
    table.append(ROWS)
    for each in copies:
        assert each.current_snapshot() is None
        each.append(ROWS)
        assert isinstance(each._version, MetadataVersion)
        assert each.scan().count() == 2
        each.delete()
        table.refresh().append(ROWS)
