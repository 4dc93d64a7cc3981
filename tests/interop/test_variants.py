"""Variants of version 3 tables in a folder: Iceberg Java, DuckDB and icecomb read what each other wrote."""

from __future__ import annotations

import json
import uuid
from datetime import date, datetime, time, timezone
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format import Variant, variants_from_arrow, variants_to_arrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    VariantType,
)

UTC = timezone.utc
NANO = pa.timestamp("ns")
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "w", VariantType()))),
    NestedField(5, "l", ListType(6, VariantType())),
    NestedField(7, "m", MapType(8, StringType(), 9, VariantType())),
)
PLAIN = Schema(*SCHEMA.fields[:2])
VALUES = [
    (None, None),
    (Variant.of(None), ["NULL"]),
    (True, ["BOOLEAN_TRUE", True]),
    (False, ["BOOLEAN_FALSE", False]),
    (-34, ["INT8", -34]),
    (-300, ["INT16", -300]),
    (70_000, ["INT32", 70_000]),
    (1 << 40, ["INT64", 1 << 40]),
    (np.float32(1.5), ["FLOAT", 1.5]),
    (-0.25, ["DOUBLE", -0.25]),
    (Decimal("1234567.89"), ["DECIMAL4", "1234567.89"]),
    (Decimal("-12345678901.5"), ["DECIMAL8", "-12345678901.5"]),
    (Decimal("12345678901234567890.123"), ["DECIMAL16", "12345678901234567890.123"]),
    (date(2024, 2, 29), ["DATE", 19782]),
    (time(1, 2, 3, 4), ["TIME", 3_723_000_004]),
    (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), ["TIMESTAMPTZ", -1_000_000]),
    (datetime.fromisoformat("1970-01-01T00:00:01"), ["TIMESTAMPNTZ", 1_000_000]),
    (pa.scalar(-1, pa.timestamp("ns", "UTC")), ["TIMESTAMPTZ_NANOS", -1]),
    (pa.scalar(1, NANO), ["TIMESTAMPNTZ_NANOS", 1]),
    (b"\x00\xff", ["BINARY", "00ff"]),
    ("short", ["STRING", "short"]),
    ("ä" * 40, ["STRING", "ä" * 40]),
    (uuid.UUID(int=7), ["UUID", str(uuid.UUID(int=7))]),
    ([], ["ARRAY", []]),
    ({}, {}),
    ([1, "x", None, [True]], ["ARRAY", [["INT8", 1], ["STRING", "x"], ["NULL"], ["ARRAY", [["BOOLEAN_TRUE", True]]]]]),
    (
        {"b": {"ä": 1}, "a": [{}, 2.5], "": None},
        {"b": {"ä": ["INT8", 1]}, "a": ["ARRAY", [{}, ["DOUBLE", 2.5]]], "": ["NULL"]},
    ),
    (list(range(300)), ["ARRAY", [["INT8" if n < 128 else "INT16", n] for n in range(300)]]),
    ({f"f{n:03d}": n % 100 for n in range(300)}, {f"f{n:03d}": ["INT8", n % 100] for n in range(300)}),
]  # fmt: skip
"""Values, and how Iceberg Java says what they are."""


@pytest.fixture(scope="module")
def folder(metastore):
    """Our catalog on the folder of the library's tables."""
    catalog = load_catalog(
        "files", type="hadoop", warehouse=f"{metastore.warehouse.as_uri()}/hadoop"
    )
    catalog.create_namespace_if_not_exists("variants")
    return catalog


def python(variant):
    return None if variant is None else variant.to_python()


def values(table):
    found = table.refresh().scan().to_arrow().sort_by("id")
    return found["id"].to_pylist(), [python(v) for v in variants_from_arrow(found["v"])]


def wanted():
    return [None if isinstance(v, Variant) else v for v, _ in VALUES]


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_one_writes_values_of_every_type_and_the_other_reads_them(
    folder, iceberg_library, file_format
):
    name = f"variants.{file_format}"
    properties = {"format-version": "3", "write.format.default": file_format}
    iceberg_library.create(f"hadoop:{name}", SCHEMA, [], properties)
    first = [["INT8", 1], ["STRING", "w"]]
    iceberg_library.append(
        f"hadoop:{name}",
        [
            [n, tree, [tree], [tree, first[0], None], [["k", tree], ["l", first[1]]]]
            for n, (_, tree) in enumerate(VALUES)
        ],
    )
    table = folder.load_table(name)
    numbers, found = values(table)
    assert numbers == list(range(len(VALUES)))
    assert found == wanted()
    before = table.scan().to_arrow().sort_by("id")
    for part in ("s", "l", "m"):
        column = before[part].combine_chunks()
        inner = {"s": lambda c: c.field("w"), "l": lambda c: c.values, "m": lambda c: c.items}
        every = variants_from_arrow(inner[part](column))
        step = {"s": 1, "l": 3, "m": 2}[part]
        assert [python(v) for v in every[::step]] == wanted()
    given = before.set_column(0, "id", pa.array(range(100, 100 + len(VALUES))))
    given = given.set_column(1, "v", variants_to_arrow([v for v, _ in VALUES]))
    table.append(given)
    theirs = sorted(iceberg_library.scan(f"hadoop:{name}"), key=lambda row: row[0])
    assert [row[1] for row in theirs] == [tree for _, tree in VALUES] * 2
    for row in theirs:
        tree = row[1]
        assert row[2:] == [[tree], [tree, first[0], None], {"k": tree, "l": first[1]}]
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    again = sorted(iceberg_library.scan(f"hadoop:{name}"), key=lambda row: row[0])
    assert again == theirs
    assert table.refresh().scan("v is null").count() == 2
    nulls = {"type": "is-null", "term": "v"}
    assert sorted(row[0] for row in iceberg_library.scan(f"hadoop:{name}", nulls)) == [0, 100]


