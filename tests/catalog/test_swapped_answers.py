"""A proxy or a cache answers a read with another file of the same kind: no commit builds on it."""

from __future__ import annotations

from copy import copy
from datetime import datetime, timezone
from itertools import product
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.spec.view import (
    ViewDefinition,
    new_view_metadata,
    read_view_metadata,
    write_view_metadata,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import creation
from tests.format.storage.object_store.memory_stores import google_in_memory
from tests.rings import sampled

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
NO_CACHE = {"io.manifest.cache-enabled": "false"}
REWRITE_ALL = {"rewrite-all": "true"}
LONG_AGO = datetime(2026, 2, 1, tzinfo=timezone.utc)
"""After the times of all objects in memory."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)


class Swapping:
    """A store in memory that answers one read with another object, and the ways to it."""

    def __init__(self):
        at = google_in_memory()
        self.proxy, self.close = at.proxy, at.close
        self.objects = at.proxy.memory.objects
        self.instead = {}
        place = {"type": "hadoop", "warehouse": f"{at.place}/wh", **NO_CACHE}
        self.catalog = load_catalog("faulty", **place, **at.faulty)
        self.direct = load_catalog("direct", **place, **at.healthy)
        self.direct.create_namespace("db")
        forward, proxy = at.proxy.forward, at.proxy

        def swapping(request, method, path, headers, body):
            if request.name == "Get" and "alt=media" in path:
                name = unquote(urlsplit(path).path.rpartition("/o/")[2])
                other = self.instead.pop(name, name)
                path = path.replace(quote(name, safe=""), quote(other, safe=""))
            return forward(request, method, path, headers, body)

        proxy.forward = swapping

    def table(self, name):
        table = self.direct.create_table(f"db.{name}", ROWS.schema)
        for first in range(4):
            table.append(pa.table({"id": pa.array([first, first + 10], pa.int64())}))
        return table

    def named(self, table, ending):
        """The objects of a table whose names end so, oldest first."""
        names = [n for n in self.objects if f"/{table.name()[-1]}/" in n and n.endswith(ending)]
        return sorted(names, key=lambda name: self.objects[name].generation)

    def rows(self, name):
        return sorted(self.direct.load_table(f"db.{name}").scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def store():
    store = Swapping()
    yield store
    store.catalog.close()
    store.direct.close()
    store.close()


ALL = [0, 1, 2, 3, 10, 11, 12, 13]
CHANGES = {
    "append": (lambda t: t.append(ROWS), sorted([*ALL, 1, 2, 3])),
    "delete": (lambda t: t.delete("id = 2"), [0, 1, 3, 10, 11, 12, 13]),
    "property": (lambda t: t.update_properties().set("a", "b").commit(), ALL),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "older", sampled([1, 2, 4], keep=1), ids=lambda older: f"{older} versions older"
)
def test_an_older_version_in_place_of_the_newest_buries_no_commit(store, change, older):
    table = store.table("t")
    files = store.named(table, ".metadata.json")
    make, expected = CHANGES[change]
    store.instead[files[-1]] = files[-1 - older]
    make(store.catalog.load_table("db.t"))
    assert store.instead == {}
    assert store.rows("t") == expected


def test_the_metadata_of_another_table_in_place_of_a_tables_own_is_not_its(store):
    table, other = store.table("t"), store.table("other")
    other.delete()
    files, others = store.named(table, ".metadata.json"), store.named(other, ".metadata.json")
    store.instead[files[-1]] = others[-2]
    assert store.catalog.load_table("db.t").metadata.table_uuid == table.metadata.table_uuid


@pytest.mark.parametrize(
    ("ending", "forged"),
    sampled(product([".metadata.json", "-m0.avro", "snap"], [b"", b"<html/>"]), keep=4),
)
def test_a_page_in_place_of_a_file_of_the_table_is_read_again(store, ending, forged):
    table = store.table("t")
    files = store.named(table, ".avro" if ending == "snap" else ending)
    wanted = [name for name in files if ("/snap-" in name) == (ending == "snap")][-1]
    place = copy(store.objects[wanted])
    place.data = forged
    store.objects["wh/db/forged"] = place
    store.instead[wanted] = "wh/db/forged"
    again = store.catalog.load_table("db.t")
    again.delete("id = 2")
    assert store.instead == {}
    assert store.rows("t") == [0, 1, 3, 10, 11, 12, 13]


def removed_orphans(table):
    table.maintenance.remove_orphan_files(older_than=LONG_AGO, dry_run=False)


def expired(table):
    table.maintenance.expire_snapshots().older_than(datetime.now(timezone.utc)).commit()


READERS = {
    "scan": (lambda t: t.scan().count(), ALL),
    "delete": CHANGES["delete"],
    "compaction": (lambda t: t.maintenance.rewrite_data_files(options=REWRITE_ALL), ALL),
    "rewritten manifests": (lambda t: t.rewrite_manifests(), ALL),
    "removed orphans": (removed_orphans, ALL),
}


@pytest.mark.parametrize(
    ("change", "place"), sampled([(c, p) for c in READERS for p in range(3)], keep=2)
)
@pytest.mark.parametrize("of_other", [False, True], ids=["its own", "another table's"])
def test_another_manifest_in_place_of_the_one_that_is_listed_doubles_and_hides_no_row(
    store, change, place, of_other
):
    table, other = store.table("t"), store.table("other")
    manifests = store.named(table, "-m0.avro")
    others = store.named(other, "-m0.avro") if of_other else manifests
    # as long or longer: a shorter one is told by its length
    store.objects[manifests[place]].data, whole = b"", store.objects[manifests[place]].data
    instead = max(others, key=lambda name: len(store.objects[name].data))
    store.objects[manifests[place]].data = whole
    store.instead[manifests[place]] = instead
    make, expected = READERS[change]
    make(store.catalog.load_table("db.t"))
    assert store.instead == {}
    assert store.rows("t") == expected
    assert store.rows("other") == ALL


def test_an_expiration_that_is_shown_a_manifest_that_stays_deletes_none_of_its_files(store):
    table = store.table("t")
    first, stays, *_ = store.named(table, "-m0.avro")
    table.delete("id <= 10")
    table.append(ROWS)
    store.instead[first] = stays
    expired(store.catalog.load_table("db.t"))
    assert store.instead == {}
    assert store.rows("t") == [1, 2, 3, 11, 12, 13]


class Swapped(FileIO):
    """Answers the first read with the bytes of another file."""

    def __init__(self, instead):
        super().__init__()
        self.reads = []
        self._instead = instead

    def read(self, location):
        self.reads.append(location)
        return super().read(self._instead if len(self.reads) == 1 else location)


def test_a_page_in_place_of_a_view_is_read_again(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    schema = catalog.create_table("db.t", ROWS.schema).schema()
    definition = ViewDefinition(schema, {"spark": "SELECT 1"}, ("db",))
    view = new_view_metadata(definition, str(tmp_path), {})
    write_view_metadata(FileIO(), view, f"{tmp_path}/v.metadata.json")
    (tmp_path / "page").write_text("<html>Who are you?</html>")
    found = read_view_metadata(Swapped(f"{tmp_path}/page"), f"{tmp_path}/v.metadata.json")
    assert found.view_uuid == view.view_uuid


def test_the_identity_that_a_metastore_knows_tells_the_metadata_of_another_table(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    one, other = (catalog.create_table(f"db.{n}", ROWS.schema) for n in ("a", "b"))
    mine = tmp_path / "00003-x.metadata.json"
    its = tmp_path / "00003-y.metadata.json"
    mine.write_text(one.metadata.to_json())
    its.write_text(other.metadata.to_json())
    io = Swapped(str(its))
    found = read_metadata(io, str(mine), str(one.metadata.table_uuid).upper())
    assert found.table_uuid == one.metadata.table_uuid


def test_a_version_that_was_set_back_by_hand_counts_when_it_is_read_twice(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    folder = tmp_path / "db" / "t" / "metadata"
    (folder / "v4.metadata.json").write_bytes((folder / "v2.metadata.json").read_bytes())
    found = catalog.load_table("db.t")
    assert found.scan().count() == 3
    found.append(ROWS)
    assert catalog.load_table("db.t").scan().count() == 6


def test_metadata_where_it_belongs_is_read_once(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    for _ in range(2):
        io = Swapped(table.metadata_location)
        read_metadata(io, table.metadata_location)
        assert len(io.reads) == 1
        table.append(ROWS)
