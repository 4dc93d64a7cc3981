"""Who gets into the embedded metastore: its owner's processes, by what is in the owner's folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, metastore as embedded
from icecomb.catalog.configuration import metastore_folder
from icecomb.catalog.configuration.metastore_folder import KIND, SIGNATURE, MetastoreFolder
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.storage.delegation_token import DelegationToken, find_token, token_file

STRANGER = """
import encodings.idna, json, os, sys
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
port, victim = int(sys.argv[1]), sys.argv[2]
storage = ttypes.StorageDescriptor(cols=[], location=victim, serdeInfo=ttypes.SerDeInfo(parameters={}))
table = ttypes.Table("prey", "default", "me", 0, 0, 0, storage, [], {}, tableType="MANAGED_TABLE")
calls = {
    "getName": (), "getStatus": (), "get_all_databases": (), "get_config_value": ("hive.txn.timeout", ""),
    "set_ugi": ("root", ["root"]), "create_table": (table,), "drop_table": ("default", "prey", True),
    "shutdown": (), "reinitialize": (),
}
answers = {}
for name, arguments in calls.items():
    socket = TSocket("127.0.0.1", port)
    socket.setTimeout(20_000)
    transport = TBufferedTransport(socket)
    transport.open()
    client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    try:
        answers[name] = repr(getattr(client, name)(*arguments))
        if name in ("shutdown", "reinitialize"):
            client.getStatus()
    except Exception as error:
        answers[name] = "refused: " + str(getattr(error, "message", error))
    transport.close()
print(json.dumps(answers))
"""


def test_another_user_of_the_machine_is_refused_every_call(metastore, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "rows").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(metastore.port), victim.as_uri()],
        capture_output=True, text=True, cwd="/", timeout=120, check=False,
    )  # fmt: skip
    assert not done.stderr
    answers = json.loads(done.stdout)
    assert {name: said for name, said in answers.items() if "refused" not in said} == {}
    assert "belongs to" in answers["get_all_databases"]
    assert (victim / "rows").read_text() == "mine"


def test_the_token_is_its_owners_alone_and_on_no_command_line(metastore):
    home = metastore.warehouse / ".metastore"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(metastore.token_file.stat().st_mode) == 0o600
    assert len(metastore.secret) == 64
    command = Path(f"/proc/{metastore.pid}/cmdline").read_text()
    assert str(metastore.token_file) in command
    assert metastore.secret not in command
    assert metastore.secret not in (home / "server.json").read_text()
    assert metastore.secret not in metastore.log.read_text()
    assert metastore.secret not in repr(metastore)


def test_a_wrong_token_is_refused_and_the_right_one_admitted(metastore, tmp_path):
    right = find_token(str(metastore.token_file), KIND, SIGNATURE)
    wrong = tmp_path / "wrong"
    state = metastore.token_file.with_name("server.json")
    (tmp_path / state.name).write_bytes(state.read_bytes())
    wrong.write_bytes(token_file(DelegationToken(right.identifier, b"0" * 64, SIGNATURE), KIND))
    settings = {**metastore.client_settings, "hadoop.token.files": str(wrong)}
    with (
        HiveClient(metastore.uri, ConnectionSettings.of(settings)) as client,
        pytest.raises(UnreachableError, match="belongs to"),
    ):
        client.databases()
    wrong.write_bytes(metastore.token_file.read_bytes())
    with HiveClient(metastore.uri, ConnectionSettings.of(settings)) as client:
        assert "default" in client.databases()


@pytest.mark.parametrize("lies", [False, True])
def test_a_login_that_is_relayed_from_another_port_is_not_valid(metastore, monkeypatch, lies):
    """Whoever has the port of an ended metastore may relay to its successor, with the same realm or the client's."""
    monkeypatch.setattr(metastore_folder, "announces", lambda *_: True)
    said = []

    def relay(listener):
        with (
            listener.accept()[0] as victim,
            socket.create_connection(("127.0.0.1", metastore.port)) as server,
        ):
            sides = [(victim, server)] * 2 + [(server, victim), (victim, server), (server, victim)]
            for source, target in sides:
                status, size = struct.unpack(">BI", _exactly(source, 5))
                body = _exactly(source, size)
                said.append((status, body))
                if lies:
                    new = str(listener.getsockname()[1]).encode()
                    body = body.replace(str(metastore.port).encode(), new)
                target.sendall(struct.pack(">BI", status, len(body)) + body)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        relaying = pool.submit(relay, listener)
        settings = ConnectionSettings.of(metastore.client_settings)
        expected = "belongs to" if lies else "is not the server at"
        with (
            HiveClient(f"thrift://127.0.0.1:{listener.getsockname()[1]}", settings) as client,
            pytest.raises(UnreachableError, match=expected),
        ):
            client.databases()
        with contextlib.suppress(OSError):
            relaying.result(30)
    assert all(status != 5 for status, _ in said)


