"""Only a name node's own answer says that something was done, and only what cannot come any more did not happen.

A page to log in has a status of 200, too, and a call that was given up by a gateway may be carried out later.
"""

from __future__ import annotations

import itertools
import socket

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    CommitStateUnknownError,
    FileAlreadyExistsError,
    FileIOError,
    FileStateUnknownError,
    IcecombError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.upload import HdfsUpload
from tests.format.hdfs.memory_hdfs import RefusedError
from tests.rings import sampled

PLACE = "hdfs://lake/t"
DATA = bytes(range(250)) * 4
INVENTED = ("login", "blank")
RENAMES = ("data file", "manifest", "manifest list", "metadata", "hint")
"""Of an append, in their order."""


def visible(memory):
    return sorted(path for path in memory.files if "/." not in path)


@pytest.mark.parametrize("fault", [*INVENTED, "another"])
def test_a_rename_that_no_name_node_answered_is_not_believed(
    memory, memory_proxy, memory_io, fault
):
    memory_proxy.faults["RENAME"] = [fault]
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        memory_io.create(f"{PLACE}/x", b"ours")
    assert memory.files == {}
    memory_io.create(f"{PLACE}/x", b"ours")
    assert memory.files["/t/x"].data == b"ours"


def test_a_rename_that_was_done_is_believed_whoever_answers(memory, memory_proxy, memory_io):
    memory_proxy.faults["RENAME"] = ["done_login"]
    memory_io.create(f"{PLACE}/x", b"ours")
    assert memory.files["/t/x"].data == b"ours"


@pytest.mark.parametrize(
    ("fault", "replace"),
    [*itertools.product(INVENTED, (False, True)), ("another", False)],
)
def test_what_others_go_on_from_is_looked_for_at_its_name(
    memory, memory_proxy, memory_io, fault, replace
):
    memory_proxy.faults["RENAME"] = [fault]
    with (
        pytest.raises(FileIOError, match="did not answer as WebHDFS does"),
        memory_io.prepare(f"{PLACE}/v2.metadata.json", b"{}", replace=replace) as publish,
    ):
        publish()
    assert memory.files == {}
    with memory_io.prepare(f"{PLACE}/v2.metadata.json", b"{}", replace=replace) as publish:
        memory_proxy.faults["RENAME"] = ["done_login"]
        publish()
    assert visible(memory) == ["/t/v2.metadata.json"]


@pytest.mark.parametrize("fault", [*INVENTED, "another"])
def test_a_file_is_not_said_to_be_moved_by_an_answer_of_others(
    memory, memory_proxy, memory_io, fault
):
    memory.put("/t/a", b"data")
    memory_proxy.faults["RENAME"] = [fault]
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        memory_io.rename(f"{PLACE}/a", f"{PLACE}/b")
    assert visible(memory) == ["/t/a"]


@pytest.mark.parametrize("fault", INVENTED)
def test_a_folder_is_not_made_by_an_answer_of_others(memory, memory_proxy, memory_io, fault):
    memory_io.create(f"{PLACE}/x", b"1")
    for call in ("RENAME", "MKDIRS"):
        memory_proxy.faults[call] = [fault]
        with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
            memory_io.create_folder(f"{PLACE}/folder")
        assert set(memory.folders) == {"/", "/t"}
    memory_io.create_folder(f"{PLACE}/folder")
    assert set(memory.folders) == {"/", "/t", "/t/folder"}


def test_access_is_not_granted_by_a_page_to_log_in(memory, memory_proxy, memory_settings):
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem

    memory.put("/t/x", b"1")
    web, address = HdfsFileSystem(memory_settings).cluster(f"{PLACE}/x")
    web.check_access(address.path, f"{PLACE}/x", "rw-")
    memory_proxy.faults["CHECKACCESS"] = ["login"]
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        web.check_access(address.path, f"{PLACE}/x", "rw-")
    web.close()


@pytest.mark.parametrize("call", ["GETFILESTATUS", "LISTSTATUS", "DELETE"])
@pytest.mark.parametrize("fault", INVENTED)
def test_nothing_is_missing_or_deleted_by_an_answer_of_others(
    memory, memory_proxy, memory_io, call, fault
):
    memory.put("/t/x", b"1")
    memory_proxy.faults[call] = [fault]
    asked = {
        "GETFILESTATUS": lambda: memory_io.exists(f"{PLACE}/x"),
        "LISTSTATUS": lambda: [*memory_io.list(PLACE)],
        "DELETE": lambda: memory_io.delete(f"{PLACE}/x"),
    }[call]
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        asked()
    assert visible(memory) == ["/t/x"]


