"""A reply answers the call that it names by its number, and all of it has come in time; else nothing is known."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from icecomb.catalog.hive.lock import describe_holder
from icecomb.catalog.hive.thrift import transport, wire
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable, LockRow, LockState, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import ReplyLostError, UnreachableError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.errors import IcecombError

TABLE = HiveTable(database="db", name="t", storage=StorageDescriptor(columns=()))
CHANGES: dict[str, Callable[[HiveClient], object]] = {
    "alter_table_with_environment_context": lambda client: client.alter_table("db", "t", TABLE),
    "create_table": lambda client: client.create_table(TABLE),
    "drop_table": lambda client: client.drop_table("db", "t"),
}
OTHERS: dict[str, Callable[[str, int], tuple[str, int]]] = {
    "name": lambda _, number: ("unlock", number),
    "number": lambda name, number: (name, number - 1),
}


class Server:
    """Answers each call with a void result.

    `.misnames` makes name and number of the next replies, `.pause_s` is taken before each byte.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.misnames: list[Callable[[str, int], tuple[str, int]]] = []
        self.pause_s = 0.0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one, contextlib.suppress(OSError):
            while request := one.recv(1 << 20):
                end = 8 + int.from_bytes(request[4:8], "big")
                name, number = (
                    request[8:end].decode(),
                    int.from_bytes(request[end : end + 4], "big"),
                )
                self.calls.append((name, number))
                if self.misnames:
                    name, number = self.misnames.pop(0)(name, number)
                said = name.encode()
                head = b"\x80\x01\x00\x02" + len(said).to_bytes(4, "big") + said
                reply = head + number.to_bytes(4, "big", signed=True) + self.result(name) + b"\0"
                if not self.pause_s:
                    one.sendall(reply)
                    continue
                for byte in reply:
                    time.sleep(self.pause_s)
                    one.sendall(bytes([byte]))

    @staticmethod
    def result(name: str) -> bytes:
        if name == "get_all_databases":
            return wire.string_list_field(0, ["x" * 1000] * 100)
        return wire.string_field(0, "a value") if name == "get_config_value" else b""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def connected(server: Server, timeout_s: float = 60.0, **others: str) -> HiveClient:
    return HiveClient(server.uri, ConnectionSettings(timeout_s=timeout_s, **others))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_answered_by_the_reply_to_another_call_is_unknown(server, change, other):
    with connected(server) as client:
        CHANGES[change](client)
        server.misnames = [OTHERS[other]]
        with pytest.raises(ReplyLostError, match=f"the reply to another call .*call {change}"):
            CHANGES[change](client)
        # whatever else comes on that connection is of others, too
        CHANGES[change](client)
    assert server.connections == 2
    assert [name for name, _ in server.calls] == [change] * 3


@pytest.mark.parametrize("other", OTHERS)
def test_a_question_that_is_answered_so_is_asked_again_elsewhere(server, other):
    server.misnames = [OTHERS[other]]
    with connected(server) as client:
        assert client.config_value("x") == "a value"
    assert server.connections == 2


@pytest.mark.parametrize("other", OTHERS)
def test_a_server_that_answers_another_call_at_once_lets_nobody_in(server, other):
    server.misnames = [OTHERS[other]]
    with (
        connected(server, user="alice") as client,
        pytest.raises(UnreachableError, match="the reply to another call"),
    ):
        client.config_value("x")


def test_the_calls_of_a_connection_carry_a_running_number(server):
    with connected(server) as client:
        for change in CHANGES.values():
            change(client)
        client.config_value("x")
    numbers = [number for _, number in server.calls]
    assert numbers == [*range(numbers[0], numbers[0] + 4)]


def test_a_reply_of_which_each_byte_comes_in_time_is_late_as_a_whole(server):
    server.pause_s = 0.05
    with (
        connected(server, timeout_s=0.5) as client,
        pytest.raises(ReplyLostError, match=r"did not answer within 0\.5 s"),
    ):
        client.drop_table("db", "t")


def test_each_reply_has_the_whole_time(server, monkeypatch):
    """It is counted from the call, not from the connection."""
    with connected(server) as client:
        client.drop_table("db", "t")
        now = time.monotonic() + 1000
        monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: now))
        client.drop_table("db", "t")
    assert server.connections == 1


def test_a_reply_is_no_larger_than_is_set(server):
    with (
        connected(server, largest_reply=50_000) as client,
        pytest.raises(ReplyLostError, match=r"larger than 50000 bytes \(hive.thrift.client.max"),
    ):
        client.databases()
    with connected(server, largest_reply=110_000) as client:
        assert len(client.databases()) == 100


def test_what_only_a_length_says_is_not_waited_for(server):
    """A text of 2 GB that does not come, and that nobody would take."""
    server.result = lambda _: b"\x0b\0\0\x7f\xff\xff\xff"
    with (
        connected(server) as client,
        pytest.raises(ReplyLostError, match="broke off"),
    ):
        client.config_value("x")


