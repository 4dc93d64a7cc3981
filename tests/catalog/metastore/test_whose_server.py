"""Whether the server at an announced port is the one that was announced, without one."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from icecomb.catalog.configuration.metastore_folder import MetastoreFolder, RunningMetastore
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
