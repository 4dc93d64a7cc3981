"""What hostile input once brought out of parsers, each as a value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes

from icecomb.catalog import load_catalog
from icecomb.catalog.configuration.configuration import read_catalog_files
from icecomb.catalog.configuration.metastore_folder import MetastoreFolder
from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import ReplyLostError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.journal import find_journals, start_journal
from icecomb.catalog.migrate.source.avro_schema import LITERAL, declared_schema
from icecomb.format.avro.container import MAGIC
from icecomb.format.errors import ConfigurationError, CorruptFileError, FileIOError, ValidationError
from icecomb.format.manifests.decoder import manifest_schema
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.statistics.statistics_file import BLOB_TYPE
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.google import GoogleClient
from icecomb.format.storage.object_store.google_settings import GoogleSettings
from icecomb.format.storage.site_file import read_site_files
from icecomb.spark.planner.scan.scan import column_estimates
from tests.hostile.replies import Metastore, encoded
from tests.hostile.store_answers import Store, asked

MANY = b"\x7f\xff\xff\xff"
"""Two billions, as the length of a list."""


@pytest.mark.parametrize("element", [b"\x02", b"\x06", b"\x0b"])
def test_a_list_of_billions_in_a_few_bytes_ends_where_they_end(element: bytes) -> None:
    within = b"\x0f\x00\x01" + element + MANY + bytes(9)
    with pytest.raises(ValueError, match="ends early"):
        list(wire.fields(within))
    with pytest.raises(ValueError, match="ends early"):
        list(wire.list_items(within, 3))
    pairs = b"\x0d\x00\x01" + 2 * element + MANY + bytes(9)
    with pytest.raises(ValueError, match="ends early"):
        list(wire.fields(pairs))


ANSWERS: dict[str, tuple[Any, Callable[[HiveClient], object]]] = {
    "a lock without a state": (
        ThriftHiveMetastore.check_lock_result(ttypes.LockResponse(7, None)),
        lambda client: client.check_lock(7),
    ),
    "a lock without a number": (
        ThriftHiveMetastore.lock_result(ttypes.LockResponse(None, 1)),
        lambda client: client.lock("db", "t", user="u", host="h", agent="a"),
    ),
    "a lock of an unknown state": (
        ThriftHiveMetastore.check_lock_result(ttypes.LockResponse(7, 99)),
        lambda client: client.check_lock(7),
    ),
    "a row of the lock table without a state": (
        ThriftHiveMetastore.show_locks_result(
            ttypes.ShowLocksResponse([ttypes.ShowLocksResponseElement(7, "db", "t")])
        ),
        lambda client: client.locks("db", "t"),
    ),
    "an object without a name": (
        ThriftHiveMetastore.get_table_meta_result([ttypes.TableMeta("db", None, "VIEW")]),
        lambda client: client.names_of_types(),
    ),
    "a privilege without its grant": (
        ThriftHiveMetastore.list_privileges_result(
            [ttypes.HiveObjectPrivilege(ttypes.HiveObjectRef(3, "db", "t", ["a"]), "u", 1)]
        ),
        lambda client: client.grants.of("db", "t"),
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_lacks_what_it_must_have_is_a_lost_one(what: str) -> None:
    server = Metastore()
    found, ask = ANSWERS[what]
    server.answer = encoded(found)
    with (
        HiveClient(server.uri, ConnectionSettings(timeout_s=60)) as client,
        pytest.raises(ReplyLostError, match="broke off"),
    ):
        ask(client)


@pytest.mark.parametrize("text", [b"[]", b"{}", b"\xff", b'{"id": 1}', b'{"id":' + b"[" * 99_999])
def test_digests_of_a_journal_that_are_none_are_damaged_although_confirmed(
    tmp_path: Path, text: bytes
) -> None:
    table = HiveTable("db", "t", storage=StorageDescriptor(columns=(FieldSchema("id", "int"),)))
    journal = start_journal(FileIO(), str(tmp_path), table, [], Choices())
    journal.seal()
    Path(journal.location, "digests.json").write_bytes(text)
    (found,) = find_journals(FileIO(), str(tmp_path))
    with pytest.raises(CorruptFileError, match=r"digests\.json"):
        found.confirmed(hashlib.sha256(text).hexdigest())


@pytest.mark.parametrize(
    "field",
    [
        '"a"',
        '{"name": "a", "type": "int", "aliases": 1}',
        '{"name": "a", "type": "int", "aliases": [{}]}',
        '{"name": "a", "type": {"type": "record", "name": "i", "fields": [{"name": 1, "type": "int"}]}}',
        '{"name": "a", "type": {"type": "record", "name": "i", "fields": [{"name": "b", "type": "int", "aliases": 1}]}}',
    ],
)
def test_a_schema_of_hive_whose_fields_are_none_is_refused(field: str) -> None:
    text = f'{{"type": "record", "name": "r", "fields": [{field}]}}'
    with pytest.raises(ValidationError, match="is not an Avro record"):
        declared_schema(FileIO(), HiveTable("d", "t", parameters={LITERAL: text}))


def test_a_list_of_aliases_of_lists_in_a_file_of_settings_is_refused(tmp_path: Path) -> None:
    lines = ["l0: &l0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"l{n}: &l{n} [{','.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = tmp_path / "icecomb.yaml"
    path.touch(mode=0o600)
    path.write_text("catalog:\n  a:\n    " + "\n    ".join(lines) + "\n")
    with pytest.raises(ConfigurationError, match="the list is longer than"):
        read_catalog_files((path,))


def test_a_metastore_whose_announced_port_has_no_end_is_none(tmp_path: Path) -> None:
    folder = MetastoreFolder(tmp_path)
    folder.home.mkdir(mode=0o700)
    folder.state.write_text(f'{{"name": "{"x" * 40}", "pid": 1, "port": Infinity}}')
    assert folder.announced() is None


def test_a_manifest_whose_schema_has_an_id_without_end_has_none() -> None:
    text = b'{"type": "struct", "schema-id": 1e999, "fields": []}'
    pairs = b"\x0cschema" + bytes([len(text) << 1 & 127 | 128, len(text) >> 6]) + text
    assert manifest_schema(MAGIC + b"\x02" + pairs + b"\x00" + bytes(16)) is None


def test_notes_of_a_file_are_read_whatever_bytes_their_names_are(tmp_path: Path) -> None:
    table = pa.table({"id": [1]})
    with pq.ParquetWriter(tmp_path / "f.parquet", table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"\xff\xfe": b"v", b"k": b"\xff"})
    mapping = NameMapping.from_json([{"field-id": 1, "names": ["id"]}])
    reader = ParquetReader(FileIO(), str(tmp_path / "f.parquet"), mapping)
    assert reader.notes == {"\ufffd\ufffd": "v", "k": "\ufffd"}


def test_a_settings_file_in_an_unknown_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hive-site.xml"
    for encoding in ("x-none", "utf-7", "gb18030"):
        path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><configuration/>'.encode())
        with pytest.raises(ConfigurationError, match=r"hive-site\.xml.*encoding"):
            read_site_files([path])


@pytest.mark.parametrize(
    "blobs",
    [7, ["x"], [{"type": 1}], [{"type": BLOB_TYPE, "fields": 1, "properties": {"ndv": "1"}}],
     [{"type": BLOB_TYPE, "fields": [1], "properties": []}],
     [{"type": BLOB_TYPE, "fields": [1], "properties": {"ndv": 5}}],
     [{"type": BLOB_TYPE, "fields": [1], "properties": {"ndv": "9" * 5000}}]],
)  # fmt: skip
def test_stated_statistics_that_are_none_are_passed_over(tmp_path: Path, blobs: Any) -> None:
    rows = pa.table({"id": [1, 2]})
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", rows.schema)
    table.append(rows)
    table.maintenance.compute_table_stats()
    (file,) = table.metadata.statistics
    (known,) = column_estimates(table.scan(), [1], 2).values()
    assert known.distinct == 2
    stated = replace(table.metadata, statistics=({**file, "blob-metadata": blobs},))
    assert column_estimates(TableScan(stated, table.io), [1], 2) == {}


@pytest.mark.parametrize("file", [{}, {"snapshot-id": []}, {"statistics-path": 7}])
def test_a_statistics_file_without_a_place_is_not_used_and_not_missed(
    tmp_path: Path, file: dict[str, Any]
) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    path = Path(table.refresh().metadata_location.removeprefix("file:"))
    document = json.loads(path.read_bytes())
    snapshot = {"snapshot-id": document["current-snapshot-id"]}
    document |= {
        "statistics": [{**snapshot, **file}],
        "partition-statistics": [{**snapshot, **file}],
    }
    path.write_text(json.dumps(document))
    table = lake.load_table("db.t")
    assert column_estimates(table.scan(), [1], 1) == {}
    found = table.maintenance.compute_table_stats().statistics_file
    assert found is not None
    assert Path(found.removeprefix("file:")).exists()
    lake.purge_table("db.t")
    assert not list((tmp_path / "db").rglob("*.parquet"))


def test_a_redirection_of_a_store_to_no_address_takes_no_connection_away() -> None:
    server = Store()
    server.answer = (
        b"HTTP/1.1 308 X\r\nRange: bytes=0-1\r\nx-guploader-uploadid: 1\r\n"
        b"Location: http:/h/u?upload_id=7\r\nLocation: \xff://[\r\n\r\n"
    )
    told = {"gcs.service.host": f"http://{server.address}", "gcs.no-auth": "true"}
    client = GoogleClient("b", GoogleSettings.of(told, "b"), at_once=1, attempts=1)
    # there is one connection, for which a second request would wait without end
    with pytest.raises(FileIOError, match="308"):
        asked(client)
    client.close()
