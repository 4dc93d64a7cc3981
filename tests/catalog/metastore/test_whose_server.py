"""Whether the server at an announced port is the one that was announced, without one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from icecomb.catalog.configuration import metastore_folder
from icecomb.catalog.configuration.metastore_folder import (
    MetastoreFolder,
    RunningMetastore,
    find,
    publish,
    record,
)
from icecomb.catalog.configuration.warehouse import warehouse_folder
from icecomb.catalog.hive.thrift import client
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.metastore import embedded
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.process import is_alive
from tests.peers.other_user import SOMEBODY, give_away


class Client:
    """Is connected to a server of some name, or to none."""

    name: str | None = "icecomb-1"

    def __init__(self, *_: object) -> None:
        if self.name is None:
            raise MetastoreError("nobody is there")

    def server_name(self) -> str | None:
        return self.name


@pytest.mark.parametrize(("name", "ours"), [("icecomb-1", True), ("icecomb-2", False), (None, False)])  # fmt: skip
def test_a_server_is_the_announced_one_if_it_has_its_name(monkeypatch, tmp_path, name, ours):
    """Ports are given out again: another's metastore may be there by now."""
    monkeypatch.setattr(client, "HiveClient", lambda *_: nullcontext(Client()))
    monkeypatch.setattr(RunningMetastore, "client_settings", {})
    monkeypatch.setattr(Client, "name", name)
    announced = RunningMetastore(Path(tmp_path), pid=1, port=9, name="icecomb-1")
    assert embedded._answers(announced) is ours


def test_a_folder_that_others_can_exchange_is_nobody_s_metastore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (lake / ".metastore").mkdir(mode=0o700, parents=True)
    MetastoreFolder(lake)
    (lake / ".metastore").chmod(0o770)
    with pytest.raises(ConfigurationError, match="others may write to it"):
        MetastoreFolder(lake)
    (lake / ".metastore").rmdir()
    (lake / ".metastore").symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match="is a link"):
        MetastoreFolder(lake)
    (lake / ".metastore").unlink()
    (lake / ".metastore").mkdir(mode=0o700)
    give_away(lake, monkeypatch)
    with pytest.raises(ConfigurationError, match="belongs to the user"):
        MetastoreFolder(lake)


@pytest.mark.parametrize("link", [False, True])
def test_nothing_is_made_where_others_could_exchange_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, link: bool
) -> None:
    team, mine = tmp_path / "team", tmp_path / "mine"
    team.mkdir()
    mine.mkdir()
    if link:
        (team / "link").symlink_to(mine)
    team.chmod(0o777)
    monkeypatch.setenv("XDG_DATA_HOME", str(team / "link"))
    with pytest.raises(ConfigurationError, match=f"{team} is a link, or others may write to it"):
        MetastoreFolder(warehouse_folder("s3://bucket/lake")).make()
    assert [*mine.iterdir()] == []
    assert link or [*team.iterdir()] == []


def test_a_name_that_any_command_has_is_no_server_s(tmp_path: Path) -> None:
    (tmp_path / ".metastore").mkdir(mode=0o700)
    folder = MetastoreFolder(tmp_path)
    folder.state.write_text(json.dumps({"pid": os.getpid(), "port": 1, "name": ""}))
    assert folder.announced() is None


