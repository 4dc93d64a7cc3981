"""Every file system, by the same suite."""

from __future__ import annotations

import uuid

import pytest
from file_system_suite import FileSystemSuite

from icecomb.format.storage.file_io import FileIO
from tests.peers.webhdfs_proxy import WebHdfsProxy


class TestLocalFileSystem(FileSystemSuite):
    """Files of this machine."""

    @pytest.fixture
    def place(self, tmp_path):
        return f"file://{tmp_path}/place"


class TestWebHdfs(FileSystemSuite):
    """A real HDFS, through its name node's web interface."""

    @pytest.fixture
    def io(self, hdfs):
        return FileIO({**hdfs.client_settings, "hdfs.user": "alice"})

    @pytest.fixture
    def place(self, hdfs):
        return f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"


class TestNativeHdfs(TestWebHdfs):
    """The same, data by Hadoop's own protocols; the engine knows its user from the environment."""

    @pytest.fixture
    def io(self, hdfs, monkeypatch):
        monkeypatch.setenv("HADOOP_USER_NAME", "alice")
        return FileIO({**hdfs.client_settings, "hdfs.engine": "native"})

    def test_data_do_not_go_over_http(self, io, place, hdfs):
        proxy = WebHdfsProxy(f"127.0.0.1:{hdfs.http['nn1']}")
        seen = FileIO({**io.properties, "dfs.namenode.http-address": proxy.address})
        seen.create(f"{place}/x", b"1" * 1000)
        assert seen.read(f"{place}/x") == b"1" * 1000
        with seen.open_input(f"{place}/x", 1000) as file:
            assert len(file.read()) == 1000
        proxy.close()
        assert set(proxy.calls) <= {"GETFILESTATUS", "LISTSTATUS", "RENAME"}
        assert b'"owner":"alice"' in hdfs.request(
            "GET", f"{place.removeprefix(hdfs.uri)}/x?op=GETFILESTATUS"
        )
