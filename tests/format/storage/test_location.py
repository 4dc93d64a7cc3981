from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.storage.hdfs import address
from icecomb.format.storage.location import (
    hadoop_location,
    is_ambiguous,
    plain_locations,
    plain_texts,
)

ONE_NODE = {"fs.defaultFS": "hdfs://nn:8020"}
PAIR = {
    "fs.defaultFS": "viewfs://home",
    "dfs.nameservices": "ns",
    "dfs.ha.namenodes.ns": "a,b",
    "dfs.namenode.http-address.ns.a": "one:9870",
    "dfs.namenode.http-address.ns.b": "two:9870",
    "fs.viewfs.mounttable.home.link./lake": "hdfs://ns/warehouse",
}

FEDERATED = {
    "fs.defaultFS": "hdfs://ns",
    "dfs.nameservices": "ns,alone",
    "dfs.ha.namenodes.ns": "a,b",
    "dfs.namenode.rpc-address.ns.a": "one:8020",
    "dfs.namenode.rpc-address.ns.b": "two:8020",
    "dfs.namenode.http-address.ns.a": "one:9870",
    "dfs.namenode.http-address.ns.b": "two:9870",
    "dfs.namenode.https-address.ns.a": "one:9871",
    "dfs.namenode.https-address.ns.b": "two:9871",
    "dfs.namenode.rpc-address.alone": "three:8021",
    "dfs.namenode.http-address.alone": "three:9870",
    "fs.viewfs.mounttable.c.link./mnt": "hdfs://ns/a",
}

OVERLOADED = {
    **FEDERATED,
    "fs.hdfs.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
    "fs.viewfs.mounttable.ns.link./mnt": "hdfs://ns/a",
    "fs.viewfs.mounttable.ns.linkFallback": "hdfs://ns/",
}


@pytest.fixture(autouse=True)
def no_site_files(monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)


