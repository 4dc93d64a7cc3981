"""File-system tables that Iceberg Java's ``HadoopCatalog`` and ours share, without any server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.catalog.catalog import Catalog
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))


@pytest.fixture(scope="module")
def files(metastore: Any, iceberg_java: Any) -> Iterator[Catalog]:
    """Our catalog on the folder of Java's ``ice_hadoop``, with the namespace ``db``."""
    iceberg_java.sql("CREATE NAMESPACE ice_hadoop.db")
    yield load_catalog("files", type="hadoop", warehouse=f"{metastore.warehouse.as_uri()}/hadoop")
    iceberg_java.sql("DROP NAMESPACE ice_hadoop.db")


@pytest.fixture
def names(files: Catalog) -> Iterator[list[str]]:
    """Tables of `db` to be purged when the test is done."""
    made: list[str] = []
    yield made
    for name in made:
        files.purge_table(name)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{n}" for n in ids]})


def ids(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def metadata_files(table: Any) -> list[str]:
    folder = Path(table.location().removeprefix("file:").replace("///", "/")) / "metadata"
    return sorted(path.name for path in folder.glob("v*.json"))


def java_ids(iceberg_java: Any, table: str) -> list[int]:
    return [row[0] for row in iceberg_java.sql(f"SELECT id FROM ice_hadoop.{table} ORDER BY id")]


@pytest.mark.parametrize("version", ["1", "2"])
def test_iceberg_java_reads_and_continues_our_table(files, iceberg_java, names, version):
    name = f"db.ours{version}"
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("bucket[2]"), "id_bucket"),))
    ours = files.create_table(
        name, SCHEMA, partition_spec=spec, properties={"format-version": version}
    )
    names.append(name)
    ours.append(rows(1, 2, 3))
    assert java_ids(iceberg_java, name) == [1, 2, 3]
    iceberg_java.sql(f"INSERT INTO ice_hadoop.{name} VALUES (4, 'd')")
    assert ids(ours.refresh()) == [1, 2, 3, 4]
    ours.append(rows(5))
    assert java_ids(iceberg_java, name) == [1, 2, 3, 4, 5]
    iceberg_java.sql(f"DELETE FROM ice_hadoop.{name} WHERE id = 2")
    assert ids(ours.refresh()) == [1, 3, 4, 5]
    assert metadata_files(ours) == [f"v{n}.metadata.json" for n in range(1, 6)]
    history = iceberg_java.sql(f"SELECT snapshot_id FROM ice_hadoop.{name}.history")
    assert [row[0] for row in history] == [entry.snapshot_id for entry in ours.history()]


def test_we_read_and_continue_a_table_of_iceberg_java(files, iceberg_java, names):
    iceberg_java.sql(
        "CREATE TABLE ice_hadoop.db.theirs (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s) "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'format-version'='2')"
    )
    names.append("db.theirs")
    iceberg_java.sql("INSERT INTO ice_hadoop.db.theirs VALUES (1, 's1'), (2, 's1'), (3, 's3')")
    ours = files.load_table("db.theirs")
    assert ids(ours) == [1, 2, 3]
    ours.append(rows(4))
    iceberg_java.sql("DELETE FROM ice_hadoop.db.theirs WHERE id = 1")
    assert ids(ours.refresh()) == [2, 3, 4]
    iceberg_java.sql("ALTER TABLE ice_hadoop.db.theirs RENAME COLUMN id TO number")
    iceberg_java.sql("ALTER TABLE ice_hadoop.db.theirs ADD COLUMN extra INT")
    ours.refresh().append(
        pa.table({"number": [5], "s": ["s5"], "extra": pa.array([7], pa.int32())})
    )
    assert iceberg_java.sql(
        "SELECT number, s, extra FROM ice_hadoop.db.theirs WHERE number > 2 ORDER BY number"
    ) == [[3, "s3", None], [4, "s4", None], [5, "s5", 7]]
    assert open_table(ours.location()).scan("number = 5").to_arrow()["extra"].to_pylist() == [7]


def test_compressed_versions_of_both_follow_each_other(files, iceberg_java, names):
    ours = files.create_table("db.packed", SCHEMA)
    names.append("db.packed")
    iceberg_java.sql(
        "ALTER TABLE ice_hadoop.db.packed SET TBLPROPERTIES ('write.metadata.compression-codec'='gzip')"
    )
    ours.refresh().append(rows(1))
    iceberg_java.sql("INSERT INTO ice_hadoop.db.packed VALUES (2, 'x')")
    ours.append(rows(3))
    assert java_ids(iceberg_java, "db.packed") == ids(ours) == [1, 2, 3]
    assert metadata_files(ours) == [
        "v1.metadata.json", "v2.gz.metadata.json", "v3.gz.metadata.json", "v4.gz.metadata.json",
        "v5.gz.metadata.json",
    ]  # fmt: skip


def test_both_find_the_newest_version_without_a_hint(files, iceberg_java, names):
    ours = files.create_table("db.hintless", SCHEMA)
    names.append("db.hintless")
    ours.append(rows(1))
    iceberg_java.sql("INSERT INTO ice_hadoop.db.hintless VALUES (2, 'x')")
    folder = Path(ours.location().removeprefix("file://")) / "metadata"
    hint = folder / "version-hint.text"
    assert hint.read_text() == "3"
    hint.unlink()
    (folder / ".version-hint.text.crc").unlink()
    assert java_ids(iceberg_java, "db.hintless") == [1, 2]
    ours.append(rows(3))
    assert hint.read_text() == "4"
    hint.write_text("2")
    assert java_ids(iceberg_java, "db.hintless") == ids(ours) == [1, 2, 3]


def test_both_see_the_same_namespaces_and_tables(files, iceberg_java):
    iceberg_java.sql("CREATE NAMESPACE ice_hadoop.db.inner")
    files.create_namespace("db.other")
    files.create_table("db.inner.ours", SCHEMA)
    iceberg_java.sql("CREATE TABLE ice_hadoop.db.other.theirs (id BIGINT) USING iceberg")
    assert files.list_namespaces("db") == [("db", "inner"), ("db", "other")]
    found = iceberg_java.sql("SHOW NAMESPACES IN ice_hadoop.db")
    assert sorted(row[0] for row in found) == ["db.inner", "db.other"]
    assert files.list_tables("db.other") == [("db", "other", "theirs")]
    found = iceberg_java.sql("SHOW TABLES IN ice_hadoop.db.inner")
    assert [row[:2] for row in found] == [["db.inner", "ours"]]
    files.purge_table("db.other.theirs")
    assert iceberg_java.sql("SHOW TABLES IN ice_hadoop.db.other") == []
    iceberg_java.sql("DROP TABLE ice_hadoop.db.inner.ours")
    assert not files.table_exists("db.inner.ours")
    files.drop_namespace("db.inner")
    iceberg_java.sql("DROP NAMESPACE ice_hadoop.db.other")
    assert files.list_namespaces("db") == []


def test_iceberg_java_takes_a_table_of_ours_into_its_metastore(files, iceberg_java, catalog, names):
    ours = files.create_table("db.moved", SCHEMA)
    names.append("db.moved")
    ours.append(rows(1, 2))
    catalog.create_namespace_if_not_exists("hadoop_interop")
    iceberg_java.sql(
        "CALL ice.system.register_table(table => 'hadoop_interop.moved', "
        f"metadata_file => '{ours.metadata_location}')"
    )
    assert ids(catalog.load_table("hadoop_interop.moved")) == [1, 2]
    catalog.drop_table("hadoop_interop.moved")
    catalog.drop_namespace("hadoop_interop")
