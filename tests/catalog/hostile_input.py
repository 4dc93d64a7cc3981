"""A program that feeds damaged and hostile input to each parser, within 2 GiB of memory.

`python -m tests.catalog.hostile_input PARSER SEED CASES FOLDER` prints, as JSON, each case of which something else
than an error of icecomb came out. The input is a sound one of which some bytes, or some values of its JSON, were
changed; or one made to take memory or stack: bombs, and values nested in one another.
"""

from __future__ import annotations

import gzip
import http.server
import json
import random
import resource
import socket
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.thrift.thrift_codec import table_to_wire
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.journal import find_journals, start_journal
from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.paimon.snapshot import Snapshots, read_snapshot
from icecomb.catalog.paimon.table_schema import read_table_schema
from icecomb.format.avro.container import MAGIC, header_bytes, parse_container
from icecomb.format.avro.encoder import encode_bytes, encode_long
from icecomb.format.errors import CorruptFileError, IcecombError
from icecomb.format.manifests.decoder import decode_manifest
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import decode_manifest_list, parse_manifest_list
from icecomb.format.manifests.schema import ENTRY_NAMES
from icecomb.format.operation.expiry.expire import _read_list, write_list
from icecomb.format.operation.expiry.reachability import UnreachableFiles
from icecomb.format.relocation.relocation import AvroRecords
from icecomb.format.rows.avro.reader import AvroHeader, AvroReader
from icecomb.format.rows.deletes.deletion_vector import VectorReader, encode_vector
from icecomb.format.rows.deletes.equality_delete import read_keys
from icecomb.format.rows.deletes.position_delete import positions_by_path
from icecomb.format.rows.deletes.puffin_file import PuffinReader, PuffinWriter
from icecomb.format.rows.orc.file_tail import OrcFileTail
from icecomb.format.rows.orc.reader import OrcReader
from icecomb.format.rows.parquet.raw_footer import NotCopyableError, RawFooter
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.parquet.row_group_copy import PageBuffer, copy_pages
from icecomb.format.rows.read.data_file_reader import DataFileReader
from icecomb.format.spec.metadata_file import metadata_bytes, read_metadata
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import LongType, StringType
from icecomb.format.spec.view import view_from_json
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.site_file import read_site_files
from icecomb.format.variant.encoder import encode
from icecomb.format.variant.variant_array import decode, parse_json
from tests.format.rows.deletes.deletion_vectors import runs_of
from tests.format.rows.orc.made_files import nested as nested_types, numbers

MEMORY = 2 << 30
HUGE = [0, -1, 1, 255, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 63, (1 << 63) - 1, 1 << 200]


class Memory(FileIO):
    """Files in memory."""

    def __init__(self, **files: bytes) -> None:
        super().__init__()
        self.files = files

    def read(self, location: str) -> bytes:
        return self.files[location.rpartition("/")[2]]

    def open_input(self, location: str, size: int | None = None) -> Any:  # noqa: ARG002
        return pa.BufferReader(self.read(location))

    def size(self, location: str) -> int:
        return len(self.read(location))


def nested(depth: int, kind: str) -> str:
    """A JSON text of so many levels."""
    if kind == "list":
        return "[" * depth + "]" * depth
    if kind == "object":
        return '{"type":' * depth + "1" + "}" * depth
    if kind == "avro":
        inner, start, end = '"int"', '{"type":"array","items":', "}"
    else:
        inner, start = '"int"', '{"type":"list","element-id":1,"element-required":false,"element":'
        end = "}"
    return start * depth + inner + end * depth


def hostile_value(draw: random.Random) -> Any:
    kinds = ["list", "object", "avro", "schema"]
    return draw.choice(
        [
            None,
            True,
            {},
            [],
            "",
            "x",
            "\ud800",
            "\x00\x1b[2J",
            "9" * 5000,
            1.5,
            float("inf"),
            float("nan"),
            draw.choice(HUGE),
            {"type": "int"},
            [None],
            [{}],
            _Raw(nested(draw.choice([50, 100, 200, 300, 400, 900, 5000]), draw.choice(kinds))),
        ]
    )


class _Raw(str):
    """A text that is JSON already."""

    __slots__ = ()


