"""What a schema makes of few bytes is known before anything is read by it."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest

from icecomb.format.avro.container import header_bytes, parse_container, plain_form
from icecomb.format.avro.container_stream import ContainerStream
from icecomb.format.avro.encoder import encode_bytes, encode_long
from icecomb.format.avro.schema import avro_schema
from icecomb.format.avro.schema_size import check_items, schema_size
from icecomb.format.errors import CorruptFileError
from icecomb.format.input_limit import FIXED, TYPES, UNPACKED
from icecomb.format.manifests.manifest_list import manifest_file_type
from icecomb.format.rows.avro.reader import AvroReader
from tests.hostile.parser import Memory

SYNC = b"s" * 16


def record(name: str, *kinds: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": kind, "field-id": at + 1} for at, kind in enumerate(kinds)]
    return {"type": "record", "name": name, "fields": fields}


def doubling(levels: int) -> dict[str, Any]:
    """A schema in which each type is two of the one before."""
    kind: Any = record("t0", "int")
    for level in range(1, levels):
        kind = record(f"t{level}", kind, f"t{level - 1}")
    return kind


def container(schema: Any, count: int = 0, block: bytes = b"") -> bytes:
    head = header_bytes({"avro.schema": json.dumps(schema), "avro.codec": "null"}, SYNC)
    return head + encode_long(count) + encode_bytes(block) + SYNC if count else head


@pytest.mark.parametrize(
    ("schema", "types", "least"),
    [
        ("int", 1, 1),
        ("null", 1, 0),
        ("double", 1, 8),
        (["null", "string"], 3, 1),
        (record("r", "int", "float", "null", "boolean"), 5, 6),
        ({"type": "fixed", "name": "f", "size": 16}, 1, 16),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, 1, 1),
        ({"type": "array", "items": "long"}, 2, 1),
        ({"type": {"type": "map", "values": "long"}}, 2, 1),
        (record("r", record("a.b", "long"), "x.b", ["null", "b"]), 9, 3),
        (doubling(3), 11, 4),
    ],
)
def test_types_and_least_bytes_are_those_of_the_expanded_schema(
    schema: Any, types: int, least: int
) -> None:
    size = schema_size(schema)
    assert (size.types, size.least, size.has_empty_items) == (types, least, False)


def test_schemas_of_tables_are_as_large_as_they_look() -> None:
    schema = avro_schema(manifest_file_type(3), "manifest_file")
    assert schema_size(schema).types < 100


@pytest.mark.parametrize("levels", [40, 300])
def test_types_that_double_are_refused_by_both_readers_at_once(levels: int) -> None:
    data = container(doubling(levels), 1, b"\x02")
    began = time.process_time()
    for read in (
        lambda: parse_container(data, "m.avro"),
        lambda: ContainerStream(_Source(data), "m.avro"),
        lambda: AvroReader(Memory(x=data), "x"),
    ):
        with pytest.raises(CorruptFileError, match=TYPES.name):
            read()
    assert time.process_time() - began < 5


@pytest.mark.parametrize("field_id", ["Infinity", "NaN", '"x"', "[]", "9" * 5000])
def test_a_field_id_that_is_no_number_is_damage(field_id: str) -> None:
    text = json.dumps(record("r", "int")).replace('"field-id": 1', f'"field-id": {field_id}')
    head = header_bytes({"avro.schema": text, "avro.codec": "null"}, SYNC)
    with pytest.raises(CorruptFileError, match=r"m\.avro"):
        plain_form(parse_container(head, "m.avro"), {})


def test_the_limit_of_types_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TYPES.name, "10")
    assert schema_size(doubling(2)).types == 5
    with pytest.raises(ValueError, match="10 types"):
        schema_size(doubling(3))


@pytest.mark.parametrize(
    "schema",
    [
        record("r", ["null", "r"]),
        record("r", {"type": "array", "items": "r"}),
        record("r", record("s", ["null", "r"])),
    ],
)
def test_a_type_in_itself_is_refused(schema: Any) -> None:
    with pytest.raises(CorruptFileError, match="contains itself"):
        parse_container(container(schema), "m.avro")


@pytest.mark.parametrize("size", [-1, 1 << 40, (1 << 20) + 1, "16", None, 1.5, True])
def test_a_fixed_value_has_a_size_within_the_limit(size: Any) -> None:
    schema = record("r", [{"type": "fixed", "name": "f", "size": size}, "null"], "string")
    data = container(schema, 1, b"\x02\x02a")
    for read in (
        lambda: parse_container(data, "m.avro"),
        lambda: ContainerStream(_Source(data), "m.avro"),
    ):
        with pytest.raises(CorruptFileError, match="a fixed value of"):
            read()


def test_a_fixed_value_above_the_limit_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "fixed", "name": "f", "size": 17}
    assert schema_size(schema).least == 17
    monkeypatch.setenv(FIXED.name, "16")
    with pytest.raises(ValueError, match=f"{FIXED.name}: 16 bytes"):
        schema_size(schema)


EMPTY = [
    "null",
    {"type": "record", "name": "e", "fields": []},
    {"type": "fixed", "name": "z", "size": 0},
    record("e", "null", {"type": "fixed", "name": "z", "size": 0}),
]


@pytest.mark.parametrize("items", EMPTY)
def test_items_without_bytes_are_not_in_manifests(items: Any) -> None:
    schema = record("r", {"type": "array", "items": items})
    assert schema_size(schema).has_empty_items
    data = container(schema, 1, encode_long(1 << 40) + b"\0")
    with pytest.raises(CorruptFileError, match="items that take no bytes"):
        parse_container(data, "m.avro")


@pytest.mark.parametrize("items", EMPTY)
@pytest.mark.parametrize("count", [1 << 40, -(1 << 40), 1 << 62])
def test_rows_have_as_many_items_without_bytes_as_there_is_room_for(items: Any, count: int) -> None:
    schema = record("r", {"type": "array", "items": items, "element-id": 9}, "string")
    size = encode_long(0) if count < 0 else b""
    data = container(schema, 1, encode_long(count) + size + b"\0\x02a")
    with pytest.raises(CorruptFileError, match=UNPACKED.name):
        list(AvroReader(Memory(x=data), "x").batches([0, 1], [0], 10))


def test_lists_of_nulls_are_read() -> None:
    schema = record("r", {"type": "array", "items": "null", "element-id": 9}, "string")
    data = container(schema, 2, b"\x06\0\x02a" + b"\0\x02b")
    ((_, batch),) = AvroReader(Memory(x=data), "x").batches([0, 1], [0], 10)
    assert batch.to_pylist() == [
        {"f0": [None, None, None], "f1": "a"},
        {"f0": [], "f1": "b"},
    ]


def test_empty_items_are_counted_wherever_they_are() -> None:
    inner = {"type": "array", "items": "null"}
    every = record(
        "r", "int", "boolean", "float", "double", "bytes",
        {"type": "fixed", "name": "f", "size": 3}, {"type": "enum", "name": "e", "symbols": ["a"]},
        ["null", inner], {"type": "map", "values": record("v", inner)},
        {"type": "array", "items": inner},
    )  # fmt: skip
    head = b"\x02\x01" + bytes(12) + b"\x04ab" + b"abc" + b"\0"
    union, mapped, listed = b"\x02\x0a\0", b"\x02\x02k\x0a\0\0", b"\x03\x08\x0a\0\x0a\0\0"
    data = (head + union + mapped + listed) * 2
    # 40 items without bytes; a text and a list of a map, and two lists, in each of two values
    most = 2 * schema_size(every).memory + 40 * 256 + 2 * 4 * 64
    check_items(every, data, 2, most)
    with pytest.raises(ValueError, match=UNPACKED.name):
        check_items(every, data, 2, most - 1)
    for damaged in (data[:-1], head + b"\x06" + data):
        with pytest.raises((ValueError, IndexError)):
            check_items(every, damaged, 2, most)


@pytest.mark.parametrize("count", [1 << 40, 3])
def test_rows_are_no_more_than_their_bytes_can_be(count: int) -> None:
    long = record("r", "long", {"type": "fixed", "name": "f", "size": 4})
    data = container(long, count, b"\x02abcd" * 2)
    with pytest.raises(CorruptFileError, match=r"a block states .* more than"):
        parse_container(data, "m.avro")
    with pytest.raises(CorruptFileError, match=r"a block states .* more than"):
        list(AvroReader(Memory(x=data), "x").batches([0], [0], 10))


def test_rows_without_bytes_have_a_limit() -> None:
    data = container(record("r", "null"), 1 << 40, b"")
    with pytest.raises(CorruptFileError, match=UNPACKED.name):
        list(AvroReader(Memory(x=data), "x").batches([0], [0], 10))
    small = container(record("r", "null"), 5, b"")
    ((_, batch),) = AvroReader(Memory(x=small), "x").batches([0], [0], 10)
    assert batch.num_rows == 5


def test_a_stated_length_of_a_block_takes_no_memory() -> None:
    head = container(record("r", "long"))
    tracemalloc.start()
    try:
        stream = ContainerStream(_Source(head + encode_long(1) + encode_long(1 << 40)), "x")
        with pytest.raises(CorruptFileError, match="too early"):
            list(stream.blocks())
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


class _Source:
    """A source that sets aside as much as it is asked for, as pyarrow's files do."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, nbytes: int, /) -> bytes:
        bytearray(nbytes)
        found = self._data[self._at : self._at + nbytes]
        self._at += len(found)
        return found
