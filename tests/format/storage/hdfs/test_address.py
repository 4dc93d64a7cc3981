from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError, ValidationError
from icecomb.format.storage.hdfs.address import (
    hadoop_properties,
    resolve_location,
    rpc_location,
)

HA = {
    "fs.defaultFS": "hdfs://ns1",
    "dfs.nameservices": "ns1, ns2",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1": "a:8020",
    "dfs.namenode.rpc-address.ns1.nn2": "b:8020",
    "dfs.namenode.http-address.ns1.nn1": "a:19870",
    "dfs.namenode.http-address.ns1.nn2": "b",
    "dfs.namenode.https-address.ns1.nn1": "a:9871",
    "dfs.namenode.https-address.ns1.nn2": "b:9871",
    "dfs.namenode.http-address.ns2": "c:9870",
}


@pytest.mark.parametrize(
    ("location", "name_nodes", "path"),
    [
        ("hdfs://ns1/a/b", ("a:19870", "b:9870"), "/a/b"),
        ("hdfs:///a", ("a:19870", "b:9870"), "/a"),
        ("hdfs:/a", ("a:19870", "b:9870"), "/a"),
        ("/a", ("a:19870", "b:9870"), "/a"),
        ("HDFS://ns1//a///b/", ("a:19870", "b:9870"), "/a/b"),
        ("hdfs://ns1", ("a:19870", "b:9870"), "/"),
        ("hdfs://ns1/a/./b/../../../jmx", ("a:19870", "b:9870"), "/jmx"),
        ("hdfs://ns1/a/.hidden/%2e%2e/b", ("a:19870", "b:9870"), "/a/.hidden/%2e%2e/b"),
        ("hdfs://ns1/%20 é#?", ("a:19870", "b:9870"), "/%20 é#?"),
        ("hdfs://ns2/a", ("c:9870",), "/a"),
        ("hdfs://b:8020/a", ("b:9870",), "/a"),
        ("hdfs://elsewhere:8020/a", ("elsewhere:9870",), "/a"),
        ("hdfs://elsewhere.example/a", ("elsewhere.example:9870",), "/a"),
        ("webhdfs://x:1234/a", ("x:1234",), "/a"),
        ("webhdfs://x/a", ("x:9870",), "/a"),
        ("webhdfs://ns1/a", ("a:19870", "b:9870"), "/a"),
    ],
)
def test_a_location_has_name_nodes_and_a_path(location, name_nodes, path):
    found = resolve_location(location, HA)
    assert (found.name_nodes, found.path, found.secure) == (name_nodes, path, False)


def test_https_by_scheme_or_by_policy():
    for location, more in [
        ("swebhdfs://ns1/a", {}),
        ("hdfs://ns1/a", {"dfs.http.policy": "HTTPS_ONLY"}),
        ("hdfs://ns1/a", {"dfs.http.policy": " https_only "}),
    ]:
        found = resolve_location(location, {**HA, **more})
        assert found.secure
        assert found.name_nodes == ("a:9871", "b:9871")
    assert resolve_location("swebhdfs://x/a", {}).name_nodes == ("x:9871",)


def test_a_misspelled_policy_is_refused_and_not_taken_for_one_without_tls():
    with pytest.raises(ConfigurationError, match=r"dfs\.http\.policy cannot be 'HTTPS-ONLY'"):
        resolve_location("hdfs://ns1/a", {**HA, "dfs.http.policy": "HTTPS-ONLY"})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"dfs.namenode.http-address": "web:1"}, ("h:9870",)),
        ({"dfs.namenode.http-address": "web:1", "dfs.namenode.rpc-address": "h:8020"}, ("web:1",)),
        ({"dfs.namenode.http-address": "web:1", "fs.defaultFS": "hdfs://h"}, ("web:1",)),
        ({"dfs.namenode.http-address": "0.0.0.0:1", "fs.defaultFS": "hdfs://h:8020"}, ("h:1",)),
        ({"dfs.namenode.http-address": "web:1", "fs.defaultFS": "hdfs://other:8020"}, ("h:9870",)),
    ],
)
def test_the_web_address_counts_for_the_name_node_it_belongs_to(properties, expected):
    assert resolve_location("hdfs://h:8020/a", properties).name_nodes == expected


