"""Settings from the cluster's own files and from icecomb.yaml, and what is shown of them."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.catalog.configuration.catalog_property import Properties
from icecomb.catalog.configuration.configuration import (
    catalog_name,
    default_catalog,
    load_configuration,
)
from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import flag, number
from icecomb.format.secret import HIDDEN, is_secret, shown
from icecomb.format.storage.site_file import read_site_files, resolve
from tests.peers.other_user import give_away


def site(path: Path, *properties: tuple[str, ...]) -> Path:
    """A Hadoop configuration file; a third item of a property makes it final."""
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [
        f"<property><name>{name}</name><value>{value}</value>{'<final>true</final>' * len(rest)}</property>"
        for name, value, *rest in properties
    ]
    path.write_text(
        "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>"])
    )
    return path


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Folders of this test only: nothing of the machine's own configuration is seen."""
    monkeypatch.chdir(tmp_path)
    return {
        "ICECOMB_HOME": str(tmp_path / "home"),
        "HIVE_CONF_DIR": str(tmp_path / "hive"),
        "HADOOP_CONF_DIR": str(tmp_path / "hadoop"),
    }


def test_the_nearest_source_wins_and_each_value_names_its_own(environment, tmp_path):
    hive = site(
        tmp_path / "hive" / "hive-site.xml",
        ("hive.metastore.uris", "thrift://site:1"),
        ("hive.metastore.warehouse.dir", "/site"),
    )
    (tmp_path / "home").mkdir()
    far = tmp_path / "home" / "icecomb.yaml"
    far.write_text(
        "catalog:\n  lake:\n    uri: thrift://far:1\n    x.a: far\n    x.b: far\n    x.c: far\n"
    )
    near = tmp_path / "icecomb.yaml"
    near.write_text("catalog:\n  lake:\n    x.a: near\n    x.b: near\n")
    environment["ICECOMB_CATALOG__LAKE__X__A"] = "variable"

    found = load_configuration("lake", {"uri": "thrift://argument:1"}, environment)
    shown = {key: (value, source) for key, value, source in found.sources}
    assert found.type == "hive"
    assert shown["uri"] == ("thrift://argument:1", "argument")
    assert shown["x.a"] == ("variable", "ICECOMB_CATALOG__LAKE__X__A")
    assert shown["x.b"] == ("near", f"{near}:4")
    assert shown["x.c"] == ("far", f"{far}:6")
    assert shown["warehouse"] == ("/site", f"{hive}:4")

    assert load_configuration("lake", {}, environment).properties["uri"] == "thrift://far:1"
    assert load_configuration("other", {}, environment).properties["uri"] == "thrift://site:1"