def test_a_file_that_is_not_there_never_comes_once_its_creation_failed(
    memory, memory_proxy, memory_io
):
    memory_proxy.faults["RENAME"] = ["later"]
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does") as failed:
        memory_io.create(f"{PLACE}/x", b"ours")
    assert not isinstance(failed.value, FileStateUnknownError)
    assert memory_proxy.deliver() == 1
    assert memory.files == {}


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_not_published_never_comes_later(memory, memory_proxy, memory_io, replace):
    if replace:
        memory.put("/t/hint", b"1")
    memory_proxy.faults["RENAME"] = ["later"]
    with (
        pytest.raises(FileIOError, match="did not answer as WebHDFS does"),
        memory_io.prepare(f"{PLACE}/hint", b"2", replace=replace) as publish,
    ):
        publish()
    assert memory_proxy.deliver() == 1
    assert {path: file.data for path, file in memory.files.items()} == (
        {"/t/hint": b"1"} if replace else {}
    )


def test_a_rename_that_is_carried_out_before_it_is_looked_for_is_a_success(
    memory, memory_proxy, memory_io
):
    memory.before["DELETE"] = memory_proxy.deliver
    memory_proxy.faults["RENAME"] = ["later"]
    memory_io.create(f"{PLACE}/x", b"ours")
    assert memory.files["/t/x"].data == b"ours"


def test_a_rename_that_can_neither_be_found_nor_withdrawn_is_unknown(
    memory, memory_proxy, memory_io
):
    memory_proxy.faults["RENAME"] = ["later"]
    memory_proxy.faults["DELETE"] = ["html"] * 2
    with pytest.raises(
        FileStateUnknownError, match="not known whether hdfs://lake/t/x was created"
    ):
        memory_io.create(f"{PLACE}/x", b"ours")
    assert memory_proxy.deliver() == 1
    assert memory.files["/t/x"].data == b"ours"


@pytest.mark.parametrize("lost", [False, True])
def test_a_rename_that_safe_mode_refuses_failed_unless_an_answer_was_lost(
    memory, memory_proxy, memory_settings, lost
):
    """Safe mode refuses to withdraw the draft, too, and still answers what is there."""
    catalog = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))

    renames = itertools.count()

    def begin():
        memory.before["RENAME"] = begin
        memory.safe_mode = RENAMES[next(renames)] == "metadata"

    memory.before["RENAME"] = begin
    memory_proxy.faults["RENAME"] = ["", "", "", "refuse" if lost else ""]
    with pytest.raises(IcecombError, match="SafeModeException") as caught:
        table.append(pa.table({"id": [1]}))
    assert isinstance(caught.value, CommitStateUnknownError) is lost
    memory.safe_mode = False
    assert table.refresh().scan().to_arrow().num_rows == 0


def test_http_fs_is_named_before_anything_is_read_or_sent(memory, memory_io):
    memory.put("/t/x", b"{}")
    memory.is_http_fs = True
    for call in (
        lambda: memory_io.read(f"{PLACE}/x"),
        lambda: memory_io.create(f"{PLACE}/y", b"1"),
    ):
        with pytest.raises(FileIOError, match="is HttpFS, by which icecomb cannot keep") as caught:
            call()
        assert "dfs.namenode.http-address" in str(caught.value)
    assert visible(memory) == ["/t/x"]


def test_what_became_of_a_file_that_was_to_move_is_unknown_while_it_may_move(
    memory, memory_proxy, memory_io
):
    """It is no draft of ours: it cannot be taken away to find out."""
    memory.put("/t/a", b"data")
    memory_proxy.faults["RENAME"] = ["later"]
    with pytest.raises(FileStateUnknownError, match="did not answer as WebHDFS does"):
        memory_io.rename(f"{PLACE}/a", f"{PLACE}/b")
    assert visible(memory) == ["/t/a"]
    assert memory_proxy.deliver() == 1
    assert visible(memory) == ["/t/b"]


