"""What a name node says that only follows the active one is not believed: what it does not have yet may be there."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import FileIOError, NoSuchFileError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs import name_node
from tests.format.hdfs.memory_hdfs import MemoryHdfs, RefusedError
from tests.peers.webhdfs_proxy import WebHdfsProxy

PLACE = "hdfs://lake/t"


def visible(memory):
    return sorted(path for path in memory.files if "/." not in path)


@pytest.fixture
def nodes(monkeypatch):
    """Two name nodes; the first of the configuration is behind, and has nothing."""
    first, second = MemoryHdfs(), MemoryHdfs()
    monkeypatch.setattr("pyhdfs.time.sleep", lambda _: None)
    yield first, second
    first.close()
    second.close()


@pytest.fixture
def settings(nodes):
    addresses = {
        f"dfs.namenode.http-address.lake.{name}": node.address
        for name, node in zip(("nn1", "nn2"), nodes, strict=True)
    }
    named = {"dfs.nameservices": "lake", "dfs.ha.namenodes.lake": "nn1,nn2"}
    return {"fs.defaultFS": "hdfs://lake", "hdfs.user": "alice", **named, **addresses}


@pytest.fixture
def io(settings):
    made = FileIO({**settings, "dfs.client.failover.max.attempts": "3"})
    yield made
    made.close()


@pytest.mark.parametrize("state", ["observer", "standby"])
def test_who_only_follows_is_asked_nothing(nodes, io, state):
    """A standby may be allowed to answer from the past, too (`dfs.ha.allow.stale.reads`)."""
    behind, active = nodes
    behind.state = state
    active.put("/t/x", b"data")
    assert io.exists(f"{PLACE}/x")
    assert io.read(f"{PLACE}/x") == b"data"
    assert [each.size for each in io.list(PLACE)] == [4]
    io.create(f"{PLACE}/y", b"more")
    assert io.is_folder(PLACE)
    with pytest.raises(NoSuchFileError):
        io.read(f"{PLACE}/z")
    assert behind.calls == []


def test_a_table_that_was_just_committed_is_there(nodes, settings):
    nodes[0].state = "observer"
    written = load_catalog("one", type="hadoop", warehouse="hdfs://lake/w", **settings)
    written.create_namespace("db")
    written.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    read = load_catalog("other", type="hadoop", warehouse="hdfs://lake/w", **settings)
    assert read.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]


def test_one_that_sends_to_the_active_one_is_understood(nodes, io):
    """It was active when it was last asked."""
    behind, active = nodes
    active.state = "standby"
    assert not io.exists(f"{PLACE}/x")
    behind.state, active.state = "observer", "active"
    behind.retries = True
    active.put("/t/x", b"data")
    assert io.exists(f"{PLACE}/x")
    assert io.read(f"{PLACE}/x") == b"data"
    assert "GETFILESTATUS" in behind.calls


@pytest.mark.parametrize("state", ["observer", "standby"])
def test_who_only_follows_is_known_by_what_it_refuses_where_roles_are_hidden(nodes, io, state):
    """As behind a gateway that lets no `/jmx` through."""
    behind, active = nodes
    behind.state = state
    behind.hides = active.hides = True
    behind.put("/t/old", b"gone since")
    active.put("/t/x", b"data")
    assert io.exists(f"{PLACE}/x")
    assert not io.exists(f"{PLACE}/old")
    assert io.read(f"{PLACE}/x") == b"data"
    assert set(behind.calls) == {"DELETE"}
    assert visible(behind) == ["/t/old"]


@pytest.mark.parametrize("fault", ["login", "blank", "html"])
def test_a_page_of_a_gateway_does_not_make_a_name_node_active(nodes, settings, fault):
    behind, active = nodes
    behind.state = "observer"
    behind.hides = active.hides = True
    active.put("/t/x", b"data")
    gateway = WebHdfsProxy(behind.address)
    gateway.faults["DELETE"] = [fault]
    io = FileIO({**settings, "dfs.namenode.http-address.lake.nn1": gateway.address})
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        io.exists(f"{PLACE}/x")
    assert io.exists(f"{PLACE}/x")
    io.close()
    gateway.close()


def test_a_commit_is_not_denied_by_one_that_follows_where_roles_are_hidden(nodes, settings):
    """Done, then the active one loses some calls: what the other does not have would be called missing."""
    behind, active = nodes
    behind.state = "observer"
    behind.hides = active.hides = True
    named = {**settings, "dfs.ha.namenodes.lake": "nn2,nn1"}
    lake = load_catalog("one", type="hadoop", warehouse="hdfs://lake/w", **named)
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    behind.files.update(active.files)
    behind.folders.update(active.folders)
    answer, cuts = active.answer, []

    def answer_or_cut(operation, path, asked, handler):
        if cuts and operation not in {"DELETE", "RENAME"} and "namenoderpcaddress" not in asked:
            cuts.pop()
            raise ConnectionError
        answer(operation, path, asked, handler)
        if asked.get("destination", "").endswith("v2.metadata.json"):
            cuts.extend(["lost"] * 12)

    active.answer = answer_or_cut
    table.append(pa.table({"id": [1]}))
    assert lake.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]


def test_one_that_was_active_is_asked_again_what_it_is(nodes, io, monkeypatch):
    first, second = nodes
    second.state = "standby"
    io.create(f"{PLACE}/x", b"data")
    assert "GETFILESTATUS" in first.calls
    second.put("/t/x", b"data")
    first.clear()
    first.state, second.state = "observer", "active"
    now = name_node.time.monotonic() + 1000
    monkeypatch.setattr(name_node, "time", SimpleNamespace(monotonic=lambda: now))
    assert io.exists(f"{PLACE}/x")


def test_what_decides_is_asked_of_who_is_active_by_then(nodes, io):
    """Done at the one that was active, the answer lost, and it follows another one since."""
    first, second = nodes
    second.state = "standby"
    first.put("/t/a", b"data")

    def fail_over():
        second.put("/t/b", b"data")
        second.files["/t/b"].file_id = first.files["/t/a"].file_id
        first.state, second.state = "observer", "active"

    first.before["RENAME"] = fail_over
    io.rename(f"{PLACE}/a", f"{PLACE}/b")
    assert list(second.files) == ["/t/b"]


def gone():
    raise RefusedError(404, "FileNotFoundException", "File does not exist: /t/x")


def test_a_file_is_not_missing_because_a_data_node_asks_who_is_behind(nodes, io):
    nodes[0].state = "observer"
    active = nodes[1]
    active.put("/t/x", b"data")
    active.before["OPEN@data"] = gone
    assert io.read(f"{PLACE}/x") == b"data"

    class Always(dict):
        def pop(self, name, other):
            return gone if name == "OPEN@data" else other

    active.before = Always()
    with pytest.raises(FileIOError, match="does not know it, the active name node does") as caught:
        io.read(f"{PLACE}/x")
    assert not isinstance(caught.value, NoSuchFileError)
    with pytest.raises(NoSuchFileError):
        io.read(f"{PLACE}/y")


def test_without_an_active_one_nothing_is_believed(nodes, io):
    for node, state in zip(nodes, ("observer", "standby"), strict=True):
        node.state = state
    with pytest.raises(FileIOError, match="no active name node"):
        io.exists(f"{PLACE}/x")


def test_roles_that_are_hidden_are_not_asked_for_again_and_again(nodes, io):
    behind, active = nodes
    behind.hides = active.hides = True
    behind.put("/t/x", b"data")
    asked = []
    metrics = behind.metrics
    behind.metrics = lambda handler: (asked.append(1), metrics(handler))
    for _ in range(5):
        assert io.exists(f"{PLACE}/x")
    assert len(asked) == 1


def test_what_a_name_node_said_of_itself_before_roles_changed_is_not_believed_after():
    said = iter(["active", "standby"])

    def ask(_):
        nodes.discard()  # another thread noticed the change meanwhile
        return next(said)

    nodes = name_node.ActiveNameNodes(ask)
    assert [nodes.has("http://nn1"), nodes.has("http://nn1")] == [True, False]


def test_threads_that_read_together_all_follow_the_roles_that_change(nodes, io):
    first, second = nodes
    places = [f"{PLACE}/{number}" for number in range(40)]
    for node in nodes:
        node.retries = True
        for number in range(40):
            node.put(f"/t/{number}", b"%d" % number)
    first.state = "standby"

    def change():
        first.state, second.state = "active", "standby"

    found = io.each(PLACE, io.read, places)
    assert next(found) == b"0"
    second.before["OPEN"] = change
    assert list(found) == [b"%d" % number for number in range(1, 40)]


def test_files_are_read_side_by_side(nodes, io):
    nodes[0].put("/t/x", b"data")
    together = threading.Barrier(8)
    found = io.each(PLACE, lambda place: (together.wait(60), io.read(place))[1], [f"{PLACE}/x"] * 8)
    assert list(found) == [b"data"] * 8