@pytest.mark.parametrize(
    ("properties", "spellings"),
    [
        (
            {},
            [
                *("/a/x", "file:/a/x", "file:///a/x", "FILE:/a/x", "file://localhost/a/x"),
                *("//a//x", "/a/./x", "/a/b/../x", "file:/a/b/.././/x"),
            ],
        ),
        ({}, ["hdfs://nn:8020/a/x", "HDFS://nn:8020/a//x"]),
        (
            ONE_NODE,
            [
                *("hdfs://nn:8020/a/x", "hdfs:///a/x", "hdfs:/a/x", "webhdfs://nn:9870/a/x"),
                *("/a/x", "//a//x", "/a/b/../x"),
            ],
        ),
        (PAIR, ["hdfs://ns/warehouse/x", "viewfs://home/lake/x", "viewfs:/lake//x", "/lake/x"]),
        (
            FEDERATED,
            [
                *("hdfs://ns/a/x", "hdfs://one:8020/a/x", "hdfs://TWO:8020/a/x"),
                *("webhdfs://one:9870/a/x", "webhdfs://two:9870/a/x", "webhdfs://ns/a/x"),
                *("swebhdfs://two:9871/a/x", "hdfs:///a//x", "/a/x", "viewfs://c/mnt/x"),
            ],
        ),
        (OVERLOADED, ["hdfs://ns/a/x", "hdfs://ns/mnt//x", "/mnt/b/../x", "viewfs://c/mnt/x"]),
        (FEDERATED, ["hdfs://alone/a/x", "hdfs://three:8021/a/x", "webhdfs://three:9870/a/x"]),
        ({"fs.defaultFS": "file:///"}, ["/a/x", "file:/a//x"]),
        (
            {},
            [
                *("s3://b/a/x", "s3a://b/a/x", "s3n://b/a/x", "S3A://b/a/x"),
                *("s3a://b//a//x", "s3a://b/a/./x", "s3a://b/a/b/../x"),
            ],
        ),
        ({"fs.defaultFS": "s3a://b"}, ["/a/x", "s3://b/a/x", "s3a:///a/x"]),
        ({}, ["gs://b/a/x", "gcs://b/a/x", "gs://b/a//x"]),
        (
            {},
            [
                *("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
                *("wasb://c@a.blob.core.windows.net/x", "wasbs://c@A.blob.core.windows.net//x"),
                "abfss://c@a.blob.core.windows.net/x",
            ],
        ),
    ],
    ids=[
        *("local", "without settings", "one name node", "mounted", "nameservice", "overloaded"),
        "federated",
        "local by name",
        *("S3", "S3 by default", "Google", "Azure"),
    ],
)
def test_all_spellings_of_one_file_are_one(properties, spellings):
    one = {plain_texts([each], properties)[0] for each in spellings}
    assert len(one) == 1
    assert plain_locations(pa.array(spellings), properties).unique().to_pylist() == list(one)


_PREFIXES = [
    "",
    "file:",
    "FILE://",
    "hdfs://ns",
    "viewfs:",
    "s3a://b",
    "abfs://c@A.blob.core",
    "oss://b",
]


@given(
    st.lists(st.tuples(st.sampled_from(_PREFIXES), st.text("/.a%é\n:", max_size=9)), max_size=60),
    st.sampled_from([{}, PAIR, OVERLOADED]),
    st.booleans(),
)
def test_a_column_of_locations_has_the_spellings_that_each_has_alone(parts, properties, clusters):
    texts = [prefix + path for prefix, path in parts]
    column = plain_locations(pa.array(texts, pa.string()), properties, any_cluster=clusters)
    assert plain_texts(texts, properties, any_cluster=clusters) == column.to_pylist()
    alone = [plain_texts([text], properties, any_cluster=clusters)[0] for text in texts]
    assert alone == column.to_pylist()


def test_different_files_stay_different():
    different = ["/a/x", "/a/x/", "/a/X", "/a/x ", "/a/..x", "/a/%78", "hdfs://nn/a/x", "/a\n/x"]
    different += ["hdfs://other/a/x", "s3://b/a/x", "s3://c/a/x", "s3://b/a/x/", "s3://b/a/%78"]
    different += ["s3://b/A/x", "s3://b/a/x ", "gs://b/a/x", "oss://b/a/x", "oss://b/a//x"]
    different += ["abfs://c@a.dfs.core.windows.net/x", "abfs://d@a.dfs.core.windows.net/x"]
    different += ["abfs://c@b.dfs.core.windows.net/x", "abfs://c@a.dfs.core.chinacloudapi.cn/x"]
    found = plain_locations(pa.array(different, pa.large_string()), {}).to_pylist()
    assert len(set(found)) == len(different)
    assert plain_locations(pa.array([], pa.string()), {}).to_pylist() == []


def test_name_nodes_of_different_clusters_are_different():
    names = ["hdfs://ns/a/x", "hdfs://alone/a/x", "hdfs://four:8020/a/x"]
    assert len(set(plain_texts(names, FEDERATED))) == 3


def test_the_settings_are_read_once_for_many_locations_and_again_when_they_change(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    site = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"

    def write(target):
        link = "fs.viewfs.mounttable.c.link./mnt"
        (tmp_path / "core-site.xml").write_text(site.format(link, target))

    reads = []
    read = address.read_site_files
    monkeypatch.setattr(address, "read_site_files", lambda paths: reads.append(1) or read(paths))
    write("hdfs://one:8020/a")
    given = [f"viewfs://c/mnt/{number}" for number in range(100)]
    assert plain_texts(given, {})[7] == "hdfs://one:9870/a/7"
    assert len(reads) == 1
    write("hdfs://two:8020/b")
    assert plain_texts(given, {})[7] == "hdfs://two:9870/b/7"


def test_a_path_without_a_scheme_is_no_local_file_where_the_default_is_elsewhere():
    for properties in (ONE_NODE, PAIR):
        assert len(set(plain_texts(["/lake/x", "file:/lake/x"], properties))) == 2
        found = set(plain_texts(["/lake/x", "file:/lake/x"], properties, any_cluster=True))
        assert len(found) == 2
    assert plain_texts(["/lake/x"], {"fs.defaultFS": "oss://b"}) == ["/lake/x"]


def test_where_files_are_deleted_the_name_of_a_cluster_does_not_count():
    names = ["hdfs://nn/a/x", "hdfs://10.0.0.1:8020/a//x", "hdfs:///a/x", "webhdfs://nn/a/x"]
    assert len(set(plain_texts(names, {}, any_cluster=True))) == 1
    there = set(plain_texts(("viewfs:/lake/x", "hdfs:/lake/x"), PAIR, any_cluster=True))
    assert there == {"hdfs:/warehouse/x", "hdfs:/lake/x"}
    assert plain_texts(["hdfs://ns/mnt/x"], OVERLOADED, any_cluster=True) == ["hdfs:/a/x"]
    assert plain_texts(["/a/x"], {}, any_cluster=True) == ["/a/x"]


def test_where_files_are_deleted_the_name_of_a_bucket_does_not_count():
    names = ["s3://b/a/x", "s3a://arn:aws:s3:eu:1:accesspoint/a/x", "s3n://b-s3alias//a/x"]
    assert len(set(plain_texts(names, {}, any_cluster=True))) == 1
    others = ["s3://b/a/x", "gs://b/a/x", "abfs://c@a.dfs.core.windows.net/a/x", "/a/x"]
    assert len(set(plain_texts(others, {}, any_cluster=True))) == len(others)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("s3a://b/a//x", "s3a://b/a/x"),
        ("s3://b//a/x", "s3://b/a/x"),
        ("s3://b/a/./x", "s3://b/a/x"),
        ("gs://b/a/c/../x", "gs://b/a/x"),
        ("abfs://c@a.dfs.core.windows.net/a//", "abfs://c@a.dfs.core.windows.net/a"),
        ("s3://b/a/..", "s3://b/"),
    ],
)
def test_hadoop_has_no_empty_and_dotted_parts_in_its_paths(location, path):
    assert is_ambiguous(location)
    assert hadoop_location(location) == path


@pytest.mark.parametrize(
    "location",
    [
        "s3://b/a/x",
        "s3://b/a/x/",
        "s3://b",
        "s3://b/",
        "s3://b/a/.x/..y/z.",
        "hdfs://nn/a//x",
        "/a//x",
    ],
)
def test_all_take_other_locations_for_the_same(location):
    assert not is_ambiguous(location)
    assert hadoop_location(location) == location
