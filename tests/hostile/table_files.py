"""Parsers of the files of tables: metadata, lists, manifests, rows, deletes, Puffin, variants."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from icecomb.catalog.paimon.snapshot import Snapshots
from icecomb.format.avro.container import header_bytes, parse_container
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
from icecomb.format.variant.encoder import encode
from icecomb.format.variant.variant_array import decode, parse_json
from tests.format.rows.deletes.deletion_vectors import runs_of
from tests.format.rows.orc.made_files import nested as nested_types, numbers
from tests.hostile.mutation import (
    AVRO,
    DEEP,
    JSON,
    Raw,
    bomb,
    changed_bytes,
    changed_json,
    nested,
    packed_bomb,
    to_json,
)
from tests.hostile.parser import Memory, Parser, Sound, in_memory


def metadata(made: Sound) -> Parser:
    text = made.metadata.read_bytes()
    document, deep = json.loads(text), []
    for depth in (60, 120, 200, 400, 900):
        document["schemas"][0]["fields"][2]["type"] = Raw(nested(depth, "schema"))
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

    return Parser([out.getvalue()], read, (tail_changed,))


def tail_changed(draw: random.Random, data: bytes) -> bytes:
    at = len(data) * 2 // 3
    return data[:at] + changed_bytes(draw, data[at:])


def parquet_footer(made: Sound) -> Parser:
    out = BytesIO()
    pq.write_table(made.arrow, out)

    def read(data: bytes) -> object:
        mapping = NameMapping.from_json(
            [{"field-id": n, "names": [name]} for n, name in enumerate(("id", "s", "l"), 1)]
        )
        reader = ParquetReader(Memory(x=data), "x", mapping)
        return reader.fields, reader.notes

    return Parser([out.getvalue()], read, (tail_changed,))


def orc_rows(made: Sound) -> Parser:
    seeds = []
    for codec in ("zlib", "zstd", "uncompressed"):
        out = BytesIO()
        orc.write_table(made.arrow, out, compression=codec)
        seeds.append(out.getvalue())
    return Parser(
        seeds,
        in_memory("x.orc", _rows(OrcReader)),
        (tail_changed, changed_bytes),
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
    return Parser(seeds, in_memory("x", _rows(ParquetReader)), (tail_changed, changed_bytes))


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

    return Parser(seeds, in_memory("d.parquet", read), (changed_bytes, tail_changed), equal)


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

    return Parser([listed], in_memory("x.parquet", read), (changed_bytes, tail_changed), equal)
