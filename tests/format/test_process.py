"""Who runs this process."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from icecomb.catalog.hive.thrift.settings import ConnectionSettings, current_user
from icecomb.format import process
from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.hdfs.address import HdfsAddress
from icecomb.format.storage.hdfs.session import HdfsSession


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A user without a name, as in a container that runs as a number."""

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HADOOP_USER_NAME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def hdfs_session(properties):
    return HdfsSession(properties, HdfsAddress(("nn:9870",), secure=False, path="/"))


@pytest.mark.parametrize("of", [current_user, ConnectionSettings.of, hdfs_session])
def test_a_user_without_a_name_is_told_what_to_set(nobody, of):
    with pytest.raises(ConfigurationError, match="no name for the user") as caught:
        of({})
    assert "HADOOP_USER_NAME" in str(caught.value.hint)
    nobody.setenv("HADOOP_USER_NAME", "etl")
    assert "etl" in {getattr(found := of({}), "user", found), found}


@pytest.mark.parametrize(("users", "is_own"), [("0 0 4294967295", True), ("0 1000 1", False)])
def test_files_of_all_who_have_no_number_in_a_container_are_not_its_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, users: str, is_own: bool
) -> None:
    """Linux shows them as one user, whose number a process may have, too."""
    (tmp_path / "uid_map").write_text(f"         {users}\n")
    (tmp_path / "overflowuid").write_text("65534\n")
    monkeypatch.setattr(process, "UID_MAP", tmp_path / "uid_map")
    monkeypatch.setattr(process, "OVERFLOW_UID", tmp_path / "overflowuid")
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    status = os.stat_result((0o100644, 1, 1, 1, 65534, 65534, 0, 0, 0, 0))
    assert process.is_own(status) is is_own
