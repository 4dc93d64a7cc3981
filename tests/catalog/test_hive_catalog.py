"""The catalog on a real metastore."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.format.errors import (
    CommitStateUnknownError,
    FileIOError,
    NamespaceAlreadyExistsError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO

SUCCESS = {"lock": 1, "get_table_req": 1, "alter_table_with_environment_context": 1, "unlock": 1}


def _path(location):
    return Path(location.removeprefix("file:"))


@pytest.fixture
def hive_table(catalog, namespace, tmp_path):
    """A table of Hive's own."""
    catalog.client.create_table(
        HiveTable(
            namespace,
            "plain",
            storage=StorageDescriptor(
                columns=(FieldSchema("a", "int"),),
                location=str(tmp_path / "plain"),
                input_format="org.apache.hadoop.mapred.TextInputFormat",
                output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
            ),
            table_type="MANAGED_TABLE",
        )
    )
    return f"{namespace}.plain"


def test_a_lock_of_javas_is_passed_over_as_icebergs_own_catalog_does(metastore, namespace):
    """Iceberg's `HiveCatalog` takes the metastore's locks, whatever `lock-impl` says."""
    named = "org.apache.iceberg.aws.dynamodb.DynamoDbLockManager"
    settings = {"uri": metastore.uri, "warehouse": str(metastore.warehouse), "lock-impl": named}
    with closing(load_catalog("locked", **settings)) as locked:
        table = locked.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": pa.array([1], pa.int64())}))
        assert table.scan().count() == 1


def test_a_namespace_is_made_described_changed_and_dropped(catalog):
    catalog.create_namespace(
        "ns_life", {"comment": "words", "k": "v", "hive.metastore.database.owner": "ann"}
    )
    try:
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace("ns_life")
        catalog.create_namespace_if_not_exists("ns_life")
        found = catalog.load_namespace_properties("ns_life")
        assert found["comment"] == "words"
        assert found["k"] == "v"
        assert found["hive.metastore.database.owner"] == "ann"
        assert found["location"].endswith("/ns_life.db")
        assert ("ns_life",) in catalog.list_namespaces()
        assert catalog.list_namespaces(("ns_life",)) == []
        catalog.update_namespace_properties("ns_life", removals={"k"}, updates={"l": "w"})
        assert "k" not in catalog.load_namespace_properties("ns_life")
        assert catalog.load_namespace_properties("ns_life")["l"] == "w"
        with pytest.raises(ValidationError):
            catalog.update_namespace_properties("ns_life", removals={"l"}, updates={"l": "x"})
    finally:
        catalog.drop_namespace("ns_life")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("ns_life")


@pytest.mark.parametrize("act", [
    lambda c: c.list_tables("nowhere"),
    lambda c: c.drop_namespace("nowhere"),
    lambda c: c.load_namespace_properties("nowhere"),
    lambda c: c.list_namespaces(("nowhere",)),
    lambda c: c.create_table("nowhere.t", pa.schema([("a", pa.int32())])),
    lambda c: c.create_namespace("a.b"),
])  # fmt: skip
def test_a_missing_namespace_is_named(catalog, act):
    with pytest.raises(NoSuchNamespaceError, match=r"nowhere|a\.b"):
        act(catalog)


@pytest.mark.parametrize(
    "name",
    [
        "default.missing",
        "missing",
        "a.b.c",
        "default.ta ble",
        "default.tä'\"b",
        "default." + "x" * 200,
    ],
)
def test_a_missing_table_is_named(catalog, name):
    with pytest.raises(NoSuchTableError, match="There is no table"):
        catalog.load_table(name)
    assert not catalog.table_exists(name)


def test_a_database_that_is_dropped_while_tables_are_looked_for_has_none(catalog):
    assert catalog.client.tables("dropped_meanwhile", ["t"]) == []


def test_a_name_is_the_same_in_any_case(catalog, table, namespace):
    assert (
        catalog.load_table(f"{namespace.upper()}.T").metadata.table_uuid
        == table.metadata.table_uuid
    )


def test_an_ordinary_commit_makes_four_calls_and_loading_one(catalog, table, rows):
    table.append(rows)
    catalog.client.calls.clear()
    table.append(rows)
    assert catalog.client.calls == SUCCESS
    catalog.client.calls.clear()
    catalog.load_table(table.identifier)
    assert catalog.client.calls == {"get_table_req": 1}


def test_a_lock_free_commit_makes_two_calls(metastore, catalog, namespace, rows):
    table = catalog.create_table(
        f"{namespace}.free", rows.schema, properties={"engine.hive.lock-enabled": "false"}
    )
    table.append(rows)
    catalog.client.calls.clear()
    table.append(rows)
    assert catalog.client.calls == {"get_table_req": 1, "alter_table_with_environment_context": 1}
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 6


def test_listing_is_one_call_that_opens_no_metadata(catalog, table, hive_table, namespace):
    _path(table.metadata_location).unlink()
    catalog.client.calls.clear()
    assert catalog.list_tables(namespace) == [(namespace, "t")]
    assert catalog.client.calls == {"get_table_names_by_filter": 1}


