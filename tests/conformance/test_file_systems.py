"""Every file system, by the same suite."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from file_system_suite import FileSystemSuite

from icecomb.format.storage.file_io import FileIO
from tests.peers.webhdfs_proxy import WebHdfsProxy

BY_HTTP = {
    "test_a_name_stays_as_it_is",
    "test_delete_passes_over_missing_files",
    "test_delete_names_what_could_not_be_deleted_and_deletes_the_rest",
    "test_a_folder_is_not_deleted_as_a_file_even_if_it_is_empty",
    "test_listing_is_recursive_in_order_and_keeps_the_spelling",
    "test_a_folder_shows_what_is_in_it_and_not_what_is_below",
    "test_folders_are_made_listed_and_deleted_when_empty",
    "test_of_many_creators_of_a_folder_exactly_one_succeeds",
    "test_rename_does_not_overwrite",
    "test_a_prepared_file_takes_the_place_of_another_where_that_is_said",
    "test_the_end_of_a_side_by_side_block_raises_what_went_wrong_with_one",
}
"""What HDFS is asked by HTTP whatever brings the data."""


class TestLocalFileSystem(FileSystemSuite):
    """Files of this machine."""

    @pytest.fixture
    def place(self, tmp_path):
        return f"file://{tmp_path}/place"


class ObjectStoreSuite(FileSystemSuite):
    """What is another way where there are no folders."""

    def test_delete_names_what_could_not_be_deleted_and_deletes_the_rest(self, io, place):
        """A folder is nothing there: whoever deletes it deletes nothing."""
        io.create(f"{place}/folder/in", b"")
        io.create(f"{place}/file", b"")
        io.delete([f"{place}/folder", f"{place}/file"])
        assert self.names(io, place) == ["folder/in"]

    def test_a_prepared_file_takes_the_place_of_another_where_that_is_said(self, io, place):
        for content in (b"1", b"22"):
            with io.prepare(f"{place}/x", content, replace=True) as publish:
                publish()
            assert io.read(f"{place}/x") == content
        assert self.names(io, place) == ["x"]

    def test_listing_is_recursive_in_order_and_keeps_the_spelling(self, io, place):
        for name in ("b", "a/2", "a/1", "c/d/e", "a.x"):
            io.create(f"{place}/{name}", b"xy")
        io.create_folder(f"{place}/a/empty")
        found = list(io.list(f"{place}/"))
        names = ("a.x", "a/1", "a/2", "b", "c/d/e")
        assert [each.location for each in found] == [f"{place}/{n}" for n in names]
        assert {each.size for each in found} == {2}
        assert all(each.mtime_ms > 1_600_000_000_000 for each in found)
        assert list(io.list(f"{place}/none")) == []
        assert [each.location for each in io.list(f"{place}/b")] == [f"{place}/b"]

    def test_a_folder_is_not_deleted_as_a_file_even_if_it_is_empty(self, io, place):
        io.create_folder(f"{place}/empty")
        io.delete(f"{place}/empty")
        assert io.is_folder(f"{place}/empty")


@pytest.mark.gate("over HTTP")
class TestS3(ObjectStoreSuite):
    """An S3."""

    @pytest.fixture
    def io(self, s3):
        return FileIO(s3.settings)

    @pytest.fixture
    def place(self, s3):
        return f"s3://{s3.bucket()}/in a/place"


@pytest.mark.full("needs versitygw")
class TestOtherS3(ObjectStoreSuite):
    """Another S3, over a folder."""

    @pytest.fixture
    def io(self, other_s3):
        return FileIO(other_s3.settings)

    @pytest.fixture
    def place(self, other_s3):
        return f"{other_s3.place()}/in a/place"


@pytest.mark.full("needs fake-gcs-server")
class TestGoogle(ObjectStoreSuite):
    """Google's store."""

    @pytest.fixture
    def io(self, google_store):
        return FileIO(google_store.settings)

    @pytest.fixture
    def place(self, google_store):
        return f"{google_store.place()}/in a/place"


@pytest.mark.full("needs Azurite")
class TestAzure(ObjectStoreSuite):
    """Azure's store."""

    @pytest.fixture
    def io(self, azurite):
        return FileIO(azurite.settings)

    @pytest.fixture
    def place(self, azurite):
        return f"{azurite.place()}/in a/place"

    def test_a_folder_is_not_deleted_as_a_file_even_if_it_is_empty(self, io, place):
        """An empty folder is an empty blob of its name there, and gone with it."""
        io.create_folder(f"{place}/empty")
        io.create(f"{place}/full/x", b"")
        io.delete([f"{place}/empty", f"{place}/full"])
        assert self.names(io, place) == ["full/x"]


class TestStoreOfOnesOwn(ObjectStoreSuite):
    """The store that docs/object-stores.md builds in thirty lines."""

    @pytest.fixture
    def io(self):
        page = (Path(__file__).parents[2] / "docs" / "object-stores.md").read_text()
        (block,) = re.findall(
            r"^```python\n(from threading.*?)^```", page, re.DOTALL | re.MULTILINE
        )
        exec(compile(block, "object-stores.md", "exec"), {})  # noqa: S102
        return FileIO()

    @pytest.fixture
    def place(self):
        return f"dictionary://{uuid.uuid4().hex}/in a/place"


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

    only_full = BY_HTTP

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
