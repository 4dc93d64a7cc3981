"""What networks, name nodes and data nodes do to calls, between us and a real HDFS."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import FileAlreadyExistsError, FileIOError, NoSuchFileError
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled


@pytest.fixture
def io(proxied, request):
    """Patient, unless somebody will never answer."""
    name = request.node.name
    patience = "300ms" if "never_answers" in name else "2s" if "hang" in name else "60s"
    return FileIO({**proxied, "dfs.webhdfs.socket.read-timeout": patience})


@pytest.fixture
def direct(hdfs):
    return FileIO({**hdfs.client_settings, "hdfs.user": "alice"})


def files(direct, place):
    return {each.location.removeprefix(f"{place}/"): each.size for each in direct.list(place)}


def test_calls_of_each_step_are_few_and_known(io, proxy, place):
    io.create(f"{place}/x", b"1" * 1000)
    assert proxy.calls == {"CREATE": 1, "CREATE@data": 1, "GETFILESTATUS": 2, "RENAME": 1}
    proxy.calls.clear()
    io.read(f"{place}/x")
    assert proxy.calls == {"OPEN": 1, "OPEN@data": 1}
    proxy.calls.clear()
    with io.open_input(f"{place}/x") as file:
        file.seek(900)
        file.read(10)
        file.seek(0)
        file.read()
    assert proxy.calls == {"GETFILESTATUS": 1, "OPEN": 1, "OPEN@data": 1}
    proxy.calls.clear()
    assert len(list(io.list(place))) == 1
    assert io.exists(f"{place}/x")
    io.delete([f"{place}/x", f"{place}/y"])
    assert proxy.calls == {"LISTSTATUS": 1, "GETFILESTATUS": 3, "DELETE": 1}


@pytest.mark.parametrize(
    ("call", "fault"),
    sampled(itertools.product(("CREATE", "GETFILESTATUS", "RENAME"), ("lose", "refuse")), keep=2),
)
def test_a_call_at_the_name_node_that_fails_once_costs_nothing(
    io, proxy, direct, place, call, fault
):
    proxy.faults[call] = [fault]
    io.create(f"{place}/x", b"data")
    assert proxy.faults[call] == []
    assert files(direct, place) == {"x": 4}


def test_a_rename_that_was_done_though_its_answers_were_lost_is_a_success(io, proxy, direct, place):
    proxy.faults["RENAME"] = ["lose", "lose"]
    io.create(f"{place}/x", b"data")
    assert direct.read(f"{place}/x") == b"data"
    with pytest.raises(FileAlreadyExistsError):
        io.create(f"{place}/x", b"other")
    assert files(direct, place) == {"x": 4}


def test_a_rename_of_a_file_whose_answer_was_lost_is_a_success(io, proxy, direct, place):
    io.create(f"{place}/a", b"data")
    proxy.faults["RENAME"] = ["lose"]
    io.rename(f"{place}/a", f"{place}/b")
    assert files(direct, place) == {"b": 4}


@pytest.mark.parametrize("fault", sampled(["cut", "refuse", "lose", "hang"], keep=1))
def test_a_small_file_that_is_lost_on_its_way_is_sent_again(io, proxy, direct, place, fault):
    data = os.urandom(100_000)
    proxy.faults["CREATE@data"] = [fault]
    io.create(f"{place}/x", data)
    proxy.faults["CREATE@data"] = [fault]
    with io.create_stream(f"{place}/y") as out:
        out.write(data[:70_000])
        out.write(data[70_000:])
    assert direct.read(f"{place}/x") == direct.read(f"{place}/y") == data
    assert proxy.calls["CREATE@data"] == 4


@pytest.mark.parametrize("fault", sampled(["cut", "refuse", "lose"], keep=1))
def test_a_stream_that_is_lost_on_its_way_is_an_error_and_no_file(io, proxy, direct, place, fault):
    proxy.faults["CREATE@data"] = [fault]
    with (  # noqa: PT012
        pytest.raises(FileIOError, match=f"Cannot write {place}/x at data node"),
        io.create_stream(f"{place}/x") as out,
    ):
        for _ in range(20):
            out.write(os.urandom(500_000))
    assert not direct.exists(f"{place}/x")
    assert not [name for name in files(direct, place) if not name.startswith(".")]


@pytest.mark.parametrize("fault", sampled(["truncate", "refuse", "hang", "lose", "html"], keep=1))
def test_a_read_that_fails_is_repeated(io, proxy, place, fault):
    data = os.urandom(300_000)
    io.create(f"{place}/x", data)
    proxy.faults["OPEN@data"] = [fault]
    assert io.read(f"{place}/x") == data
    with io.open_input(f"{place}/x") as file:
        proxy.faults["OPEN@data"] = [fault]
        assert file.read() == data
    assert proxy.faults["OPEN@data"] == []


def test_a_read_that_goes_on_failing_ends_in_an_error(io, proxy, place):
    io.create(f"{place}/x", b"x" * 1000)
    proxy.faults["OPEN@data"] = ["truncate"] * 20
    with pytest.raises(FileIOError, match=f"Cannot read {place}/x"):
        io.read(f"{place}/x")


def test_an_error_page_of_another_server_is_named(io, proxy, place):
    proxy.faults["GETFILESTATUS"] = ["html"] * 20
    with pytest.raises(FileIOError, match="did not answer as WebHDFS does"):
        io.size(f"{place}/x")


def test_a_name_node_that_never_answers_is_given_up(io, proxy, place):
    proxy.faults["GETFILESTATUS"] = ["hang"] * 20
    with pytest.raises(FileIOError, match=r"no active name node \(127.0.0.1:\d+: listens"):
        io.size(f"{place}/x")


def test_a_delete_whose_answer_was_lost_is_done(io, proxy, direct, place):
    io.create(f"{place}/x", b"1")
    proxy.faults["DELETE"] = ["lose"]
    io.delete(f"{place}/x")
    assert files(direct, place) == {}


def test_a_file_that_another_writer_has_open_counts_as_taken(hdfs, direct, place):
    """Both are creating the very file: WebHDFS answers with AlreadyBeingCreatedException."""
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem

    files_system = HdfsFileSystem({**hdfs.client_settings, "hdfs.user": "alice"})
    web, address = files_system.cluster(f"{place}/x")
    with web.upload(address.path, f"{place}/x") as first:
        first.write(b"first")
        end = time.monotonic() + 60
        while not direct.exists(f"{place}/x"):  # the data node creates it, not our call
            assert time.monotonic() < end
            time.sleep(0.01)
        seen = []

        def second():
            with (
                pytest.raises((FileAlreadyExistsError, FileIOError)) as caught,
                web.upload(address.path, "second") as upload,
            ):
                upload.write(b"second")
            seen.append(type(caught.value))

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert seen == [FileAlreadyExistsError]
    assert direct.read(f"{place}/x") == b"first"


def test_what_the_cluster_refuses_is_said_in_plain_words(hdfs, direct, place):
    with pytest.raises(FileIOError, match=r"Permission denied: user=alice") as caught:
        direct.create(f"{hdfs.uri}/elsewhere/x", b"1")
    assert "hdfs.user" in str(caught.value)
    with pytest.raises(FileIOError, match="HDFS allows no colon"):
        direct.create(f"{place}/a:b", b"1")
    hdfs.dfsadmin("-safemode", "enter")
    try:
        with pytest.raises(FileIOError, match="Name node is in safe mode"):
            direct.create(f"{place}/x", b"1")
    finally:
        hdfs.dfsadmin("-safemode", "leave")
    hdfs.request("PUT", f"/warehouse/{place.rpartition('/')[2]}?op=MKDIRS&permission=1777")
    hdfs.dfsadmin("-setSpaceQuota", "1k", place.removeprefix(hdfs.uri))
    with pytest.raises(FileIOError, match=r"quota of /warehouse/.* is exceeded"):
        direct.create(f"{place}/x", b"1")
    assert files(direct, place) == {}
    with pytest.raises(NoSuchFileError, match="does not exist"):
        direct.read(f"{place}/x")


@pytest.mark.full("waits for the name of a host")
def test_an_unknown_host_and_a_closed_port_are_told_apart():
    with pytest.raises(FileIOError, match=r"nowhere\.invalid:9870: the host name is unknown"):
        FileIO().read("hdfs://nowhere.invalid:8020/x")
    with pytest.raises(FileIOError, match=r"127\.0\.0\.1:1: Connection refused"):
        FileIO().read("webhdfs://127.0.0.1:1/x")


def test_trash_keeps_what_is_deleted(hdfs, direct, place):
    hdfs.request("PUT", "/user/alice?op=MKDIRS&permission=0777")
    trashing = FileIO({**hdfs.client_settings, "hdfs.user": "alice", "hdfs.trash": "true"})
    for content in (b"1", b"2"):
        direct.create(f"{place}/x", content)
        trashing.delete([f"{place}/x", f"{place}/none"])
    assert files(direct, place) == {}
    kept = list(direct.list(f"{hdfs.uri}/user/alice/.Trash/Current{place.removeprefix(hdfs.uri)}"))
    assert sorted(direct.read(each.location) for each in kept) == [b"1", b"2"]


def test_a_folder_with_files_is_not_taken_for_a_file_to_delete(hdfs, direct, place):
    hdfs.request("PUT", "/user/alice?op=MKDIRS&permission=0777")
    direct.create(f"{place}/folder/x", b"1")
    trashing = FileIO({**hdfs.client_settings, "hdfs.user": "alice", "hdfs.trash": "true"})
    for io in (direct, trashing):
        with pytest.raises(FileIOError, match="Cannot delete"):
            io.delete(f"{place}/folder")
    assert direct.read(f"{place}/folder/x") == b"1"


def test_a_proxy_user_owns_what_is_made_for_it(hdfs, place):
    io = FileIO({**hdfs.client_settings, "hdfs.user": "hdfs", "hdfs.proxy-user": "carol"})
    io.create(f"{place}/x", b"1")
    assert b'"owner":"carol"' in hdfs.request(
        "GET", f"{place.removeprefix(hdfs.uri)}/x?op=GETFILESTATUS"
    )


def test_who_asks_may_change_with_the_environment(hdfs, place, monkeypatch):
    for user in ("alice", "carol"):
        monkeypatch.setenv("HADOOP_USER_NAME", user)
        FileIO(hdfs.client_settings).create(f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}/{user}", b"1")
    found = hdfs.request("GET", "/warehouse?op=LISTSTATUS")
    assert b'"owner":"alice"' in found
    assert b'"owner":"carol"' in found


def test_a_delegation_token_is_enough(hdfs, place):
    """Without security a name node hands out none; the call carries it and no user name."""
    from icecomb.format.storage.hdfs.address import resolve_location
    from icecomb.format.storage.hdfs.session import HdfsSession

    settings = {"hdfs.delegation-token": "secret-token", "hdfs.user": "alice"}
    settings["fs.defaultFS"] = "webhdfs://nn"
    session = HdfsSession(settings, resolve_location("/x", settings))
    prepared = []
    session.requests.mount("http://", _Recorder(prepared))
    with pytest.raises(ZeroDivisionError):
        session.requests.request(
            "get", "http://nn/webhdfs/v1/x", params={"op": "OPEN", "user.name": "alice"}
        )
    assert "delegation=secret-token" in prepared[0]
    assert "user.name" not in prepared[0]
    session.requests.close()


class _Recorder:
    def __init__(self, seen):
        self.seen = seen

    def send(self, request, **_):
        self.seen.append(request.url)
        return 1 // 0

    def close(self):
        pass


def test_a_writer_that_is_cleaned_away_after_a_failure_is_quiet(io, proxy, place):
    """pyarrow's Parquet writer writes its footer when it is collected."""
    table = pa.table({"x": [os.urandom(90_000) for _ in range(110)]})
    proxy.faults["CREATE@data"] = ["cut"]
    with pytest.raises(FileIOError), io.create_stream(f"{place}/x") as out:  # noqa: PT012
        writer = pq.ParquetWriter(out, table.schema, compression="none")
        for _ in range(5):
            writer.write_table(table)
    del writer, out
    gc.collect()
    assert not io.exists(f"{place}/x")
