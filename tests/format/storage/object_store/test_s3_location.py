"""Which object a location of S3 names."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from icecomb.format.storage.file_io import FileIO

pytestmark = pytest.mark.gate("asks an S3, a process of its own")


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


def test_no_table_is_made_where_hadoop_would_write_elsewhere(s3, bucket):
    lake = load_catalog("lake", type="hadoop", warehouse=f"s3a://{bucket}//wh", **s3.settings)
    lake.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(ValidationError, match="engines that write through Hadoop") as refused:
        lake.create_table("db.t", schema)
    assert "//" not in (refused.value.message.partition("that is s3a://")[2])
    assert lake.list_tables("db") == []


def test_a_file_that_hadoop_would_not_find_is_not_added_and_none_twice(s3, bucket):
    lake = load_catalog("lake", type="hadoop", warehouse=f"s3a://{bucket}/wh", **s3.settings)
    lake.create_namespace("db")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = lake.create_table("db.t", rows.schema)
    for key in ("in/x.parquet", "in//x.parquet"):
        with table.io.create_stream(f"s3://{bucket}/{key}") as out:
            pq.write_table(rows, out)
    with pytest.raises(ValidationError, match="for engines that read by Hadoop"):
        table.add_files([f"s3://{bucket}/in//x.parquet"])
    table.add_files([f"s3a://{bucket}/in/x.parquet"])
    for scheme in ("s3", "s3a", "s3n"):
        with pytest.raises(ValidationError, match="already"):
            table.add_files([f"{scheme}://{bucket}/in/x.parquet"])
        table.add_files([f"{scheme}://{bucket}/in/x.parquet"], on_duplicate="skip")
    assert table.refresh().scan().count() == 1


def test_files_of_one_object_under_two_schemes_are_no_orphans_and_are_kept(s3, bucket):
    """One engine writes s3a:, another lists by s3:."""
    settings = {"type": "hadoop", **s3.settings}
    lake = load_catalog("lake", warehouse=f"s3a://{bucket}/kept", **settings)
    lake.create_namespace("db")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = lake.create_table("db.t", rows.schema)
    table.append(rows)
    table.append(rows)
    other = load_catalog("other", warehouse=f"s3://{bucket}/kept", **settings).load_table("db.t")
    other.io.create(f"s3://{bucket}/kept/db/t/data/left.parquet", b"")
    later = datetime.now(timezone.utc) + timedelta(days=1)
    found = other.maintenance.remove_orphan_files(
        older_than=later, location=f"s3://{bucket}/kept/db/t", dry_run=True, any_age=True
    )
    assert found.orphan_file_location == (f"s3://{bucket}/kept/db/t/data/left.parquet",)
    stray = f"s3://{bucket}/kept/db/t//stray.parquet"
    other.io.create(stray, b"stray")
    remove = partial(
        other.maintenance.remove_orphan_files, older_than=later, any_age=True, quarantine=True
    )
    remove(dry_run=False)
    # a folder without a name is not walked into; whoever names a file in it means it
    assert other.io.exists(stray)
    remove(dry_run=False, files=[(stray, 1)])
    inside = [each.location for each in other.io.list(f"s3://{bucket}/kept") if each.size == 5]
    assert [each.endswith("//stray.parquet") for each in inside] == [True]
    assert "/_icecomb_" in inside[0]
    other.overwrite(rows)
    other.expire_snapshots().older_than(later).retain_last(1).commit()
    assert other.refresh().scan().count() == 1
    assert table.refresh().scan().count() == 1
