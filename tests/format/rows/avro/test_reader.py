from __future__ import annotations

import bz2
import datetime as dt
import json
import lzma
import uuid
import zlib
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import fastavro
import polars as pl
import pyarrow as pa
import pytest

from icecomb.format.avro.container import header_bytes
from icecomb.format.avro.encoder import encode_long
from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import AlwaysTrue, GreaterThan
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.avro import reader
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO

UTC = dt.timezone.utc


def record(name, *fields):
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name, kind, number=None):
    return {"name": name, "type": kind, **({} if number is None else {"field-id": number})}


def write(path, schema, rows, codec="null"):
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=100)
    return DataFile(
        file_path=str(path),
        file_format=FileFormat.AVRO,
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
    )


def read(folder, schema, *tasks, mapping=None, select=None, **options):
    properties = {} if mapping is None else {"schema.name-mapping.default": json.dumps(mapping)}
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), properties
    )
    scan = ArrowScan(metadata, FileIO(), select or metadata.schema(), **options)
    return scan.to_table(tasks)


def test_columns_are_found_by_id_at_every_depth(tmp_path):
    """Lists, maps with text keys, and maps that Avro has to write as arrays of pairs."""
    pair = record("kv", field("key", "int", 7), field("value", ["null", "int"], 8))
    avro = record(
        "t",
        field("b", ["null", {"type": "array", "element-id": 4, "items": record(
            "p", field("old", "int", 5), field("gone", "int", 99))}], 1),
        field("m", ["null", {"type": "array", "logicalType": "map", "items": pair}], 2),
        field("n", {"type": "map", "key-id": 9, "value-id": 10, "values": "int"}, 3),
    )  # fmt: skip
    rows = [
        {
            "b": [{"old": 1, "gone": 2}],
            "m": [{"key": 1, "value": None}, {"key": 2, "value": 3}],
            "n": {"k": 5},
        },
        {"b": None, "m": None, "n": {}},
    ]
    schema = Schema(
        (
            NestedField(1, "a", ListType(4, StructType((
                NestedField(5, "x", LongType()), NestedField(6, "new", StringType()))))),
            NestedField(2, "m", MapType(7, LongType(), 8, LongType())),
            NestedField(3, "n", MapType(9, StringType(), 10, LongType())),
        )
    )  # fmt: skip
    found = read(tmp_path, schema, FileScanTask(write(tmp_path / "f.avro", avro, rows)))
    assert found.to_pydict() == {
        "a": [[{"x": 1, "new": None}], None],
        "m": [[(1, None), (2, 3)], None],
        "n": [[("k", 5)], []],
    }


def test_logical_types_are_read_as_the_tables_types(tmp_path):
    avro = record(
        "t",
        field("day", {"type": "int", "logicalType": "date"}, 1),
        field("clock", {"type": "long", "logicalType": "time-micros"}, 2),
        field("ts", {"type": "long", "logicalType": "timestamp-micros"}, 3),
        field("tz", {"type": "long", "logicalType": "timestamp-millis"}, 4),
        field("dec", ["null", {"type": "fixed", "name": "d", "size": 5,
                               "logicalType": "decimal", "precision": 9, "scale": 2}], 5),
        field("u", {"type": "string", "logicalType": "uuid"}, 6),
    )  # fmt: skip
    row = {
        "day": dt.date(1960, 1, 1),
        "clock": dt.time(1, 2, 3, 4),
        "ts": dt.datetime(2024, 1, 1, 0, 0, 0, 5, UTC),
        "tz": dt.datetime(1900, 1, 1, tzinfo=UTC),
        "dec": Decimal("-1.50"),
        "u": uuid.UUID(int=3),
    }
    kinds = (
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        DecimalType(9, 2),
        UUIDType(),
    )
    schema = Schema(
        tuple(NestedField(i, n, k) for i, (n, k) in enumerate(zip(row, kinds, strict=True), 1))
    )
    task = FileScanTask(write(tmp_path / "f.avro", avro, [row]))
    (found,) = read(tmp_path, schema, task).to_pylist()
    assert found == {**row, "ts": row["ts"].replace(tzinfo=None)}


def test_files_of_hive_are_read_through_the_name_mapping(tmp_path):
    avro = record("t", field("ID", ["null", "int"]), field("unmapped", "string"))
    task = FileScanTask(write(tmp_path / "f", avro, [{"ID": 4, "unmapped": "x"}]))
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
    mapping = [{"field-id": 1, "names": ["id", "ID"]}, {"field-id": 2, "names": ["s"]}]
    assert read(tmp_path, schema, task, mapping=mapping).to_pydict() == {"id": [4], "s": [None]}


