"""Every file system, by the same suite."""

from __future__ import annotations

import uuid

import pytest
from file_system_suite import FileSystemSuite

from icecomb.format.file_io import FileIO


class TestLocalFileSystem(FileSystemSuite):
    """Files of this machine."""

    @pytest.fixture
    def place(self, tmp_path):
        return f"file://{tmp_path}/place"


@pytest.mark.jvm
class TestWebHdfs(FileSystemSuite):
    """A real HDFS, through its name node's web interface."""

    @pytest.fixture
    def io(self, hdfs):
        return FileIO({**hdfs.client_settings, "hdfs.user": "alice"})

    @pytest.fixture
    def place(self, hdfs):
        return f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
