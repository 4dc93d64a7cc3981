"""Parsers of texts in the entries of metastores and in properties: types, schemas, views, offsets."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pyarrow as pa

from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.planning.planner import named_tables
from icecomb.catalog.migrate.source.avro_schema import LITERAL, declared_schema
from icecomb.catalog.migrate.source.column_default import column_defaults
from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.migrate.source.source_schema import source_schema
from icecomb.catalog.migrate.source.spark_type import collations, spark_schema
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.avro.container import MAGIC, header_bytes, parsed_schema
from icecomb.format.errors import CorruptFileError, IcecombError
from icecomb.format.manifests.decoder import manifest_schema
from icecomb.format.property.table_property import FORMER_FOLDERS
from icecomb.format.rows.avro.reader import AvroHeader
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.streams import StreamOffset
from tests.hostile.mutation import DEEP, JSON, TEXT, changed_json, changed_text, varint
from tests.hostile.parser import Parser, Sound

SPARK = "spark.sql.sources.schema"
COLUMNS = StorageDescriptor(columns=(FieldSchema("a", "int"), FieldSchema("b", "array<string>")))


def text_of(data: bytes) -> str:
    """The text as an entry has it, which is sound UTF-8."""
    return data.decode("utf-8", "replace")


def hive_type(made: Sound) -> Parser:
    del made
    seeds = [b"struct<a:int,b:array<map<string,decimal(10,2)>>,`c``d`:char(3)>", b"uniontype<int>"]
    deep = tuple(b"array<" * n + b"int" + b">" * n for n in (150, 400, 5000))

    def read(data: bytes) -> object:
        try:
            return parse_hive_type(text_of(data))
        except ValueError as error:
            # callers know it as the sign of a text that is not a type, see `source_schema`
            if "is not a Hive type" in str(error):
                raise IcecombError(str(error)) from error
            raise

    return Parser(seeds[:1], read, TEXT, lambda: deep)


def paimon_type(made: Sound) -> Parser:
    del made
    seeds = [
        b"ROW<a INT NOT NULL 'x', b ARRAY<MAP<STRING, DECIMAL(10, 2)>>>",
        b"TIMESTAMP(3) NOT NULL",
    ]
    deep = tuple(b"ARRAY<" * n + b"INT" + b">" * n for n in (150, 400, 5000))
    return Parser(seeds, lambda data: parse_type(text_of(data)), TEXT, lambda: deep)


def spark_text(made: Sound) -> Parser:
    """Spark's schema of a table, whole and in parts, and what is asked of it."""
    del made
    list_ = {"type": "array", "elementType": {"type": "map", "keyType": "string",
             "valueType": "decimal(9,2)", "valueContainsNull": True}, "containsNull": True}  # fmt: skip
    kinds: list[Any] = ["integer", list_, {"type": "struct", "fields": []}, "string", "string"]
    notes: list[Any] = [
        {"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7", "comment": "c"},
        {},
        {"comment": "x"},
        {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"},
        {"__COLLATIONS": {"e": "icu.UNICODE"}},
    ]
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": note}
        for name, kind, note in zip("abcde", kinds, notes, strict=True)
    ]
    seed = json.dumps({"type": "struct", "fields": fields}).encode()

    def read(data: bytes) -> object:
        text = text_of(data)
        half = len(text) // 2
        parts = {f"{SPARK}.part.0": text[:half], f"{SPARK}.part.1": text[half:]}
        for parameters in ({SPARK: text}, {f"{SPARK}.numParts": "2", **parts}):
            table = HiveTable("d", "t", storage=COLUMNS, parameters=parameters)
            collations(parameters)
            column_defaults(table)
            source_schema(table, "timestamptz")
        return spark_schema({SPARK: text})

    return Parser([seed], read, JSON, lambda: DEEP)


def avro_text(made: Sound) -> Parser:
    """The schema by which Hive reads a table, compared with those of files."""
    del made
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": ["null", "int"]}]}
    fields = [
        {"name": "a", "type": "long", "default": 1, "aliases": ["b"]},
        {"name": "C", "type": {"type": "array", "items": inner}},
        {"name": "d", "type": {"type": "map", "values": "i"}, "default": None},
        {"name": "e", "type": {"type": "enum", "name": "n", "symbols": ["X"]}},
        {"name": "f", "type": {"type": "fixed", "name": "o", "size": 4}},
        {"name": "g", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}},
    ]
    seed = json.dumps({"type": "record", "name": "r", "fields": fields}).encode()
    sound, _ = parsed_schema(seed)

    def read(data: bytes) -> object:
        table = HiveTable("d", "t", storage=COLUMNS, parameters={LITERAL: text_of(data)})
        declared = declared_schema(
            FileIO(), HiveTable("d", "t", parameters={LITERAL: seed.decode()})
        )
        assert declared is not None
        file = header_bytes({"avro.schema": text_of(data), "avro.codec": "null"}, bytes(16))
        with suppress(CorruptFileError):
            header = AvroHeader(pa.BufferReader(file), "f.avro")
            list(declared.differences(header.stated))
        changed = declared_schema(FileIO(), table)
        return changed and list(changed.differences(sound))

    return Parser([seed], read, JSON, lambda: DEEP)


def trino_view(made: Sound) -> Parser:
    """A view of Trino, and views as texts of Hive and Spark."""
    del made
    sql = 'SELECT "a b".c, `d``e` FROM x.y JOIN (SELECT 1 FROM z) w ON 1 = 1 -- t'
    seed = {"originalSql": sql, "catalog": "hive", "schema": "d", "columns": [], "owner": "o"}

    def read(data: bytes) -> object:
        encoded = base64.b64encode(data).decode()
        view = HiveTable("d", "v", table_type="VIRTUAL_VIEW", view_original_text=text_of(data))
        found = named_tables(view)
        for text in (encoded, text_of(data)):
            said = f"/* Presto View: {text} */"
            found |= named_tables(
                HiveTable("d", "v", table_type="VIRTUAL_VIEW", view_original_text=said)
            )
        return found

    return Parser([json.dumps(seed).encode()], read, (*JSON, changed_text), lambda: DEEP)


def former_folders(made: Sound) -> Parser:
    del made
    return Parser(
        [b'["/a", "hdfs://b/c"]'],
        lambda data: FORMER_FOLDERS.of({FORMER_FOLDERS.key: text_of(data)}),
        JSON,
        lambda: DEEP,
    )


def stream_offset(made: Sound) -> Parser:
    """What Spark kept of a stream in its checkpoint."""
    del made
    seed = b'{"version": 1, "snapshot_id": 7, "position": 3, "scan_all_files": false}'
    return Parser([seed], lambda data: StreamOffset.parse(text_of(data)).text(), JSON, lambda: DEEP)


def header_schema(made: Sound) -> Parser:
    """The schema in the header of a manifest, which may be none."""
    text = json.dumps(made.table.schema().to_json()).encode()

    def read(data: bytes) -> object:
        pairs = varint(12) + b"schema" + varint(2 * len(data)) + data
        found = manifest_schema(MAGIC + b"\x02" + pairs + b"\x00" + bytes(16))
        if found is None:
            raise IcecombError("it has none")
        return found

    return Parser([text], read, (changed_json, changed_text), lambda: DEEP)
