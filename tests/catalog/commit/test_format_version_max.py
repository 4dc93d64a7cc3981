"""A warehouse's highest format version: tables are neither created nor upgraded above it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ConfigurationError, UnsupportedError

SCHEMA = pa.schema([("id", pa.int64())])
NAMED = r"db\.[a-z]+ cannot have format version 3: .* format-version.max is 2"


def warehouse(folder, **properties):
    given = {"warehouse": str(folder), "type": "hadoop", **properties}
    catalog = load_catalog("lake", **given)
    catalog.create_namespace_if_not_exists("db")
    return catalog


def limited(folder, highest="2", **properties):
    return warehouse(folder, **{"format-version.max": highest, **properties})


def version(catalog, name):
    return catalog.load_table(name).metadata.format_version


def test_no_table_is_created_above_the_highest_version(tmp_path):
    catalog = limited(tmp_path)
    with pytest.raises(UnsupportedError, match=NAMED):
        catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
    with (
        pytest.raises(UnsupportedError, match=NAMED),
        catalog.create_table_transaction("db.t", SCHEMA) as new,
    ):
        new.upgrade_table_version(3)
    assert catalog.list_tables("db") == []
    catalog.create_table("db.t", SCHEMA)
    assert version(catalog, "db.t") == 2


def test_no_table_is_upgraded_above_the_highest_version(tmp_path):
    catalog = limited(tmp_path)
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "1"})
    with table.update_properties() as update:
        update.set("format-version", "2")
    for upgrade in (
        lambda: table.update_properties().set("format-version", "3").commit(),
        lambda: catalog.replace_table("db.t", SCHEMA, properties={"format-version": "3"}),
        lambda: table.transaction().upgrade_table_version(3).commit_transaction(),
    ):
        with pytest.raises(UnsupportedError, match=NAMED):
            upgrade()
        assert version(catalog, "db.t") == 2


def test_a_table_that_another_client_upgraded_is_read_and_written(tmp_path):
    limited(tmp_path).create_table("db.t", SCHEMA)
    warehouse(tmp_path).load_table("db.t").update_properties().set("format-version", 3).commit()
    table = limited(tmp_path).load_table("db.t")
    table.append(pa.table({"id": [1]}))
    assert table.scan().to_arrow().num_rows == 1


def test_without_a_limit_version_3_is_the_highest(tmp_path):
    catalog = limited(tmp_path, "3")
    catalog.create_table("db.t", SCHEMA, properties={"format-version": "3"})
    warehouse(tmp_path).create_table("db.u", SCHEMA, properties={"format-version": "3"})
    assert (version(catalog, "db.t"), version(catalog, "db.u")) == (3, 3)


def test_a_limit_that_is_no_version_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"format-version\.max"):
        limited(tmp_path, "two").create_table("db.t", SCHEMA)