def test_a_list_of_more_elements_than_any_metastore_has_is_refused_before_they_are_made(
    server, monkeypatch
):
    """An empty column takes one byte of the reply, and 180 of memory."""
    columns = b"\0\0\x0f\0\1\x0c" + (2000).to_bytes(4, "big") + b"\0" * 2000
    storage = wire.struct_field(7, columns[2:] + b"\0")
    server.result = lambda _: wire.struct_field(0, wire.string_field(1, "t") + storage + b"\0")
    monkeypatch.setenv("ICECOMB_MAX_REPLY_ELEMENTS", "1999")
    with (
        connected(server) as client,
        pytest.raises(ReplyLostError, match=r"the limit \(ICECOMB_MAX_REPLY_ELEMENTS: 1999 elem"),
    ):
        client.table("db", "t")


def test_a_list_of_as_many_elements_as_the_limit_is_read(server, monkeypatch):
    monkeypatch.setenv("ICECOMB_MAX_REPLY_ELEMENTS", "100")
    with connected(server) as client:
        assert len(client.databases()) == 100


@pytest.mark.parametrize(
    ("said", "size"),
    [("1gb", 1 << 30), ("500MB", 500 << 20), ("7", 7), ("-1", 1 << 30), ("2k", 2048)],
)
def test_the_largest_reply_is_set_as_in_hive(said, size):
    for prefix in ("hive", "metastore"):
        found = ConnectionSettings.of({f"{prefix}.thrift.client.max.message.size": said})
        assert found.largest_reply == size


OBEYED = "no\x1b]0;owned\x07\u202egnp"


def exception(field_id: int) -> bytes:
    return wire.struct_field(field_id, wire.string_field(1, OBEYED) + b"\0")


@pytest.mark.parametrize(
    ("call", "field_id", "ask"),
    [
        ("set_ugi", 1, lambda client: client.databases()),
        ("drop_database", 2, lambda client: client.drop_database("db")),
        ("drop_table", 2, lambda client: client.drop_table("db", "t")),
    ],
    ids=["login", "namespace", "table"],
)
def test_terminals_obey_no_error_of_a_server(server, call, field_id, ask):
    found = {
        "get_database": wire.struct_field(0, wire.string_field(1, "db") + b"\0"),
        call: exception(field_id),
    }
    server.result = lambda name: found.get(name, b"")
    with (
        connected(server, user="alice") as client,
        pytest.raises(IcecombError, match="owned") as error,
    ):
        ask(client)
    assert error.value.message.isprintable()


def test_terminals_obey_no_holder_of_a_lock():
    row = LockRow(7, "db", "t", LockState.ACQUIRED, True, OBEYED, OBEYED, OBEYED, None, None)
    assert describe_holder(row).isprintable()


UNDECLARED = 9
"""No call declares an exception of this number; a newer server may have one."""


@pytest.mark.parametrize(
    "ask",
    [
        *CHANGES.values(),
        lambda client: client.heartbeat(7),
        lambda client: client.lock("db", "t", user="u", host="h", agent="a"),
    ],
    ids=[*CHANGES, "heartbeat", "lock"],
)
def test_an_exception_that_no_call_declares_is_no_success(server, ask):
    server.result = lambda _: exception(UNDECLARED)
    with (
        connected(server) as client,
        pytest.raises(ReplyLostError, match="unknown result"),
    ):
        ask(client)


def entry(database: str, name: str) -> bytes:
    return wire.string_field(1, name) + wire.string_field(2, database) + b"\0"


@pytest.mark.parametrize(
    ("database", "name", "is_other"),
    [("DB", "T", False), ("db", "secrets", True), ("hr", "t", True)],
)
def test_an_entry_of_another_name_than_asked_for_is_not_believed(server, database, name, is_other):
    found = entry(database, name)
    listed = bytes([wire.STRUCT]) + (1).to_bytes(4, "big") + found
    answers = {
        "get_table_req": wire.struct_field(0, wire.struct_field(1, found) + b"\0"),
        "get_table_objects_by_name_req": wire.struct_field(
            0, bytes([wire.LIST, 0, 1]) + listed + b"\0"
        ),
        "get_database": wire.struct_field(0, wire.string_field(1, database) + b"\0"),
    }
    server.result = lambda name: answers[name]
    refused = pytest.raises(ReplyLostError, match=f"about another entry, '{database}")
    with connected(server) as client:
        for ask in (
            lambda: client.table("db", "t"),
            lambda: client.tables("db", ["t"]),
        ):
            with refused if is_other else contextlib.nullcontext():
                ask()
        with refused if database == "hr" else contextlib.nullcontext():
            client.database("db")


def listed(kind: int, *items: bytes) -> bytes:
    count = len(items).to_bytes(4, "big")
    return bytes([wire.LIST, 0, 0, kind]) + count + b"".join(items) + b"\0"


def names_of(*names: str) -> bytes:
    return wire.string_list_field(0, names)


