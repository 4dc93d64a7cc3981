"""Who runs this process."""

from __future__ import annotations

import pwd

import pytest

from icecomb.catalog.hive.thrift.settings import ConnectionSettings, current_user
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
