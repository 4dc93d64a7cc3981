"""A prefix of locations is replaced by whole path elements, however its storage is spelled."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.relocation.route import LocationChange


def moved(source, target, location, **properties):
    return LocationChange(source, target, properties).moved(location, "data file")


@pytest.mark.parametrize(
    ("source", "target", "location", "expected"),
    [
        ("/a/t", "/b/t", "/a/t/data/x", "/b/t/data/x"),
        ("/a/t/", "/b/t", "/a/t/data/x", "/b/t/data/x"),
        ("/a/t", "/b/t/", "/a/t/data/x", "/b/t/data/x"),
        ("/a/t", "/b/t", "/a/t", "/b/t"),
        ("/a/t", "/b/t", "/a/t/", "/b/t"),
        ("/a/t/", "/b/t", "/a/t", "/b/t"),
        ("/a", "s3://bucket", "/a/t/x", "s3://bucket/t/x"),
        ("s3://b", "s3://c/d", "s3://b/t//x", "s3://c/d/t//x"),
        ("/", "/b", "/a/x", "/b/a/x"),
        # a table opened by such a path names its metadata file by it
        ("/a/t", "/b/t", "/a/t/../t/metadata/v1", "/b/t/metadata/v1"),
        ("/a/./t", "/b/t", "file:/a//t/x", "/b/t/x"),
        ("/a", "/", "/a/x", "/x"),
        # iceberg#17521: prefixes are no patterns
        ("s3://b/w.db/t", "s3://c/$1", "s3://b/w.db/t/[x", "s3://c/$1/[x"),
    ],
)
def test_a_prefix_is_replaced_as_iceberg_replaces_it(source, target, location, expected):
    assert moved(source, target, location) == expected


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("file:/a", "file:///a/x"),
        ("file:///a", "/a/x"),
        ("/a", "file:/a/x"),
        ("s3://b/a", "s3a://b/a/x"),
        ("s3n://b/a", "s3://b/a/x"),
        ("hdfs://nn/a", "hdfs:///a/x"),
        ("abfss://c@a.dfs.core.windows.net/a", "wasb://c@a.blob.core.windows.net/a/x"),
    ],
)
def test_schemes_that_mean_the_same_storage_are_equal(source, location):
    known = {"fs.defaultFS": "hdfs://nn"} if source.startswith("hdfs") else {}
    assert moved(source, "/b", location, **known) == "/b/x"


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("/a/t", "/a/t2/x"),
        ("/a/t", "/a/u/x"),
        ("/a/t", "/a/t/../u/x"),
        ("file:/a/t", "file:///a/t/x/../../u/x"),
        ("hdfs://nn/a/t", "hdfs://nn/a/t/./../u/x"),
        # a key, which a local copy would resolve
        ("s3://b/t", "s3://b/t/../../home/.ssh/authorized_keys"),
        ("s3://b/t", "s3a://b/t/data/.."),
        ("gs://b/t", "gs://b/t/./x"),
        ("abfss://c@a.dfs.core.windows.net/t", "wasb://c@a.blob.core.windows.net/t/../x"),
        ("unknown://b/t", "unknown://b/t/../x"),
        ("s3://b/t", "s3://c/t/x"),
        ("s3://b/w.db", "s3://b/wXdb/x"),
        ("s3://b", "s3://bb/x"),
        ("hdfs://n1/a", "hdfs://n2/a/x"),
        ("/a", "s3://a/x"),
    ],
)
def test_what_is_not_under_the_prefix_is_refused_by_name(source, location):
    with pytest.raises(ValidationError, match="not under the source prefix") as refused:
        moved(source, "/b", location)
    assert location in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("location", ["s3://b/t/%2e%2e/x", "/b/t/%2e%2e/x", "hdfs://nn/b/t/..%2fx"])
def test_percent_escapes_are_characters_of_a_name(location):
    source = location[: location.index("/t") + 2]
    assert moved(source, "/c", location) == "/c" + location.removeprefix(source)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "/b", "Source prefix('') cannot be empty."),
        ("/a", " ", "Target prefix(' ') cannot be empty."),
        ("/a", "/a", "Source prefix cannot be the same as target prefix (/a)"),
        ("/a/", "/a", "Source prefix cannot be the same as target prefix (/a/)"),
    ],
)
def test_empty_and_equal_prefixes_are_refused_in_iceberg_s_words(source, target, message):
    with pytest.raises(ValidationError) as refused:
        LocationChange(source, target, {})
    assert refused.value.message == message