FEDERATION = {
    "dfs.nameservices": "ns1,ns2",
    "dfs.namenode.rpc-address.ns1": "a:9000",
    "dfs.namenode.rpc-address.ns2": "b",
    "dfs.namenode.http-address.ns1": "0.0.0.0:50070",
    "dfs.namenode.http-address.ns2": "web:50071",
    "dfs.namenode.http-address": "elsewhere:1",
}


@pytest.mark.parametrize(
    ("location", "name_node"),
    [
        ("hdfs://ns1/x", "a:50070"),
        ("hdfs://a:9000/x", "a:50070"),
        ("hdfs://ns2/x", "web:50071"),
        ("hdfs://b:8020/x", "web:50071"),
        ("hdfs://b:9000/x", "b:9870"),
    ],
)
def test_name_nodes_of_a_federation_are_found_by_nameservice_and_by_address(location, name_node):
    assert resolve_location(location, FEDERATION).name_nodes == (name_node,)


def test_a_web_address_on_all_interfaces_is_at_the_host_of_the_rpc_address():
    everywhere = {f"dfs.namenode.http-address.ns1.{n}": "0.0.0.0:50070" for n in ("nn1", "nn2")}
    for location, expected in [
        ("hdfs://ns1/x", ("a:50070", "b:50070")),
        ("webhdfs://ns1/x", ("a:50070", "b:50070")),
        ("hdfs://b:8020/x", ("b:50070",)),
    ]:
        assert resolve_location(location, {**HA, **everywhere}).name_nodes == expected


def test_a_name_node_without_a_web_address_has_hadoops_default():
    known = {**HA, "dfs.namenode.http-address.ns1.nn2": ""}
    assert resolve_location("hdfs://b:8020/x", known).name_nodes == ("b:9870",)


@pytest.mark.parametrize(
    "name", ["fs.viewfs.ViewFileSystemOverloadScheme", "hdfs.ViewDistributedFileSystem"]
)
def test_locations_of_a_cluster_may_have_a_mount_table(name):
    mounts = {
        **HA,
        "fs.hdfs.impl": f"org.apache.hadoop.{name}",
        "fs.viewfs.mounttable.ns1.link./data": "hdfs://ns2/archive",
        "fs.viewfs.mounttable.ns1.linkFallback": "hdfs://ns1/",
    }
    leads = {
        location: (found.name_nodes[0], found.path)
        for location in ("hdfs://ns1/data/t", "hdfs://ns1/t", "hdfs://ns2/data/t", "/data/t")
        for found in [resolve_location(location, mounts)]
    }
    assert leads == {
        "hdfs://ns1/data/t": ("c:9870", "/archive/t"),
        "hdfs://ns1/t": ("a:19870", "/t"),
        "hdfs://ns2/data/t": ("c:9870", "/data/t"),
        "/data/t": ("c:9870", "/archive/t"),
    }
    by_address = {**mounts, "fs.viewfs.mounttable.h.link./d": "hdfs://h:8020/e"}
    assert resolve_location("hdfs://h:8020/d/x", by_address).path == "/e/x"
    by_address["fs.viewfs.ignore.port.in.mount.table.name"] = "false"
    assert resolve_location("hdfs://h:8020/d/x", by_address).path == "/d/x"
    with pytest.raises(ConfigurationError, match=r"in the file of fs\.viewfs\.mounttable\.path"):
        resolve_location("hdfs://ns1/t", {**mounts, "fs.viewfs.mounttable.path": "hdfs://ns1/m"})


@pytest.mark.parametrize(
    "link", ["linkRegex.#.^/(?<u>[a-z]+)", "linkNfly.minReplication=2./data", "linkMerge./data"]
)
def test_a_mount_table_with_links_that_are_not_followed_leads_nowhere(link):
    mounts = {**HA, "fs.viewfs.mounttable.all.linkFallback": "hdfs://ns1/"}
    assert resolve_location("viewfs://all/data/x", mounts).path == "/data/x"
    mounts[f"fs.viewfs.mounttable.all.{link}"] = "hdfs://ns2/x"
    with pytest.raises(ConfigurationError, match="which icecomb does not follow"):
        resolve_location("viewfs://all/data/x", mounts)


