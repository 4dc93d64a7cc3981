"""Deletion vectors that Iceberg Java wrote: their bytes, and rows of tables that have them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.deletes.deletion_vector import BLOB_TYPE, decode_vector, encode_vector
from icecomb.format.rows.deletes.position_delete import PositionDeletes
from icecomb.format.rows.deletes.puffin_file import PuffinWriter
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.interop.conftest import ordered
from tests.rings import sampled

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "k", IntegerType()),
        NestedField(3, "s", StringType()),
    )
)
BY_K = [("identity", "k", "k")]
VECTORS = {
    "/t/one.parquet": [[1, 2, 1]],
    "/t/none in a row.parquet": [[0, 30_000, 3]],
    "/t/ä run.parquet": [[70_000, 70_400, 1]],
    "/t/three and four in a row": [[5, 8, 1], [65_600, 65_604, 1], [131_072, 131_076, 1]],
    "/t/bits": [[0, 100_000, 2]],
    "/t/whole containers": [[0, 200_000, 1]],
    "/t/4096 and 4097 values": [[0, 4096 * 3, 3], [65_536, 65_536 + 4097 * 3, 3]],
    "/t/many containers": [[at << 16, (at << 16) + at + 1, 1] for at in range(9)],
    "/t/two halves": [[9, 10, 1], [(1 << 32) + 3, (1 << 32) + 9, 1]],
    "/t/a gap": [[3, 4, 1], [(3 << 32) + 5, (3 << 32) + 6, 1]],
}
"""Ranges with steps, by data file."""


def positions_of(ranges):
    return np.concatenate([np.arange(*each, dtype=np.int64) for each in ranges])


@pytest.fixture(scope="module")
def vectors(library):
    """The vectors that Iceberg Java's own writer made, in one Puffin file."""
    name = library.create("puffin", SCHEMA, (), {"format-version": "3"})
    found = library.iceberg.ask("puffin", name, vectors=VECTORS)
    facts = {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PUFFIN}
    return {one["referenced_data_file"]: DataFile(**facts, **one) for one in found}


@pytest.mark.parametrize("path", VECTORS)
def test_positions_are_read_and_their_bytes_are_those_of_iceberg_java(vectors, path):
    vector, positions = vectors[path], positions_of(VECTORS[path])
    data = DataFile(file_path=path, record_count=1 << 40, file_size_in_bytes=1)
    assert (PositionDeletes(FileIO()).of(data, [vector]) == positions).all()
    start, length = vector.content_offset, vector.content_size_in_bytes
    blob = Path(vector.file_path.removeprefix("file:")).read_bytes()[start : start + length]
    assert encode_vector(positions) == blob
    assert (decode_vector(blob, vector.record_count) == positions).all()


def footer_of(content):
    """Where the payload of the footer begins, and the payload."""
    end = len(content) - 12
    start = end - int.from_bytes(content[end : end + 4], "little")
    return start, content[start:end].decode()


def test_a_puffin_file_has_the_bytes_of_iceberg_java_but_for_its_writer(vectors, tmp_path):
    path = Path(next(iter(vectors.values())).file_path.removeprefix("file:"))
    content, ours = path.read_bytes(), tmp_path / "ours.puffin"
    with ours.open("wb") as stream:
        puffin = PuffinWriter(stream)
        for one in sorted(vectors.values(), key=lambda one: one.content_offset):
            positions = positions_of(VECTORS[one.referenced_data_file])
            told = {
                "referenced-data-file": one.referenced_data_file,
                "cardinality": str(len(positions)),
            }
            puffin.add(encode_vector(positions), BLOB_TYPE, [2147483645], told)
        assert puffin.finish() == stream.tell()
    found = ours.read_bytes()
    (start, told), (their_start, theirs) = footer_of(found), footer_of(content)
    assert found[:start] == content[:their_start]
    writer = json.loads(theirs)["properties"]["created-by"]
    assert told == theirs.replace(writer, "icecomb")
    assert found[-8:] == content[-8:]