RELAY = """
import encodings.idna, os, socket, struct, sys
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport, TMemoryBuffer

user = int(sys.argv[2])
if user != os.geteuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
def exactly(source, size):
    found = b""
    while len(found) < size:
        if not (part := source.recv(size - len(found))):
            raise EOFError
        found += part
    return found

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    owner, _ = listener.accept()
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
call = TMemoryBuffer()
ThriftHiveMetastore.Client(TBinaryProtocol(TFramedTransport(call))).send_drop_database("kept", True, True)
for source, target in [(owner, server)] * 2 + [(server, owner), (owner, server), (server, owner)]:
    status, size = struct.unpack(">BI", exactly(source, 5))
    message = struct.pack(">BI", status, size) + exactly(source, size)
    if sys.argv[3] == "ahead" and b"response=" in message:
        # the end of one that is gone is listed as root's
        server.sendall(message + call.getvalue())
        server.close()
        print("gone")
        sys.exit()
    target.sendall(message)
assert status == 5
transport = TSocket()
transport.handle = server
client = ThriftHiveMetastore.Client(TBinaryProtocol(TFramedTransport(transport)))
try:
    print("in", client.get_all_databases())
except Exception as error:
    print("out", error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of others")
@pytest.mark.parametrize(("user", "outcome"), [(65534, "out"), (65534, "gone"), (0, "in")])
def test_a_login_that_another_user_relays_admits_him_not(metastore, tmp_path, user, outcome):
    """As Hive's clients in Java send it: they compare no realm with the address."""
    token = find_token(str(metastore.token_file), KIND, SIGNATURE)
    java = tmp_path / "java"
    java.write_bytes(token_file(DelegationToken(token.identifier, token.password, "java"), KIND))
    settings = {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.token.signature": "java",
        "hadoop.token.files": str(java),
    }
    with load_catalog("local", warehouse=metastore.warehouse) as lake:
        lake.create_namespace("kept")
    with subprocess.Popen(
        [sys.executable, "-c", RELAY, str(metastore.port), str(user), {"gone": "ahead"}.get(outcome, "")],
        stdout=subprocess.PIPE, text=True, cwd="/",
    ) as relay:  # fmt: skip
        port = int(relay.stdout.readline())
        with (
            HiveClient(f"thrift://127.0.0.1:{port}", ConnectionSettings.of(settings)) as client,
            contextlib.suppress(UnreachableError, MetastoreError),
        ):
            client.databases()
        assert relay.stdout.read().split()[0] == outcome
    time.sleep(0.5)
    with load_catalog("local", warehouse=metastore.warehouse) as lake:
        lake.drop_namespace("kept")


def _exactly(plug, size):
    found = b""
    while len(found) < size:
        if not (part := plug.recv(size - len(found))):
            raise ConnectionResetError
        found += part
    return found


def test_the_owners_clients_get_in_by_the_address_alone(metastore, monkeypatch, tmp_path):
    with HiveClient(metastore.uri) as client:
        assert client.server_name() == metastore.name
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with (
        HiveClient(metastore.uri, ConnectionSettings.of({})) as client,
        pytest.raises(UnreachableError, match="belongs to") as caught,
    ):
        client.databases()
    assert "Name its warehouse" in str(caught.value)
    with load_catalog("local", warehouse=metastore.warehouse) as lake:
        assert ("default",) in lake.list_namespaces()
    with HiveClient(metastore.uri) as client:
        assert "default" in client.databases()


def test_a_server_that_asks_for_another_token_is_not_taken_for_ours(metastore, tmp_path):
    folder = MetastoreFolder(tmp_path)
    folder.make()
    folder.state.write_bytes((metastore.warehouse / ".metastore" / "server.json").read_bytes())
    folder.token.write_bytes(metastore.token_file.read_bytes())
    try:
        assert embedded.status(tmp_path).pid == metastore.pid
        folder.write_token()
        assert embedded.status(tmp_path) is None
    finally:
        # clients find the folder of the shared server by its port again
        assert embedded.status(metastore.warehouse).pid == metastore.pid


