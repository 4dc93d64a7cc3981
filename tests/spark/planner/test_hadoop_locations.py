"""Which locations of a table's metadata Spark's tasks are told to open."""

from __future__ import annotations

import pytest

from icecomb.format.errors import UnsupportedError
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.files import HadoopLocations


@pytest.mark.parametrize(
    "start", ["http://host/", "HTTPS://host/", "ftp://host/", "har://file-/t.har/"]
)
def test_tasks_open_no_file_that_python_would_not_read(start: str) -> None:
    """Hadoop has file systems that ask any web server, and read archives on local disks."""
    with pytest.raises(UnsupportedError, match=f"(?i)no file system serves {start[:3]}"):
        HadoopLocations(FileIO()).of(f"{start}a.parquet")


@pytest.mark.parametrize(
    "start", ["s3a://b/", "gs://b/", "abfss://c@a.dfs.host/", "hdfs://nn/", "/"]
)
def test_files_of_known_storage_are_opened_as_they_are_named(start: str) -> None:
    assert HadoopLocations(FileIO()).of(f"{start}a.parquet") == f"{start}a.parquet"
