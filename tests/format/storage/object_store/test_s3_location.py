"""Which object a location of S3 names."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.storage.file_io import FileIO


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.bucket()


def test_all_schemes_of_s3_name_one_object(s3, bucket):
    io = FileIO(s3.settings)
    io.create(f"s3a://{bucket}/a/x", b"1")
    for scheme in ("s3", "s3a", "s3n", "S3A"):
        assert io.read(f"{scheme}://{bucket}/a/x") == b"1"
        listed = [each.location for each in io.list(f"{scheme}://{bucket}/a")]
        assert listed == [f"{scheme}://{bucket}/a/x"]


def test_a_path_without_a_scheme_is_in_the_bucket_of_fs_defaultfs(s3, bucket):
    io = FileIO({**s3.settings, "fs.defaultFS": f"s3a://{bucket}"})
    io.create("/lake/t/x", b"1")
    assert io.read(f"s3://{bucket}/lake/t/x") == b"1"
    assert [each.location for each in io.list("/lake")] == ["/lake/t/x"]
    assert [each.location for each in io.entries("/lake/t").files] == ["/lake/t/x"]
    assert list(io.folders("/lake")) == ["t"]
    io.rename("/lake/t/x", f"s3a://{bucket}/lake/t/y")
    io.delete(["/lake/t/y"])
    assert not io.exists(f"s3://{bucket}/lake/t/y")
    nowhere = FileIO({**s3.settings, "fs.defaultFS": "s3a:///"})
    with pytest.raises(ValidationError, match="Not a location of S3"):
        nowhere.read("/lake/x")


def test_nothing_in_a_key_is_decoded_or_collapsed(s3, bucket):
    io = FileIO(s3.settings)
    names = ["p/%20", "p/ ", "p//x", "p/x", "p/./x", "p/+", "p/%2B", "p/a?b=c#d"]
    for number, name in enumerate(names):
        io.create(f"s3://{bucket}/{name}", str(number).encode())
    client = s3.client()
    keys = {each["Key"] for each in client.list_objects_v2(Bucket=bucket, Prefix="p/")["Contents"]}
    client.close()
    assert keys == set(names)
    for number, name in enumerate(names):
        assert io.read(f"s3://{bucket}/{name}") == str(number).encode()