def test_a_catalog_needs_nothing_but_the_clusters_own_files(environment, tmp_path, monkeypatch):
    site(tmp_path / "hive" / "hive-site.xml", ("hive.metastore.uris", "thrift://127.0.0.1:9"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    catalog = load_catalog("anything")
    assert repr(catalog) == "HiveCatalog('anything', uri='thrift://127.0.0.1:9')"
    assert default_catalog(environment).value == "default"


def test_the_local_catalog_and_folders_of_tables_take_no_metastore_from_the_cluster(
    environment, tmp_path
):
    site(
        tmp_path / "hive" / "hive-site.xml",
        ("hive.metastore.uris", "thrift://site:1"),
        ("fs.defaultFS", "hdfs://ns1"),
    )
    for name, given in (("local", {}), ("files", {"type": "hadoop"})):
        found = load_configuration(name, given, environment)
        assert found.type == given.get("type", "local")
        assert found.properties == {**given, "fs.defaultFS": "hdfs://ns1"}
    assert (
        load_configuration("local", {"type": "hive"}, environment).properties["uri"]
        == "thrift://site:1"
    )


def test_settings_may_name_the_folders_of_the_clusters_files(environment, tmp_path):
    site(
        tmp_path / "elsewhere" / "hive-site.xml", ("metastore.thrift.uris", "thrift://elsewhere:1")
    )
    found = load_configuration("lake", {"hive-conf-dir": str(tmp_path / "elsewhere")}, environment)
    assert found.properties["uri"] == "thrift://elsewhere:1"


def test_values_refer_to_others_as_in_hadoop(tmp_path):
    core = site(tmp_path / "core-site.xml", ("fs.defaultFS", "hdfs://ns1"), ("circle", "${circle}"))
    hive = site(
        tmp_path / "hive-site.xml",
        (
            "hive.metastore.warehouse.dir",
            "${fs.defaultFS}/${env.TEAM}/${env.NONE:-w}/${system:user.name}",
        ),
        ("open", "${nobody.knows}/x"),
    )
    found = read_site_files([core, hive])
    environment = {"TEAM": "blue", "HADOOP_USER_NAME": "ann"}
    assert resolve(found, "hive.metastore.warehouse.dir", environment) == "hdfs://ns1/blue/w/ann"
    assert resolve(found, "open", environment) == "${nobody.knows}/x"
    with pytest.raises(
        ConfigurationError, match=r"core-site\.xml:4: property circle refers to itself"
    ):
        resolve(found, "circle", environment)


def test_a_final_property_of_an_earlier_file_stays(tmp_path):
    first = site(tmp_path / "core-site.xml", ("a", "1", "final"), ("b", "1"))
    second = site(tmp_path / "hive-site.xml", ("a", "2"), ("b", "2"))
    found = read_site_files([first, second, tmp_path / "missing.xml"])
    assert {name: one.value for name, one in found.items()} == {"a": "1", "b": "2"}
    assert found["a"].source == f"{first}:3"


def test_attributes_and_included_files_are_read(tmp_path):
    site(tmp_path / "more.xml", ("b", "2"))
    main = tmp_path / "core-site.xml"
    main.write_text(
        '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n'
        '<property name="a" value=" 1 "/>\n<xi:include href="more.xml"/>\n'
        '<xi:include href="none.xml"><xi:fallback><property name="c" value="3"/></xi:fallback></xi:include>\n'
        '<xi:include href="more.xml"><xi:fallback><property name="d" value="4"/></xi:fallback></xi:include>\n'
        "</configuration>"
    )
    found = read_site_files([main])
    assert {name: one.value.strip() for name, one in found.items()} == {
        "a": "1",
        "b": "2",
        "c": "3",
    }


BROKEN = [
    ("<configuration>\n<property>\n</configuration>", r":3: not well-formed XML: mismatched tag"),
    ("", r":1: not well-formed XML: no element found"),
    ("<html/>", r":1: its root is <html>"),
    ('<!DOCTYPE c [\n<!ENTITY x "y">]>\n<configuration/>', r":2: it declares the entity x"),
    ('<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><configuration/>', r":1: it declares the entity x"),
    ('<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n<xi:include href="no.xml"/></configuration>', r":2: the included file .*no\.xml does not exist"),
    ('<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n<xi:include href="hive-site.xml"/></configuration>', r":1: the file includes itself"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_broken_site_file_is_named_with_its_line(environment, tmp_path, text, message):
    (tmp_path / "hive").mkdir()
    (tmp_path / "hive" / "hive-site.xml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"hive-site\.xml" + message) as error:
        load_configuration("lake", {}, environment)
    assert "\n" not in error.value.message


def test_the_yaml_file_nests_lists_and_keeps_texts_as_they_are_written(environment, tmp_path):
    (tmp_path / "icecomb.yaml").write_text(
        "default-catalog: lake\ncatalog:\n  lake:\n    uri: [thrift://a:1, thrift://b:1]\n"
        "    table-default:\n      write.x: 007\n      deep: {er: Yes}\n    empty:\n  bare:\n"
    )
    assert load_configuration("lake", {}, environment).properties == {
        "uri": "thrift://a:1,thrift://b:1",
        "table-default.write.x": "007",
        "table-default.deep.er": "true",
    }
    assert default_catalog(environment).value == "lake"
    assert default_catalog({**environment, "ICECOMB_DEFAULT_CATALOG": "x"}).value == "x"
    (tmp_path / "icecomb.yaml").unlink()
    assert default_catalog(environment).value == "local"


def test_a_slip_in_a_name_starts_no_metastore(environment, tmp_path, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ICECOMB_CATALOG__STAGING__URI", "thrift://127.0.0.1:9")
    monkeypatch.setattr("icecomb.catalog.metastore.start", None)
    near = tmp_path / "icecomb.yaml"
    near.write_text("catalog:\n  prod: {uri: thrift://127.0.0.1:9}\n  part: {warehouse: /w}\n")
    assert load_catalog("prod").name == "prod"
    assert load_catalog("staging").name == "staging"
    for slip in ("prd", "PRD"):
        with pytest.raises(ConfigurationError, match=f"Catalog {slip} is not configured") as error:
            load_catalog(slip, warehouse="/w")
        assert error.value.hint.startswith("Did you mean prod?")
    with pytest.raises(ConfigurationError, match="not configured") as error:
        open_table("stagin.db.t")
    assert error.value.hint.startswith("Did you mean staging?")
    with pytest.raises(ConfigurationError, match=rf"only other settings .* {near}:3") as error:
        load_catalog("part")
    with pytest.raises(ConfigurationError, match="there is no setting 'url'"):
        load_catalog("prod", url="thrift://127.0.0.1:9")
    near.write_text("catalog:\n  prod:\n    url: thrift://127.0.0.1:9\n")
    with pytest.raises(ConfigurationError, match=rf"there is no setting 'url' \({near}:3\)"):
        load_catalog("prod")


def test_without_a_name_the_default_catalog_is_opened(environment, tmp_path, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert catalog_name({}) == "local"
    assert catalog_name({"uri": None, "warehouse": "/w"}) == "local"
    assert load_catalog(uri="thrift://127.0.0.1:9").name == "default"
    assert load_catalog(type="hadoop", warehouse="/w").name == "default"
    text = (
        "catalog:\n  default: {type: hadoop, warehouse: /w}\n  lake: {uri: thrift://127.0.0.1:9}\n"
    )
    (tmp_path / "icecomb.yaml").write_text(text)
    assert repr(load_catalog()) == "HadoopCatalog('default', warehouse='/w')"
    (tmp_path / "icecomb.yaml").write_text(f"default-catalog: lake\n{text}")
    assert load_catalog().name == "lake"
    monkeypatch.setenv("ICECOMB_DEFAULT_CATALOG", "typo")
    with pytest.raises(ConfigurationError, match="Catalog typo is not configured"):
        load_catalog()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("catalog:\n  a: {b: c", r":2: not valid YAML: "),
        ("catalog:\n  lake: thrift://a:1", r":2: keys and values are expected here"),
        ("- a", r":1: keys and values are expected here"),
        ("catalogs:\n  lake: {}", r":2: there is no setting 'catalogs'"),
        ("catalog:\n  a: {}\n  a: {}", r":3: a stands here a second time"),
        ("catalog:\n  a: {b: [[1, {c: 2}]]}", r":2: one value is expected here"),
        ("catalog: !!python/object:os.system {a: {b.x: c}}", None),
        ("\x01", r":1: not valid YAML"),
        ("catalog: &a\n  x: *a", r":1: an alias in it refers to itself"),
    ],
)
def test_a_broken_yaml_file_is_named_with_its_line(environment, tmp_path, text, message):
    (tmp_path / "icecomb.yaml").write_text(text)
    if message is None:
        assert load_configuration("a", {}, environment).properties == {"b.x": "c"}
        return
    with pytest.raises(ConfigurationError, match=r"icecomb\.yaml" + message):
        load_configuration("a", {}, environment)


@pytest.mark.parametrize(
    "key",
    ["fs.s3a.secret.key", "s3.access-key-id", "token", "oauth2.credential", "javax.jdo.option.ConnectionPassword", "hive.metastore.truststore.password"],
)  # fmt: skip
def test_secrets_are_shown_nowhere(environment, key):
    found = load_configuration(
        "lake", {key: "hunter2", "uri": "thrift://ann:hunter2@h:1"}, environment
    )
    assert is_secret(key)
    assert found.properties[key] == "hunter2"
    catalog = load_catalog("lake", type="hadoop", warehouse="/x", **{key: "hunter2"})
    for text in (
        repr(found.settings),
        repr(found.properties),
        repr(list(found.sources)),
        repr(catalog),
        repr(catalog.properties),
    ):
        assert "hunter2" not in text
    for act in (
        lambda: number(key, 1, "").of({key: "hunter2"}),
        lambda: flag(key, "", default=True).of({key: "hunter2"}),
    ):
        with pytest.raises(ConfigurationError) as error:
            act()
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "seen"),
    [
        ("ugi", "me:hunter2", f"me:{HIDDEN}"),
        ("ugi", "me", "me"),
        ("https.proxy", "http://me:hunt@er2@proxy:3128/x@y", "http://proxy:3128/x@y"),
        ("https.proxy", "http://me:hunt,er2@proxy:3128", "http://proxy:3128"),
        ("uri", "thrift://a:1,thrift://me:hunter2@b:2", "thrift://a:1,thrift://b:2"),
    ],
)
def test_a_part_of_a_value_may_be_secret(key, value, seen):
    assert shown(key, value) == seen


@pytest.mark.parametrize(
    "uri",
    ["thrift://ann:hunter2@h:1", "http://ann:hunter2@h:1", "thrift://ok:1,thrift://hunter2@h:1"],
)
def test_a_password_in_an_address_is_refused_without_showing_it(uri):
    with pytest.raises(ConfigurationError, match="is not the address of a Hive metastore") as error:
        load_catalog("lake", uri=uri)
    assert "hunter2" not in str(error.value)


def test_a_file_that_somebody_else_can_write_is_not_read_in_the_working_directory(
    environment, tmp_path, monkeypatch
):
    file = tmp_path / "icecomb.yaml"
    file.write_text("catalog:\n  lake:\n    s3.endpoint: http://theirs\n")
    assert load_configuration("lake", {}, environment).properties["s3.endpoint"] == "http://theirs"
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match=r"icecomb\.yaml is not read"):
        load_configuration("lake", {}, environment)
    file.chmod(0o644)
    give_away(file, monkeypatch)
    with pytest.raises(ConfigurationError, match=r"is not read: it belongs to user"):
        load_configuration("lake", {}, environment)


def test_neither_is_one_in_a_folder_where_somebody_else_could_exchange_it(
    environment, tmp_path, monkeypatch
):
    folder = tmp_path / "team" / "mine"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (tmp_path / "team").chmod(0o777)
    load_configuration("lake", {"uri": "thrift://h:1"}, environment)
    (folder / "icecomb.yaml").write_text("catalog:\n  lake: {uri: thrift://h:1}\n")
    with pytest.raises(
        ConfigurationError, match=rf"others could exchange {tmp_path}/team"
    ) as error:
        load_configuration("lake", {}, environment)
    assert "chmod go-w" in error.value.hint
    (tmp_path / "team").chmod(0o1777)
    assert load_configuration("lake", {}, environment).properties["uri"] == "thrift://h:1"


def test_neither_is_one_of_somebody_else_in_the_user_s_configuration_folder(
    environment, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    home.mkdir()
    environment = {**environment, "ICECOMB_HOME": str(home)}
    file = home / "icecomb.yaml"
    file.write_text("catalog:\n  lake: {uri: thrift://theirs}\n")
    # as Kubernetes mounts a folder of settings
    home.chmod(0o777)
    assert load_configuration("lake", {}, environment).properties["uri"] == "thrift://theirs"
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match=r"icecomb\.yaml is not read") as error:
        load_configuration("lake", {}, environment)
    assert "ICECOMB_HOME" in error.value.hint
    file.chmod(0o644)
    give_away(file, monkeypatch)
    with pytest.raises(ConfigurationError, match=r"is not read: it belongs to user"):
        load_configuration("lake", {}, environment)


def _shared_group(place, elsewhere, monkeypatch):
    elsewhere.rename(place)
    place.chmod(0o664)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="team", gr_mem=["bob"]))


