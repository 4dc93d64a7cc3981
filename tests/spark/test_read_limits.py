"""Executors refuse what a few bytes make of all their memory, and read what Python writes."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.java import compile_jar, find_java
from icecomb.format.rows.deletes.deletion_vector import encode_vector
from icecomb.format.rows.parquet.compact_protocol import I32, LIST, STRUCT, Items, read_struct
from icecomb.format.rows.parquet.raw_footer import (
    CONVERTED,
    FIELD_ID,
    LOGICAL,
    NUM_CHILDREN,
    SCHEMA,
    TYPE,
)
from icecomb.spark.jar import bridge_jar, spark_home
from tests.format.avro.test_schema_size import doubling, record
from tests.format.rows.deletes.deletion_vectors import runs_of
from tests.rings import sampled

SOURCE = Path(__file__).parents[1] / "peers/ReadLimits.java"
EMPTY = record("e")
FIXED = {"type": "fixed", "name": "f", "size": 1 << 20}
SCHEMAS = [
    (record("r", "int", ["null", "string"]), "false"),
    (EMPTY, "true"),
    (record("r", "null", record("e", {"type": "fixed", "name": "z", "size": 0})), "true"),
    (record("r", ["null", EMPTY], {"type": "array", "items": "null"}), "false"),
    (doubling(40), "UnsupportedOperationException: .* has more than 100000 types"),
    (record("r", ["null", "r"]), "UnsupportedOperationException: .* contains itself"),
    (record("r", FIXED), "UnsupportedOperationException: .* fixed length of 1048576 bytes"),
]
SOME = encode_vector(np.array([1, 5, *range(70_000, 80_000), (1 << 32) + 7], np.int64))
VECTORS = [
    (SOME, 10_003, "1 5 70000 .* of 10003"),
    (SOME, 10_002, "IOException: .* has other positions than 10002"),
    (SOME, 1 << 40, "IOException: .* has 10003 positions, its manifest says 1099511627776"),
    (SOME[:-1], 10_003, "IOException: .* states another length"),
    (runs_of(4), 4 << 16, "0 1 2 3 4 5 6 7 8 of 262144"),
    (runs_of(32_768), 5, "IOException: .* has other positions than 5"),
]
HUGE = (1 << 31) - 20
DAMAGED = "IOException: .* states a length of"


def number(value: int) -> bytes:
    """A length as Avro writes it."""
    return varint(value << 1)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def sized(data: bytes) -> bytes:
    return number(len(data)) + data


def avro(*blocks: bytes, codec: bytes = b"null", more: bytes = b"", fields: Any = ()) -> bytes:
    schema = {"type": "record", "name": "r", "fields": [*fields]}
    entries = sized(b"avro.schema") + sized(json.dumps(schema).encode())
    entries += sized(b"avro.codec") + sized(codec)
    head = b"Obj\1" + number(3 if more else 2) + entries + more + b"\0" + SYNC
    return head + b"".join(each + SYNC for each in blocks)


def rows(count: int, size: int) -> bytes:
    """A block of rows with a text of so many bytes."""
    return number(count) + sized(b"".join(number(i) + sized(b"x" * size) for i in range(count)))


SYNC = bytes(range(16))
COLUMNS = [
    {"name": "id", "type": "long", "field-id": 1},
    {"name": "a", "type": "string", "field-id": 2},
]
FILES = [
    (avro(rows(2, 1), rows(3, 2), fields=COLUMNS), 5, "x x xx xx xx $"),
    (avro(*(rows(4, 2000) for _ in range(40)), fields=COLUMNS), 160, "(x{2000} ){160}$"),
    (avro(number(1) + number(HUGE) + bytes(64), fields=COLUMNS), 1, DAMAGED),
    (avro(more=sized(b"k") + number(HUGE)), 1, DAMAGED),
    (avro(more=number(HUGE)), 1, DAMAGED),
    (avro(number(1) + sized(varint(HUGE) + bytes(9)), codec=b"snappy", fields=COLUMNS), 1, DAMAGED),
    (avro(number(1) + sized(number(1) + number(HUGE)), fields=COLUMNS), 1, "IOException: a value"),
    (avro(number(1 << 60) + sized(b"")), 3, "IOException: .* has 6 rows, its manifest says 3"),
]
LISTS = [{"name": "a", "type": {"type": "array", "items": "long"}, "field-id": 2}]
LONG_LISTS = [
    (3, "3 $"),
    (20 << 20, "IOException: There is no memory for what .* more memory[.]$"),
]


def lists(items: int) -> bytes:
    """A file of one list of zeros, of which a thousand take a byte."""
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(number(items) + bytes(items + 1)) + packer.flush()
    return avro(number(1) + sized(block), codec=b"deflate", fields=LISTS)


def page_of_two_gigabytes(file: Path) -> None:
    """A file of some kilobytes whose page states that it has almost 2 GiB, unpacked."""
    field = pa.field("a", pa.string(), metadata={"PARQUET:field_id": "2"})
    table = pa.table([pa.array(["x" * 8000] * 19_000)], schema=pa.schema([field]))
    pq.write_table(
        table, file, compression="zstd", use_dictionary=False, data_page_size=1 << 30,
        write_batch_size=19_000, write_statistics=False,
    )  # fmt: skip
    place = pq.read_metadata(file).row_group(0).column(0).data_page_offset
    data = bytearray(file.read_bytes())
    # the second field of the header, after a type of one byte
    assert data[place : place + 3] == bytes([0x15, 0, 0x15])
    stated = number(HUGE)
    assert data[place + 3 + len(stated)] == 0x15
    data[place + 3 : place + 3 + len(stated)] = stated
    file.write_bytes(data)


def nested_types(file: Path, levels: int) -> None:
    """A file of some bytes a level, whose footer states groups in groups."""
    field = pa.field("a", pa.string(), metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([pa.array(["x"])], schema=pa.schema([field])), file)
    data = file.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data[begin:-8])
    root, leaf = footer[SCHEMA].values
    group = leaf.copy()
    group.drop(TYPE, CONVERTED, LOGICAL, FIELD_ID)
    group.put(NUM_CHILDREN, I32, 1)
    elements = [root, leaf, *([group] * levels), leaf]
    root.put(NUM_CHILDREN, I32, 2)
    footer.put(SCHEMA, LIST, Items(STRUCT, [one.encoded() for one in elements]))
    written = footer.encoded()
    file.write_bytes(data[:begin] + written + len(written).to_bytes(4, "little") + b"PAR1")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    classes = f"{spark_home().jars}{os.sep}*{os.pathsep}{bridge_jar()}"
    key = f"{zlib.crc32(SOURCE.read_bytes()):x}-{bridge_jar().stem}"
    jar = compile_jar([SOURCE], classes, "read-limits", key)
    lines = [f"schema - {json.dumps(schema)}" for schema, _ in SCHEMAS]
    lines += [f"vector {rows} {base64.b64encode(blob).decode()}" for blob, rows, _ in VECTORS]
    folder = tmp_path_factory.mktemp("avro")
    for place, (data, count, _) in enumerate(FILES):
        (folder / f"{place}.avro").write_bytes(data)
        lines.append(f"avro {count} {folder}/{place}.avro")
    for items, _ in LONG_LISTS:
        (folder / f"{items}.lists").write_bytes(lists(items))
        lines.append(f"lists 1 {folder}/{items}.lists")
    page_of_two_gigabytes(folder / "page.parquet")
    lines.append(f"parquet 19000 {folder}/page.parquet")
    nested_types(folder / "nested.parquet", 20_000)
    lines.append(f"parquet 1 {folder}/nested.parquet")
    done = subprocess.run(
        [find_java(), "-Xmx128m", "-cp", f"{classes}{os.pathsep}{jar}",
         "org.icecomb.spark.read.ReadLimits"],
        input="\n".join(lines), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("number", range(len(SCHEMAS + VECTORS + FILES + LONG_LISTS) + 2))
def test_executors_answer_or_refuse(number: int, answers: list[str]) -> None:
    expected: list[Any] = [
        *SCHEMAS,
        *VECTORS,
        *FILES,
        *LONG_LISTS,
        ["IOException: There is no memory for what .* more memory[.]$"],
        ["IOException: The columns of .* are nested more deeply than any stack allows"],
    ]
    assert re.match(expected[number][-1], answers[number]), answers[number]


@pytest.mark.full("fills the memory of an executor")
@pytest.mark.parametrize(
    ("size", "answer"),
    sampled(
        [(128 << 20, "IOException: There is no memory to write a file .*"), (1 << 20, "opened")],
        keep=1,
    ),
)
def test_executors_write_a_bloom_filter_or_say_that_there_is_no_memory_for_it(
    tmp_path: Path, size: int, answer: str
) -> None:
    """As an `OutOfMemoryError` it would end the executor, or a local application."""
    classes = f"{spark_home().jars}{os.sep}*{os.pathsep}{bridge_jar()}"
    source = SOURCE.with_name("WriteLimits.java")
    key = f"{zlib.crc32(source.read_bytes()):x}-{bridge_jar().stem}"
    jar = compile_jar([source], classes, "write-limits", key)
    done = subprocess.run(
        [find_java(), "-Xmx128m", "-cp", f"{classes}{os.pathsep}{jar}",
         "org.icecomb.spark.write.WriteLimits", str(size), f"{tmp_path}/a.parquet"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.fullmatch(answer, done.stdout.strip()), done.stdout
