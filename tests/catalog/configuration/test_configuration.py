from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.catalog.identifier import database_and_table, database_of, parse_identifier
from icecomb.format.errors import (
    ConfigurationError,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationError,
)


def test_arguments_win_over_the_environment_and_each_value_knows_its_source():
    environment = {
        "ICECOMB_CATALOG__LAKE__URI": "thrift://env:1",
        "ICECOMB_CATALOG__LAKE__ENGINE__HIVE__LOCK_ENABLED": "false",
        "ICECOMB_CATALOG__LAKE__table-default.write.x": "1",
        "ICECOMB_CATALOG__OTHER__URI": "thrift://other:1",
    }
    found = load_configuration("lake", {"uri": "thrift://arg:1", "warehouse": None}, environment)
    assert found.properties == {
        "uri": "thrift://arg:1",
        "engine.hive.lock-enabled": "false",
        "table-default.write.x": "1",
    }
    assert found.settings["uri"].source == "argument"
    assert (
        found.settings["engine.hive.lock-enabled"].source
        == "ICECOMB_CATALOG__LAKE__ENGINE__HIVE__LOCK_ENABLED"
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"type": "local"}, "local"),
        ({"uri": "thrift://h:1"}, "hive"),
        ({"type": "LOCAL", "uri": "x"}, "local"),
    ],
)
def test_the_type_is_what_is_said_else_follows_from_the_uri(given, kind):
    assert load_configuration("c", given, {}).type == kind


def test_an_unknown_type_is_refused():
    with pytest.raises(ConfigurationError, match="no catalog type 'rest'"):
        _ = load_configuration("c", {"type": "rest"}, {}).type


def test_only_what_is_called_or_said_to_be_local_is_a_metastore_of_ones_own():
    assert load_configuration("local", {}, {}).type == "local"
    assert load_configuration("local", {"warehouse": "/w"}, {}).type == "local"
    for given in ({}, {"warehouse": "/w"}, {"table-default.x": "1"}):
        with pytest.raises(ConfigurationError, match="Catalog prod is not configured") as error:
            _ = load_configuration("prod", given, {}).type
        assert "uri=thrift://" in error.value.hint
        assert "type=local" in error.value.hint


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("url", "Did you mean uri?"),
        ("uris", "Did you mean uri?"),
        ("URI", "Did you mean uri?"),
        ("wharehouse", "Did you mean warehouse?"),
        ("hadoop_conf_dir", "Did you mean hadoop-conf-dir?"),
        ("hive_check_and_put", "Did you mean hive.check-and-put?"),
        ("clients.wait-timeout", "Did you mean clients.wait-timeout-ms?"),
        ("hdfs.usr", "Did you mean hdfs.user?"),
        ("hdfs.kerberos.keytap", "Did you mean hdfs.kerberos.keytab?"),
        ("local.sync-data", "Did you mean local.sync-data-files?"),
        ("hive.chek-and-put", "Did you mean hive.check-and-put?"),
        ("engine.hive.lock-enable", "Did you mean engine.hive.lock-enabled?"),
        ("iceberg.hive.lock-time-out-ms", "Did you mean iceberg.hive.lock-timeout-ms?"),
        ("hive.metastore.use.ssl", "Did you mean hive.metastore.use.SSL?"),
        ("hive.metastore.uri", "Did you mean hive.metastore.uris?"),
        ("tables-default.write.x", "Did you mean table-default.write.x?"),
        ("table-defaults.write.x", "Did you mean table-default.write.x?"),
        ("s3.acces-key-id", "Did you mean s3.access-key-id?"),
        ("s3.path-style-acess", "Did you mean s3.path-style-access?"),
        ("adls.acount-key", "Did you mean adls.account-key?"),
        ("zzz", "The names without a dot are clients, "),
    ],
)
def test_a_name_that_looks_like_ours_and_is_not_is_refused_with_what_is_meant(key, hint):
    for given, environment, source in (
        ({key: "x"}, {}, "argument"),
        ({}, {f"ICECOMB_CATALOG__LAKE__{key}": "x"}, f"ICECOMB_CATALOG__LAKE__{key}"),
    ):
        if environment and key.isupper():
            continue  # the environment's own spelling of a name
        with pytest.raises(ConfigurationError, match=f"there is no setting '{key}'") as error:
            load_configuration("lake", {"type": "hadoop", **given}, environment)
        assert source in error.value.message
        assert error.value.hint.startswith(hint)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "s3.endpoint",
            "s3.access-key-id",
            "fs.s3a.secret.key",
            "dfs.nameservices",
            "gcs.project",
        ),
        *("s3.multipart.size", "s3.delete.batch-size", "s3.retry.num-retries", "s3.crt.enabled"),
        *("s3.write.tags.x", "client.assume-role.tags.x", "adls.sas-token.acct", "s3.signer.uri"),
        *("hadoop.rpc.protection", "table-default.write.x", "view-default.y", "table-override.z"),
        *("hive.metastore.client.kerberos.principal", "hive.metastore.keystore.path", "mine.key"),
        *("iceberg.hive.client-pool-size", "header.x", "rest.sigv4-enabled", "io-impl", "token"),
    ],
)
def test_names_of_other_programs_are_kept(key):
    given = {"type": "hadoop", key: "x"}
    assert load_configuration("lake", given, {}).properties == given


def test_every_name_that_the_pages_give_is_known():
    docs = Path(__file__).resolve().parents[3] / "docs"
    listed = (docs / "properties.md").read_text().partition("## Properties of tables")[0]
    page = (docs / "configuration.md").read_text() + listed
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    quoted = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    # those in capitals are variables of the environment
    names = [name for name in quoted if "…" not in name and not name.isupper()]
    assert len(names) >= 80
    for name in names:
        load_configuration("lake", {"type": "hadoop", name: "x"}, {})


def test_names_have_parts():
    assert parse_identifier("a.b") == ("a", "b")
    assert database_and_table(("A", "T")) == ("a", "t")
    assert database_of("A") == "a"
    with pytest.raises(ValidationError):
        parse_identifier("a..b")
    with pytest.raises(NoSuchTableError):
        database_and_table("a.b.c")
    with pytest.raises(NoSuchNamespaceError):
        database_of(())


def test_importing_the_catalog_loads_nothing_heavy():
    code = "import icecomb.catalog, sys; print(sorted({'thrift','hmsclient','pyarrow','polars','fastavro'} & {m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=True
    )
    assert done.stdout.strip() == "[]"
