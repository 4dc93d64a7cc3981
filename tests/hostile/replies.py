"""Parsers of what a metastore answers: results and exceptions of all calls, and logins."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.security import SaslSettings
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.thrift.thrift_codec import partition_to_wire, table_to_wire
from icecomb.format.storage.delegation_token import DelegationToken, token_file
from tests.hostile.mutation import changed_bytes, changed_thrift
from tests.hostile.parser import Parser, Sound

REPLY, EXCEPTION = 2, 3
COLUMNS = (FieldSchema("id", "int"), FieldSchema("s", "string", "comment"))
STORAGE = StorageDescriptor(columns=COLUMNS, location="/x", input_format="a")
TABLE = HiveTable("db", "t", storage=STORAGE, parameters={"k": "v"})
PARTITION = HivePartition("db", "t", values=("a",), storage=STORAGE, parameters={"k": "v"})
Call = tuple[Callable[[HiveClient], object], bytes]


def encoded(struct: Any) -> bytes:
    """A struct as Thrift's own library writes it."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocol(buffer))
    return bytes(buffer.getvalue())


class Metastore:
    """A server that gives one answer to each call, of each connection."""

    def __init__(self) -> None:
        self.kind, self.answer = REPLY, b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            one, _ = self.socket.accept()
            one.settimeout(0.5)  # who waits for more than it says is not kept waiting
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        with one, suppress(OSError):
            if asked := one.recv(1 << 16):
                one.sendall(reply_to(asked, self.kind, self.answer))


def reply_to(asked: bytes, kind: int, answer: bytes) -> bytes:
    """The reply to a call, whose name and number it repeats."""
    size = int.from_bytes(asked[4:8], "big")
    name, number = asked[8 : 8 + size], asked[8 + size : 12 + size]
    return b"\x80\x01\x00" + bytes([kind]) + size.to_bytes(4, "big") + name + number + answer


def of_calls(*known: Call, kind: int = REPLY, refuses: bool = False) -> Parser:
    """A parser of results; the first byte of an input says of which call it is one."""
    server = Metastore()
    server.kind = kind

    def read(data: bytes) -> object:
        use, _ = known[data[0] % len(known)]
        server.answer = data[1:]
        with HiveClient(server.uri, ConnectionSettings(timeout_s=5)) as client:
            return use(client)

    def kept(
        change: Callable[[random.Random, bytes], bytes],
    ) -> Callable[[random.Random, bytes], bytes]:
        return lambda draw, data: data[:1] + change(draw, data[1:])

    seeds = [bytes([at]) + answer for at, (_, answer) in enumerate(known)]
    return Parser(
        seeds,
        read,
        (kept(changed_thrift), kept(changed_bytes)),
        refuses=refuses or kind == EXCEPTION,
    )


def thrift_reply(made: Sound) -> Parser:
    del made
    plain = b"\x0c\x00\x00" + b"\x0c\x00\x01" + table_to_wire(TABLE) + b"\x00\x00"
    deep = b"\x00\x0c\x00\x00" + b"\x0c\x00\x01" * 100_000 + b"\x00" * 100_001
    long = b"\x00\x0c\x00\x00\x0c\x00\x01\x0f\x00\x01\x0c" + b"\x7f\xff\xff\xff" + bytes(50)
    text = b"\x00\x0c\x00\x00\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff" + bytes(50)
    found = of_calls((lambda client: client.table("db", "t"), plain))
    return Parser(found.seeds, found.parse, found.change, lambda: (deep, long, text))


def names_replies(made: Sound) -> Parser:
    """Databases, tables, their names and kinds, and facts about the server."""
    del made
    database = ttypes.Database("db", "d", "/x", {"k": "v"}, None, "o", 1)
    tables = ttypes.GetTablesResult(tables=[])
    several = b"\x0c\x00\x00\x0f\x00\x01\x0c\x00\x00\x00\x01" + table_to_wire(TABLE) + b"\x00\x00"
    names = ["t", "\u00e9"]
    return of_calls(
        (lambda c: c.databases(), encoded(ThriftHiveMetastore.get_all_databases_result(names))),
        (lambda c: c.database("db"), encoded(ThriftHiveMetastore.get_database_result(database))),
        (lambda c: c.table_names("db"), encoded(ThriftHiveMetastore.get_all_tables_result(names))),
        (
            lambda c: c.table_names_of_type("db", "VIRTUAL_VIEW"),
            encoded(ThriftHiveMetastore.get_tables_by_type_result(names)),
        ),
        (
            lambda c: c.names_of_types(["MANAGED_TABLE"]),
            encoded(
                ThriftHiveMetastore.get_table_meta_result([ttypes.TableMeta("db", "t", "x", "c")])
            ),
        ),
        (
            lambda c: c.table_names_by_filter("db", "x"),
            encoded(ThriftHiveMetastore.get_table_names_by_filter_result(names)),
        ),
        (
            lambda c: c.tables("db", ["t"]),
            encoded(ThriftHiveMetastore.get_table_objects_by_name_req_result(tables)),
        ),
        (lambda c: c.tables("db", ["t"]), several),
        (lambda c: c.config_value("a"), encoded(ThriftHiveMetastore.get_config_value_result("b"))),
        (lambda c: c.server_name(), encoded(ThriftHiveMetastore.get_config_value_result("b"))),
        (lambda c: c.server_version(), encoded(ThriftHiveMetastore.get_config_value_result("b"))),
    )