def to_json(value: Any) -> str:
    """JSON, with raw parts."""
    if isinstance(value, _Raw):
        return value[:]
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json, value)) + "]"
    return json.dumps(value)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a value, with a key in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def changed_json(draw: random.Random, text: bytes) -> bytes:
    value = json.loads(text)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        if not (known := list(places(value))):
            break
        container, key = draw.choice(known)
        if isinstance(container, dict) and draw.random() < 0.2:
            del container[key]
        elif isinstance(container, list) and draw.random() < 0.2:
            container.append(container[key])
        elif draw.random() < 0.3:
            other, there = draw.choice(known)
            container[key] = json.loads(json.dumps(other[there], default=str))
        else:
            container[key] = hostile_value(draw)
            break
    return to_json(value).encode("utf-8", "surrogatepass")


def changed_bytes(draw: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 3, 8])):
        at = draw.randrange(len(out) + 1)
        kind = draw.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif kind == 2:
            del out[at : at + draw.choice([1, 4, 100])]
        elif kind == 3:
            out[at:at] = out[at : at + draw.choice([1, 8, 64])]
        elif kind == 4:
            del out[at:]
        elif kind == 5:
            out[at : at + 8] = draw.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8)])
        else:
            out[at:at] = draw.choice([b"\xff" * 9 + b"\x01", b"\xfe\xff\xff\xff\x0f", b"\0" * 4])
    return bytes(out)


