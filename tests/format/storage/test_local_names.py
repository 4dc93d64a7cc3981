"""Files of this machine are read and deleted for local tables only: others name what is not theirs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.location import check_local_names

MANIFEST = "hdfs://nn/lake/t/metadata/a-m0.avro"
LOCAL = ["file:/home/me/a", "FILE:///home/me/a", "/home/me/a", "home/a", "a", ""]
REMOTE = ["hdfs://nn/lake/t/a", "s3a://b/a", "hdfs://other/a", "webhdfs://nn:9870/a", "x:/a"]


@pytest.mark.parametrize("by", [MANIFEST, "s3://b/t/metadata/a-m0.avro"])
@pytest.mark.parametrize("named", LOCAL)
def test_a_file_elsewhere_may_name_no_local_one(by: str, named: str):
    for locations in ([*REMOTE, named], pa.array([*REMOTE, named])):
        with pytest.raises(ValidationError, match="names a file of this machine") as caught:
            check_local_names(FileIO(), by, locations)
        assert caught.value.context["path"] == named
        assert "local.allowed-prefixes" in str(caught.value.hint)


@pytest.mark.parametrize("locations", [REMOTE, [], pa.array([], pa.string()), pa.array(REMOTE)])
def test_files_of_other_storages_may_be_named(locations: object):
    check_local_names(FileIO(), MANIFEST, locations)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "by", ["/lake/t/metadata/a-m0.avro", "file:///lake/t/a-m0.avro", "File:/a"]
)
def test_a_local_file_may_name_any(by: str):
    check_local_names(FileIO(), by, [*LOCAL, *REMOTE])


def test_a_path_without_a_scheme_is_in_the_default_file_system():
    io = FileIO({"fs.defaultFS": "hdfs://nn"})
    check_local_names(io, MANIFEST, ["/lake/t/a"])
    for by in (MANIFEST, "/lake/t/metadata/a-m0.avro"):
        with pytest.raises(ValidationError):
            check_local_names(io, by, ["/lake/t/a", "file:/lake/t/a"])


def test_folders_that_the_configuration_allows_may_be_named():
    io = FileIO({"local.allowed-prefixes": "/data/a, file:/data/b/"})
    check_local_names(io, MANIFEST, ["file:/data/a/x", "/data/b/c/x", "file:///data//a/y"])
    for named in ("/data/ab/x", "/data/a/../x", "/data"):
        with pytest.raises(ValidationError):
            check_local_names(io, MANIFEST, [named])
