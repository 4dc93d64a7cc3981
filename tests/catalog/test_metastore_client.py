"""The metastore's client: round trips, pages, older and newer servers, broken connections."""

from __future__ import annotations

import http.server
import json
import multiprocessing
import socket
import threading
from dataclasses import replace

import pytest
from thrift.Thrift import TApplicationException

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.connection import Connection
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.failure import (
    MissingCallError,
    RefusedError,
    ReplyLostError,
    UnreachableError,
)
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.thrift.thrift_codec import (
    partition_from_json,
    partition_to_json,
    table_from_json,
    table_from_wire,
    table_to_json,
    table_to_wire,
)
from icecomb.format.errors import ConfigurationError, NoSuchTableError, TableAlreadyExistsError
from tests.peers.ports import closed_port

TRUE_FIELD_20 = b"\x02\x00\x14\x01"
NEWER = wire.string_field(17, "hive") + TRUE_FIELD_20 + wire.map_field(99, {"a": "b"})


def _storage(location):
    return StorageDescriptor(
        columns=(FieldSchema("id", "int", "the id"), FieldSchema("s", "array<string>")),
        location=location,
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        serde_parameters={"serialization.format": "1"},
        num_buckets=4,
        bucket_columns=("id",),
        sort_columns=(("id", 1),),
    )


def _table(namespace, location="/nowhere"):
    return HiveTable(
        namespace,
        "part",
        owner="ann",
        create_time=7,
        storage=_storage(location),
        partition_keys=(FieldSchema("dt", "string"), FieldSchema("n", "int")),
        parameters={"k": "ä'\"\n"},
        table_type="EXTERNAL_TABLE",
    )


def test_fields_of_newer_servers_survive_a_change():
    sent = table_to_wire(_table("d"))[:-1] + NEWER + b"\0"
    found = table_from_wire(sent)
    assert table_to_wire(found) == sent
    changed = table_to_wire(replace(found, parameters={"k": "new"}))
    assert [one.field_id for one in wire.fields(changed)][-3:] == [17, 20, 99]
    assert changed.endswith(NEWER + b"\0")
    assert table_from_wire(changed).parameters == {"k": "new"}


def test_a_table_goes_through_a_journal_byte_for_byte():
    sent = table_to_wire(_table("d"))[:-1] + NEWER + b"\0"
    found = table_from_wire(sent)
    again = table_from_json(json.loads(json.dumps(table_to_json(found))))
    assert again == found
    assert again.wire == sent


@pytest.mark.parametrize("data", [b"", b"\x0c\x00\x01", b"\x7f\x00\x01\x00", b"\x0b\x00\x01\x00"])
def test_bytes_that_are_no_struct_are_refused(data):
    with pytest.raises((ValueError, IndexError)):
        list(wire.fields(data))


def test_partitions_come_in_pages_and_go_back_as_they_were(catalog, namespace, tmp_path):
    client = catalog.client
    table = _table(namespace, f"file:{tmp_path}/part")
    client.create_table(table)
    made = client.table(namespace, "part")
    assert made.parameters["k"] == table.parameters["k"]
    assert (made.partition_keys, made.storage) == (table.partition_keys, table.storage)
    with pytest.raises(TableAlreadyExistsError):
        client.create_table(table)
    hostile = ["a/b", "x=y", "%2F", "ü", "__HIVE_DEFAULT_PARTITION__", "a b"]
    client.partitions.add([
        HivePartition(namespace, "part", (value, str(n)), storage=_storage(f"file:{tmp_path}/part/{n}"), parameters={"p": "q"})
        for n, value in enumerate(hostile)
    ])  # fmt: skip
    pages = list(client.partitions.pages(namespace, "part", size=4))
    assert [len(page) for page in pages] == [4, 2]
    found = {one.values[0]: one for page in pages for one in page}
    assert set(found) == set(hostile)
    one = found["a/b"]
    assert one.parameters["p"] == "q"
    assert partition_from_json(json.loads(json.dumps(partition_to_json(one)))) == one
    client.partitions.drop(namespace, "part", ["dt=a%2Fb/n=0", "dt=nowhere/n=0"])
    assert len(client.partitions.names(namespace, "part")) == 5
    client.partitions.add([partition_from_json(partition_to_json(one))])
    (again,) = client.partitions.named(namespace, "part", ["dt=a%2Fb/n=0"])
    assert again.storage == one.storage


