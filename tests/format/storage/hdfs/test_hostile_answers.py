"""Whatever hosts that a location names answer, icecomb's own errors say so, in text that can be printed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyarrow.fs import FileSelector

from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.web_hdfs import transfer_address
from tests.format.storage.test_time_limit import endless
from tests.peers.listener import Answer, Listener
from tests.rings import sampled

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
DEEP = b'{"RemoteException":' + b"[" * 100_000
ESCAPE = "\x1b]0;owned\x07"
QUICK = {"dfs.client.failover.max.attempts": "1", "dfs.webhdfs.socket.read-timeout": "5s"}


def refusal(exception: Any, message: Any, status: int = 403) -> Answer:
    told = {"exception": exception, "javaClassName": "x", "message": message}
    return status, JSON, json.dumps({"RemoteException": told}).encode()


def file(**more: Any) -> Answer:
    known = {"pathSuffix": "", "type": "FILE", "length": 9, "modificationTime": 1, "fileId": 1}
    return 200, JSON, json.dumps({"FileStatus": {**known, **more}}).encode()


@pytest.fixture
def server() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


@pytest.fixture
def io(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileIO]:
    from icecomb.format.storage.hdfs import web_hdfs

    monkeypatch.setattr(web_hdfs.time, "sleep", lambda _: None)
    found = FileIO(QUICK)
    yield found
    found.close()


CALLS: dict[str, Callable[[FileIO, str], Any]] = {
    "exists": lambda io, at: io.exists(at),
    "list": lambda io, at: [*io.list(at)],
    "create": lambda io, at: io.create(at, b"data"),
    "delete": lambda io, at: io.delete(at),
    "rename": lambda io, at: io.rename(at, f"{at}2"),
    "folder": lambda io, at: io.create_folder(at),
    "folders": lambda io, at: io.folders(at),
}
NAME_NODE: dict[str, Answer] = {
    "deep": (200, JSON, DEEP),
    "deep 401": (401, JSON, DEEP),
    "deep 403": (403, JSON, DEEP),
    "list 401": (401, JSON, b"[1]"),
    "text": (200, JSON, b'"x"'),
    "huge number": (200, JSON, b'{"FileStatus":{"length":%s}}' % (b"9" * 5000)),
    "no message": refusal("X", None),
    "no known message": refusal("IOException", None),
    "blank message": refusal("X", "\n\n"),
    "blank known message": refusal("IOException", "\n"),
    "list for a name": refusal(["X"], "m"),
    "list for a message": refusal("IOException", ["m"]),
    "packed": (200, {**JSON, "Content-Encoding": "gzip"}, b"nope"),
    "charset": (200, {"Content-Type": "application/json; charset=nope"}, b"\xff"),
    "negative": file(length=-5),
    "escapes": refusal(f"X{ESCAPE}", f"no {ESCAPE}"),
    "escapes, known": refusal("AccessControlException", f"no {ESCAPE}"),
    "escapes, 401": refusal("SecurityException", f"no {ESCAPE}", 401),
    "escapes, page": (200, {"Content-Type": f"text/{ESCAPE}"}, f"{ESCAPE}".encode()),
}


@pytest.mark.parametrize("answer", NAME_NODE.values(), ids=NAME_NODE)
def test_what_a_name_node_answers_ends_in_an_error_that_can_be_printed(
    io: FileIO, server: Listener, answer: Answer
) -> None:
    server.answer = lambda *_: answer
    for call in CALLS.values():
        with pytest.raises(IcecombError) as failed:
            call(io, f"webhdfs://{server.address}/x")
        assert "\x1b" not in str(failed.value)


@pytest.mark.parametrize("kind", ["FILE", "DIRECTORY"])
@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x"])
def test_a_folder_has_no_entry_that_leads_elsewhere(
    io: FileIO, server: Listener, name: str, kind: str
) -> None:
    known = {"length": 9, "modificationTime": 1, "fileId": 1}
    listed = [{**known, "pathSuffix": "a", "type": "FILE"}] if kind == "FILE" else []
    listed.append({**known, "pathSuffix": name, "type": kind})
    body = json.dumps({"FileStatuses": {"FileStatus": listed}}).encode()
    server.answer = lambda *_: (200, JSON, body)
    for ask in (lambda at: next(io.list(at)), io.entries, io.folders):
        with pytest.raises(FileIOError, match=r"a folder has the entries|a file is called"):
            ask(f"webhdfs://{server.address}/x")


def folder(*names: str) -> Answer:
    one = {"type": "DIRECTORY", "length": 0, "modificationTime": 1, "fileId": 1}
    found = [{**one, "pathSuffix": name} for name in names]
    return 200, JSON, json.dumps({"FileStatuses": {"FileStatus": found}}).encode()


@pytest.mark.parametrize("names", sampled([["d"], ["a", "b"]], keep=1))
def test_folders_in_folders_have_an_end(
    io: FileIO, server: Listener, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICECOMB_MAX_FOLDER_LEVELS", "100")
    before, most = threading.active_count(), 0

    def answer(*_: str) -> Answer:
        nonlocal most
        most = max(most, threading.active_count())
        return folder(*names)

    server.answer = answer
    with pytest.raises(FileIOError, match="more levels of folders than"):
        CALLS["list"](io, f"webhdfs://{server.address}/x")
    assert most < before + 150


def streamed(io: FileIO, location: str) -> None:
    with io.create_stream(location) as stream:
        stream.write(b"data")


TRANSFERS: dict[str, Callable[[FileIO, str], Any]] = {
    "read": lambda io, at: io.read(at),
    "range": lambda io, at: io.open_input(at, 9).read(9),
    "create": lambda io, at: io.create(at, b"data"),
    "stream": streamed,
}
DATA_NODE: dict[str, Answer] = {
    "deep": (403, JSON, DEEP),
    "list for a name": refusal(["x"], "m"),
    "number": refusal(5, 5),
    "no message": refusal("IOException", None),
    "blank message": refusal("Foo", "\n"),
    "number for a message": refusal("Foo", 7),
    "list": (403, JSON, b"[]"),
    "page": (200, {"Content-Type": f"text/html{ESCAPE}"}, ESCAPE.encode()),
    "elsewhere": (302, {"Location": "http://127.0.0.1:1/"}, b""),
    "packed": (200, {**BYTES, "Content-Encoding": "gzip"}, b"xx"),
    "escapes": refusal(f"X{ESCAPE}", f"no {ESCAPE}"),
}


@pytest.mark.parametrize("call", TRANSFERS.values(), ids=TRANSFERS)
@pytest.mark.parametrize("answer", DATA_NODE.values(), ids=DATA_NODE)
def test_what_a_data_node_answers_ends_in_an_error_that_can_be_printed(
    io: FileIO, server: Listener, answer: Answer, call: Callable[[FileIO, str], Any]
) -> None:
    server.answer = leads_to(f"http://{server.address}/webhdfs/v1/x?dn=1", answer)
    with pytest.raises(IcecombError) as failed:
        call(io, f"webhdfs://{server.address}/x")
    assert "\x1b" not in str(failed.value)


def leads_to(url: str, answer: Answer) -> Callable[[str, str], Answer]:
    def answered(_: str, path: str) -> Answer:
        if "dn=1" in path:
            return answer
        if "op=OPEN" in path or "op=CREATE" in path:
            return 307, {**BYTES, "Location": url}, b""
        if "op=GETFILESTATUS" in path:
            return file()
        return 200, JSON, b'{"boolean":true,"beans":[]}'

    return answered


@pytest.mark.parametrize("call", TRANSFERS.values(), ids=TRANSFERS)
@pytest.mark.parametrize(
    "url",
    [
        "", "/x", "http://", "http:///x", "http://[", "http://127.0.0.1:99999999/x",
        "http://127.0.0.1:abc/x", "http://127.0.0.1:0/x", "file:///etc/passwd", "ftp://127.0.0.1/x",
        f"http://{'a' * 300}.x/", "http://\u00ff\u00fe..x/", "http://127.0.0.1:1/a b c",
    ],
)  # fmt: skip
def test_a_data_node_that_cannot_be_is_an_error(
    io: FileIO, server: Listener, url: str, call: Callable[[FileIO, str], Any]
) -> None:
    server.answer = leads_to(url, (200, BYTES, b"data"))
    with pytest.raises(IcecombError):
        call(io, f"webhdfs://{server.address}/x")


def test_a_file_that_goes_on_after_what_was_asked_is_not_read_on(
    io: FileIO, server: Listener
) -> None:
    sent = [0]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
    with endless(head, b"x" * 1000, sent) as address:
        server.answer = leads_to(f"http://{address}/webhdfs/v1/x?dn=1", (500, {}, b""))
        with pytest.raises(FileIOError, match="11 bytes arrived instead of 9"):
            io.open_input(f"webhdfs://{server.address}/x", 9).read(9)
    assert sent[0] < 64 << 20


def test_a_file_beyond_the_limit_is_not_read_whole(
    io: FileIO, server: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "1")
    much = (200, BYTES, b"x" * ((1 << 20) + 1))
    server.answer = leads_to(f"http://{server.address}/webhdfs/v1/x?dn=1", much)
    with pytest.raises(FileIOError, match=r"larger than the limit \(ICECOMB_MAX_UNPACKED_MIB"):
        io.read(f"webhdfs://{server.address}/x")
    assert sum("dn=1" in text for text in server.requests) == 1


def test_a_length_is_not_believed_before_its_bytes_came(io: FileIO, server: Listener) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
    with endless(head + b"Content-Length: %d\r\n\r\n0123456789" % 10**15, b"", [0]) as address:
        server.answer = leads_to(f"http://{address}/webhdfs/v1/x?dn=1", (500, {}, b""))
        for call in ("read", "range"):
            with pytest.raises(FileIOError, match=r"Cannot read webhdfs://"):
                TRANSFERS[call](io, f"webhdfs://{server.address}/x")


def test_a_name_node_that_names_ever_other_dead_data_nodes_keeps_no_write_waiting(
    io: FileIO, server: Listener
) -> None:
    named: list[str] = []

    def answer(_: str, path: str) -> Answer:
        if "op=CREATE" in path:
            named.append(f"http://127.0.0.{len(named) + 2}:1/webhdfs/v1/x?op=CREATE")
            return 307, {**BYTES, "Location": named[-1]}, b""
        if "op=GETFILESTATUS" in path:
            return refusal("FileNotFoundException", "no", 404)
        return 200, JSON, b'{"boolean":true,"beans":[]}'

    server.answer = answer
    with pytest.raises(FileIOError, match="at data node"):
        io.create(f"webhdfs://{server.address}/x", b"data")
    assert len(named) < 60


def by_pyarrow(io: FileIO, folder: str) -> object:
    files, path = io.filesystem(folder)
    return files.get_file_info(FileSelector(path, recursive=True))


LISTINGS: dict[str, Callable[[FileIO, str], object]] = {
    "list": lambda io, folder: [*io.list(folder)],
    "folder_tree": lambda io, folder: [*io.folder_tree(folder)],
    "pyarrow": by_pyarrow,
}


@pytest.mark.parametrize("how", LISTINGS)
def test_a_tree_of_folders_in_folders_ends(
    io: FileIO, server: Listener, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda *_: folder("d")
    where = f"webhdfs://{server.address}/x"
    monkeypatch.setenv("ICECOMB_MAX_FOLDER_LEVELS", "30")
    with pytest.raises(FileIOError, match="levels of folders than ICECOMB_MAX_FOLDER_LEVELS: 30"):
        LISTINGS[how](io, where)
    assert len(server.requests) < 150


def test_a_deep_list_of_data_nodes_names_none():
    assert transfer_address("host:9864", {"LiveNodes": "[" * 100_000}) == ""
