"""Parsers of files beside a table's rows: views, statistics, version hints, Paimon's schemas, footers for migration."""

from __future__ import annotations

import gzip
import json
import random
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from icecomb.catalog.hadoop.pointer import VersionFiles
from icecomb.catalog.migrate.source.footer import FooterReader
from icecomb.catalog.paimon.data_type import AtomicType, DataField
from icecomb.catalog.paimon.snapshot import read_snapshot
from icecomb.catalog.paimon.table_import import read_row
from icecomb.catalog.paimon.table_schema import read_table_schema
from icecomb.format.errors import IcecombError
from icecomb.format.inspect.partition_statistics import PartitionCounter
from icecomb.format.inspect.partition_statistics_file import read_statistics, stated_counts
from icecomb.format.rows.deletes.puffin_file import PuffinReader
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata_json import metadata_from_json
from icecomb.format.spec.own_folders import OwnFolders
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimeType,
    UUIDType,
)
from icecomb.format.spec.view import read_view_metadata
from icecomb.format.statistics.column_sketches import ColumnSketches
from icecomb.format.statistics.statistics_file import ThetaSketch
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.spark.planner.scan.scan import column_estimates
from tests.hostile.mutation import (
    DEEP,
    JSON,
    Raw,
    changed_bytes,
    changed_json,
    changed_text,
    to_json,
)
from tests.hostile.parser import Memory, Parser, Sound, in_memory
from tests.hostile.table_files import tail_changed, view


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
    inner: Any = Raw('{"type":"ARRAY","element":' * 400 + '"INT"' + "}" * 400)
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


def paimon_partition(made: Sound) -> Parser:
    """A partition as a manifest of Paimon has it, of keys of all kinds."""
    del made
    kinds: list[tuple[str, tuple[int, ...]]] = [
        ("INT", ()), ("VARCHAR", (20,)), ("DECIMAL", (30, 2)), ("TIMESTAMP", (6,)), ("BOOLEAN", ()),
    ]  # fmt: skip
    fields = [
        DataField(n, f"k{n}", AtomicType(nullable=True, root=root, parameters=parameters))
        for n, (root, parameters) in enumerate(kinds)
    ]
    far = len(kinds) * 8 + 8
    words = [struct.pack("<i4x", 7), struct.pack("<II", 3, far), struct.pack("<II", 4, far + 8)]
    words += [struct.pack("<II", 999, far + 16), b"\1" + bytes(7)]
    rest = b"abc".ljust(8, b"\0") + b"\0\0\1\2".ljust(8, b"\0") + struct.pack("<q", 1 << 40)
    seed = struct.pack(">i", len(kinds)) + bytes(8) + b"".join(words) + rest
    return Parser([seed], lambda data: read_row(data, fields))


SIMPLE: list[PrimitiveType] = [
    BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), DateType(), TimeType(),
    TimestampType(), TimestampNanoType(), StringType(), UUIDType(), BinaryType(), FixedType(4),
    DecimalType(38, 2),
]  # fmt: skip


def single_value(made: Sound) -> Parser:
    """Bounds of columns: the first byte says of which type."""
    del made
    sizes = (1, 4, 8, 4, 8, 4, 8, 8, 8, 9, 16, 9, 4, 16)

    def read(data: bytes) -> object:
        return from_bytes(SIMPLE[data[0] % len(SIMPLE)], data[1:])

    seeds = [bytes([at]) + bytes(size) for at, size in enumerate(sizes)]
    return Parser(seeds, lambda data: read(data or b"\0"))


def view_file(made: Sound) -> Parser:
    """Metadata files of views, packed and plain."""
    (text,) = view(made).seeds
    packed = gzip.compress(text)

    def read(data: bytes) -> object:
        name = "1.gz.metadata.json" if data[:2] == packed[:2] else "1.metadata.json"
        return read_view_metadata(Memory(**{name: data}), name)

    def unpacked(draw: random.Random, data: bytes) -> bytes:
        """Another text, packed if it was."""
        if data[:2] != packed[:2]:
            return changed_json(draw, data)
        return gzip.compress(changed_json(draw, gzip.decompress(data)))

    return Parser([text, packed], read, (unpacked, changed_bytes), lambda: map(gzip.compress, DEEP))


def partitioned(made: Sound, name: str) -> Any:
    """A partitioned table that has statistics of both kinds."""
    rows = pa.table({"id": [1, 2, 3], "p": ["a", "b", None], "d": [1.5, float("nan"), 2.0]})
    table = made.lake.create_table(f"db.{name}", rows.schema)
    with table.update_spec() as update:
        update.add_identity("p")
        update.add_identity("d")
    table.append(rows)
    table.maintenance.compute_partition_stats()
    table.maintenance.compute_table_stats()
    return made.lake.load_table(f"db.{name}")


def partition_statistics(made: Sound) -> Parser:
    """Files of partition statistics, in Parquet; what cannot be read is not used."""
    table = partitioned(made, "partition_statistics")
    metadata, snapshot = table.metadata, table.current_snapshot()
    (file,) = metadata.partition_statistics
    path = Path(str(file["statistics-path"]).removeprefix("file:"))
    seed = path.read_bytes()
    out = BytesIO()
    pq.write_table(pq.read_table(BytesIO(seed)), out, compression="none")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        counter = PartitionCounter(metadata, table.io, cache=None)
        found = stated_counts(counter, table.io, metadata, snapshot)
        if found is None:
            raise IcecombError("it is not used")
        return read_statistics(counter, table.io, file), found

    return Parser([seed, out.getvalue()], read, (changed_bytes, tail_changed))


