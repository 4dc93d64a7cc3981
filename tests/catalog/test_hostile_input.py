"""Limits on input: what goes beyond them is a damaged file, in an error that names the limit."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.paimon.type_parser import parse_type as parse_paimon_type
from icecomb.format.avro.container import compressor, decompressor, inflated, unpacked, unsnapped
from icecomb.format.errors import (
    ConfigurationError,
    CorruptFileError,
    SchemaError,
    ValidationError,
)
from icecomb.format.input_limit import LEVELS, METADATA, VALUES, check_json
from icecomb.format.spec.metadata_file import (
    metadata_bytes,
    read_metadata,
    read_metadata_document,
    read_metadata_json,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import parse_type
from icecomb.format.spec.view import read_view_metadata
from icecomb.format.storage.file_io import FileIO
from tests.hostile.mutation import bomb
from tests.hostile.parser import Sound

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return Sound(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "zstd", "snappy"])
def test_a_block_has_as_much_as_was_packed_and_at_most_the_limit(codec: str) -> None:
    name, pack = compressor(codec, None)
    unpack = decompressor(name, "x.avro")
    block = b"rows" * 50_000
    assert unpack(pack(block), len(block)) == block
    if codec != "uncompressed":
        with pytest.raises(ValueError, match="ICECOMB_MAX_UNPACKED_MIB"):
            unpack(pack(block), len(block) - 1)


@pytest.mark.parametrize("unpack", [inflated, unsnapped, lambda d, n: unpacked(d, "zstd", n)])
@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 40, b"\x80" * 9])
def test_damaged_blocks_are_value_errors(unpack: Any, data: bytes) -> None:
    with suppress(ValueError):
        assert unpack(data, 1 << 20) == b""


def test_a_packed_metadata_file_is_unpacked_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METADATA.name, "1")
    path = tmp_path / "v1.gz.metadata.json"
    text = b"{" + b" " * 5000 + b"}"
    path.write_bytes(gzip.compress(text[:9]) + gzip.compress(text[9:]) + bytes(3))
    assert read_metadata_json(FileIO(), str(path)) == text
    head = bytes.fromhex("1f8b0800000000000003")
    for data in (head + bomb(4), gzip.compress(bytes(1 << 20) + b"1"), gzip.compress(text)[:-9]):
        path.write_bytes(data)
        with pytest.raises(CorruptFileError, match=r"v1\.gz\.metadata\.json") as refused:
            read_metadata_json(FileIO(), str(path))
    assert "too early" in refused.value.message
    path.write_bytes(head + bomb(4))
    with pytest.raises(CorruptFileError, match="ICECOMB_MAX_METADATA_MIB: 1 MiB"):
        read_metadata_json(FileIO(), str(path))


@pytest.mark.parametrize("name", ["v1.metadata.json", "v1.gz.metadata.json"])
def test_metadata_has_at_most_so_many_values_and_bytes(
    name: str, tmp_path: Path, sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_metadata = read_metadata(FileIO(), str(sound.metadata))
    path = tmp_path / name
    pack = gzip.compress if "gz" in name else bytes
    monkeypatch.setenv(VALUES.name, "5")
    path.write_bytes(pack(b'{"a":[1,2],"b":3}'))
    assert read_metadata_document(FileIO(), str(path)) == {"a": [1, 2], "b": 3}
    for more in (b'{"a":[1,2],"b":[3],"c":4}', b"[{},{},{}]", b'{"a":[1,2],"b":{"c":1}, "d":1}'):
        path.write_bytes(pack(more))
        for read in (read_metadata_json, read_metadata, read_view_metadata):
            with pytest.raises(CorruptFileError, match=r"limit \(ICECOMB_MAX_JSON_VALUES: 5"):
                read(FileIO(), str(path))
        assert read_metadata_document(FileIO(), str(path)) is None
    with pytest.raises(ValidationError, match="ICECOMB_MAX_JSON_VALUES"):
        metadata_bytes(sound_metadata, name)
    monkeypatch.setenv(METADATA.name, "1")
    path.write_bytes(pack(b'"' + b" " * (1 << 20) + b'"'))
    with pytest.raises(CorruptFileError, match="ICECOMB_MAX_METADATA_MIB: 1 MiB"):
        read_metadata_json(FileIO(), str(path))


@pytest.mark.full("parses 75 MB")
def test_metadata_of_a_hundred_thousand_snapshots_is_within_the_limits(sound: Sound) -> None:
    document = json.loads(sound.metadata.read_bytes())
    document["snapshots"] *= 100_000 // len(document["snapshots"])
    document["snapshot-log"] *= 100_000 // len(document["snapshot-log"])
    text = json.dumps(document).encode()
    check_json(text)
    assert len(text) < METADATA.value << 19


def lists(levels: int) -> dict[str, Any]:
    kind: Any = "int"
    for number in range(levels - 1):
        kind = {"type": "list", "element-id": number + 2, "element-required": True, "element": kind}
    return {
        "type": "struct",
        "fields": [{"id": 1, "name": "a", "required": False, "type": kind}],
    }


def test_a_schema_has_at_most_so_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_json(lists(LEVELS.default))
    assert schema.as_arrow().field("a").nullable
    assert Schema.from_json(schema.to_json()) == schema
    for levels in (LEVELS.default + 1, 300):
        with pytest.raises(SchemaError, match=r"limit \(ICECOMB_MAX_SCHEMA_LEVELS: 100 levels\)"):
            Schema.from_json(lists(levels))
    for parse in (parse_hive_type, parse_paimon_type):
        parse("array<" * 100 + "int" + ">" * 100)
        with pytest.raises(SchemaError, match="ICECOMB_MAX_SCHEMA_LEVELS"):
            parse("array<" * 101 + "int" + ">" * 101)
    monkeypatch.setenv(LEVELS.name, "2")
    parse_type(lists(2))
    with pytest.raises(SchemaError, match="2 levels"):
        parse_type(lists(3))


@pytest.mark.parametrize("said", ["", "0", "-1", "x", "1" * 30, "1.5"])
def test_a_limit_is_a_positive_number(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVELS.name, said)
    with pytest.raises(ConfigurationError, match="ICECOMB_MAX_SCHEMA_LEVELS cannot be"):
        parse_type(lists(1))


@pytest.mark.parametrize("text", ["decimal(\u00b2,1)", "char(" + "9" * 40 + ")", "decimal(1,)"])
def test_a_number_in_a_hive_type_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Hive type"):
        parse_hive_type(text)
