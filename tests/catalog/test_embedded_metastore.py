"""The metastore of a warehouse folder: started, shared, ended, and everything that can be in its way."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import java, load_catalog, metastore
from icecomb.catalog.configuration.metastore_folder import MetastoreFolder
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.metastore import embedded, server_jar
from icecomb.format.errors import ConfigurationError, JavaError, MissingDependencyError

pytestmark = pytest.mark.jvm


@pytest.fixture
def warehouse(tmp_path):
    yield tmp_path / "lake"
    metastore.stop(tmp_path / "lake")


def _state(warehouse):
    return warehouse / ".metastore" / "server.json"


def _ended(pid, seconds=120):
    deadline = time.monotonic() + seconds
    while embedded._alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _exit_code_of_child(call, *arguments):
    child = multiprocessing.get_context("fork").Process(target=call, args=arguments)
    child.start()
    child.join()
    return child.exitcode


@pytest.fixture(scope="module")
def silent(metastore):
    """A connection that says nothing while this file's tests run: to wait for its end alone takes ten seconds."""
    with socket.create_connection(("127.0.0.1", metastore.port)) as connection:
        yield connection


@pytest.mark.slow("starts two metastores, and Python three times")
@pytest.mark.usefixtures("silent")
def test_one_metastore_a_warehouse_is_shared_by_processes_replaced_when_killed_and_stopped(
    warehouse, monkeypatch
):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marker-of-a-secret")
    code = (
        "import sys; from icecomb.catalog import metastore; print(metastore.start(sys.argv[1]).pid)"
    )

    def start(_):
        command = [sys.executable, "-c", code, str(warehouse)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd="/", check=True
        ).stdout.strip()

    assert metastore.status(warehouse) is None
    with ThreadPoolExecutor(3) as pool:
        pids = set(pool.map(start, range(3)))
    first = metastore.status(warehouse)
    assert pids == {str(first.pid)}
    assert metastore.start(warehouse) == first
    environment = Path(f"/proc/{first.pid}/environ").read_text()
    assert "PATH=" in environment
    assert "marker-of-a-secret" not in environment
    assert first.to_json()["uri"] == first.uri

    lake = load_catalog("local", warehouse=warehouse)
    lake.create_namespace("d")
    table = lake.create_table("d.t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    assert metastore.status(warehouse) == first
    os.kill(first.pid, signal.SIGKILL)
    assert _ended(first.pid)
    assert metastore.status(warehouse) is None
    # the same objects go on: the client finds the new one by itself
    table.append(pa.table({"a": [2]}))
    assert sorted(lake.load_table("d.t").scan().to_arrow()["a"].to_pylist()) == [1, 2]
    second = metastore.status(warehouse)
    assert second.pid != first.pid
    assert lake.load_namespace_properties("default")["location"] == f"file:{warehouse}"
    # a forked child, as `multiprocessing` makes them, is not the parent of the server
    assert _exit_code_of_child(table.append, table.scan().to_arrow()) == 0
    assert metastore.status(warehouse) == second
    assert lake.load_table("d.t").scan().count() == 4
    lake.close()

    assert _exit_code_of_child(metastore.stop, warehouse) == 0
    assert _ended(second.pid)
    assert not metastore.stop(warehouse)
    assert metastore.status(warehouse) is None
    assert not _state(warehouse).exists()


def test_it_listens_on_loopback_only(metastore):
    import icecomb.catalog.metastore  # noqa: F401 - the fixture shadows the module

    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    listening = {
        line[1].rsplit(":", 1)[0]
        for line in lines
        if line[3] == "0A" and int(line[1].rsplit(":", 1)[1], 16) == metastore.port
    }
    assert listening <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert listening


@pytest.mark.full("starts a metastore and waits until it has been idle")
@pytest.mark.slow("starts a metastore and waits until it has been idle")
def test_it_ends_when_nobody_is_connected_and_not_before(warehouse):
    running = metastore.start(warehouse, idle_s=2)
    with HiveClient(running.uri) as client:
        client.databases()
        time.sleep(3.5)  # it looks every second whether it was idle for two
        assert client.databases() == ["default"]
    assert _ended(running.pid)
    assert not _state(warehouse).exists()


@pytest.fixture
def stale(warehouse):
    """A listener at the port in a state file that holds our own pid: somebody else's, who is silent."""
    warehouse.mkdir()
    folder = MetastoreFolder(warehouse)
    folder.make()
    folder.write_token()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        content = {"pid": os.getpid(), "port": port, "token": "icecomb-stale"}
        _state(warehouse).write_text(json.dumps(content))
        yield taken


def test_a_stale_state_file_with_a_port_that_is_taken_is_seen_through(warehouse, stale):
    assert metastore.status(warehouse) is None
    assert not metastore.stop(warehouse), "our own pid is in the file, and it must live"
    stale.settimeout(0)
    with pytest.raises(BlockingIOError):  # who is there could keep us waiting
        stale.accept()


@pytest.mark.full("starts another metastore")
def test_a_metastore_starts_beside_a_stale_state_file(warehouse, stale):
    running = metastore.start(warehouse)
    assert running.pid != os.getpid()
    assert running.port != stale.getsockname()[1]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_damaged_state_file_is_no_metastore(warehouse, content):
    _state(warehouse).parent.mkdir(parents=True)
    _state(warehouse).write_text(content)
    assert metastore.status(warehouse) is None


@pytest.mark.full("starts two metastores")
def test_a_metastore_that_hangs_is_replaced(warehouse, monkeypatch):
    hanging = metastore.start(warehouse)
    os.kill(hanging.pid, signal.SIGSTOP)
    monkeypatch.setattr(embedded, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(embedded, "STOP_TIMEOUT_S", 3)
    began = time.monotonic()
    assert metastore.status(warehouse) is None
    assert time.monotonic() - began < 5, "a step of the login has three times that"
    # one that hangs for some seconds is not ended: it may have tables open
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(metastore.start, warehouse)
        time.sleep(4)
        os.kill(hanging.pid, signal.SIGCONT)
        monkeypatch.setattr(embedded, "ANSWER_TIMEOUT_S", 5)
        assert waiting.result() == hanging
    monkeypatch.setattr(embedded, "ANSWER_TIMEOUT_S", 0.5)
    os.kill(hanging.pid, signal.SIGSTOP)
    running = metastore.start(warehouse)
    assert running.pid != hanging.pid
    assert _ended(hanging.pid)


def test_a_warehouse_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        load_catalog("local", warehouse=tmp_path / "file")
    with pytest.raises(ConfigurationError, match="needs a local warehouse"):
        load_catalog("local", warehouse="hdfs://nn/lake")


@pytest.mark.full("starts another metastore")
def test_a_warehouse_in_an_object_store_has_its_metastore_here(tmp_path, s3, monkeypatch):
    """Nobody asks the store for folders; a bucket is one warehouse, whichever scheme names it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    warehouse = f"s3a://{s3.bucket()}/lake"
    try:
        with load_catalog("local", warehouse=warehouse, **s3.settings) as lake:
            lake.create_namespace("db")
            table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
            table.append(pa.table({"id": [1]}))
            assert table.location() == f"{warehouse}/db.db/t"
            lake.create_table("default.t", pa.schema([("id", pa.int64())]))
        running = metastore.status(warehouse)
        assert running == metastore.start(warehouse.replace("s3a:", "s3n:") + "/")
        assert running.to_json()["warehouse"] == warehouse.replace("s3a:", "s3:")
        assert running.log.is_relative_to(tmp_path)
        # of another name, and where only the default location says where it is
        other = warehouse.replace("s3a:", "s3:")
        with load_catalog("other", type="local", warehouse=other, **s3.settings) as again:
            assert again.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
            again.purge_table("db.t")
            again.purge_table("default.t")
            again.drop_namespace("db")
        assert list(again.io.list(warehouse)) == []
    finally:
        assert metastore.stop(warehouse)


def test_a_full_disk_is_named():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        metastore.start("/dev/full/lake")


def test_no_java_is_said_and_nothing_is_left_running(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with pytest.raises(JavaError, match="JAVA_HOME") as caught:
        metastore.start(tmp_path / "lake")
    assert "Install Java 17" in str(caught.value)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="no java on PATH"):
        metastore.start(tmp_path / "lake")
    assert metastore.status(tmp_path / "lake") is None


def test_an_old_java_is_refused(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_412\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.java_version() == 8
    with pytest.raises(JavaError, match="is Java 8; Java 17 or later is needed"):
        metastore.start(tmp_path / "lake")


def test_a_runtime_without_compiler_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(
        java.shutil, "which", lambda program: None if program == "javac" else f"/usr/bin/{program}"
    )
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="no javac") as caught:
        metastore.start(tmp_path / "lake")
    assert "Install a JDK" in str(caught.value)


def test_without_pyspark_the_install_line_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(server_jar.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError) as caught:
        load_catalog("local", warehouse=tmp_path / "lake")
    assert "pip install 'icecomb[spark]'" in str(caught.value)


def test_sources_that_do_not_compile_carry_javacs_complaint(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "Broken.java"
    source.write_text("class Broken { int x = ; }")
    with pytest.raises(JavaError, match="illegal start of expression"):
        java.compile_jar([source], "", "broken", "1")


def test_a_jar_is_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "Hello.java"
    source.write_text(
        'class Hello { public static void main(String[] a) { System.out.print("hi"); } }'
    )
    jar = java.compile_jar([source], "", "hello", "1")
    assert (
        subprocess.run(
            [java.find_java(), "-cp", jar, "Hello"], capture_output=True, check=True
        ).stdout
        == b"hi"
    )
    monkeypatch.setattr(java, "find_javac", lambda: pytest.fail("compiled again"))
    assert java.compile_jar([source], "", "hello", "1") == jar


def test_who_says_nothing_or_too_much_without_the_token_is_hung_up_on(metastore, silent):
    with socket.create_connection(("127.0.0.1", metastore.port)) as greedy:
        greedy.sendall(b"\x01\x7f\xff\xff\xff")
        for stranger in (greedy, silent):
            stranger.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