def lock_replies(made: Sound) -> Parser:
    """Locks, one's own and all that there are."""
    del made
    granted = ttypes.LockResponse(7, ttypes.LockState.ACQUIRED)
    row = ttypes.ShowLocksResponseElement(
        7, "db", "t", None, ttypes.LockState.WAITING, ttypes.LockType.EXCLUSIVE, 0, 1, 2, "u", "h",
        agentInfo="a",
    )  # fmt: skip
    held = {"user": "u", "host": "h", "agent": "a"}
    return of_calls(
        (lambda c: c.lock("db", "t", **held), encoded(ThriftHiveMetastore.lock_result(granted))),
        (lambda c: c.check_lock(7), encoded(ThriftHiveMetastore.check_lock_result(granted))),
        (lambda c: c.heartbeat(7), encoded(ThriftHiveMetastore.heartbeat_result())),
        (lambda c: c.unlock(7), encoded(ThriftHiveMetastore.unlock_result())),
        (
            lambda c: c.locks("db", "t"),
            encoded(ThriftHiveMetastore.show_locks_result(ttypes.ShowLocksResponse([row, row]))),
        ),
    )


def partition_replies(made: Sound) -> Parser:
    """Partitions, privileges on them, and constraints."""
    del made
    part = b"\x0f\x00\x00\x0c\x00\x00\x00\x01" + partition_to_wire(PARTITION) + b"\x00"
    place = ttypes.HiveObjectRef(ttypes.HiveObjectType.PARTITION, "db", "t", ["a"], None)
    given = ttypes.PrivilegeGrantInfo("SELECT", 1, "g", 1, True)
    privilege = ttypes.HiveObjectPrivilege(place, "u", 1, given)
    key = ttypes.SQLPrimaryKey("db", "t", "c", 1, "pk", True, True, True)
    keys = ThriftHiveMetastore.get_primary_keys_result(ttypes.PrimaryKeysResponse([key, key]))
    return of_calls(
        (
            lambda c: c.partitions.names("db", "t"),
            encoded(ThriftHiveMetastore.get_partition_names_result(["p=a", "p=b%20"])),
        ),
        (lambda c: c.partitions.named("db", "t", ["p=a"]), part),
        (
            lambda c: c.grants.of("db", "t"),
            encoded(ThriftHiveMetastore.list_privileges_result([privilege] * 2)),
        ),
        (lambda c: c.constraints.of("db", "t"), encoded(keys)),
    )


def refusals(made: Sound) -> Parser:
    """Exceptions of calls that read and that change something; empty results of the latter."""
    del made
    none = ttypes.NoSuchObjectException("none")
    meta = ttypes.MetaException("meta")
    invalid = ttypes.InvalidOperationException("table not found")
    gone = ttypes.NoSuchLockException("gone")
    database = HiveDatabase("db", location="/x")
    return of_calls(
        (lambda c: c.table("db", "t"), encoded(ThriftHiveMetastore.get_table_req_result(o1=meta))),
        (lambda c: c.database("db"), encoded(ThriftHiveMetastore.get_database_result(o1=none))),
        (lambda c: c.check_lock(7), encoded(ThriftHiveMetastore.check_lock_result(o3=gone))),
        (lambda c: c.unlock(7), encoded(ThriftHiveMetastore.unlock_result(o1=gone))),
        (
            lambda c: c.create_table(TABLE),
            encoded(ThriftHiveMetastore.create_table_result(o1=meta)),
        ),
        (lambda c: c.create_table(TABLE), b"\x00"),
        (
            lambda c: c.alter_table("db", "t", TABLE),
            encoded(ThriftHiveMetastore.alter_table_with_environment_context_result(o1=invalid)),
        ),
        (lambda c: c.alter_table("db", "t", TABLE), b"\x00"),
        (
            lambda c: c.drop_table("db", "t"),
            encoded(ThriftHiveMetastore.drop_table_result(o1=none)),
        ),
        (
            lambda c: c.create_database(database),
            encoded(ThriftHiveMetastore.create_database_result(o1=meta)),
        ),
        (lambda c: c.alter_database(database), b"\x00"),
        (
            lambda c: c.drop_database("db"),
            encoded(ThriftHiveMetastore.drop_database_result(o1=none)),
        ),
        (lambda c: c.partitions.add([PARTITION]), b"\x00"),
        (lambda c: c.partitions.alter("db", "t", [PARTITION]), b"\x00"),
        (lambda c: c.partitions.drop("db", "t", ["p=a"]), b"\x00"),
        refuses=True,
    )