def test_the_entry_is_what_iceberg_java_writes(catalog, namespace, rows):
    from icecomb.format.spec.partition import PartitionField, PartitionSpec
    from icecomb.format.spec.transform import parse_transform

    schema = catalog.create_table(f"{namespace}.shape", rows.schema).schema()
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("bucket[4]"), "id_bucket"),))
    table = catalog.create_table(
        f"{namespace}.t", schema, partition_spec=spec,
        properties={"gc.enabled": "false", "mine": "yes", "hive.metastore.table.owner": "ann"},
    )  # fmt: skip
    table.append(rows)
    entry = catalog.client.table(namespace, "t")
    parameters = entry.parameters
    snapshot = table.current_snapshot()
    assert parameters["table_type"] == "ICEBERG"
    assert parameters["EXTERNAL"] == "TRUE"
    assert parameters["uuid"] == str(table.metadata.table_uuid)
    assert parameters["metadata_location"] == table.metadata_location
    assert parameters["previous_metadata_location"] == table.metadata.metadata_log[-1].metadata_file
    assert parameters["external.table.purge"] == "false"
    assert "gc.enabled" not in parameters
    assert parameters["mine"] == "yes"
    assert parameters["snapshot-count"] == "1"
    assert parameters["current-snapshot-id"] == str(snapshot.snapshot_id)
    assert parameters["current-snapshot-timestamp-ms"] == str(snapshot.timestamp_ms)
    assert json.loads(parameters["current-snapshot-summary"])["total-records"] == "3"
    assert "operation" not in json.loads(parameters["current-snapshot-summary"])
    assert json.loads(parameters["current-schema"])["fields"][0]["name"] == "id"
    assert json.loads(parameters["default-partition-spec"])["fields"][0]["transform"] == "bucket[4]"
    assert "default-sort-order" not in parameters
    assert (parameters["numRows"], parameters["totalSize"]) == (
        "3",
        json.loads(parameters["current-snapshot-summary"])["total-files-size"],
    )
    assert "hive.metastore.table.owner" not in parameters
    assert (entry.owner, entry.table_type, entry.retention, entry.partition_keys) == (
        "ann",
        "EXTERNAL_TABLE",
        2**31 - 1,
        (),
    )
    assert entry.storage.columns == (
        FieldSchema("id", "bigint"),
        FieldSchema("s", "string"),
    )
    assert entry.storage.input_format == "org.apache.hadoop.mapred.FileInputFormat"
    assert entry.storage.location.endswith(f"/{namespace}.db/t")


def test_foreign_parameters_survive_a_commit(catalog, table, rows, namespace):
    entry = catalog.client.table(namespace, "t")
    catalog.client.alter_table(
        namespace, "t", replace(entry, parameters={**entry.parameters, "theirs": "1"})
    )
    table.append(rows)
    assert catalog.client.table(namespace, "t").parameters["theirs"] == "1"


def test_a_schema_too_long_for_the_metastore_is_left_out(metastore, namespace):
    small = load_catalog(
        "small", uri=metastore.uri, **{"iceberg.hive.table-property-max-size": "60"}
    )
    table = small.create_table(
        f"{namespace}.wide", pa.schema([(f"column_{n}", pa.int64()) for n in range(9)])
    )
    assert "current-schema" not in small.client.table(namespace, "wide").parameters
    assert len(small.load_table(table.identifier).schema().fields) == 9
    small.close()