def _link_of_another(place, elsewhere, monkeypatch):
    place.symlink_to(elsewhere)
    give_away(place, monkeypatch)


def _exchanged(place, elsewhere, monkeypatch):
    place.symlink_to(elsewhere)
    real = os.open

    def exchanged(path, *given, **options):
        if os.fspath(path) == str(place):
            place.unlink()
            place.symlink_to(elsewhere)
        return real(path, *given, **options)

    monkeypatch.setattr(os, "open", exchanged)


def _long(place, elsewhere, _):
    place.write_text(elsewhere.read_text() + "#" * (5 << 20))


def _fifo(place, *_):
    os.mkfifo(place)


def _listed_entry(place, elsewhere, monkeypatch):
    elsewhere.rename(place)
    place.chmod(0o664)
    monkeypatch.setattr(os, "getxattr", lambda *_: b"an entry", raising=False)


@pytest.mark.parametrize(
    "made", [_shared_group, _listed_entry, _link_of_another, _exchanged, _long, _fifo]
)
def test_no_way_round_makes_another_s_text_the_user_s(environment, tmp_path, monkeypatch, made):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("catalog:\n  lake: {uri: thrift://theirs}\n")
    made(tmp_path / "icecomb.yaml", elsewhere, monkeypatch)
    with pytest.raises(ConfigurationError, match=r"icecomb\.yaml is not read"):
        load_configuration("lake", {}, environment)