SHREDDED = [
    {"kind": ["STRING", "a"], "n": ["INT32", 5], "tags": ["ARRAY", [["STRING", "x"], ["STRING", "y"]]], "in": {"d": ["DATE", 1], "m": ["DECIMAL8", "12345678901.50"]}},
    {"kind": ["STRING", "b"], "n": ["INT32", 6], "tags": ["ARRAY", []], "in": {"d": ["DATE", 2], "m": ["DECIMAL8", "22345678901.50"]}},
    {"kind": ["STRING", "c"], "n": ["STRING", "six"], "tags": ["ARRAY", [["NULL"], ["STRING", "z"]]], "in": {"d": ["NULL"]}, "more": ["BOOLEAN_TRUE", True]},
    {"kind": ["STRING", "d"], "in": ["INT8", 1]},
    ["STRING", "no object"],
    None,
    ["NULL"],
    {},
]  # fmt: skip
OBJECTS = [
    {"kind": "a", "n": 5, "tags": ["x", "y"], "in": {"d": date(1970, 1, 2), "m": Decimal("12345678901.50")}},
    {"kind": "b", "n": 6, "tags": [], "in": {"d": date(1970, 1, 3), "m": Decimal("22345678901.50")}},
    {"kind": "c", "n": "six", "tags": [None, "z"], "in": {"d": None}, "more": True},
    {"kind": "d", "in": 1},
    "no object",
    None,
    None,
    {},
]  # fmt: skip


def test_what_iceberg_java_shredded_is_read_and_compacted(folder, iceberg_library):
    name = "variants.shredded"
    properties = {
        "format-version": "3",
        "write.parquet.shred-variants": "true",
        "write.parquet.variant-inference-buffer-size": "2",
    }
    iceberg_library.create(f"hadoop:{name}", PLAIN, [], properties)
    rows = [[n, tree] for n, tree in enumerate(SHREDDED * 2)]
    iceberg_library.append(f"hadoop:{name}", rows)
    table = folder.load_table(name)
    (path,) = table.inspect.files()["file_path"].to_pylist()
    assert "typed_value" in str(pq.ParquetFile(path.removeprefix("file:")).schema)
    assert values(table) == (list(range(16)), OBJECTS * 2)
    assert table.scan("v is null").to_arrow()["id"].to_pylist() == [5, 13]
    before = sorted(iceberg_library.scan(f"hadoop:{name}"), key=lambda row: row[0])
    table.delete("id >= 8")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert values(table) == (list(range(8)), OBJECTS)
    after = sorted(iceberg_library.scan(f"hadoop:{name}"), key=lambda row: row[0])
    assert [row[1] for row in after] == SHREDDED
    assert [row[1] for row in before] == SHREDDED * 2


def test_bounds_of_variants_are_read_and_ignored(folder, iceberg_library):
    name = "variants.bounds"
    properties = {"format-version": "3", "write.parquet.shred-variants": "true"}
    iceberg_library.create(f"hadoop:{name}", PLAIN, [], properties)
    rows = [[n, {"n": ["INT32", n]}] for n in range(4)]
    iceberg_library.append(f"hadoop:{name}", rows)
    table = folder.load_table(name)
    (file,) = table.inspect.files().to_pylist()
    assert 2 in dict(file["lower_bounds"])
    assert table.scan("v is not null and id > 1").count() == 2
    assert list(file["readable_metrics"]) == ["id"]
    table.append(pa.table({"id": [9], "v": variants_to_arrow([None])}))
    with table.update_schema() as update:
        update.rename_column("v", "w")
    table.maintenance.rewrite_manifests()
    assert table.scan("w is null").to_arrow()["id"].to_pylist() == [9]


def test_duckdb_reads_the_files(folder):
    table = folder.create_table("variants.duckdb", PLAIN, properties={"format-version": "3"})
    objects = [{"a": n, "b": [str(n)], "c": None} for n in range(3)]
    table.append(pa.table({"id": [0, 1, 2], "v": variants_to_arrow(objects)}))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    query = f"select v::json from '{path.removeprefix('file:')}' order by id"
    assert [json.loads(text) for (text,) in duckdb.connect().execute(query).fetchall()] == objects
