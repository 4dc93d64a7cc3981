"""Records of Avro containers: how much memory few bytes of them may take."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from icecomb.format.avro.container import header_bytes, parse_container
from icecomb.format.avro.encoder import encode_long, encode_string
from icecomb.format.avro.records import read_records, read_tables
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