def unknown_calls(made: Sound) -> Parser:
    """A server's word that it does not have a call, or failed in it."""
    del made
    kinds = (TApplicationException.UNKNOWN_METHOD, TApplicationException.INTERNAL_ERROR)
    told = [encoded(TApplicationException(kind, "Invalid method name")) for kind in kinds]
    uses: tuple[Callable[[HiveClient], object], ...] = (
        lambda c: c.table("db", "t"),
        lambda c: c.databases(),
        lambda c: c.constraints.of("db", "t"),
        lambda c: c.create_table(TABLE),
    )
    return of_calls(*((use, each) for use in uses for each in told), kind=EXCEPTION)


_PART = b"\n--next--\n"
_PROOF = b"@proof@"


class Sasl:
    """A server of DIGEST-MD5 that says what it is given: a challenge, its proof, and then a frame."""

    def __init__(self, token: DelegationToken) -> None:
        self.parts: list[bytes] = []
        self._token = token
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            one, _ = self.socket.accept()
            one.settimeout(0.5)  # who waits for more than it says is not kept waiting
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        challenge, proof, frame = (*self.parts, b"", b"", b"")[:3]
        with one, suppress(OSError), one.makefile("rb") as source:

            def message() -> bytes:
                head = source.read(5)
                return source.read(int.from_bytes(head[1:], "big"))

            message(), message()
            one.sendall(challenge)
            if len(challenge) < 5 + int.from_bytes(challenge[1:5], "big"):
                return  # it is waited for more
            one.sendall(proof.replace(_PROOF, self._proof(message())))
            asked = source.read(int.from_bytes(source.read(4), "big"))
            if asked:
                reply = reply_to(
                    asked, REPLY, encoded(ThriftHiveMetastore.get_all_databases_result(["a"]))
                )
                one.sendall(frame.replace(_PROOF, reply))

    def _proof(self, response: bytes) -> bytes:
        said = dict(re.findall(rb'([\w-]+)="?([^",]*)', response))
        user, password = (
            base64.b64encode(each) for each in (self._token.identifier, self._token.password)
        )
        realm, nonce, mine = (said.get(name, b"") for name in (b"realm", b"nonce", b"cnonce"))
        inner = _md5(user + b":" + realm + b":" + password) + b":" + nonce + b":" + mine
        end = _md5(b":" + said.get(b"digest-uri", b"")).hex().encode()
        first = _md5(inner).hex().encode()
        return _md5(first + b":" + nonce + b":00000001:" + mine + b":auth:" + end).hex().encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _login(status: int, body: bytes) -> bytes:
    return bytes([status]) + len(body).to_bytes(4, "big") + body


def sasl_login(made: Sound) -> Parser:
    """The messages of a login by a token, and the frames after it."""
    token = DelegationToken(b"owner", b"secret")
    path = Path(made.metadata).parent / "hive-token"
    path.write_bytes(token_file(token, "HIVE_DELEGATION_TOKEN"))
    told = {"hive.metastore.sasl.enabled": "true", "hadoop.token.files": str(path)}
    settings = ConnectionSettings(timeout_s=5, sasl=SaslSettings.of(told))
    server = Sasl(token)
    challenge = b'realm="default",nonce="abc",qop="auth",charset=utf-8,algorithm=md5-sess'
    proof = _login(5, b"rspauth=" + 32 * b"0").replace(32 * b"0", _PROOF)
    answer = reply_to(
        b"\x80\x01\x00\x01\x00\x00\x00\x11get_all_databases" + bytes(4),
        REPLY,
        encoded(ThriftHiveMetastore.get_all_databases_result(["a"])),
    )
    seed = _PART.join((_login(2, challenge), proof, len(answer).to_bytes(4, "big") + _PROOF))
    refused = _PART.join((_login(3, b"refused"), b"", b""))

    def read(data: bytes) -> object:
        server.parts = data.split(_PART)
        with HiveClient(server.uri, settings) as client:
            return client.databases()

    def changed(draw: random.Random, data: bytes) -> bytes:
        parts = data.split(_PART)
        at = draw.randrange(len(parts))
        parts[at] = changed_bytes(draw, parts[at])
        return _PART.join(parts)

    def retold(draw: random.Random, data: bytes) -> bytes:
        """The same with the length of what was changed."""
        parts = data.split(_PART)
        at = draw.randrange(2)
        if len(parts[at]) > 5:
            parts[at] = _login(parts[at][0], changed_bytes(draw, parts[at][5:]))
        return _PART.join(parts)

    found = Parser([seed], read, (changed, retold))
    return Parser(found.seeds, read, found.change, lambda: (refused,))