def _announce(lake: Path, port: int, pid: int | None = None) -> RunningMetastore:
    folder = MetastoreFolder(lake)
    folder.make()
    folder.write_token()
    content = {"pid": pid or os.getpid(), "port": port, "name": "icecomb-1"}
    folder.state.write_text(json.dumps(content))
    found = folder.announced()
    assert found is not None
    return found


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[socket.socket]:
    """Somebody at a port that an embedded metastore of this user may have had."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.settimeout(10)
        yield found


def _was_sent(listener: socket.socket) -> bytes:
    connection, _ = listener.accept()
    with connection:
        return connection.recv(100)


def test_nothing_is_sent_to_who_has_the_port_of_an_ended_metastore(
    listener: socket.socket, tmp_path: Path
) -> None:
    port = listener.getsockname()[1]
    uri = f"thrift://localhost:{port}"
    publish(_announce(tmp_path / "lake", port))
    assert find("127.0.0.1", port) is not None
    (tmp_path / "lake/.metastore/server.json").unlink()
    # the next one of this user does not make it fall into oblivion
    publish(_announce(tmp_path / "other", 7))
    link = record(port)
    assert link is not None
    with HiveClient(uri) as client, pytest.raises(UnreachableError, match="has ended") as caught:
        client.databases()
    assert caught.value.hint is not None
    assert str(link) in caught.value.hint
    assert _was_sent(listener) == b""
    # a metastore of somebody else took the port, and the user said so
    link.unlink()
    timeout = ConnectionSettings(connect_timeout_s=0.1, user="me")
    with HiveClient(uri, timeout) as client, pytest.raises(UnreachableError, match="Thrift"):
        client.databases()
    assert b"set_ugi" in _was_sent(listener)


def test_a_client_remembers_by_itself_what_was_at_an_address(
    listener: socket.socket, tmp_path: Path
) -> None:
    port = listener.getsockname()[1]
    publish(_announce(tmp_path / "lake", port))
    timeout = ConnectionSettings(connect_timeout_s=0.1, user="me")
    with HiveClient(f"thrift://127.0.0.1:{port}", timeout) as client:
        with pytest.raises(UnreachableError, match="during authentication"):
            client.databases()
        shutil.rmtree(tmp_path / "state")
        _was_sent(listener)
        with pytest.raises(UnreachableError, match="has ended"):
            client.databases()
        assert _was_sent(listener) == b""


def test_a_token_is_for_the_announced_port_of_a_live_process_only(
    listener: socket.socket, tmp_path: Path
) -> None:
    port = listener.getsockname()[1]
    server = _announce(tmp_path, port)
    settings = ConnectionSettings.of(server.client_settings)
    _announce(tmp_path, port + 1 if port < 60_000 else port - 1)
    with HiveClient(server.uri, settings) as client:
        with pytest.raises(UnreachableError, match="nothing was sent") as caught:
            client.databases()
        assert caught.value.hint is not None
        assert "Name its warehouse" in caught.value.hint
        assert _was_sent(listener) == b""
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        _announce(tmp_path, port, ended.pid)
        with pytest.raises(UnreachableError, match="nothing was sent"):
            client.databases()
        assert _was_sent(listener) == b""


def test_records_that_others_could_exchange_are_neither_kept_nor_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(metastore_folder, "REMEMBERED", 0)
    server = _announce(tmp_path / "lake", 1)
    before = os.umask(0o002)
    publish(server)
    os.umask(before)
    assert find("127.0.0.1", 1) == server
    # the folders above were made for this user alone, too
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    (tmp_path / "state").chmod(0o777)
    assert find("127.0.0.1", 1) is None
    # an address that may have been one is not called
    assert record(1) is not None
    shutil.rmtree(tmp_path / "state/icecomb")
    mail = tmp_path / "mail"
    mail.mkdir()
    (mail / "7").write_text("a letter")
    (tmp_path / "state/icecomb").mkdir()
    (tmp_path / "state/icecomb/metastores").symlink_to(mail)
    publish(server)
    assert [each.name for each in mail.iterdir()] == ["7"]
    # what is no record stays also where only this user could have put it
    (tmp_path / "state").chmod(0o700)
    publish(server)
    assert sorted(each.name for each in mail.iterdir()) == ["1", "7"]


@pytest.mark.parametrize("name", ["a:b", "a;b", 'a"b', "a\\b", "a,b", "${user.home}", "a\nb"])
def test_a_path_in_which_java_reads_signs_is_no_metastore_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    team = tmp_path / "team"
    team.mkdir()
    team.chmod(0o777)
    for warehouse in (tmp_path / name, team / name):
        with pytest.raises(ConfigurationError, match="as a sign"):
            embedded.start(warehouse)
    # a location in a store is quoted
    assert embedded.status(f"s3://bucket/{name}") is None


def test_the_newest_ports_are_remembered_and_all_that_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(metastore_folder, "REMEMBERED", 2)
    publish(_announce(tmp_path / "lives", 1))
    for port in (2, 3, 4, 5):
        publish(_announce(tmp_path / "ends", port))
    assert [port for port in range(1, 6) if record(port)] == [1, 3, 4, 5]
    assert find("127.0.0.1", 1) is not None
    # of one that lived long, too, the end is what counts
    (tmp_path / "lives/.metastore/server.json").unlink()
    publish(_announce(tmp_path / "ends", 6))
    assert [port for port in range(1, 7) if record(port)] == [1, 5, 6]


@pytest.mark.parametrize("shared", ["icecomb", "icecomb/metastores", "."])
def test_ports_that_others_may_have_recorded_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, shared: str
) -> None:
    """Users may have one XDG_STATE_HOME: each has a folder of its own there, if he can."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    (state / shared).mkdir(parents=True)
    (state / shared).chmod(0o777)
    server = _announce(tmp_path / "lake", 3)
    (state / "icecomb/metastores").mkdir(parents=True, exist_ok=True)
    for port in (3, 4):
        (state / f"icecomb/metastores/{port}").symlink_to(tmp_path / "lake")
    if shared == ".":
        publish(server)
        # others could have exchanged what is there: it only keeps a client away
        assert record(4) is not None
        assert find("127.0.0.1", 3) is None
        assert "is open to others" in caplog.text
        return
    assert record(4) is None
    publish(server)
    assert find("127.0.0.1", 3) == server
    assert record(4) is None
    # what the others do there makes no difference
    (state / "icecomb/metastores/3").unlink()
    assert record(3) is not None
    assert find("127.0.0.1", 3) == server
    assert [path.name for path in state.iterdir() if path.name != "icecomb"] == [
        f"icecomb-{os.geteuid()}"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has processes of others")
def test_another_user_s_process_is_not_ours(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with subprocess.Popen(
        ["/bin/sh", "-c", "read line", "icecomb-1"], stdin=subprocess.PIPE, user=SOMEBODY
    ) as theirs:
        assert not is_alive(theirs.pid)
        _announce(lake, 1, theirs.pid)
        assert embedded.status(lake) is None
        assert not embedded.stop(lake)
        assert theirs.poll() is None
        theirs.kill()


def test_a_process_that_may_not_be_signaled_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", kill)
    assert not is_alive(os.getpid())
    lake = tmp_path / "lake"
    _announce(lake, 1)
    assert not embedded.stop(lake)
    embedded._end(os.getpid(), MetastoreFolder(lake))