def test_a_mount_table_leads_to_other_clusters():
    table = {
        **HA,
        "fs.viewfs.mounttable.all.link./data": "hdfs://ns1/warehouse",
        "fs.viewfs.mounttable.all.link./data/cold": "hdfs://ns2/archive/",
        "fs.viewfs.mounttable.all.link./loop": "viewfs://all/loop",
        "fs.viewfs.mounttable.rest.linkFallback": "hdfs://ns2/",
    }
    assert resolve_location("viewfs://all/data/t/x", table).path == "/warehouse/t/x"
    cold = resolve_location("viewfs://all/data/cold/t", table)
    assert (cold.name_nodes, cold.path) == (("c:9870",), "/archive/t")
    assert resolve_location("viewfs://all/data", table).path == "/warehouse"
    assert resolve_location("viewfs://rest/x/y", table).path == "/x/y"
    with pytest.raises(ConfigurationError, match=r"no mount point of table all covers it"):
        resolve_location("viewfs://all/database", table)
    with pytest.raises(ConfigurationError, match="has a cycle"):
        resolve_location("viewfs://all/loop/a", table)
    default = {**table, "fs.defaultFS": "viewfs://all"}
    assert resolve_location("/data/t", default).path == "/warehouse/t"
    assert resolve_location("viewfs:///data/t", default).path == "/warehouse/t"


@pytest.mark.parametrize(
    ("location", "properties", "error", "says"),
    [
        ("hdfs:///a", {}, ConfigurationError, "fs.defaultFS is not set"),
        ("hdfs:///a", {"fs.defaultFS": "file:///"}, ConfigurationError, "fs.defaultFS is file:///"),
        ("hdfs://ns9/a", HA, ConfigurationError, "no nameservice of this name.*ns1, ns2"),
        (
            "hdfs://ns1/a",
            {**HA, "dfs.namenode.http-address.ns1.nn2": ""},
            ConfigurationError,
            r"no dfs\.namenode\.http-address\.ns1\.nn2",
        ),
        ("s3://bucket/a", HA, ValidationError, "Not an HDFS location"),
        ("hdfs://ns1/a\0b", HA, ValidationError, "NUL"),
    ],
)
def test_a_location_that_cannot_be_resolved_is_named(location, properties, error, says):
    with pytest.raises(error, match=says):
        resolve_location(location, properties)


def test_settings_of_the_cluster_come_from_its_files_and_are_overridden(tmp_path, monkeypatch):
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://${who}</value></property>"
        "<property><name>who</name><value>ns1</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert hadoop_properties({})["fs.defaultFS"] == "hdfs://ns1"
    assert hadoop_properties({"fs.defaultFS": "hdfs://x"})["fs.defaultFS"] == "hdfs://x"


SINGLE = {
    "fs.defaultFS": "hdfs://h:9000",
    "dfs.namenode.http-address": "0.0.0.0:1",
    "dfs.namenode.https-address": "h:2",
}


@pytest.mark.parametrize(
    ("location", "properties", "expected"),
    [
        ("webhdfs://ns1/a//b/", HA, "hdfs://ns1/a//b/"),
        ("webhdfs://b/a", HA, "hdfs://ns1/a"),
        ("webhdfs://a:19870/a", HA, "hdfs://ns1/a"),
        ("SWEBHDFS://a:9871/a", HA, "hdfs://ns1/a"),
        ("webhdfs://c:9870/%20 é", HA, "hdfs://ns2/%20 é"),
        ("webhdfs://h:1/a", SINGLE, "hdfs://h:9000/a"),
        ("swebhdfs://h:2/a", SINGLE, "hdfs://h:9000/a"),
        ("webhdfs://h/a", {"fs.defaultFS": "hdfs://h"}, "hdfs://h/a"),
        ("hdfs://elsewhere/a", HA, "hdfs://elsewhere/a"),
        ("viewfs://all/a", HA, "viewfs://all/a"),
        ("file:///a", HA, "file:///a"),
        ("/a", HA, "/a"),
    ],
)
def test_a_web_location_has_a_twin_for_clients_that_speak_hadoops_own_protocol(
    location, properties, expected
):
    assert rpc_location(location, properties) == expected


@pytest.mark.parametrize(
    ("location", "properties"),
    [
        ("webhdfs://a:1/x", HA),
        ("webhdfs://h:3/x", SINGLE),
        ("swebhdfs://h:1/x", SINGLE),
        ("webhdfs://h:9870/x", {}),
        ("webhdfs://h:9870/x", {"fs.defaultFS": "file:///"}),
    ],
)
def test_a_web_location_of_an_unknown_cluster_has_none(location, properties):
    with pytest.raises(ConfigurationError, match="do not say which hdfs:// address") as caught:
        rpc_location(location, properties)
    assert "HADOOP_CONF_DIR" in str(caught.value)
