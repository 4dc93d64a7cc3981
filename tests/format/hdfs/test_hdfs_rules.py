"""What becomes of a file whose upload is cut or whose rename is not answered, without a cluster.

The same on a real HDFS: `test_hdfs_faults`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from types import SimpleNamespace

import pytest

from icecomb.format.errors import FileAlreadyExistsError, FileIOError, NoSuchFileError
from icecomb.format.storage.file_io import FileIO

PLACE = "hdfs://lake/t"
LARGE = bytes(range(250)) * 40_000
"""More than is held back to be sent again."""


@pytest.fixture
def proxy(memory_proxy):
    return memory_proxy


@pytest.fixture
def io(memory_io):
    return memory_io


def names(memory):
    """Visible files, and how many hidden ones."""
    visible = sorted(path for path in memory.files if "/." not in path)
    return visible, len(memory.files) - len(visible)


@pytest.mark.parametrize("faults", [["lose"], ["lose", "lose"], ["refuse", "lose"]])
def test_a_rename_whose_answers_were_lost_is_known_by_the_id_of_the_file(io, proxy, memory, faults):
    proxy.faults["RENAME"] = faults
    io.create(f"{PLACE}/x", b"ours")
    assert memory.files["/t/x"].data == b"ours"
    assert names(memory) == (["/t/x"], 0)


def test_a_name_that_another_took_while_the_answer_was_waited_for_is_theirs(io, proxy, memory):
    """The first rename never arrived; before the second, somebody else has made the file."""
    memory.before["RENAME"] = lambda: memory.put("/t/x", b"theirs")
    proxy.faults["RENAME"] = ["refuse"]
    with pytest.raises(FileAlreadyExistsError):
        io.create(f"{PLACE}/x", b"ours")
    assert memory.files["/t/x"].data == b"theirs"
    assert names(memory) == (["/t/x"], 0)


def test_a_file_like_ours_under_the_name_is_not_taken_for_ours(io, proxy, memory):
    """It has the same bytes, and another id."""
    memory.before["RENAME"] = lambda: memory.put("/t/x", b"same")
    proxy.faults["RENAME"] = ["refuse"]
    with pytest.raises(FileAlreadyExistsError):
        io.create(f"{PLACE}/x", b"same")


def test_a_rename_of_a_file_is_settled_alike(io, proxy, memory):
    memory.put("/t/a", b"data")
    proxy.faults["RENAME"] = ["lose"]
    io.rename(f"{PLACE}/a", f"{PLACE}/b")
    assert names(memory) == (["/t/b"], 0)
    memory.put("/t/c", b"other")
    proxy.faults["RENAME"] = ["lose"]
    with pytest.raises(FileAlreadyExistsError):
        io.rename(f"{PLACE}/c", f"{PLACE}/b")
    assert memory.files["/t/b"].data == b"data"
    assert memory.files["/t/c"].data == b"other"


def test_what_became_of_a_rename_is_asked_until_it_is_answered(io, proxy, memory):
    proxy.faults["RENAME"] = ["lose", "lose"]
    # the first is about the length of what was uploaded
    proxy.faults["GETFILESTATUS"] = ["", "html", "html"]
    io.create(f"{PLACE}/x", b"ours")
    assert names(memory) == (["/t/x"], 0)


FAULTS = ("cut", "lose", "refuse")


def break_next_upload(memory, proxy, fault):
    if fault == "cut":
        memory.cuts_after = 25_000
    else:
        proxy.faults["CREATE@data"] = [fault]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_small_file_that_is_cut_is_sent_again_under_another_name(io, proxy, memory, fault):
    break_next_upload(memory, proxy, fault)
    io.create(f"{PLACE}/x", b"x" * 50_000)
    assert memory.files["/t/x"].data == b"x" * 50_000
    assert proxy.calls["CREATE@data"] == 2
    assert names(memory) == (["/t/x"], 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_stream_that_is_cut_is_an_error_and_never_a_file(io, proxy, memory, fault):
    break_next_upload(memory, proxy, fault)
    with (  # noqa: PT012
        pytest.raises(FileIOError, match=f"Cannot write {PLACE}/x at data node"),
        io.create_stream(f"{PLACE}/x") as out,
    ):
        for start in range(0, len(LARGE), 500_000):
            out.write(LARGE[start : start + 500_000])
    assert names(memory)[0] == []
    assert proxy.calls["RENAME"] == 0


def test_a_file_of_which_less_arrived_than_was_sent_gets_no_name(io, proxy, memory):
    memory.loses = 7
    with (
        pytest.raises(FileIOError, match=r"10000000 bytes were sent, 9999993 arrived"),
        io.create_stream(f"{PLACE}/x") as out,
    ):
        out.write(LARGE)
    assert names(memory) == ([], 0)
    assert proxy.calls["RENAME"] == 0
    memory.loses = 7
    io.create(f"{PLACE}/small", b"1" * 1000)
    assert memory.files["/t/small"].data == b"1" * 1000
    assert names(memory) == (["/t/small"], 0)


def test_a_block_that_fails_leaves_no_file(io, memory):
    with pytest.raises(ZeroDivisionError), io.create_stream(f"{PLACE}/x") as out:  # noqa: PT012
        out.write(LARGE)
        _ = 1 // 0
    assert names(memory) == ([], 0)


@pytest.mark.parametrize("fault", ["truncate", "refuse", "lose", "html"])
def test_a_read_that_breaks_off_is_repeated_at_another_data_node(io, proxy, memory, fault):
    memory.put("/t/x", LARGE)
    proxy.faults["OPEN@data"] = [fault]
    assert io.read(f"{PLACE}/x") == LARGE
    assert proxy.calls["OPEN@data"] == 2
    with pytest.raises(NoSuchFileError):
        io.read(f"{PLACE}/y")


@pytest.fixture
def dead():
    """The address of a data node that died a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_data_node_that_failed_is_asked_nothing_while_there_is_another(
    memory, dead, memory_settings
):
    """The name node goes on to send to it first, as it does beside a dead data node."""
    io = FileIO({**memory_settings, "dfs.namenode.http-address": memory.address})
    memory.data_nodes = {"127.0.0.1:9999": dead, **memory.data_nodes}
    with io.create_stream(f"{PLACE}/large") as out:
        out.write(LARGE)
    io.create(f"{PLACE}/small", b"1")
    assert memory.calls.count("CREATE") == 3
    reader = FileIO({**memory_settings, "dfs.namenode.http-address": memory.address})
    assert reader.read(f"{PLACE}/small") == b"1"
    assert reader.read(f"{PLACE}/large") == LARGE
    assert memory.calls.count("OPEN") == 3