@pytest.mark.jvm
@pytest.mark.full("starts two metastores")
def test_one_whose_token_is_lost_is_replaced(tmp_path):
    folder = MetastoreFolder(tmp_path)
    try:
        first = embedded.start(tmp_path)
        folder.write_token()
        assert embedded.status(tmp_path) is None
        second = embedded.start(tmp_path)
        assert second.pid != first.pid
        assert embedded.status(tmp_path) == second
    finally:
        embedded.stop(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_named_with_its_owner(tmp_path):
    home = tmp_path / ".metastore"
    home.mkdir()
    os.chown(home, 65534, 65534)
    for call in (embedded.start, embedded.status, embedded.stop):
        with pytest.raises(ConfigurationError, match="belongs to the user nobody"):
            call(tmp_path)


@pytest.mark.jvm
@pytest.mark.full("starts a metastore")
def test_a_folder_of_a_team_is_served_from_where_others_cannot_write(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    team = tmp_path / "team"
    team.mkdir()
    team.chmod(0o777)
    try:
        with load_catalog("local", warehouse=team / "lake") as lake:
            lake.create_namespace("db")
            table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
            table.append(pa.table({"id": [1]}))
            assert table.location() == f"file:{team}/lake/db.db/t"
        running = embedded.status(team / "lake")
        command = Path(f"/proc/{running.pid}/cmdline").read_text()
        assert str(tmp_path / "data") in command
        assert str(team) not in command.replace(str(running.warehouse), "")
        with HiveClient(running.uri) as client:
            assert client.server_name() == running.name
        assert [*(team / "lake" / ".metastore").iterdir()] == []
        assert embedded.start(running.warehouse) == running
        assert running.to_json()["warehouse"] == str(team / "lake")
    finally:
        assert embedded.stop(team / "lake")


@pytest.mark.jvm
@pytest.mark.full("waits for ten seconds of silence, and for the end of a metastore")
def test_strangers_are_hung_up_on_and_do_not_keep_it_alive(tmp_path):
    running = embedded.start(tmp_path, idle_s=2)
    begun = time.monotonic()
    try:
        silent = socket.create_connection(("127.0.0.1", running.port))
        greedy = socket.create_connection(("127.0.0.1", running.port))
        greedy.sendall(b"\x01\x7f\xff\xff\xff")
        for stranger in (greedy, silent):
            stranger.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
            stranger.close()
        while embedded.status(tmp_path) and time.monotonic() - begun < 60:
            time.sleep(2.5)
        assert not (tmp_path / ".metastore" / "server.json").exists()
    finally:
        embedded.stop(tmp_path)


@pytest.mark.jvm
@pytest.mark.full("waits for the idle end of a metastore")
def test_one_that_ended_with_strangers_connected_does_not_keep_the_next_waiting(tmp_path):
    running = embedded.start(tmp_path, idle_s=5)
    strangers = []
    try:
        while (tmp_path / ".metastore" / "server.json").exists():
            strangers.append(socket.create_connection(("127.0.0.1", running.port)))
            time.sleep(0.1)
        assert embedded.start(tmp_path).pid != running.pid
    finally:
        for stranger in strangers:
            stranger.close()
        embedded.stop(tmp_path)


CROWD = """
import resource, socket, sys

most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(1100)]
print("here", flush=True)
sys.stdin.read()
"""


OF_THE_OWNER = {
    *(b"RetryingHMSHandler", b"HiveAlterHandler", b"HiveMetaStore", b"ObjectStore"),
    *(b"ProcessFunction", b"DriverDataSource", b"NativeCodeLoader", b"log"),
}
"""Who writes into the log for calls that were admitted, such as those of earlier tests."""


def _log_of_others(metastore, before):
    """What was written into the log since it had some bytes, but for what the owner's calls cause."""
    with metastore.log.open("rb") as log:
        log.seek(before)
        found = log.read()
    loggers = set(re.findall(rb"^\d{4}-\S+ \S+ [A-Z]+ (\w+):", found, re.MULTILINE))
    return found if loggers - OF_THE_OWNER or b"Exception in thread" in found else b""


def test_a_crowd_that_says_nothing_keeps_the_owner_neither_out_nor_waiting(metastore):
    before = metastore.log.stat().st_size
    with subprocess.Popen(
        [sys.executable, "-c", CROWD, str(metastore.port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as crowd:  # fmt: skip
        assert crowd.stdout.readline() == b"here\n"
        with HiveClient(metastore.uri) as client:
            assert client.server_name() == metastore.name
            assert embedded.start(metastore.warehouse).pid == metastore.pid
            assert "default" in client.databases()
        crowd.stdin.close()
    assert _log_of_others(metastore, before) == b""


def test_many_of_the_owner_s_own_get_in_at_once(metastore):
    def name(_):
        with HiveClient(metastore.uri) as client:
            return client.server_name()

    with ThreadPoolExecutor(200) as pool:
        assert set(pool.map(name, range(200))) == {metastore.name}


def _call(fields):
    return struct.pack(">II7sI", 0x80010001, 7, b"set_ugi", 0) + fields


HOSTILE = {
    "nested structs": _call(b"\x0c\x00\x09" * 20_000),
    "nested lists": _call(b"\x0f\x00\x09" + b"\x0f\x00\x00\x00\x01" * 12_000),
    "a long list": _call(b"\x0f\x00\x02\x0b\x7f\xff\xff\xff"),
    "a negative list": _call(b"\x0f\x00\x02\x0b\xff\xff\xff\xff"),
    "an unknown type": _call(b"\x7f\x00\x09"),
    "a call cut off": _call(b"")[:9],
    "no Thrift": b"GET / HTTP/1.1\r\n\r\n",
    "another mechanism": b"\x01\x00\x00\x00\x05PLAIN\x02\x00\x00\x00\x00",
    "no digest": b"\x01\x00\x00\x00\x0aDIGEST-MD5\x02\x00\x00\x00\x00\x02\x00\x00\x10\x00"
    + b"," * 4096,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_what_strangers_send_is_in_no_log(metastore, hostile):
    before = metastore.log.stat().st_size
    for resets in (False, True):
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", metastore.port)) as stranger,
        ):
            stranger.sendall(hostile)
            if resets:
                linger = struct.pack("ii", 1, 0)
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            else:
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(4096):
                    pass
    with HiveClient(metastore.uri) as client:
        assert client.server_name() == metastore.name
    assert _log_of_others(metastore, before) == b""
