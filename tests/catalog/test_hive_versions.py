"""What differs between Hive metastores 2.3.10, 3.1.3 and 4.0.1, and what must not."""

from __future__ import annotations

import json
import threading
import uuid

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.thrift import server, wire
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    IcecombError,
    LockTimeoutError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icecomb.format.holding import Holding
from tests.rings import sampled

VERSIONS = ("2.3.10", "3.1.3", "4.0.1")
CHECKING = ("2.3.10", "4.0.1")
ALTER = "alter_table_with_environment_context"
FREE = {"engine.hive.lock-enabled": "false"}
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(params=sampled(VERSIONS, keep=1))
def version(request):
    return request.param


@pytest.fixture
def hive(catalog, version, request):
    """Our catalog on one version; the other servers are started only where one of them is asked for."""
    return catalog if version == "2.3.10" else request.getfixturevalue("hive_catalogs")[version]


@pytest.fixture
def place(hive):
    """A namespace of this test there."""
    name = f"n{uuid.uuid4().hex[:10]}"
    hive.create_namespace(name)
    yield name
    for table in hive.client.table_names(name):
        hive.client.drop_table(name, table)
    hive.drop_namespace(name)


def appended(hive, table):
    """The calls of one append, the server being known."""
    table.append(ROWS)
    hive.client.calls.clear()
    table.append(ROWS)
    return dict(hive.client.calls)


def test_whether_the_server_checks_what_it_replaces_is_found_out(hive, place, version):
    found = ValueCheck.ATOMIC if version in CHECKING else ValueCheck.IGNORED
    assert server.value_check(hive.client, place) is found
    assert hive.client.table_names(place) == []
    assert server.lock_expiry_s(hive.client) == 300


def test_a_commit_under_a_lock_makes_as_many_calls_as_it_must(hive, place, version):
    table = hive.create_table(f"{place}.t", ROWS.schema)
    expected = {"lock": 1, "get_table_req": 1, ALTER: 1, "unlock": 1}
    if version not in CHECKING:
        # whether the lock still lives is asked before and after the alter
        expected["heartbeat"] = 2
    assert appended(hive, table) == expected