def test_altering_with_a_wrong_expectation_is_refused(catalog, namespace, table):
    entry = catalog.client.table(namespace, "t")
    context = {
        "expected_parameter_key": "metadata_location",
        "expected_parameter_value": "elsewhere",
    }
    with pytest.raises(RefusedError, match="has been modified"):
        catalog.client.alter_table(namespace, "t", entry, context)
    with pytest.raises(NoSuchTableError):
        catalog.client.alter_table(namespace, "absent", replace(entry, name="absent"))


def test_a_server_without_the_newest_call_is_asked_the_older_one(
    catalog, table, namespace, monkeypatch
):
    call = Connection.call_with_bytes

    def old_server(self, method, arguments):
        if method.endswith("_req"):
            asked.append(method)
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name")
        return call(self, method, arguments)

    asked: list[str] = []
    monkeypatch.setattr(Connection, "call_with_bytes", old_server)
    with HiveClient(catalog.client.uri) as client:
        for _ in range(2):
            assert client.table(namespace, "t").is_iceberg
            assert [one.name for one in client.tables(namespace, ["t", "absent"])] == ["t"]
    assert asked == ["get_table_req", "get_table_objects_by_name_req"]


def test_a_method_no_server_knows_is_a_missing_call(catalog, monkeypatch):
    def send(connection):
        monkeypatch.setattr(
            connection.thrift,
            "recv_get_nothing",
            connection.thrift.recv_get_all_databases,
            raising=False,
        )
        connection.call_with_bytes("get_nothing", b"\0")

    with pytest.raises(MissingCallError, match="does not have the call get_nothing"):
        catalog.client._calls.send("get_nothing", send)


def test_a_read_is_repeated_on_a_broken_connection_and_a_change_is_not(
    proxied, proxy, table, namespace
):
    proxy.fail("get_table_req", "reply")
    assert proxied.client.table(namespace, "t").is_iceberg
    proxy.fail("alter_database", "reply")
    database = replace(proxied.client.database(namespace), parameters={"how": "once"})
    with pytest.raises(ReplyLostError, match="alter_database"):
        proxied.client.alter_database(database)
    assert proxy.calls["alter_database"] == 1
    assert proxied.client.database(namespace).parameters == {"how": "once"}


def test_the_first_of_several_addresses_that_answers_is_used(metastore):
    with (
        closed_port() as dead,
        HiveClient(f"thrift://127.0.0.1:{dead}, {metastore.uri}") as client,
    ):
        assert "default" in client.databases()


def test_nobody_listening_is_said_at_once():
    with closed_port() as port:
        dead = f"thrift://127.0.0.1:{port}"
        with pytest.raises(UnreachableError, match="cannot be reached"):
            HiveClient(dead).databases()
        with pytest.raises(UnreachableError, match="none of the metastores"):
            HiveClient(f"{dead},{dead}").databases()


def test_another_service_on_the_port_is_no_metastore():
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        uri = f"thrift://127.0.0.1:{server.server_port}"
        for properties, says in (
            ({}, "does not talk plain Thrift"),
            ({"hive.metastore.use.SSL": "true"}, "does not speak TLS"),
        ):
            quick = {"hive.metastore.client.connect.timeout-s": "0.2", **properties}
            with (
                HiveClient(uri, ConnectionSettings.of(quick)) as client,
                pytest.raises(UnreachableError, match=says) as caught,
            ):
                client.databases()
            assert "\n" not in caught.value.message
            assert caught.value.hint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_silent_server_runs_into_the_time_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        with (
            HiveClient(uri, ConnectionSettings(timeout_s=0.2)) as client,
            pytest.raises(ReplyLostError, match=r"did not answer within 0\.2 s"),
        ):
            client.databases()


@pytest.mark.parametrize(
    "uri", ["", "http://x:1", "thrift://", "thrift://h:port", "thrift://h:1/path", "a:b:c"]
)
def test_what_is_no_address_is_refused(uri):
    with pytest.raises(ConfigurationError, match="not the address"):
        HiveClient(uri)


def _names_answered(client, database, name, answers):
    try:
        answers.put({client.table(database, name).name for _ in range(50)})
    except Exception as error:  # noqa: BLE001
        answers.put({str(error)})


def test_forked_processes_do_not_read_each_others_answers(catalog, namespace, rows):
    names = [f"t{n}" for n in range(4)]
    for name in names:
        catalog.create_table((namespace, name), rows.schema)
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    arguments = [(catalog.client, namespace, name, answers) for name in names]
    processes = [fork.Process(target=_names_answered, args=each) for each in arguments]
    for process in processes:
        process.start()
    seen = [answers.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    assert sorted(seen, key=str) == [{name} for name in names]
    assert {catalog.client.table(namespace, name).name for name in names} == set(names)