@lru_cache
def bomb(mebibytes: int) -> bytes:
    """A raw deflate stream of zeros."""
    packer = zlib.compressobj(9, wbits=-15)
    part = packer.compress(bytes(4 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return part * (mebibytes // 4) + zlib.compressobj(9, wbits=-15).flush()


@lru_cache
def packed_bomb(codec: str) -> bytes:
    """Three GiB of zeros as frames of a codec."""
    part = pa.Codec(codec).compress(bytes(4 << 20), asbytes=True)
    return bytes(part) * 768


def changed_avro(draw: random.Random, data: bytes) -> bytes:
    """A container with another schema, header, or records."""
    container = parse_container(data, "seed")
    metadata = {k: v.decode("utf-8", "surrogateescape") for k, v in container.metadata.items()}
    metadata["avro.codec"] = "null"
    block, count = b"".join(container.blocks), container.record_count
    kind = draw.randrange(6)
    if kind == 0:
        metadata["avro.schema"] = changed_json(draw, container.metadata["avro.schema"]).decode(
            "utf-8", "replace"
        )
    elif kind == 1:
        name = draw.choice(sorted(metadata))
        metadata[name] = str(hostile_value(draw)).encode("utf-8", "replace").decode()
    elif kind == 2:
        count = draw.choice([0, -1, 1, 255, 1 << 31, (1 << 63) - 1])
    elif kind == 3:
        codec = draw.choice(["deflate", "zstandard", "bzip2", "xz", "snappy"])
        metadata["avro.codec"] = codec
        block = bomb(draw.choice([1280, 3840])) if codec == "deflate" else packed_bomb("zstd")
        if codec == "snappy":
            block = b"\xff\xff\xff\xff\x07" + bytes(100)
    else:
        block = changed_bytes(draw, block)
    sync = bytes(16)
    header = header_bytes(metadata, sync)
    assert header.startswith(MAGIC)
    return header + encode_long(count) + encode_bytes(block) + sync


@dataclass(frozen=True)
class Parser:
    """A parser, and what it is given.

    Attributes:
        seeds: Sound inputs.
        parse: What parses one.
        change: What changes one.
        extremes: Inputs made to take memory or stack.
    """

    seeds: list[bytes]
    parse: Callable[[bytes], object]
    change: tuple[Callable[[random.Random, bytes], bytes], ...] = (changed_bytes,)
    extremes: Callable[[], Iterable[bytes]] = tuple


JSON = (changed_json, changed_bytes)
AVRO = (changed_avro, changed_bytes)
DEEP = tuple(
    nested(depth, kind).encode()
    for depth in (100, 400, 5_000, 200_000)
    for kind in ("list", "object", "schema", "avro")
)


class Sound:
    """Sound files of all kinds, made in a folder."""

    def __init__(self, folder: Path) -> None:
        lake = load_catalog("lake", type="hadoop", warehouse=str(folder / "lake"))
        lake.create_namespace("db")
        rows = pa.table({"id": [1, 2, 3], "s": ["a", "b", None], "l": [[1], [], None]})
        properties = {"format-version": "3", "write.format.default": "avro"}
        self.table = lake.create_table("db.t", rows.schema, properties=properties)
        self.table.append(rows)
        self.table.append(rows)
        self.table.delete("id = 2")
        home = folder / "lake/db/t"
        self.metadata = max(home.glob("metadata/v*.json"), key=lambda p: p.stat().st_mtime_ns)
        self.manifests = [p.read_bytes() for p in home.glob("metadata/*-m*.avro")]
        self.puffins = [p.read_bytes() for p in home.glob("data/**/*.puffin")]
        self.rows = [p.read_bytes() for p in home.glob("data/**/*.avro")]
        self.arrow = rows


def in_memory(name: str, use: Callable[[FileIO, str], object]) -> Callable[[bytes], object]:
    return lambda data: use(Memory(**{name: data}), name)


def metadata(made: Sound) -> Parser:
    text = made.metadata.read_bytes()
    document, deep = json.loads(text), []
    for depth in (60, 120, 200, 400, 900):
        document["schemas"][0]["fields"][2]["type"] = _Raw(nested(depth, "schema"))
        deep.append(to_json(document).encode())

    def read(io: FileIO, name: str) -> object:
        found = read_metadata(io, name)
        return found.schema().as_arrow(), metadata_bytes(found, name)

    return Parser([text], in_memory("v1.metadata.json", read), JSON, lambda: (*DEEP, *deep))


def packed_metadata(made: Sound) -> Parser:
    head = bytes.fromhex("1f8b0800000000000003")
    return Parser(
        [gzip.compress(made.metadata.read_bytes())],
        in_memory("v1.gz.metadata.json", read_metadata),
        (changed_bytes,),
        lambda: (head + bomb(3840) + bytes(8), gzip.compress(b"{" + b" " * (1 << 20) + b"}")),
    )


def name_mapping(made: Sound) -> Parser:
    seed = b'[{"field-id":1,"names":["a"],"fields":[{"field-id":2,"names":["b"]}]}]'
    deep = '[{"field-id":1,"names":["a"],"fields":' * 400 + "[]" + "}]" * 400
    return Parser(
        [seed],
        lambda data: NameMapping.from_json(data.decode("utf-8", "replace")),
        JSON,
        lambda: (*DEEP, deep.encode()),
    )


def view(made: Sound) -> Parser:
    del made
    seed = {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "/v",
        "current-version-id": 1,
        "properties": {},
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": 1,
                "schema-id": 1,
                "default-namespace": ["db"],
                "summary": {},
                "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
            }
        ],
        "schemas": [
            {
                "schema-id": 1,
                "type": "struct",
                "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}],
            }
        ],
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
    }
    return Parser([json.dumps(seed).encode()], view_from_json, JSON, lambda: DEEP)


def manifest_list(made: Sound) -> Parser:
    snapshot = made.table.current_snapshot()
    return Parser(
        [_list(made)],
        lambda data: decode_manifest_list(parse_manifest_list(data, snapshot)),
        AVRO,
    )


def manifest(made: Sound) -> Parser:
    snapshot = made.table.current_snapshot()
    described = replace(
        decode_manifest_list(parse_manifest_list(_list(made), snapshot))[0], manifest_path="m"
    )
    return Parser(
        made.manifests,
        lambda data: decode_manifest(data, described),
        AVRO,
        lambda: chain(shapes(b"\0" * 64), empty_bounds(made)),
    )


def relocated_manifest(made: Sound) -> Parser:
    return Parser(
        made.manifests,
        lambda data: list(AvroRecords(data, "m", ENTRY_NAMES).records),
        AVRO,
        lambda: empty_bounds(made),
    )


def empty_bounds(made: Sound) -> Iterator[bytes]:
    """Yield manifests of a file whose bounds are empty pairs: many in one block, and in many."""
    schema = parse_container(made.manifests[0], "m").schema
    entry: Any = next(iter(fastavro.reader(BytesIO(made.manifests[0]))))
    entry["data_file"]["lower_bounds"] = [{"key": 77, "value": b"mark"}]
    body = BytesIO()
    fastavro.schemaless_writer(body, schema, entry)
    mark = encode_long(1) + encode_long(77) + encode_bytes(b"mark") + b"\0"
    head, tail = body.getvalue().split(mark)
    metadata = {"avro.schema": json.dumps(schema), "avro.codec": "deflate"}
    for blocks, pairs in ((1, 40 << 20), (100, 1 << 18)):
        packer = zlib.compressobj(wbits=-15)
        parts = (head, encode_long(pairs), bytes(2 * pairs), b"\0", tail)
        block = b"".join((*map(packer.compress, parts), packer.flush()))
        one = encode_long(1) + encode_bytes(block) + bytes(16)
        yield header_bytes(metadata, bytes(16)) + one * blocks


def _list(made: Sound) -> bytes:
    path = Path(str(made.table.current_snapshot().manifest_list).removeprefix("file:"))
    return path.read_bytes()


def rows(made: Sound) -> Parser:
    def read(io: FileIO, name: str) -> object:
        AvroHeader(io.open_input(name), name)
        reader = AvroReader(io, name)
        leaves = [leaf for field in reader.fields for leaf in field.leaves]
        found = 0
        for _, batch in reader.batches(leaves, reader.row_groups(), 1000):
            found += batch.num_rows
            if found > 1 << 20:  # rows without bytes: more take time, not memory
                break
        return found

    return Parser(made.rows, in_memory("x.avro", read), AVRO, lambda: shapes(b"\0" * 64))


def shapes(block: bytes) -> Iterator[bytes]:
    """Yield containers of schemas made to take memory."""
    kind: Any = {"type": "record", "name": "t0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, 60):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"t{level - 1}"}]
        kind = {"type": "record", "name": f"t{level}", "fields": fields}
    empty = {"type": "record", "name": "e", "fields": []}
    fixed = [{"type": "fixed", "name": f"f{n}", "size": n} for n in (0, -1, 1 << 16, 1 << 40)]
    lists = [{"type": "array", "items": one} for one in ("null", empty, fixed[0], "boolean")]
    maps = [{"type": "map", "values": one} for one in ("null", "e", "boolean")]
    for one in (kind, *fixed, *lists, *maps, "null", empty):
        for optional in (one, ["null", one], [one, "null"]):
            fields = [{"name": "a", "type": optional, "field-id": 1}]
            schema = {"type": "record", "name": "r", "fields": fields}
            metadata = {"avro.schema": json.dumps(schema), "avro.codec": "null"}
            for start in (encode_long(1 << 40), b"\x02" + encode_long(1 << 40), b"\x02", b"\0"):
                for count in (1, 1 << 40):
                    body = encode_long(count) + encode_bytes(start + block)
                    yield header_bytes(metadata, bytes(16)) + body + bytes(16)


def puffin(made: Sound) -> Parser:
    out = BytesIO()
    writer = PuffinWriter(out)
    writer.add(b"blob" * 9, "some-blob", (1,), {"a": "b"}, snapshot_id=1, sequence_number=1)
    writer.finish()

    def read(data: bytes) -> object:
        reader = PuffinReader(data, "x.puffin")
        return [reader.content(one) for one in reader.blobs]

    def described(payload: bytes, flags: bytes = bytes(4), front: bytes = b"") -> bytes:
        size = len(payload).to_bytes(4, "little")
        return b"PFA1" + front + b"PFA1" + payload + size + flags + b"PFA1"

    def footer_changed(draw: random.Random, data: bytes) -> bytes:
        size = int.from_bytes(data[-12:-8], "little")
        return described(changed_json(draw, data[-12 - size : -12]), front=data[4 : -16 - size])

    def extremes() -> Iterator[bytes]:
        zeros = packed_bomb("zstd")
        blob = {"type": "x", "fields": [1], "snapshot-id": 1, "sequence-number": 1, "offset": 4}
        one = {"blobs": [{**blob, "length": len(zeros), "compression-codec": "zstd"}]}
        yield described(json.dumps(one).encode(), front=zeros)
        yield described(packed_bomb("lz4"), b"\x01\0\0\0")
        yield from (described(b'{"blobs":' + text + b"}") for text in DEEP)

    return Parser([*made.puffins, out.getvalue()], read, (footer_changed, changed_bytes), extremes)


def vector(made: Sound) -> Parser:
    import numpy as np

    blobs = [encode_vector(np.array([1, 2, *range(9000, 9900, 2), 70_000], np.int64))]

    def read(io: FileIO, name: str) -> object:
        size = io.size(name)
        file = DataFile(
            content=DataFileContent.POSITION_DELETES,
            file_path=name,
            file_format=FileFormat.PUFFIN,
            # as many as a vector of runs has, and the rows of its data file say
            record_count=453 if size < 10_000 else (size - 28) * 8 // 113 * 65_536,
            file_size_in_bytes=size,
            referenced_data_file="f",
            content_offset=0,
            content_size_in_bytes=size,
        )
        return len(VectorReader(io).positions(file))

    def sealed(draw: random.Random, data: bytes) -> bytes:
        body = changed_bytes(draw, data[8:-4])
        rest = data[4:8] + body
        return len(rest).to_bytes(4, "big") + rest + zlib.crc32(rest).to_bytes(4, "big")

    return Parser(
        blobs,
        in_memory("v.puffin", read),
        (sealed, changed_bytes),
        lambda: map(runs_of, (16_384, 65_536, 1024, 256)),
    )


def variant(made: Sound) -> Parser:
    del made
    values = [{"a": [1, "x", {"b": None}], "c": 1.5}, list(range(300)), "text" * 50]
    seeds = []
    for one in values:
        meta, data = encode(one)
        seeds.append(len(meta).to_bytes(2, "big") + meta + data)
    deep = b"\x03\x01\x00\x01" * 3000 + b"\x00"

    def read(data: bytes) -> object:
        size = int.from_bytes(data[:2], "big")
        return decode(data[2 : 2 + size], data[2 + size :])

    return Parser(seeds, read, extremes=lambda: (seeds[1][:5] + deep,))


def variant_text(made: Sound) -> Parser:
    del made
    return Parser([b'{"a": [1, 2.5, "x"]}'], parse_json, JSON, lambda: DEEP)


def orc_tail(made: Sound) -> Parser:
    out = BytesIO()
    orc.write_table(made.arrow, out, compression="zlib")

    def read(data: bytes) -> object:
        found = OrcFileTail(pa.BufferReader(data), "x.orc")
        with suppress(ValueError):  # statistics that cannot be read are not used
            found._tail.load_statistics(data[-200:-20])
        return found.record_count

    return Parser([out.getvalue()], read, (_tail_changed,))


def _tail_changed(draw: random.Random, data: bytes) -> bytes:
    at = len(data) * 2 // 3
    return data[:at] + changed_bytes(draw, data[at:])


def parquet_footer(made: Sound) -> Parser:
    out = BytesIO()
    pq.write_table(made.arrow, out)

    def read(data: bytes) -> object:
        mapping = NameMapping.from_json(
            [{"field-id": n, "names": [name]} for n, name in enumerate(("id", "s", "l"), 1)]
        )
        return ParquetReader(Memory(x=data), "x", mapping).fields

    return Parser([out.getvalue()], read, (_tail_changed,))


def orc_rows(made: Sound) -> Parser:
    seeds = []
    for codec in ("zlib", "zstd", "uncompressed"):
        out = BytesIO()
        orc.write_table(made.arrow, out, compression=codec)
        seeds.append(out.getvalue())
    return Parser(
        seeds,
        in_memory("x.orc", _rows(OrcReader)),
        (_tail_changed, changed_bytes),
        lambda: (
            numbers(1 << 28),
            numbers(512, stripes=1 << 20),
            *map(nested_types, (200, 1000, 50_000)),
        ),
    )


def parquet_rows(made: Sound) -> Parser:
    seeds = []
    for codec in ("zstd", "snappy", "none"):
        out = BytesIO()
        pq.write_table(made.arrow, out, compression=codec, use_dictionary=codec != "none")
        seeds.append(out.getvalue())
    return Parser(seeds, in_memory("x", _rows(ParquetReader)), (_tail_changed, changed_bytes))


def _rows(kind: type[DataFileReader]) -> Callable[[FileIO, str], object]:
    names = [{"field-id": n, "names": [name]} for n, name in enumerate(("id", "s", "l"), 1)]
    mapping = NameMapping.from_json(names)

    def read(io: FileIO, name: str) -> object:
        reader: Any = kind(io, name, mapping)
        groups = reader.row_groups()
        for number, field_type in ((1, LongType()), (2, StringType())):
            chunk = reader.statistics(number, field_type)
            if chunk is not None and groups:
                chunk(groups[0])
        leaves = [leaf for field in reader.fields for leaf in field.leaves]
        found = 0
        for _, batch in reader.batches(leaves, groups, 1000):
            found += batch.num_rows
            if found > 1 << 20:
                break
        return found

    return read


def copied_pages(made: Sound) -> Parser:
    """The footer and the pages of a Parquet file whose row groups are copied undecoded."""

    def read(io: FileIO, name: str) -> object:
        footer = RawFooter(io, name, io.size(name), made.arrow.num_rows)
        try:
            for _, group in footer.numbered_groups():
                for chunk in footer.chunks(group):
                    copy_pages(footer, chunk, "a chunk", PageBuffer(), len)
        finally:
            footer.close()
        return footer.version

    return replace(parquet_rows(made), parse=in_memory("x", _copyable(read)))


def _copyable(read: Callable[[FileIO, str], object]) -> Callable[[FileIO, str], object]:
    def tried(io: FileIO, name: str) -> object:
        try:
            return read(io, name)
        except NotCopyableError as other:  # then rows are decoded
            raise CorruptFileError(str(other), hint="-") from other

    return tried


def paimon_manifest(made: Sound) -> Parser:
    del made
    file = {
        "_FILE_NAME": "data-1.parquet", "_FILE_SIZE": 9, "_ROW_COUNT": 1, "_LEVEL": 0,
        "_SCHEMA_ID": 0, "_DELETE_ROW_COUNT": None, "_WRITE_COLS": ["a"],
    }  # fmt: skip
    kinds: dict[str, Any] = {
        "_FILE_NAME": "string", "_FILE_SIZE": "long", "_ROW_COUNT": "long", "_LEVEL": "int",
        "_SCHEMA_ID": "long", "_DELETE_ROW_COUNT": ["null", "long"],
        "_WRITE_COLS": ["null", {"type": "array", "items": "string"}],
    }  # fmt: skip
    inner = [{"name": name, "type": kind} for name, kind in kinds.items()]
    outer = {
        "_VERSION": "int", "_KIND": "int", "_PARTITION": "bytes", "_BUCKET": "int",
        "_FILE": {"type": "record", "name": "f", "fields": inner},
    }  # fmt: skip
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, kind in outer.items()],
    }
    entry = {"_VERSION": 2, "_KIND": 0, "_PARTITION": b"ab", "_BUCKET": 0, "_FILE": file}
    out = BytesIO()
    fastavro.writer(out, schema, [entry] * 3)

    def read(io: FileIO, name: str) -> object:
        return list(Snapshots(io, "/t").entries(name))

    return Parser([out.getvalue()], in_memory("manifest-1", read), AVRO, lambda: shapes(b"\0" * 64))


