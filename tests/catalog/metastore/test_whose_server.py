"""Whether the server at an announced port is the one that was announced, without one."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from icecomb.catalog.configuration.metastore_folder import MetastoreFolder, RunningMetastore
from icecomb.catalog.configuration.warehouse import warehouse_folder
from icecomb.catalog.hive.thrift import client
from icecomb.catalog.metastore import embedded
from icecomb.format.errors import ConfigurationError, MetastoreError
from tests.peers.other_user import give_away


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


def test_a_name_that_any_command_has_is_no_server_s(tmp_path: Path) -> None:
    (tmp_path / ".metastore").mkdir(mode=0o700)
    folder = MetastoreFolder(tmp_path)
    folder.state.write_text(json.dumps({"pid": os.getpid(), "port": 1, "name": ""}))
    assert folder.announced() is None


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which others may rename everything."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def test_files_that_others_could_exchange_are_in_the_users_own_folder(shared: Path) -> None:
    lake = shared / "a lake"
    folder = MetastoreFolder(warehouse_folder(lake, create=True))
    assert folder.home.is_relative_to(shared.parent / "data")
    assert (folder.location, folder.text) == (lake.as_uri(), str(lake))
    assert warehouse_folder(folder.warehouse) == folder.warehouse
    folder.make()
    assert [*lake.iterdir()] == []
    folder.sign()
    folder.sign()
    assert [path.name for path in lake.iterdir()] == [".metastore"]
    for part in (folder.home, *folder.home.parents):
        if part.is_relative_to(shared.parent / "data"):
            assert part.stat().st_mode & 0o777 == 0o700
    shared.chmod(0o1777)
    assert warehouse_folder(lake) == lake


def test_a_missing_folder_is_judged_once_it_is_made(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = os.umask(0)
    try:
        folder = warehouse_folder(tmp_path / "open" / "lake", create=True)
    finally:
        os.umask(mask)
    assert folder.is_relative_to(tmp_path / "data")


def test_a_shared_warehouse_has_one_owner(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign = shared / "lake" / ".metastore"
    sign.mkdir(parents=True)
    give_away(sign, monkeypatch)
    with pytest.raises(ConfigurationError, match="belongs to the user"):
        MetastoreFolder(warehouse_folder(shared / "lake"))


def test_a_database_that_is_not_there_is_not_replaced_by_an_empty_one(shared: Path) -> None:
    (shared / "lake" / ".metastore" / "derby").mkdir(parents=True)
    folder = MetastoreFolder(warehouse_folder(shared / "lake"))
    with pytest.raises(ConfigurationError, match="could exchange") as caught:
        folder.make()
    assert f"move that folder to {folder.home}" in str(caught.value.hint)
    (shared / "lake" / ".metastore" / "derby").rename(folder.derby)
    folder.make()


def test_a_link_of_another_user_names_no_warehouse(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "lake").symlink_to(tmp_path)
    shared.chmod(0o1777)
    assert warehouse_folder(shared / "lake") == shared / "lake"
    give_away(shared / "lake", monkeypatch)
    if os.geteuid() == 0:
        with pytest.raises(ConfigurationError, match="made the link"):
            warehouse_folder(shared / "lake")


def test_a_data_folder_that_others_could_exchange_is_refused(shared: Path) -> None:
    folder = MetastoreFolder(warehouse_folder(shared / "lake", create=True))
    folder.make()
    (shared.parent / "data").chmod(0o777)
    with pytest.raises(ConfigurationError, match="others may write to it") as caught:
        MetastoreFolder(warehouse_folder(shared / "lake"))
    assert "XDG_DATA_HOME" in str(caught.value.hint)