def test_a_name_that_is_taken_is_so_though_it_is_only_answered_the_second_time(
    memory, memory_proxy, memory_io
):
    memory.put("/t/x", b"theirs")
    memory_proxy.faults["RENAME"] = ["refuse"]
    with pytest.raises(FileAlreadyExistsError):
        memory_io.create(f"{PLACE}/x", b"ours")
    assert {path: file.data for path, file in memory.files.items()} == {"/t/x": b"theirs"}


@pytest.mark.parametrize("call", ["CREATE", "CREATE@data", "RENAME"])
def test_what_was_sent_twice_on_the_way_is_no_file_of_others(memory, memory_proxy, memory_io, call):
    memory_proxy.faults[call] = ["twice"]
    memory_io.create(f"{PLACE}/x", b"ours")
    memory_proxy.faults[call] = ["twice"]
    with memory_io.create_stream(f"{PLACE}/y") as out:
        out.write(DATA * 20_000)
    assert memory_proxy.faults[call] == []
    assert {path: len(file.data) for path, file in memory.files.items()} == {
        "/t/x": 4,
        "/t/y": len(DATA) * 20_000,
    }


def test_a_file_that_is_refused_before_it_was_sent_is_sent_under_another_name(
    memory, memory_proxy, memory_io
):
    """As by a data node that got the repeated request first."""
    memory.taken = 1
    memory_io.create(f"{PLACE}/x", b"ours")
    assert visible(memory) == ["/t/x"]
    memory.taken = 1
    with (
        pytest.raises(FileIOError, match=r"sent twice on the way|bytes were sent, none") as caught,
        memory_io.create_stream(f"{PLACE}/y") as out,
    ):
        out.write(DATA * 20_000)
    assert not isinstance(caught.value, FileAlreadyExistsError)
    assert visible(memory) == ["/t/x"]


