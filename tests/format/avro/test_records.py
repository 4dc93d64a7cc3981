"""Records of Avro containers: how much memory few bytes of them may take."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from icecomb.format.avro.container import header_bytes, parse_container
from icecomb.format.avro.encoder import encode_long, encode_string
from icecomb.format.avro.records import fits_exactly, read_records, read_tables
from icecomb.format.errors import CorruptFileError

TEXT: Any = {"type": "record", "name": "r", "fields": [{"name": "text", "type": "string"}]}
ITEM = {"type": "record", "name": "i", "fields": [{"name": "flag", "type": "boolean"}]}
LIST: Any = {
    **TEXT,
    "fields": [*TEXT["fields"], {"name": "list", "type": {"type": "array", "items": ITEM}}],
}


def container(schema: Any, record: bytes, count: int) -> Any:
    """A container of one block of equal records."""
    sync = b"s" * 16
    header = header_bytes({"avro.schema": json.dumps(schema), "avro.codec": "deflate"}, sync)
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(record * count) + packer.flush()
    whole = header + encode_long(count) + encode_long(len(block)) + block + sync
    return parse_container(whole, "list.avro")


@pytest.mark.parametrize(
    ("schema", "record", "count"),
    [
        (TEXT, encode_string("a" * 20), 250_000),
        (LIST, encode_string("a") + encode_long(5 << 20) + bytes((5 << 20) + 1), 1),
    ],
    ids=["many records", "a record of many items"],
)
def test_records_that_take_more_memory_than_the_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch, schema: Any, record: bytes, count: int
) -> None:
    found = container(schema, record, count)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "128")
    with pytest.raises(CorruptFileError, match=r"list.avro has \d+ records, .* 128 MiB"):
        read_records(found, schema)
    monkeypatch.undo()
    assert len(read_records(found, schema)) == count


def test_rows_of_columns_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = container(TEXT, encode_string("a"), 100_000)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "16")
    with pytest.raises(CorruptFileError, match="more memory than the limit"):
        read_tables([found], TEXT, "text")


def test_long_records_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = container(TEXT, encode_string("a" * 100_000), 80)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "128")
    assert len(read_records(found, TEXT)) == 80


PAIR = {
    "type": "record",
    "name": "p",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
}
PAIRS: Any = {
    **TEXT,
    "fields": [*TEXT["fields"], {"name": "map", "type": {"type": "array", "items": PAIR}}],
}
WIDE: Any = {**TEXT, "fields": [{"name": f"f{n}", "type": ["null", "int"]} for n in range(20)]}
TAGS: Any = {
    **PAIRS,
    "fields": [*PAIRS["fields"], {"name": "tags", "type": {"type": "map", "values": "string"}}],
}


def pairs(count: int) -> bytes:
    return encode_string("a") + encode_long(count) + bytes(2 * count + 1)


@pytest.mark.parametrize("start", [encode_long(1 << 20), encode_long(-(1 << 20)) + encode_long(9)])
@pytest.mark.parametrize("schema", [PAIRS, TAGS], ids=["columns", "objects"])
def test_a_block_has_as_many_empty_pairs_as_there_is_room_for(
    schema: Any, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = encode_string("a") + start + bytes(2 << 20) + (b"\0" if schema is PAIRS else b"\0\0")
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "100")
    with pytest.raises(CorruptFileError, match=r"their items are .*_UNPACKED_MIB: 100 MiB"):
        container(schema, record, 1)
    monkeypatch.undo()
    if schema is PAIRS:
        table, _ = read_tables([container(schema, record, 1)], schema, "text")
        assert len(table["map"].chunk(0).flatten()) == 1 << 20


def test_records_of_objects_have_as_many_items_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = container(TAGS, pairs(3 << 20) + b"\0", 1)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "1000")
    for read in (read_records, fits_exactly):
        with pytest.raises(CorruptFileError, match="their items are more than"):
            read(found, TAGS)


def test_nulls_take_the_memory_of_the_values_that_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "64")
    long = {"type": "fixed", "name": "f", "size": 60_000}
    kind = {"type": "array", "items": ["null", long]}
    schema = {**TEXT, "fields": [*TEXT["fields"], {"name": "list", "type": kind}]}
    with pytest.raises(CorruptFileError, match="their items are more than"):
        container(schema, encode_string("a") + encode_long(1000) + bytes(1001), 1)
    with pytest.raises(CorruptFileError, match="their items are more than"):
        container(WIDE, bytes(20), 100_000)


def test_blocks_are_decoded_until_their_rows_take_more_memory_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each block is within the limit as columns, and all of them together are not."""
    first, second = (
        replace(one, blocks=one.blocks * 20, counts=one.counts * 20, record_count=20)
        for one in (container(PAIRS, pairs(size), 1) for size in (30_000, 150_000))
    )
    whole = read_tables([first, container(PAIRS, pairs(3), 2)], PAIRS, "text")
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "20")
    found = read_tables([first, container(PAIRS, pairs(3), 2)], PAIRS, "text")
    assert found[0].num_rows == 22
    assert found[1] == [0, 20]
    place = whole[1][1]
    assert found[0].slice(20).equals(whole[0].slice(place, 2))
    assert found[0].slice(0, 20).equals(whole[0].slice(0, 20))
    with pytest.raises(CorruptFileError, match="more memory than the limit"):
        read_tables([second], PAIRS, "text")
    with pytest.raises(CorruptFileError, match="more memory than the limit"):
        read_records(second, PAIRS)


def test_a_block_that_ends_within_a_record_is_damage_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = container(PAIRS, pairs(100_000), 1)
    blocks = (found.blocks[0][:-7], found.blocks[0][-7:], *found.blocks * 8)
    cut = replace(found, blocks=blocks, counts=(1,) * 10, record_count=10)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "8")
    with pytest.raises(CorruptFileError, match="do not decode"):
        read_tables([cut], PAIRS, "text")