def delete_files(made: Sound) -> Parser:
    """Position deletes and equality deletes of a file; rows of data of Parquet as well."""
    paths = pa.table({"file_path": ["a", "a", "b"], "pos": [1, 2, 3]})
    seeds = []
    for compression in ("zstd", "snappy", "none"):
        out = BytesIO()
        pq.write_table(paths, out, compression=compression)
        seeds.append(out.getvalue())
    keys = made.table.metadata

    def read(io: FileIO, name: str) -> object:
        file = DataFile(
            content=DataFileContent.POSITION_DELETES,
            file_path=name,
            record_count=-1,
            file_size_in_bytes=io.size(name),
            equality_ids=(1,),
        )
        by_path = positions_by_path(io, file)
        with suppress(IcecombError):
            for _ in read_keys(io, keys, (1,), file):
                pass
        return {path: len(found) for path, found in by_path.items()}

    def equal() -> Iterator[bytes]:
        for count, length in ((1 << 25, 10), (1 << 16, 1 << 20)):
            texts = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), count), ["x" * length]
            )
            table = pa.table({"file_path": texts, "pos": pa.repeat(pa.scalar(0), count)})
            out = BytesIO()
            pq.write_table(table, out, store_schema=False)
            yield out.getvalue()

    return Parser(seeds, in_memory("d.parquet", read), (changed_bytes, _tail_changed), equal)