def test_what_is_abandoned_after_the_data_node_hung_up_opens_no_other_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        upload = HdfsUpload(("http", host, "/x"), f"{PLACE}/x", 60.0, None)
        node, _ = listener.accept()
        node.sendall(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        node.close()
        with pytest.raises(FileIOError, match=r"HTTP 403|Cannot write"):
            upload.finish()
        upload.abandon()
        upload.close()
        listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    "first", sampled([b"", b"HTTP/1.1 100 Continue\r\n\r\n"], keep=1), ids=["", "go on"]
)
def test_a_data_node_that_refuses_and_takes_nothing_is_heard_before_all_is_sent(first):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        upload = HdfsUpload(("http", host, "/x"), f"{PLACE}/x", 60.0, None)
        node, _ = listener.accept()
        node.sendall(first + b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        with pytest.raises(FileIOError, match="HTTP 403"):
            upload.write(bytes(64 << 20))
        upload.close()
        node.close()


def test_a_failure_that_mentions_a_missing_file_is_not_one(memory, memory_io):
    memory.put("/t/x", DATA)
    for name in ("IOException", "RemoteException"):

        def fail(name=name):
            raise RefusedError(
                403, name, "Cannot obtain block length; caused by java.io.FileNotFoundException"
            )

        memory.before["OPEN"] = fail
        with pytest.raises(FileIOError, match="Cannot obtain block length") as caught:
            memory_io.read(f"{PLACE}/x")
        assert not isinstance(caught.value, NoSuchFileError)


@pytest.mark.parametrize(
    "said",
    [
        "File does not exist: /t/x",
        "java.io.FileNotFoundException: File does not exist: /t/x",
        "org.apache.hadoop.ipc.RemoteException(java.io.FileNotFoundException): File does not exist",
        "FileNotFoundException - File does not exist: /t/x",
    ],
)
def test_a_data_node_says_in_other_words_that_a_file_is_missing(memory, memory_io, said):
    name = "FileNotFoundException" if said.startswith("File does") else "IOException"

    def fail():
        raise RefusedError(404 if name.startswith("File") else 403, name, said)

    memory.before["OPEN"] = fail
    with pytest.raises(NoSuchFileError):
        memory_io.read(f"{PLACE}/x")


WAYS_TO_READ = {
    "whole": lambda io: io.read(f"{PLACE}/x"),
    "stream": lambda io: io.open_input(f"{PLACE}/x").read(),
    "stated": lambda io: io.open_input(f"{PLACE}/x", len(DATA)).read(),
    "at": lambda io: io.open_input(f"{PLACE}/x").read_at(len(DATA), 0),
}


@pytest.mark.parametrize("fault", ["unframed", "chunked", "login", "blank"])
@pytest.mark.parametrize("way", WAYS_TO_READ)
def test_bytes_that_say_nowhere_where_they_end_are_compared_with_the_file(
    memory, memory_proxy, memory_io, way, fault
):
    memory.put("/t/x", DATA)
    memory_proxy.faults["OPEN@data"] = [fault]
    assert WAYS_TO_READ[way](memory_io) == DATA
    assert memory_proxy.calls["OPEN@data"] == (1 if fault == "chunked" else 2)


def test_a_file_is_read_whose_answers_never_say_where_they_end(memory, memory_proxy, memory_io):
    memory.put("/t/x", DATA)
    memory_proxy.cut_at = len
    memory_proxy.faults["OPEN@data"] = ["unframed"] * 2
    assert memory_io.read(f"{PLACE}/x") == DATA
    assert memory_proxy.calls["OPEN@data"] == 1


def test_a_file_that_is_cut_each_time_is_an_error_of_the_way_there(memory, memory_proxy, memory_io):
    memory.put("/t/x", DATA)
    memory_proxy.faults["OPEN@data"] = ["unframed"] * 9
    with pytest.raises(FileIOError, match="500 bytes arrived instead of 1000") as caught:
        memory_io.read(f"{PLACE}/x")
    assert "remove" not in str(caught.value)


@pytest.mark.parametrize("cut_at", sampled(["half", "header"], keep=1))
def test_a_manifest_list_that_is_cut_hides_no_rows(memory_proxy, memory_settings, cut_at):
    """Behind its head a file of Avro may end anywhere between two blocks."""
    catalog = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    loaded = load_catalog(
        "other", type="hadoop", warehouse="hdfs://lake/w", **memory_settings
    ).load_table("db.t")
    if cut_at == "header":
        memory_proxy.cut_at = lambda body: body.index(body[-16:]) + 16
    memory_proxy.faults["OPEN@data"] = ["unframed"]
    assert loaded.scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("call", sampled(["OPEN", "GETFILESTATUS"], keep=1))
def test_an_answer_of_which_each_byte_comes_in_time_is_late_as_a_whole(
    memory, memory_settings, call
):
    limits = {"dfs.webhdfs.socket.read-timeout": "300ms", "dfs.client.failover.max.attempts": "1"}
    direct = {"dfs.namenode.http-address": memory.address}
    io = FileIO({**memory_settings, **limits, **direct})
    memory.put("/t/x", DATA)
    memory.pause_s = 0.05
    with pytest.raises(FileIOError, match=r"no active name node|Cannot read"):
        io.size(f"{PLACE}/x") if call == "GETFILESTATUS" else io.read(f"{PLACE}/x")
    io.close()


@pytest.mark.parametrize(
    ("renamed", "fault"),
    sampled(itertools.product(RENAMES, ["login", "done_login", "later"]), keep=1),
)
def test_an_append_is_there_or_it_failed_and_never_comes(
    memory_proxy, memory_settings, fault, renamed
):
    catalog = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    memory_proxy.faults["RENAME"] = [""] * RENAMES.index(renamed) + [fault]
    rows = [1]
    try:
        table.append(pa.table({"id": [2]}))
        rows.append(2)
    except IcecombError:
        assert fault != "done_login"
        assert renamed != "hint"
    assert memory_proxy.faults["RENAME"] == []
    memory_proxy.deliver()
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == rows
    table.append(pa.table({"id": [3]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*rows, 3]


def dropped_halfway(memory, memory_settings, refuse):
    """Return the catalog, and the error of a drop in which the name node refuses to delete some paths."""
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in (1, 2):
        table.append(pa.table({"id": [number]}))
    memory.keeps = refuse
    with pytest.raises(FileIOError) as caught:
        lake.drop_table("db.t", purge_requested=True)
    memory.keeps = None
    return lake, caught.value


def test_a_drop_that_fails_halfway_does_not_bring_an_older_version_back(memory, memory_settings):
    """The first one has no rows: it would be read as an empty table."""
    lake, _ = dropped_halfway(
        memory, memory_settings, lambda path: path.endswith("/v1.metadata.json")
    )
    with pytest.raises(NoSuchFileError):
        lake.load_table("db.t").scan().to_arrow()
    lake.drop_table("db.t", purge_requested=True)
    assert visible(memory) == []


def test_a_drop_that_leaves_only_the_folder_says_that_the_table_is_gone(memory, memory_settings):
    lake, error = dropped_halfway(memory, memory_settings, lambda path: path == "/w/db/t")
    assert "SnapshotException" in str(error)
    assert error.hint.startswith("The table is gone")
    assert "-deleteSnapshot" in error.hint
    assert not lake.table_exists("db.t")


@pytest.mark.parametrize(("folder", "owner"), [("", "bob"), ("/data", "alice")])
def test_a_table_whose_folder_has_snapshots_is_not_dropped_by_halves(
    memory, memory_settings, folder, owner
):
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    memory.snapshots = {f"/w/db/t{folder}": owner}
    with pytest.raises(ValidationError, match=f"hdfs://lake/w/db/t{folder} has snapshots of HDFS"):
        lake.drop_table("db.t", purge_requested=True)
    assert lake.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
    memory.snapshots.clear()
    lake.drop_table("db.t", purge_requested=True)
    assert not lake.table_exists("db.t")


def no_names_left(memory):
    """A quota of names that ends between the folder of a file and the file, as it does in a name node."""

    def refuse():
        memory.before["CREATE@data"] = refuse
        memory.put("/w/db/t/data/p=1/x", b"")
        del memory.files["/w/db/t/data/p=1/x"]
        raise RefusedError(403, "NSQuotaExceededException", "The NameSpace quota is exceeded")

    memory.before["CREATE@data"] = refuse


def no_commit(memory):
    renames = itertools.count()

    def refuse():
        memory.before["RENAME"] = refuse
        if next(renames) >= 2:
            raise RefusedError(403, "AccessControlException", "Permission denied")

    memory.before["RENAME"] = refuse


@pytest.mark.parametrize("fails", [no_names_left, no_commit])
@pytest.mark.parametrize("was_there", [False, True])
def test_a_failed_append_leaves_no_empty_folder_that_it_made(
    memory, memory_settings, fails, was_there
):
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("p", pa.int64())]))
    table.update_spec().add_field("p", "identity").commit()
    for folder in ("p=2", "p=1") if was_there else ("p=2",):
        memory.put(f"/w/db/t/data/{folder}/x", b"")
        del memory.files[f"/w/db/t/data/{folder}/x"]
    before = {*memory.folders}
    fails(memory)
    with pytest.raises(IcecombError, match=r"quota|Permission denied"):
        table.append(pa.table({"id": [1], "p": [1]}))
    assert {*memory.folders} == before
    assert not [path for path in memory.files if "/data/" in path]


