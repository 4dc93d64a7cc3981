"""Whether the server at an announced port is the one that was announced, without one."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from icecomb.catalog.configuration.metastore_folder import RunningMetastore
from icecomb.catalog.hive.thrift import client
from icecomb.catalog.metastore import embedded
from icecomb.format.errors import MetastoreError


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
