"""Statistics files of tables in a folder: Iceberg Java reads ours, and we go on from its own."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from icecomb.catalog import load_catalog
from icecomb.format.rows.deletes.puffin_file import PuffinReader, PuffinWriter
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)

COLUMNS = {
    "i": (IntegerType(), lambda n: n - 50, pa.int32()),
    "l": (LongType(), lambda n: n << 33, pa.int64()),
    "f": (FloatType(), lambda n: n / 3 - 9, pa.float32()),
    "d": (DoubleType(), lambda n: n / 7 - 9, pa.float64()),
    "b": (BooleanType(), lambda n: n % 2 == 0, pa.bool_()),
    "day": (DateType(), lambda n: n * 7 - 99, pa.date32()),
    "t": (TimeType(), lambda n: n * 1_000_003, pa.time64("us")),
    "ts": (TimestampType(), lambda n: n * 86_399_000_001 - 5, pa.timestamp("us")),
    "s": (StringType(), lambda n: "ä" * (n % 40), pa.string()),
    "y": (BinaryType(), lambda n: bytes([n % 256]) * (n % 20), pa.binary()),
    "x": (FixedType(3), lambda n: (n * 99).to_bytes(3, "big"), pa.binary(3)),
    "u": (UUIDType(), lambda n: uuid.UUID(int=n << 70).bytes, pa.binary(16)),
    "c": (DecimalType(9, 2), lambda n: Decimal(n * 3701 - 5000).scaleb(-2), pa.decimal128(9, 2)),
    "g": (DecimalType(30, 4), lambda n: Decimal(pow(7, n, 10**25) - n), pa.decimal128(30, 4)),
}
SCHEMA = Schema(*(NestedField(n, k, COLUMNS[k][0]) for n, k in enumerate(COLUMNS, 1)))


def frame(begin, end):
    """Rows with nulls, which do not count."""
    rows = range(begin, end)
    return pa.table(
        {
            name: pa.array([None if n % 11 == 5 else value(n) for n in rows], kind)
            for name, (_, value, kind) in COLUMNS.items()
        }
    )


@pytest.fixture(scope="module")
def folder(metastore):
    """Our catalog on the folder of the library's tables."""
    catalog = load_catalog(
        "files", type="hadoop", warehouse=f"{metastore.warehouse.as_uri()}/hadoop"
    )
    catalog.create_namespace_if_not_exists("statistics")
    return catalog


def contents(table):
    """The sketches of the current snapshot: Iceberg Java writes the files in any order."""
    newest = table.current_snapshot().snapshot_id
    (file,) = [file for file in table.metadata.statistics if file["snapshot-id"] == newest]
    reader = PuffinReader(table.io.read(file["statistics-path"]), file["statistics-path"])
    return {blob.fields[0]: reader.content(blob).hex() for blob in reader.blobs}


def test_the_bytes_are_those_of_iceberg_java_and_each_goes_on_from_the_others(
    folder, iceberg_library
):
    ours = folder.create_table("statistics.ours", SCHEMA)
    ours.append(frame(0, 300))
    ours.maintenance.compute_table_stats()
    theirs = folder.create_table("statistics.theirs", SCHEMA)
    theirs.append(frame(0, 300))
    iceberg_library.ask("compute_statistics", "hadoop:statistics.theirs", columns=list(COLUMNS))
    theirs.refresh()
    assert contents(ours) == contents(theirs)

    (shown,) = iceberg_library.ask("statistics", "hadoop:statistics.ours")
    (file,) = ours.metadata.statistics
    assert (shown["snapshot-id"], shown["path"]) == (file["snapshot-id"], file["statistics-path"])
    for told, blob, meant in zip(shown["told"], shown["blobs"], file["blob-metadata"], strict=True):
        (field_id,) = meant["fields"]
        assert blob["content"] == contents(ours)[field_id]
        assert str(blob["estimate"]) == blob["properties"]["ndv"] == meant["properties"]["ndv"]
        assert blob["sequence-number"] == meant["sequence-number"] == 1
        assert told == [meant["type"], [field_id], file["snapshot-id"], meant["properties"]]
        values = set(frame(0, 300)[SCHEMA.find_column_name(field_id)].to_pylist())
        # DataSketches leaves out values of no bytes
        assert int(blob["properties"]["ndv"]) == len(values - {None, "", b""})

    for table in (ours, theirs):
        table.append(frame(200, 6000))
        table.maintenance.compute_table_stats()
    iceberg_library.ask("compute_statistics", "hadoop:statistics.theirs", columns=list(COLUMNS))
    assert contents(ours) == contents(theirs) == contents(theirs.refresh())
    shown = iceberg_library.ask("statistics", "hadoop:statistics.theirs")
    assert sorted(each["blobs"][0]["estimate"] > 5000 for each in shown) == [False, True]


