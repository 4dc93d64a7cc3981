"""Containers whose blocks state more than their bytes can hold are damaged, and take no memory."""

from __future__ import annotations

import json

import pytest

from icecomb.format.avro.container import (
    compressor,
    encode_bytes,
    encode_long,
    header_bytes,
    parse_container,
)
from icecomb.format.errors import ConfigurationError, CorruptFileError

SYNC = b"s" * 16
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}


def container(count: int, block: bytes, codec: str) -> bytes:
    metadata = {"avro.schema": json.dumps(SCHEMA), "avro.codec": codec}
    return header_bytes(metadata, SYNC) + encode_long(count) + encode_bytes(block) + SYNC


@pytest.mark.parametrize(
    ("count", "block", "codec"),
    [
        (1 << 40, b"\x02\x04", "null"),
        (3, b"\x02\x04", "null"),
        (1, b"\xff\xff\xff\xff\x0f" + b"\0" * 8, "snappy"),
        (1, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 8, "snappy"),
    ],
)
def test_more_than_a_block_can_hold_is_damage(count: int, block: bytes, codec: str) -> None:
    with pytest.raises(CorruptFileError, match=r"a block states .* more than"):
        parse_container(container(count, block, codec), "m.avro")
    assert parse_container(container(2, b"\x02\x04", "null"), "m.avro").record_count == 2


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("level", [1 << 40, -(1 << 40), 23, 1 << 31])
def test_a_level_that_a_codec_has_not_is_refused(codec: str, level: int) -> None:
    with pytest.raises(ConfigurationError, match=f"level of {codec} cannot be {level}"):
        compressor(codec, level)


def test_half_of_a_surrogate_pair_in_a_schema_is_damage() -> None:
    schema = {"type": "record", "name": "r", "fields": [], "doc": "\ud800"}
    data = header_bytes({"avro.schema": json.dumps(schema), "avro.codec": "null"}, SYNC)
    with pytest.raises(CorruptFileError, match="half of a surrogate pair"):
        parse_container(data, "m.avro")


def test_more_values_than_any_schema_has_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICECOMB_MAX_JSON_VALUES", "20")
    schema = {**SCHEMA, "odd": [0] * 30}
    data = header_bytes({"avro.schema": json.dumps(schema), "avro.codec": "null"}, SYNC)
    with pytest.raises(CorruptFileError, match="more values than the limit"):
        parse_container(data, "m.avro")