def own_table(made: Sound) -> Parser:
    """Garbage lists and files of a journal, beside a table."""
    files = UnreachableFiles(("/x/a", "/x/b"), ("/x/c",), ("/x/m",), ("/x/l",))
    metadata = made.table.metadata
    where = write_list(FileIO(), metadata, files)
    listed = Path(where.removeprefix("file:")).read_bytes()
    Path(where.removeprefix("file:")).unlink()

    def read(io: FileIO, name: str) -> object:
        return _read_list(io, name, metadata)

    def equal() -> Iterator[bytes]:
        facts = pq.read_schema(pa.BufferReader(listed)).metadata
        for count, length in ((1 << 26, 1), (1 << 13, 1 << 20), (1 << 10, 1 << 24)):
            texts = pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), count), ["x" * length]
            )
            kinds = pa.DictionaryArray.from_arrays(texts.indices, ["data_files"])
            table = pa.table({"location": texts, "kind": kinds}).replace_schema_metadata(facts)
            out = BytesIO()
            pq.write_table(table, out, store_schema=False, compression="zstd")
            yield out.getvalue()

    return Parser([listed], in_memory("x.parquet", read), (changed_bytes, _tail_changed), equal)


def journal(made: Sound) -> Parser:
    columns = (FieldSchema("id", "int"),)
    table = HiveTable("db", "t", storage=StorageDescriptor(columns=columns, location="/x"))
    folder = Path(made.metadata).parents[1]
    began = start_journal(FileIO(), str(folder), table, [], Choices())
    path = Path(began.location) / "journal.json"

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = find_journals(FileIO(), str(folder))
        return [(one.reverted, one.finalized, one.table, list(one.partitions())) for one in found]

    return Parser([path.read_bytes()], read, JSON, lambda: DEEP)