def test_a_data_node_that_failed_is_asked_again_where_there_is_no_other(
    memory, dead, memory_settings
):
    io = FileIO({**memory_settings, "dfs.namenode.http-address": memory.address})
    (known,) = memory.data_nodes
    there, memory.data_nodes = memory.data_nodes, {known: dead}
    with pytest.raises(FileIOError, match=f"Cannot write {PLACE}/x at data node {dead}"):
        io.create(f"{PLACE}/x", b"1")
    memory.data_nodes = there
    io.create(f"{PLACE}/x", b"1")
    assert io.read(f"{PLACE}/x") == b"1"


@pytest.fixture
def native_io(memory_settings, monkeypatch):
    """An `hdfs-native` that finds no file: it selects its name node itself, perhaps an observer."""

    def read(_):
        raise FileNotFoundError

    library = SimpleNamespace(Client=lambda *_, **__: SimpleNamespace(read=read))
    monkeypatch.setitem(sys.modules, "hdfs_native", library)
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    made = FileIO({**memory_settings, "hdfs.engine": "native"})
    yield made
    made.close()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_is_missing_where_the_active_name_node_says_so_too(memory, native_io, is_there):
    if is_there:
        memory.put("/t/x", b"1")
    with pytest.raises(FileIOError, match=r"hdfs-native does not know|does not exist") as caught:
        native_io.read(f"{PLACE}/x")
    assert isinstance(caught.value, NoSuchFileError) is not is_there


def test_a_fork_of_a_process_that_used_hdfs_native_goes_by_webhdfs(memory, native_io):
    """The library's threads are not in it: its first read would never end."""
    memory.put("/t/x", b"1")
    with pytest.raises(FileIOError, match="hdfs-native does not know"):
        native_io.read(f"{PLACE}/x")
    child = os.fork()
    if not child:
        try:
            os._exit(native_io.read(f"{PLACE}/x") != b"1")
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("replace", "option"), [(False, "NONE"), (True, "OVERWRITE")])
def test_the_name_node_is_told_whether_a_file_may_be_replaced(io, memory, replace, option):
    """Without the option it would move a file into a folder of that name."""
    with io.prepare(f"{PLACE}/x", b"1", replace=replace) as publish:
        publish()
    assert memory.files["/t/x"].asked["renameoptions"] == option


def test_folders_beside_each_other_are_looked_at_together_and_listed_in_order(
    io, memory, monkeypatch
):
    wanted = ["/t/a", *(f"/t/p{number}/x" for number in range(8))]
    wanted.insert(5, "/t/p3/deep/y")
    for path in wanted:
        memory.put(path, b"")
    together = threading.Barrier(8)

    class Each(dict):
        pop = dict.get  # not only the next time

    def look():
        if memory.calls.count("LISTSTATUS") == 1:  # those below the first
            together.wait(60)

    memory.calls.clear()
    monkeypatch.setattr(memory, "before", Each(LISTSTATUS=look))
    found = [file.location.removeprefix("hdfs://lake") for file in io.list(PLACE)]
    assert found == wanted
    assert memory.calls.count("LISTSTATUS") == 10