@pytest.mark.parametrize(
    ("names", "is_fine"),
    [
        (["day=2024-01-01/city=New%2FYork", "day=__HIVE_DEFAULT_PARTITION__/city=a=b"], True),
        (["day=1/.."], False),
        (["../day=1"], False),
        (["day=1/city=a", "day=2", "day=1/city=a"], False),
        (["=1"], False),
        ([""], False),
    ],
)
def test_a_name_that_is_no_partition_s_or_comes_twice_is_not_believed(server, names, is_fine):
    server.result = lambda _: names_of(*names)
    refused = pytest.raises(ReplyLostError, match=r"broke off: .*partition")
    with connected(server) as client:
        with contextlib.nullcontext() if is_fine else refused:
            assert client.partitions.names("db", "t") == names
        with contextlib.nullcontext() if is_fine else refused:
            assert [*client.partitions.name_pages("db", "t")] == [names]


def partition(database: str, table: str, *values: str) -> bytes:
    named = wire.string_field(2, database) + wire.string_field(3, table)
    return wire.string_list_field(1, values) + named + b"\0"


@pytest.mark.parametrize(
    ("found", "is_fine"),
    [
        ([("db", "t", "1", "x/y"), ("DB", "T", "", "50%")], True),
        ([("db", "t", "1", "x/y")], True),
        ([("db", "t", "1", "z")], False),
        ([("db", "t", "1")], False),
        ([("db", "t", "1", "x/y"), ("db", "t", "1", "x/y")], False),
        ([("db", "secrets", "1", "x/y")], False),
        ([("hr", "t", "1", "x/y")], False),
    ],
)
def test_a_partition_of_other_values_or_another_table_is_not_believed(server, found, is_fine):
    server.result = lambda _: listed(wire.STRUCT, *(partition(*one) for one in found))
    names = ["day=1/city=x%2Fy", "day=__HIVE_DEFAULT_PARTITION__/city=50%25"]
    with (
        connected(server) as client,
        contextlib.nullcontext() if is_fine else pytest.raises(ReplyLostError, match="about a"),
    ):
        values = [one.values for one in client.partitions.named("db", "t", names)]
        assert values == [one[2:] for one in found]


def number(field_id: int) -> bytes:
    """A number, which as a list has 2,147,483,647 elements of a byte."""
    return b"\x0a" + field_id.to_bytes(2, "big") + b"\x02\x7f\xff\xff\xff\0\0\0"


EMPTY = 3_000_000
NESTED: dict[str, tuple[bytes, Callable[[HiveClient], object]]] = {
    "get_primary_keys": (number(1), lambda client: client.constraints.of("db", "t")),
    "get_table_objects_by_name_req": (
        wire.string_field(1, "\2" + "\0\x2d\0\0" + "\0" * EMPTY),
        lambda client: client.tables("db", ["t"]),
    ),
}


@pytest.mark.parametrize("call", NESTED)
def test_what_is_no_list_is_not_read_as_one_of_more_elements_than_it_has_bytes(server, call):
    """Thrift's decoder passes over fields of other types, whatever they would be as lists."""
    field, ask = NESTED[call]
    server.result = lambda _: wire.struct_field(0, field + b"\0")
    with connected(server) as client, pytest.raises(ReplyLostError, match=call):
        ask(client)


@pytest.mark.parametrize("first", [number(0), wire.struct_field(0, b"\0")])
def test_a_second_result_after_one_of_another_type_is_none(server, first):
    server.result = lambda _: first + wire.struct_list_field(0, [])
    with connected(server) as client, pytest.raises(ReplyLostError, match="has no result"):
        client.grants.of("db", "t")


def test_a_value_that_states_more_elements_than_there_are_bytes_has_no_end():
    for stated in (b"\x0f\0\1\x02", b"\x0e\0\1\x0a", b"\x0d\0\1\x08\x08", b"\x0b\0\1"):
        with pytest.raises(ValueError, match="ends early"):
            list(wire.fields(stated + b"\x7f\xff\xff\xff" + b"\0" * 20))


EMPTY_ANSWERS: dict[str, tuple[bytes, Callable[[HiveClient], object]]] = {
    "lock": (
        wire.struct_field(0, b"\0"),
        lambda client: client.lock("db", "t", user="u", host="h", agent="a"),
    ),
    "check_lock": (wire.struct_field(0, b"\0"), lambda client: client.check_lock(1)),
    "show_locks": (
        wire.struct_field(0, wire.struct_list_field(1, [b"\0"]) + b"\0"),
        lambda client: client.locks("db", "t"),
    ),
    "list_privileges": (
        wire.struct_list_field(0, [b"\0"]),
        lambda client: client.grants.of("db", "t"),
    ),
}


@pytest.mark.parametrize("call", EMPTY_ANSWERS)
def test_an_answer_without_what_it_must_have_is_a_lost_one(server, call):
    answer, ask = EMPTY_ANSWERS[call]
    server.result = lambda _: answer
    with connected(server) as client, pytest.raises(ReplyLostError, match=call):
        ask(client)