def paimon_schema(made: Sound) -> Parser:
    del made
    field = {"id": 0, "name": "a", "type": "INT NOT NULL", "description": "x"}
    row = {"type": "ROW", "fields": [{**field, "id": 2}]}
    seed = {
        "version": 3,
        "id": 0,
        "fields": [field, {"id": 1, "name": "r", "type": {"type": "ARRAY", "element": row}}],
        "highestFieldId": 2,
        "partitionKeys": [],
        "primaryKeys": ["a"],
        "options": {"bucket": "1"},
        "timeMillis": 1,
    }
    deep = {**seed, "fields": [{**field, "type": "ARRAY<" * 2000 + "INT" + ">" * 2000}]}
    inner: Any = _Raw('{"type":"ARRAY","element":' * 400 + '"INT"' + "}" * 400)
    deeper = {**seed, "fields": [{**field, "type": inner}]}
    return Parser(
        [json.dumps(seed).encode()],
        lambda data: read_table_schema(data, "schema-0", 0),
        JSON,
        lambda: (*DEEP, json.dumps(deep).encode(), to_json(deeper).encode()),
    )


def paimon_snapshot(made: Sound) -> Parser:
    del made
    seed = {
        "version": 3,
        "id": 1,
        "schemaId": 0,
        "baseManifestList": "a",
        "deltaManifestList": "b",
        "commitUser": "u",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": 1,
        "totalRecordCount": 1,
    }
    return Parser(
        [json.dumps(seed).encode()], in_memory("snapshot-1", read_snapshot), JSON, lambda: DEEP
    )