def frame(first, last):
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([i % 2 for i in ids], pa.int32()),
            "s": pa.array([f"v{i}" if i % 5 else None for i in ids]),
        }
    )


def rows(first, last):
    return [[i, i % 2, f"v{i}" if i % 5 else None] for i in range(first, last)]


@pytest.fixture(scope="module", params=sampled(["parquet", "orc", "avro"], keep=1))
def mixed(request, library):
    """Position deletes of version 2, then vectors, equality deletes beside both; two specs."""
    name = f"mixed_vectors_{request.param}"
    properties = {"format-version": "2", "write.format.default": request.param}
    table = library.create(name, SCHEMA, BY_K, properties)
    iceberg = library.iceberg
    iceberg.append(table, rows(0, 40))
    library.load(name).append(frame(40, 80))
    iceberg.ask("delta", table, filter="id in (1, 2, 41)", granularity="file")
    iceberg.ask("delta", table, filter="id = 3 or id = 43", granularity="partition")
    beside = {"keys": ["s"], "values": [["v4"], ["v6"]], "beside": rows(2, 3)[0]}
    iceberg.ask("delta", table, **beside)
    iceberg.ask("properties", table, properties={"format-version": "3"})
    iceberg.ask("delta", table, filter="id in (5, 7, 8)")
    iceberg.ask("delta", table, filter="id in (7, 9, 10, 70)")
    iceberg.ask("delta", table, keys=["s"], values=[["v11"], [None]], beside=rows(1, 2)[0])
    iceberg.ask("spec", table, changes=[["remove", "k"]])
    iceberg.append(table, rows(100, 110))
    iceberg.ask("delta", table, keys=["s"], values=[["v12"], ["v101"]])
    iceberg.ask("delta", table, filter="id in (103, 72)", rows=rows(12, 13))
    return name


def kept():
    """The rows of that table, by definition."""
    found = [r for r in rows(0, 80) if r[0] not in {1, 2, 41, 3, 43}]
    found = [r for r in found if r[2] not in {"v4", "v6"}]
    found = [r for r in found if r[0] not in {5, 7, 8, 9, 10, 70}]
    found = [r for r in found if not (r[1] == 1 and r[2] in {"v11", None})] + rows(100, 110)
    found = [r for r in found if r[2] not in {"v12", "v101"}]
    return [r for r in found if r[0] not in {103, 72}] + rows(12, 13)


def test_rows_are_exact_and_planned_as_by_iceberg_java(mixed, library):
    expected = ordered(kept())
    for where in (None, "id < 50", "k = 1", "s is null", "id in (7, 8, 103, 104)"):
        found = library.java(mixed, where)
        assert library.python(mixed, where, "*") == found
        if where is None:
            assert found == expected
        plans = library.plan(mixed, where), library.iceberg.plan(library.name(mixed), where)
        ours, theirs = (
            {
                file: [one for one in deletes if one.endswith(".puffin")]
                for file, deletes in p.items()
            }
            for p in plans
        )
        assert ours == theirs
    assert library.load(mixed).scan().count() == len(expected)


def test_every_row_is_there_when_deleted_ones_are_wanted(mixed, library):
    table = library.load(mixed)
    found = table.scan(selected_fields=("id", "_deleted")).to_arrow().to_pylist()
    live = sorted(row["id"] for row in found if not row["_deleted"])
    assert live == sorted(row[0] for row in kept())
    everything = [*range(80), *range(100, 110), 12]
    assert sorted(row["id"] for row in found) == sorted(everything)


def test_rows_of_parts_of_files_are_those_of_the_whole(mixed, library):
    from icecomb.format.rows.read.arrow_scan import ArrowScan

    table = library.load(mixed)
    scan = table.scan()
    parts = [part for task in scan.plan_files() for part in task.split(200)]
    reader = ArrowScan(table.metadata, table.io, table.schema())
    assert sorted(reader.to_table(parts)["id"].to_pylist()) == sorted(row[0] for row in kept())