def test_a_link_of_one_s_own_and_a_private_group_are_no_obstacle(
    environment, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("catalog:\n  lake: {uri: thrift://mine}\n")
    elsewhere.chmod(0o664)
    user = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name=user, gr_mem=[user]))
    (tmp_path / "icecomb.yaml").symlink_to(elsewhere)
    assert load_configuration("lake", {}, environment).properties["uri"] == "thrift://mine"


@pytest.mark.parametrize(
    "place",
    [
        *("s3.endpoint", "adls.account-host", "uri", "hadoop-conf-dir", "warehouse"),
        *("adls.connection-string", "hive.metastore.use.SSL", "hive.metastore.sasl.enabled"),
        *("hive.metastore.truststore.path", "mapreduce.job.hdfs-servers"),
    ],
)
def test_who_names_a_server_gets_no_secrets_of_another_file(environment, tmp_path, place):
    (tmp_path / "home").mkdir()
    far = "catalog:\n  lake: {s3.secret-access-key: mine, x.a: far, s3.endpoint: http://far}\n"
    (tmp_path / "home" / "icecomb.yaml").write_text(far)
    near = tmp_path / "icecomb.yaml"
    near.write_text("catalog:\n  lake: {x.b: near}\n")
    found = load_configuration("lake", {}, environment).properties
    assert (found["s3.secret-access-key"], found["x.b"]) == ("mine", "near")
    near.write_text(f"catalog:\n  lake: {{{place}: {tmp_path}}}\n")
    found = load_configuration("lake", {}, environment).properties
    assert "s3.secret-access-key" not in found
    assert found["x.a"] == "far"


def test_files_and_folders_that_are_not_there_are_no_error_but_unreadable_ones_are(
    environment, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    environment["HIVE_CONF_DIR"] = str(tmp_path / "file")
    environment["ICECOMB_HOME"] = str(tmp_path / "file")
    assert load_configuration("lake", {}, environment).properties == {}
    (tmp_path / "hadoop" / "core-site.xml").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"core-site\.xml cannot be read"):
        load_configuration("lake", {}, environment)
    (tmp_path / "hadoop" / "core-site.xml").rmdir()
    (tmp_path / "icecomb.yaml").mkdir()
    with pytest.raises(ConfigurationError, match=r"icecomb\.yaml cannot be read"):
        load_configuration("lake", {}, environment)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_configuration("lake", {}, environment).properties == {}


def test_ordinary_keys_are_no_secrets():
    assert not any(
        map(
            is_secret,
            ("hive.metastore.kerberos.keytab.file", "uri", "client-pool-cache-keys", "monkey.x"),
        )
    )
    assert repr(Properties({"a": "b", "password": "c"})) == f"{{'a': 'b', 'password': '{HIDDEN}'}}"