def sketches(made: Sound) -> Parser:
    """Sketches of columns, each as a blob, by whatever wrote it."""
    table = partitioned(made, "sketches")
    (file,) = table.metadata.statistics
    data = Path(str(file["statistics-path"]).removeprefix("file:")).read_bytes()
    reader = PuffinReader(data, "x.stats")

    def read(content: bytes) -> object:
        sketch = ThetaSketch()
        sketch.add_sketch(content, "x.stats")
        return sketch.content(), sketch.estimate()

    return Parser([reader.content(one) for one in reader.blobs], read)


def statistics_file(made: Sound) -> Parser:
    """A table's file of statistics, from which later ones go on; what cannot be read is not used."""
    table = partitioned(made, "statistics_file")
    metadata, snapshot = table.metadata, table.current_snapshot()
    (file,) = metadata.statistics
    path = Path(str(file["statistics-path"]).removeprefix("file:"))
    seed = path.read_bytes()
    own = OwnFolders([metadata.location], metadata, {})

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = ColumnSketches(metadata, table.io, snapshot, metadata.schema(), [1, 2, 3], own=own)
        if found.unused is not None:
            raise IcecombError(found.unused)
        return found.sketches

    def footer_changed(draw: random.Random, data: bytes) -> bytes:
        size = int.from_bytes(data[-12:-8], "little")
        payload = changed_json(draw, data[-12 - size : -12])
        return data[: -12 - size] + payload + len(payload).to_bytes(4, "little") + data[-8:]

    return Parser([seed], read, (footer_changed, changed_bytes))


def stated_statistics(made: Sound) -> Parser:
    """What table metadata says of its statistics files, and who believes it."""
    table = partitioned(made, "stated_statistics")
    document = json.loads(Path(table.metadata_location.removeprefix("file:")).read_bytes())
    members = ("statistics", "partition-statistics")
    seed = json.dumps({name: document[name] for name in members}).encode()
    ids = [field.field_id for field in table.schema().fields]

    def read(data: bytes) -> object:
        # the text as it is, with what stands in it twice
        start, end = (
            json.dumps({k: v for k, v in document.items() if k not in members}),
            data.strip(),
        )
        text = start[:-1].encode() + b", " + end[1:]
        metadata = metadata_from_json(text)
        snapshot = metadata.current_snapshot()
        assert snapshot is not None
        own = OwnFolders([metadata.location], metadata, {})
        counter = PartitionCounter(metadata, table.io, cache=None)
        stated_counts(counter, table.io, metadata, snapshot)
        ColumnSketches(metadata, table.io, snapshot, metadata.schema(), ids[:1], own=own)
        changed = TableScan(metadata, table.io)
        return column_estimates(changed, ids, 3)

    return Parser([seed], read, (changed_json, changed_text))


def version_hint(made: Sound) -> Parser:
    """Where to begin the search for a version of a table; what is no number is none."""
    home = Path(made.metadata).parents[1]
    path = home / "metadata/version-hint.text"
    files = VersionFiles(FileIO(), str(home))

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = files.beyond(0), files.newest()
        if found[0] is None:
            raise IcecombError("it is no number")
        return found

    return Parser([path.read_bytes()], read, (changed_text, changed_bytes), lambda: (b"9" * 5000,))


def migrated_footer(made: Sound) -> Parser:
    """Files of a Hive table in all formats, compared with the table's future schema."""
    del made
    rows = pa.table({"id": [1, 2], "S": ["a", None], "l": [["x"], []]})
    seeds = []
    notes = {
        "org.apache.spark.version": "2.4.0",
        "org.apache.spark.sql.parquet.row.metadata": json.dumps(
            {"type": "struct", "fields": [{"name": "S", "type": "string", "nullable": True,
             "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}}]}
        ),
        "writer.time.zone": "Europe/Berlin",
        "writer.date.proleptic": "false",
    }  # fmt: skip
    out = BytesIO()
    pq.write_table(rows.replace_schema_metadata(notes), out, store_schema=False)
    seeds.append(out.getvalue())
    for codec in ("uncompressed", "zlib"):
        out = BytesIO()
        orc.write_table(rows, out, compression=codec)
        seeds.append(out.getvalue())
    fields = [{"name": "id", "type": "long"}, {"name": "S", "type": ["null", "string"]}]
    fields.append({"name": "l", "type": {"type": "array", "items": "string"}})
    out = BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())
    seeds.append(out.getvalue())
    schema = Schema(
        (
            NestedField(1, "id", LongType()),
            NestedField(2, "s", StringType()),
            NestedField(3, "l", ListType(4, StringType())),
        )
    )

    def read(io: FileIO, name: str) -> object:
        reader = FooterReader(io, schema, {})
        footer = reader.read(FileStatus(name, io.size(name), 1), UNPARTITIONED_PARTITION_SPEC, ())
        if footer.problems:
            raise IcecombError(footer.problems[0].message)
        return footer, reader.shown(name)

    return Parser(seeds, in_memory("f", read), (tail_changed, changed_bytes))