def test_positions_deletes_parts_and_filters(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()),))
    avro = record("t", field("id", "long", 1))
    file = write(tmp_path / "f.avro", avro, [{"id": i} for i in range(1000)])
    delete_schema = record(
        "d", field("file_path", "string", 2147483546), field("pos", "long", 2147483545)
    )
    rows = [{"file_path": file.file_path, "pos": p} for p in (3, 998)]
    raw = write(tmp_path / "d.avro", delete_schema, rows)
    delete = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=raw.file_path,
        file_format=FileFormat.AVRO,
        record_count=2,
        file_size_in_bytes=raw.file_size_in_bytes,
    )
    task = FileScanTask(file, (delete,), bind(schema, GreaterThan("id", 996)))
    only_position = Schema((ROW_POSITION,))
    assert read(tmp_path, schema, task, select=only_position)["_pos"].to_pylist() == [997, 999]
    parts = list(FileScanTask(file, (delete,), AlwaysTrue()).split(500))
    assert len(parts) > 2
    found = read(tmp_path, schema, *parts, batch_size=64)["id"].to_pylist()
    assert found == [i for i in range(1000) if i not in {3, 998}]


def test_damaged_and_foreign_files_are_errors_naming_the_file(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()),))
    file = write(tmp_path / "f.avro", record("t", field("id", "long", 1)), [{"id": 1}])
    good = (tmp_path / "f.avro").read_bytes()
    for bad in (b"x" * len(good), good[:-8] + b"\xff" * 8):
        (tmp_path / "f.avro").write_bytes(bad)
        with pytest.raises(CorruptFileError, match=r"f\.avro"):
            read(tmp_path, schema, FileScanTask(file))
    union = record("t", field("id", ["int", "string"], 1))
    with pytest.raises(UnsupportedError, match="union"):
        read(tmp_path, schema, FileScanTask(write(tmp_path / "u.avro", union, [{"id": 1}])))


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_the_codecs_of_python_are_unpacked(tmp_path, codec):
    schema = Schema((NestedField(1, "id", LongType()),))
    rows = [{"id": i} for i in range(1000)]
    file = write(tmp_path / "f.avro", record("t", field("id", "long", 1)), rows, codec)
    assert read(tmp_path, schema, FileScanTask(file), batch_size=7)["id"].to_pylist() == [
        row["id"] for row in rows
    ]


def test_snappy_of_another_writer_is_unpacked(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
    rows = {"id": list(range(5000)), "s": [f"v{i % 50}" for i in range(5000)]}
    path = tmp_path / "f.avro"
    pl.DataFrame(rows).write_avro(path, compression="snappy", name="t")
    assert b"\x0csnappy" in path.read_bytes()[:1000]
    file = DataFile(
        file_path=str(path),
        file_format=FileFormat.AVRO,
        record_count=5000,
        file_size_in_bytes=path.stat().st_size,
    )
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["s"]}]
    assert read(tmp_path, schema, FileScanTask(file), mapping=mapping).to_pydict() == rows


def test_a_codec_that_nobody_knows_is_unsupported_and_not_damage(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()),))
    file = write(tmp_path / "f.avro", record("t", field("id", "long", 1)), [{"id": 1}])
    path = tmp_path / "f.avro"
    path.write_bytes(path.read_bytes().replace(b"\x08null", b"\x08lzma"))
    with pytest.raises(UnsupportedError, match="unknown Avro codec 'lzma'"):
        read(tmp_path, schema, FileScanTask(file))


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_every_damaged_or_missing_byte_of_a_block_is_noticed_or_harmless(tmp_path, codec):
    """Whatever is wrong, rows are right or the file is called damaged."""
    schema = Schema((NestedField(1, "id", LongType()),))
    avro = record("t", field("id", "long", 1))
    file = write(tmp_path / "f.avro", avro, [{"id": i} for i in range(300)])
    path = tmp_path / "f.avro"
    with path.open("rb") as plain:
        blocks = fastavro.block_reader(plain)
        content = [(b.num_records, b.bytes_.read()) for b in blocks]
    path.write_bytes(packed(avro, codec, content))
    good = path.read_bytes()
    file = replace(file, file_size_in_bytes=len(good))
    expected = list(range(300))
    assert read(tmp_path, schema, FileScanTask(file))["id"].to_pylist() == expected
    short = replace(file, file_size_in_bytes=10)
    # a file that ends between two blocks is noticed by its length only
    for size in range(0, len(good) - 1, 11):
        path.write_bytes(good[:size])
        with pytest.raises(CorruptFileError, match=r"f\.avro"):
            read(tmp_path, schema, FileScanTask(file))
        with suppress(CorruptFileError):
            found = read(tmp_path, schema, FileScanTask(short))["id"].to_pylist()
            assert found == expected[: len(found)]