def test_hives_own_engine_gets_its_storage_handler(catalog, namespace, rows):
    catalog.create_table(f"{namespace}.h", rows.schema, properties={"engine.hive.enabled": "true"})
    entry = catalog.client.table(namespace, "h")
    assert entry.storage.serde == "org.apache.iceberg.mr.hive.HiveIcebergSerDe"
    assert (
        entry.parameters["storage_handler"]
        == "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    )


def test_a_taken_name_is_left_alone(catalog, table, hive_table, rows):
    for name in (".".join(table.identifier), hive_table):
        with pytest.raises(TableAlreadyExistsError, match="exists already"):
            catalog.create_table(name, rows.schema)
    assert not catalog.client.table(*hive_table.split(".")).is_iceberg


def test_a_hive_table_is_neither_loaded_nor_dropped(catalog, hive_table):
    with pytest.raises(NoSuchIcebergTableError, match="a Hive table"):
        catalog.load_table(hive_table)
    with pytest.raises(NoSuchIcebergTableError):
        catalog.drop_table(hive_table)
    assert not catalog.table_exists(hive_table)
    assert catalog.client.table(*hive_table.split(".")).name == "plain"


def test_dropping_keeps_every_file(catalog, table, rows):
    table.append(rows)
    files = {p for p in _path(table.location()).rglob("*") if p.is_file()}
    catalog.drop_table(table.identifier)
    assert {p for p in _path(table.location()).rglob("*") if p.is_file()} == files
    with pytest.raises(NoSuchTableError):
        catalog.load_table(table.identifier)


def test_purging_deletes_every_reachable_file(catalog, table, rows):
    table.append(rows)
    table.append(rows)
    foreign = _path(table.location()) / "foreign.txt"
    foreign.write_text("not ours")
    catalog.purge_table(table.identifier)
    assert [p for p in _path(table.location()).rglob("*") if p.is_file()] == [foreign]


def test_a_table_that_was_made_although_the_metastore_complained_is_kept(
    catalog, namespace, rows, monkeypatch
):
    create = HiveClient.create_table

    def complain(self, table):
        create(self, table)
        raise RefusedError("no", kind="MetaException", answer="JDO: the commit timed out")

    monkeypatch.setattr(HiveClient, "create_table", complain)
    table = catalog.create_table(f"{namespace}.made", rows.schema)
    table.append(rows)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


def test_a_read_that_fails_once_does_not_let_shared_files_be_purged(
    catalog, namespace, rows, monkeypatch
):
    table = catalog.create_table(
        f"{namespace}.kept", rows.schema, properties={"gc.enabled": "false"}
    )
    table.append(rows)
    read, failed = FileIO.read, []

    def fails_once(self, location):
        if not failed:
            failed.append(location)
            raise FileIOError(f"cannot read {location}")
        return read(self, location)

    monkeypatch.setattr(FileIO, "read", fails_once)
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        catalog.purge_table(table.identifier)
    assert failed
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


@pytest.mark.full("waits for a lost drop")
def test_nothing_is_purged_of_a_table_that_was_committed_to_while_the_drop_got_lost(
    catalog, proxied, proxy, namespace, rows
):
    free = {"engine.hive.lock-enabled": "false"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=free)
    table.append(rows)
    other = catalog.load_table(table.identifier)
    proxy.before("drop_table", lambda: other.append(rows))
    proxy.fail("drop_table", "request")
    with pytest.raises(CommitStateUnknownError):
        proxied.purge_table(table.identifier)
    assert other.refresh().scan().to_arrow().num_rows == 6


def test_a_table_whose_metadata_is_lost_is_named_and_can_be_dropped(catalog, table):
    _path(table.metadata_location).unlink()
    with pytest.raises(NoSuchFileError):
        catalog.load_table(table.identifier)
    assert catalog.table_exists(table.identifier)
    catalog.drop_table(table.identifier, purge_requested=True)
    assert not catalog.table_exists(table.identifier)


def test_a_renamed_table_keeps_its_rows_and_place(catalog, table, rows, namespace):
    table.append(rows)
    moved = catalog.rename_table(table.identifier, (namespace, "moved"))
    assert moved.location() == table.location()
    moved.append(rows)
    assert catalog.load_table((namespace, "moved")).scan().to_arrow().num_rows == 6
    assert not catalog.table_exists(table.identifier)
    with pytest.raises(NoSuchTableError):
        table.append(rows)
    assert moved.refresh().scan().to_arrow().num_rows == 6


def test_renaming_onto_a_taken_name_or_into_nowhere_changes_nothing(catalog, table, hive_table):
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table(table.identifier, hive_table)
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table(table.identifier, "nowhere.t")
    with pytest.raises(NoSuchIcebergTableError):
        catalog.rename_table(hive_table, (table.identifier[0], "other"))
    assert catalog.load_table(table.identifier).metadata == table.metadata


def test_registering_takes_a_file_in_and_never_deletes_it(catalog, table, rows, namespace):
    table.append(rows)
    catalog.drop_table(table.identifier)
    again = catalog.register_table((namespace, "again"), table.metadata_location)
    assert again.metadata.table_uuid == table.metadata.table_uuid
    again.append(rows)
    assert catalog.load_table((namespace, "again")).scan().to_arrow().num_rows == 6
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((namespace, "again"), table.metadata_location)
    assert _path(table.metadata_location).is_file()
    with pytest.raises(NoSuchFileError):
        catalog.register_table((namespace, "third"), table.metadata_location + "x")


def test_pyiceberg_and_we_read_and_write_each_others_tables(
    catalog, pyiceberg, table, rows, namespace
):
    table.append(rows)
    theirs = pyiceberg.load_table(table.identifier)
    assert theirs.scan().to_arrow().num_rows == 3
    theirs.append(rows)
    assert table.refresh().scan().to_arrow().num_rows == 6
    table.append(rows)
    assert pyiceberg.load_table(table.identifier).scan().to_arrow().num_rows == 9
    created = pyiceberg.create_table((namespace, "theirs"), rows.schema)
    created.append(rows)
    ours = catalog.load_table((namespace, "theirs"))
    ours.append(rows)
    assert created.refresh().scan().to_arrow().num_rows == 6
    assert (namespace, "theirs") in catalog.list_tables(namespace)


def test_open_table_names_the_catalog_too(metastore, table, rows):
    table.append(rows)
    found = open_table(f"any.{'.'.join(table.identifier)}", uri=metastore.uri)
    assert found.scan().to_arrow().num_rows == 3
    found.catalog.close()