@pytest.mark.full("needs Hive 3")
@pytest.mark.usefixtures("hive_catalogs")
@pytest.mark.parametrize("version", ["3.1.3"], indirect=True)
def test_an_insert_only_table_of_hive_is_in_the_way_of_nothing_else(hive, place):
    """Hive 3 and later hand its entry, and lists with it, to those only who say that they know its kind."""
    hive.create_table(f"{place}.ours", ROWS.schema)
    parquet = StorageDescriptor(
        columns=(FieldSchema("id", "int"),),
        location=f"{hive.load_namespace_properties(place)['location']}/mm",
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    hive.client.create_table(
        HiveTable(place, "mm", storage=parquet, parameters=kind, table_type="MANAGED_TABLE")
    )
    assert hive.client.table(place, "mm").parameters["transactional_properties"] == "insert_only"
    assert {one.name for one in hive.client.tables(place, ["mm", "ours"])} == {"mm", "ours"}
    assert hive.list_tables(place) == [(place, "ours")]
    plans = {plan.table: plan for plan in migrate.plan_many(hive, [place])}
    assert list(plans) == [f"{place}.mm"]
    assert [one.code for one in plans[f"{place}.mm"].blockers] == ["transactional"]


def test_loading_listing_and_looking_are_one_call(hive, place):
    table = hive.create_table(f"{place}.t", ROWS.schema)
    for act, calls in (
        (lambda: hive.load_table(table.identifier), {"get_table_req": 1}),
        (lambda: hive.table_exists(table.identifier), {"get_table_req": 1}),
        (lambda: hive.list_tables(place), {"get_table_names_by_filter": 1}),
        (hive.list_namespaces, {"get_all_databases": 1}),
    ):
        hive.client.calls.clear()
        act()
        assert hive.client.calls == calls


def test_a_commit_without_locks_makes_two_calls_or_is_refused(hive, place, version):
    if version in CHECKING:
        table = hive.create_table(f"{place}.t", ROWS.schema, properties=FREE)
        assert appended(hive, table) == {"get_table_req": 1, ALTER: 1}
        return
    with pytest.raises(ConfigurationError, match="does not check") as caught:
        hive.create_table(f"{place}.t", ROWS.schema, properties=FREE)
    assert "hive.check-and-put=trusted" in caught.value.hint
    assert not hive.table_exists(f"{place}.t")


def test_whoever_insists_commits_without_locks_untried(hive, place, version):
    trusting = load_catalog("trusting", **hive.properties, **{"hive.check-and-put": "trusted"})
    table = trusting.create_table(f"{place}.t", ROWS.schema, properties=FREE)
    trusting.client.calls.clear()
    table.append(ROWS)
    assert trusting.client.calls == {"get_table_req": 1, ALTER: 1}
    trusting.close()


@pytest.mark.parametrize("mode", ["true", "false"])
def test_threads_lose_nothing_in_either_mode(hive, place, version, mode):
    if mode == "false" and version not in CHECKING:
        return
    properties = {"engine.hive.lock-enabled": mode, "commit.retry.num-retries": "50"}
    table = hive.create_table(f"{place}.t", ROWS.schema, properties=properties)
    # catalogs of their own: one catalog's threads would queue before the metastore
    catalogs = [load_catalog("w", **hive.properties) for _ in range(3)]
    errors = []

    def write(catalog):
        try:
            mine = catalog.load_table(table.identifier)
            for _ in range(3):
                mine.append(ROWS)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            errors.append(error)

    threads = [threading.Thread(target=write, args=(each,)) for each in catalogs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in catalogs:
        each.close()
    assert errors == []
    assert len(table.refresh().snapshots()) == 9
    assert hive.client.locks(*table.identifier) == []


def test_a_lock_keeps_others_out_and_its_holder_is_named(hive, place):
    settings = LockSettings.of({"iceberg.hive.lock-timeout-ms": "300"})
    lock = TableLock(hive.client, place, "t", settings)
    with Holding() as held:
        lock.acquire(held)
        with pytest.raises(LockTimeoutError, match=f"locked by .*{lock.agent}"):
            TableLock(hive.client, place, "t", settings).acquire(held)
        assert lock.is_alive(ask=True)
    hive.client.unlock(lock.lock_id)
    assert hive.client.locks(place, "t") == []


def test_a_lock_that_was_broken_meanwhile_ends_the_commit(hive, place, monkeypatch):
    strict = load_catalog("strict", **hive.properties, **{"hive.check-and-put": "false"})
    table = strict.create_table(
        f"{place}.t", ROWS.schema, properties={"commit.retry.num-retries": "0"}
    )
    pointer = type(strict.pointer(table.identifier))
    altered = pointer.altered

    def broken(self, *arguments):
        for row in hive.client.locks(*table.identifier):
            hive.client.unlock(row.lock_id)
        return altered(self, *arguments)

    monkeypatch.setattr(pointer, "altered", broken)
    with pytest.raises(CommitFailedError, match="lock was lost"):
        table.append(ROWS)
    assert hive.load_pointer(table.identifier) == table.metadata_location
    strict.close()


def test_what_newer_servers_keep_of_a_table_survives_a_commit(hive, place):
    table = hive.create_table(f"{place}.t", ROWS.schema)
    known = {one.field_id for one in wire.fields(hive.client.table(place, "t").wire)}
    table.append(ROWS)
    after = hive.client.table(place, "t")
    assert {one.field_id for one in wire.fields(after.wire)} >= known
    assert json.loads(after.parameters["current-schema"])["fields"][0]["name"] == "id"


@pytest.mark.parametrize("name", ["a.b", "tä'\"b", "ta ble", "x" * 200, "日本", "a;b", "a/b", "%"])
def test_an_odd_name_is_a_table_or_refused_in_one_line(hive, place, name):
    assert not hive.table_exists((place, name))
    with pytest.raises(NoSuchTableError, match="There is no table") as caught:
        hive.load_table((place, name))
    assert "\n" not in caught.value.message
    with pytest.raises(NoSuchNamespaceError) as caught:
        hive.load_namespace_properties((name,))
    assert "\n" not in caught.value.message
    try:
        made = hive.create_table((place, name), ROWS.schema)
    except IcecombError as error:
        refusal = error.message
    else:
        made.append(ROWS)
        assert hive.load_table((place, name)).scan().to_arrow().num_rows == 3
        refusal = ""
    assert "\n" not in refusal


def test_the_catalog_that_every_server_has_may_be_named(hive, place):
    named = load_catalog("named", **hive.properties, **{"metastore.catalog.default": "hive"})
    table = named.create_table(f"{place}.t", ROWS.schema)
    assert hive.load_table(table.identifier).metadata == table.metadata
    assert (place,) in named.list_namespaces()
    named.close()


@pytest.mark.full("needs Hive 3 and 4")
@pytest.mark.usefixtures("hive_catalogs")
@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_a_catalog_of_the_metastores_own_is_a_world_of_its_own(hive, version, tmp_path):
    name = f"c{uuid.uuid4().hex[:8]}"
    struct = wire.string_field(1, name) + wire.string_field(3, tmp_path.as_uri()) + b"\0"

    def make(connection):
        connection.thrift.recv_create_catalog = connection.thrift.recv_create_database
        request = wire.struct_field(1, wire.struct_field(1, struct) + b"\0") + b"\0"
        connection.call_with_bytes("create_catalog", request)

    hive.client._calls.send("create_catalog", make)
    properties = {**hive.properties, "metastore.catalog.default": name, "warehouse": str(tmp_path)}
    own = load_catalog("own", **properties)
    own.create_namespace("spaces", {"k": "v"})
    assert ("spaces",) in own.list_namespaces()
    assert ("spaces",) not in hive.list_namespaces()
    own.update_namespace_properties("spaces", updates={"k": "w"})
    assert own.load_namespace_properties("spaces")["k"] == "w"
    table = own.create_table("spaces.t", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        own.create_table("spaces.t", ROWS.schema)
    table.append(ROWS)
    assert own.list_tables("spaces") == [("spaces", "t")]
    moved = own.rename_table("spaces.t", "spaces.moved")
    moved.append(ROWS)
    assert own.load_table("spaces.moved").scan().to_arrow().num_rows == 6
    with pytest.raises(NoSuchTableError):
        hive.load_table("spaces.moved")
    assert own.client.names_of_types(["EXTERNAL_TABLE"]) == [("spaces", "moved")]
    own.drop_table("spaces.moved")
    own.drop_namespace("spaces")
    assert ("spaces",) not in own.list_namespaces()
    own.close()


def test_the_views_of_all_databases_are_listed_by_one_call(hive, place):
    kinds = {"v": "VIRTUAL_VIEW", "m": "MATERIALIZED_VIEW", "t": "EXTERNAL_TABLE"}
    for name, kind in kinds.items():
        text = "SELECT 1" if kind != "EXTERNAL_TABLE" else None
        hive.client.create_table(
            HiveTable(
                place,
                name,
                storage=StorageDescriptor(columns=(FieldSchema("id", "bigint"),)),
                table_type=kind,
                view_original_text=text,
                view_expanded_text=text,
            )
        )
    hive.client.calls.clear()
    found = hive.client.names_of_types(["VIRTUAL_VIEW", "MATERIALIZED_VIEW"])
    assert hive.client.calls == {"get_table_meta": 1}
    assert {(place, "v"), (place, "m")} == {pair for pair in found if pair[0] == place}


def named(*names):
    """A constraint of a column, or the request that adds it: texts as a metastore of Hive 3 has them."""
    return b"".join(wire.string_field(number, text) for number, text in names)


def constrained(hive, place, name, version, **more):
    """A Hive table with a key, and what else its metastore can hold."""
    columns = (FieldSchema("id", "bigint"), FieldSchema("s", "string"))
    storage = StorageDescriptor(
        columns=columns,
        location=f"{hive.load_namespace_properties(place)['location']}/{name}",
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    hive.client.create_table(HiveTable(place, name, storage=storage, **more))
    key = named((1, place), (2, name), (3, "id")) + b"\x08\x00\x04" + (1).to_bytes(4, "big")
    key += named((5, f"pk_{name}")) + b"".join(b"\x02\x00" + bytes([n, 0]) for n in (6, 7, 8))
    texts = named((1, "hive"), (2, place), (3, name), (4, "s"), (5, f"nn_{name}"))
    told = texts + b"".join(b"\x02\x00" + bytes([n, 0]) for n in (6, 7, 8))
    added = {"add_primary_key": key}
    if version != "2.3.10":
        added["add_not_null_constraint"] = told
    for call, constraint in added.items():
        request = wire.struct_list_field(1, [constraint + b"\0"]) + b"\0"
        hive.client._calls.write_bytes(call, wire.struct_field(1, request) + b"\0")


def test_a_partitioned_table_with_constraints_is_not_turned(hive, place, version):
    keys = (FieldSchema("day", "string"),)
    constrained(hive, place, "parted", version, partition_keys=keys)
    constrained(hive, place, "whole", version)
    known = ["PRIMARY KEY pk_parted"]
    if version != "2.3.10":
        known.insert(0, "NOT NULL nn_parted")
    there = hive.client.constraints.of(place, "parted")
    assert [str(one) for one in there] == known
    assert [one.columns for one in there] == [("s",), ("id",)][-len(known) :]
    assert not any(one.enabled or one.relied for one in there)
    [found] = migrate.plan(hive, f"{place}.parted").blockers
    assert (found.code, [*found.places]) == ("constraints", known)
    assert f"ALTER TABLE `{place}`.`parted` DROP CONSTRAINT `pk_parted`;" in found.remedy
    assert "ADD CONSTRAINT `pk_parted` PRIMARY KEY (`id`) DISABLE NOVALIDATE NORELY" in found.remedy
    with pytest.raises(IcecombError, match="constraints"):
        migrate.apply(hive, f"{place}.parted")
    assert migrate.plan(hive, f"{place}.whole").verdict == "ready"