@pytest.mark.parametrize("wrong", [-1, 1])
@pytest.mark.parametrize("select", [("id",), ("flag",), ("id", "flag", "more")])
@pytest.mark.parametrize(
    "more", ["double", {"type": "map", "values": "int"}], ids=["columns", "records"]
)
def test_a_block_that_states_another_number_of_rows_is_damage(tmp_path, more, select, wrong):
    fields = [NestedField(1, "id", LongType()), NestedField(2, "flag", BooleanType())]
    if more == "double":
        fields.append(NestedField(3, "more", DoubleType()))
    chosen = Schema(tuple(f for f in fields if f.name in select))
    avro = record("t", field("id", "long", 1), field("flag", "boolean", 2), field("more", more, 3))
    rows = [{"id": i, "flag": True, "more": 0.5 if more == "double" else {}} for i in range(40)]
    file = write(tmp_path / "f.avro", avro, rows)
    path = tmp_path / "f.avro"
    with path.open("rb") as plain:
        blocks = fastavro.block_reader(plain)
        (count, content), *others = [(b.num_records, b.bytes_.read()) for b in blocks]
    for stated in (count, count + wrong):
        path.write_bytes(packed(avro, "null", [(stated, content), *others]))
        task = FileScanTask(replace(file, file_size_in_bytes=path.stat().st_size))
        if stated == count:
            assert read(tmp_path, Schema(tuple(fields)), task, select=chosen).num_rows == 40
        else:
            with pytest.raises(CorruptFileError, match=r"f\.avro"):
                read(tmp_path, Schema(tuple(fields)), task, select=chosen)


def packed(schema, codec, blocks):
    """An Avro file of these blocks; the packing is that of the specification."""
    pack = {
        "null": bytes,
        "deflate": lambda b: zlib.compress(b)[2:-4],
        "bzip2": bz2.compress,
        "xz": lzma.compress,
        "snappy": lambda b: (
            pa.compress(b, codec="snappy", asbytes=True) + zlib.crc32(b).to_bytes(4, "big")
        ),
        "zstandard": lambda b: pa.compress(b, codec="zstd", asbytes=True),
    }[codec]
    sync = bytes(range(16))
    parts = [header_bytes({"avro.schema": json.dumps(schema), "avro.codec": codec}, sync)]
    for count, block in blocks:
        content = pack(block)
        parts += [encode_long(count), encode_long(len(content)), content, sync]
    return b"".join(parts)


def test_blocks_of_long_rows_are_read_in_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "BATCH_BYTES", 1000)
    path = tmp_path / "long.avro"
    schema = record("r", field("text", "string", 1))
    with path.open("wb") as out:
        fastavro.writer(out, schema, [{"text": "a" * 600}] * 10, sync_interval=1)
    found = reader.AvroReader(FileIO(), str(path)).batches([0], [0], 1 << 18)
    assert [(at, len(batch)) for at, batch in found] == [(at, 2) for at in range(0, 10, 2)]


LISTS = record("r", field("l", {"type": "array", "items": "boolean", "element-id": 2}, 1))
STATES = field("s", {"type": "enum", "name": "e", "symbols": ["a"]}, 3)


@pytest.mark.parametrize(
    ("more", "room", "lengths", "small"),
    [((), "16", [1, 1], "10"), ((STATES,), "55", [2], "40")],
    ids=["columns", "rows"],
)
def test_a_block_has_as_many_items_as_there_is_memory_for(
    tmp_path, monkeypatch, more, room, lengths, small
):
    schema = {**LISTS, "fields": [*LISTS["fields"], *more]}
    row = encode_long(200_000) + bytes(200_001 + len(more))
    path = tmp_path / "lists.avro"
    path.write_bytes(packed(schema, "deflate", [(1, row)] * 2))

    def read():
        batches = reader.AvroReader(FileIO(), str(path)).batches([0, 1], [0], 9)
        return [len(batch) for _, batch in batches]

    assert read() == [2]
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", room)
    assert read() == lengths
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", small)
    with pytest.raises(CorruptFileError, match=r"records and their items are more .*UNPACKED_MIB"):
        read()