def odd(answer, message, status, operations):
    """Publications are done and answered so, as is what is asked after one."""
    told = []

    def answered(operation, path, asked, handler):
        if operation == "RENAME" and asked["destination"].endswith(".metadata.json"):
            answer(operation, path, asked, QUIET)
            told.append(path)
        if told and operation in operations:
            raise RefusedError(status, "IOException", message)
        answer(operation, path, asked, handler)

    return answered


class QUIET:
    """Who hears no answer."""

    path = ""
    reply = staticmethod(lambda *_: None)


@pytest.mark.parametrize(
    ("message", "status"),
    sampled(itertools.product([None, "", "\n", ["x"], {"x": 1}, 7], [403, 500]), keep=5),
)
def test_a_commit_whose_answer_says_nothing_did_not_fail(
    memory, memory_settings, monkeypatch, message, status
):
    lake = load_catalog("lake", type="hadoop", warehouse="hdfs://lake/w", **memory_settings)
    lake.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = lake.create_table("db.t", rows.schema)
    looks = {"RENAME", "GETFILESTATUS", "DELETE"}
    with monkeypatch.context() as patched:
        patched.setattr(memory, "answer", odd(memory.answer, message, status, looks))
        table.append(rows)
    with monkeypatch.context() as patched:
        patched.setattr(memory, "answer", odd(memory.answer, message, status, {*looks, "OPEN"}))
        with pytest.raises(CommitStateUnknownError, match="unknown whether"):
            table.append(rows)
    assert lake.load_table("db.t").scan().count() == 6
    lake.close()