def test_iceberg_java_reads_sketches_of_no_value_and_of_one(folder, iceberg_library):
    table = folder.create_table("statistics.few", pa.schema({"a": pa.int64(), "b": pa.int64()}))
    table.append(pa.table({"a": pa.array([None, None], pa.int64()), "b": [7, 7]}))
    table.maintenance.compute_table_stats()
    (shown,) = iceberg_library.ask("statistics", "hadoop:statistics.few")
    assert [blob["estimate"] for blob in shown["blobs"]] == [0, 1]


def test_iceberg_java_unpacks_blobs_that_were_kept_packed(folder, iceberg_library):
    table = folder.create_table("statistics.packed", pa.schema({"a": pa.int64(), "b": pa.int64()}))
    table.append(pa.table({"a": list(range(50)), "b": [7] * 50}))
    table.maintenance.compute_table_stats(columns=["a"])
    path = table.metadata.statistics[0]["statistics-path"]
    (blob,) = (reader := PuffinReader(table.io.read(path), path)).blobs
    sketch = reader.content(blob)
    with Path(path.removeprefix("file:")).open("wb") as stream:
        writer = PuffinWriter(stream)
        packed = zstandard.ZstdCompressor(write_content_size=True).compress(sketch)
        numbers = {"snapshot_id": blob.snapshot_id, "sequence_number": blob.sequence_number}
        writer.add(packed, blob.type, blob.fields, blob.properties, codec="zstd", **numbers)
        writer.finish()
    table.maintenance.compute_table_stats(columns=["b"])
    (shown,) = iceberg_library.ask("statistics", "hadoop:statistics.packed")
    found = {told[1][0]: blob for told, blob in zip(shown["told"], shown["blobs"], strict=True)}
    assert found[1]["content"] == sketch.hex()
    assert [found[field_id]["estimate"] for field_id in (1, 2)] == [50, 1]


@pytest.mark.full("Iceberg Java's procedure in a second Spark")
def test_the_procedure_of_iceberg_makes_the_same_bytes(catalog, iceberg_java):
    # up to 4096 values: of more, its sketches keep fewer hashes where Spark merged them repeatedly
    # Spark has no times, and hashes the text of a UUID where the specification has its 16 bytes
    names = [name for name in COLUMNS if name not in {"t", "u"}]
    catalog.create_namespace("statistics")
    tables = []
    for name in ("ours", "theirs"):
        table = catalog.create_table(f"statistics.{name}", SCHEMA.select(*names))
        table.append(frame(0, 4000).select(names))
        table.delete("i < 0")
        tables.append(table)
    ours, theirs = tables
    ours.maintenance.compute_table_stats()
    ((path,),) = iceberg_java.sql("CALL ice.system.compute_table_stats('statistics.theirs')")
    (file,) = theirs.refresh().metadata.statistics
    assert file["statistics-path"] == path
    assert contents(ours) == contents(theirs)
    for table in tables:
        table.append(frame(0, 40).select(names))
        table.maintenance.compute_table_stats()
    assert contents(ours) == contents(theirs)
    for name in ("ours", "theirs"):
        catalog.drop_table(f"statistics.{name}")
    catalog.drop_namespace("statistics")