def hive_type(made: Sound) -> Parser:
    del made
    seeds = [b"struct<a:int,b:array<map<string,decimal(10,2)>>,`c``d`:char(3)>"]
    deep = tuple(b"array<" * n + b"int" + b">" * n for n in (150, 400, 5000))
    return Parser(
        seeds, lambda data: parse_hive_type(data.decode("utf-8", "replace")), extremes=lambda: deep
    )


def hive_site(made: Sound) -> Parser:
    path = made.metadata.parent / "hive-site.xml"
    one = "<property><name>a</name><value>b</value><final>true</final></property>"
    seed = f'<?xml version="1.0"?><configuration>{one * 3}</configuration>'.encode()
    deep = b"<configuration>" + b"<a>" * 200_000 + b"</a>" * 200_000 + b"</configuration>"

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return read_site_files([path])

    return Parser([seed], read, extremes=lambda: (deep,))


class _Lines:
    """A server of one answer at a time."""

    def __init__(self) -> None:
        self.answer = b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            one, _ = self.socket.accept()
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        with one:
            while asked := one.recv(1 << 16):
                size = int.from_bytes(asked[4:8], "big")
                name, number = asked[8 : 8 + size], asked[8 + size : 12 + size]
                head = b"\x80\x01\x00\x02" + size.to_bytes(4, "big") + name + number
                one.sendall(head + self.answer)
                return


