"""What the native engine refuses, and how it says so. Its promises are in the suite of all file systems."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    MissingDependencyError,
)
from icecomb.format.storage.file_io import FileIO

NOWHERE = {
    "fs.defaultFS": "hdfs://127.0.0.1:8020",
    "dfs.namenode.http-address": "127.0.0.1:1",
    "hdfs.engine": "native",
}


@pytest.fixture(autouse=True)
def alice(monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")


def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(
        MissingDependencyError, match="needs hdfs-native, which is not installed"
    ) as caught:
        FileIO(NOWHERE).read("hdfs://127.0.0.1:8020/x")
    assert "pip install 'icecomb[hdfs-native]'" in str(caught.value)


def test_an_unknown_engine_is_refused():
    with pytest.raises(ConfigurationError, match=r"hdfs\.engine cannot be 'libhdfs'"):
        FileIO({"hdfs.engine": "libhdfs"}).read("hdfs://127.0.0.1:8020/x")


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"hdfs.user": "bob"}, "user bob, but hdfs-native would act as alice"),
        ({"hdfs.proxy-user": "carol"}, "user carol, but hdfs-native would act as alice"),
        ({"hdfs.delegation-token": "t"}, "delegation-token does not go with"),
    ],
)
def test_it_never_acts_for_another_user_than_the_properties_say(properties, problem):
    with pytest.raises(ConfigurationError, match=problem):
        FileIO({**NOWHERE, **properties}).read("hdfs://127.0.0.1:8020/x")


def test_with_kerberos_it_is_refused_as_it_believes_whoever_asks_for_no_login():
    secured = {**NOWHERE, "hadoop.security.authentication": "kerberos"}
    with pytest.raises(ConfigurationError, match="proof of who a name node is") as caught:
        FileIO(secured).read("hdfs://127.0.0.1:8020/x")
    assert "ipc.client.fallback-to-simple-auth-allowed=true" in caught.value.hint


def test_hosts_that_only_a_path_names_are_asked_over_webhdfs():
    """A few bytes of a data node end a process that asks it by hdfs-native."""
    elsewhere = FileIO({**NOWHERE, "hdfs.user": "bob"})
    with pytest.raises(FileIOError, match=r"127\.0\.0\.2:9870"):
        elsewhere.read("hdfs://127.0.0.2:8020/x")


def test_a_cluster_that_is_not_there_is_an_error_at_once():
    with pytest.raises(FileIOError, match=r"127\.0\.0\.1:1: Connection refused"):
        FileIO({**NOWHERE, "fs.defaultFS": "hdfs://127.0.0.1:2"}).read("hdfs://127.0.0.1:2/x")


@pytest.mark.full("the second engine of HDFS; the first one's words are in the gate")
def test_what_the_cluster_refuses_is_said_in_plain_words(hdfs):
    place = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    io = FileIO({**hdfs.client_settings, "hdfs.engine": "native"})
    with pytest.raises(FileIOError, match=r"Permission denied: user=alice") as caught:
        io.create(f"{hdfs.uri}/elsewhere/x", b"1")
    assert "HADOOP_USER_NAME" in str(caught.value)
    with pytest.raises(FileIOError, match="HDFS allows no colon"):
        io.create(f"{place}/a:b", b"1")
    io.create(f"{place}/x", b"1")
    with pytest.raises(FileIOError, match=r"(?i)not a directory"):
        io.create(f"{place}/x/y", b"1")
    hdfs.dfsadmin("-setSpaceQuota", "1k", place.removeprefix(hdfs.uri))
    with pytest.raises(FileIOError, match=r"quota of /warehouse/.* is exceeded"):
        io.create(f"{place}/z", b"1")
    assert [each.location for each in io.list(place)] == [f"{place}/x"]


@pytest.mark.full("the second engine of HDFS; which one a fork takes is a rule of the gate")
def test_a_forked_child_reads_and_writes(hdfs):
    place = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    script = f"""
import os, signal
from icecomb.format.storage.file_io import FileIO
io = FileIO({ {**hdfs.client_settings, "hdfs.engine": "native"}!r})
io.create("{place}/parent", b"1")
assert io.read("{place}/parent") == b"1"
child = os.fork()
if not child:
    signal.alarm(60)
    io.create("{place}/child", io.read("{place}/parent"))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert io.read("{place}/child") == b"1"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.full("the second engine of HDFS; addresses of nameservices are values in the gate")
def test_a_nameservice_of_one_name_node_is_opened(hdfs):
    """hdfs-native itself only knows those of several."""
    known = hdfs.client_settings
    settings = {
        "fs.defaultFS": "hdfs://ns0",
        "dfs.nameservices": "ns0,ns1",
        "dfs.namenode.rpc-address.ns0": known["dfs.namenode.rpc-address"],
        "dfs.namenode.http-address.ns0": known["dfs.namenode.http-address"],
        "hdfs.engine": "native",
    }
    place = f"hdfs://ns0/warehouse/{uuid.uuid4().hex}"
    FileIO(settings).create(f"{place}/x", b"1")
    assert FileIO(settings).read(f"{place}/x") == b"1"