def thrift_reply(made: Sound) -> Parser:
    del made
    server = _Lines()
    columns = (FieldSchema("id", "int"), FieldSchema("s", "string", "comment"))
    storage = StorageDescriptor(columns=columns, location="/x", input_format="a")
    table = HiveTable("db", "t", storage=storage, parameters={"k": "v"})
    plain = b"\x0c\x00\x00" + b"\x0c\x00\x01" + table_to_wire(table) + b"\x00\x00"
    deep = b"\x0c\x00\x00" + b"\x0c\x00\x01" * 100_000 + b"\x00" * 100_001
    long = b"\x0c\x00\x00\x0c\x00\x01\x0f\x00\x01\x0c" + b"\x7f\xff\xff\xff" + bytes(50)
    text = b"\x0c\x00\x00\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff" + bytes(50)

    def read(data: bytes) -> object:
        server.answer = data
        settings = ConnectionSettings(timeout_s=5)
        with HiveClient(f"thrift://127.0.0.1:{server.port}", settings) as client:
            return client.table("db", "t")

    return Parser([plain], read, extremes=lambda: (deep, long, text))


def web_hdfs(made: Sound) -> Parser:
    del made
    answers = {"answer": b""}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answers["answer"])))
            self.end_headers()
            self.wfile.write(answers["answer"])

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    status = {
        "accessTime": 1, "blockSize": 1, "childrenNum": 0, "fileId": 7, "group": "g", "length": 3,
        "modificationTime": 1, "owner": "o", "pathSuffix": "x", "permission": "644",
        "replication": 1, "storagePolicy": 0, "type": "FILE",
    }  # fmt: skip
    one = json.dumps({"FileStatus": status}).encode()
    several_ = json.dumps({"FileStatuses": {"FileStatus": [status, status]}}).encode()
    refused = {"exception": "FileNotFoundException", "javaClassName": "x", "message": "m"}

    def read(data: bytes) -> object:
        answers["answer"] = data
        several = b"FileStatuses" in data
        io = FileIO({"hdfs.user": "u"})
        place = f"webhdfs://127.0.0.1:{server.server_port}/x"
        return list(io.entries(place).files) if several else (io.exists(place), io.size(place))

    told = json.dumps({"RemoteException": refused}).encode()
    return Parser([one, several_], read, JSON, lambda: (*DEEP, told))


PARSERS = {
    one.__name__: one
    for one in (
        metadata, packed_metadata, name_mapping, view, manifest_list, manifest, relocated_manifest,
        rows, orc_rows, parquet_rows, copied_pages, paimon_manifest, puffin, vector, delete_files, own_table, variant, variant_text, orc_tail, parquet_footer, journal,
        paimon_schema, paimon_snapshot, hive_type, hive_site, thrift_reply, web_hdfs,
    )
}  # fmt: skip


def changed(parser: Parser, seed: int, cases: int) -> Iterator[bytes]:
    """Yield sound inputs, each with some changes."""
    for case in range(cases):
        draw = random.Random(f"{seed} {case}")
        change = parser.change[case % len(parser.change)]
        yield change(draw, draw.choice(parser.seeds))


def main(name: str, seed: str, cases: str, folder: str) -> None:
    parser = PARSERS[name](Sound(Path(folder)))
    for one in parser.seeds:
        parser.parse(one)
    # of addresses, of which libraries reserve more than a gibibyte that they do not use
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    reserved = pages * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (max(MEMORY, reserved + MEMORY // 2), hard))
    found, refused, read = [], 0, 0
    last = Path(folder) / "last"
    for number, data in enumerate(chain(parser.extremes(), changed(parser, int(seed), int(cases)))):
        last.write_bytes(data[: 1 << 20])
        try:
            parser.parse(data)
            read += 1
        except IcecombError:
            refused += 1
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            trace = traceback.format_exception(error)
            shown = "".join(trace[:2] + trace[-6:])[-3000:]
            found.append([number, len(data), f"{type(error).__name__}: {str(error)[:200]}", shown])
    print(json.dumps({"found": found, "refused": refused, "read": read}))


if __name__ == "__main__":
    main(*sys.argv[1:])
