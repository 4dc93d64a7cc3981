"""Nanoseconds and unknown columns of version 3 tables in a folder: Iceberg Java, icecomb, PyIceberg."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.spec.name_mapping import create_name_mapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    GeographyType,
    GeometryType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
)

INSIDE = StructType(
    NestedField(6, "x", LongType()),
    NestedField(7, "nothing", UnknownType()),
    NestedField(8, "times", ListType(9, TimestampNanoType())),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "t", TimestampNanoType()),
    NestedField(3, "z", TimestamptzNanoType()),
    NestedField(4, "u", UnknownType()),
    NestedField(5, "s", INSIDE),
)
SPEC = [
    ("identity", "u", "u"),
    ("hour", "t", "t_hour"),
    ("bucket[4]", "z", "z_bucket"),
]
MOMENTS = {
    1: ("2017-11-16 22:31:08.123456789", 1510871468123456789),
    2: ("1970-01-01 00:00:00.000000000", 0),
    3: ("2262-04-11 23:47:16.854775807", (1 << 63) - 1),
    4: ("2023-11-14 22:13:20.000000001", 1700000000000000001),
    5: (None, None),
}
FORMATS = ("parquet", "orc", "avro")
FILTERS = {
    "t = '2017-11-16T22:31:08.123456789'": {
        "type": "eq",
        "term": "t",
        "value": "2017-11-16T22:31:08.123456789",
    },
    "z > '2023-11-14T22:13:20Z'": {
        "type": "gt",
        "term": "z",
        "value": "2023-11-14T22:13:20.000000000+00:00",
    },
    "t < '1970-01-01T00:00:00.000000001'": {
        "type": "lt",
        "term": "t",
        "value": "1970-01-01T00:00:00.000000001",
    },
    "u is null": {"type": "is-null", "term": "u"},
}


@pytest.fixture(scope="module")
def folder(metastore):
    """Our catalog on the folder of the library's tables."""
    catalog = load_catalog(
        "files", type="hadoop", warehouse=f"{metastore.warehouse.as_uri()}/hadoop"
    )
    catalog.create_namespace_if_not_exists("types3")
    return catalog


def kinds(table):
    return [f.field_type for f in table.schema().fields[1:4]]


def by_id(rows):
    return sorted(rows, key=lambda row: row[0])


def given(writer):
    return [
        [10 * writer + n, text, text, None, None if text is None else [n, None, [text, None]]]
        for n, (text, _) in MOMENTS.items()
    ]


def arrow(writer):
    nanos = [count for _, count in MOMENTS.values()]
    inside = [
        None if count is None else {"x": n, "times": [count, None]}
        for n, (_, count) in MOMENTS.items()
    ]
    return pa.table(
        {
            "id": [10 * writer + n for n in MOMENTS],
            "t": pa.array(nanos, pa.timestamp("ns")),
            "z": pa.array(nanos, pa.timestamp("ns", "UTC")),
            "s": pa.array(
                inside, pa.struct([("x", pa.int64()), ("times", pa.list_(pa.timestamp("ns")))])
            ),
        }
    )


def plain(table):
    """Rows with nanoseconds as numbers."""
    kind = pa.struct([("x", pa.int64()), ("nothing", pa.null()), ("times", pa.list_(pa.int64()))])
    columns = [table["id"], table["t"].cast(pa.int64()), table["z"].cast(pa.int64()), table["u"]]
    inside = [s.cast(kind).to_pylist() for s in table["s"].chunks]
    rows = zip(*(c.to_pylist() for c in columns), [s for part in inside for s in part], strict=True)
    return sorted([*row[:4], row[4] and list(row[4].values())] for row in rows)


def expected(*writers):
    return sorted(
        [10 * w + n, count, count, None, None if count is None else [n, None, [count, None]]]
        for w in writers
        for n, (_, count) in MOMENTS.items()
    )


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_one_writes_the_others_read(folder, iceberg_library, file_format):
    name = f"types3.{file_format}"
    properties = {"format-version": "3", "write.format.default": file_format}
    iceberg_library.create(f"hadoop:{name}", SCHEMA, SPEC, properties)
    iceberg_library.append(f"hadoop:{name}", given(1))
    table = folder.load_table(name)
    assert [str(kind) for kind in kinds(table)] == ["timestamp_ns", "timestamptz_ns", "unknown"]
    assert plain(table.scan().to_arrow()) == expected(1)
    table.append(arrow(2))
    assert by_id(iceberg_library.scan(f"hadoop:{name}")) == by_id(given(1) + given(2))
    assert plain(table.scan().to_arrow()) == expected(1, 2)
    if file_format == "parquet":
        peer = StaticTable.from_metadata(table.metadata_location)
        assert plain(peer.scan().to_arrow()) == expected(1, 2)
    for text, where in FILTERS.items():
        found = sorted(table.scan(text).to_arrow()["id"].to_pylist())
        theirs = iceberg_library.scan(f"hadoop:{name}", where)
        assert found == sorted(row[0] for row in theirs), text
        if file_format == "avro":
            continue  # there are no metrics, and Iceberg Java reads null partitions, too
        planned = {task.file.file_path for task in table.scan(text).plan_files()}
        assert planned == iceberg_library.plan(f"hadoop:{name}", where).keys(), text


def test_bounds_and_partitions_are_those_of_iceberg_java(folder, iceberg_library):
    files = []
    for writer in ("java", "python"):
        name = f"types3.bounds_{writer}"
        iceberg_library.create(f"hadoop:{name}", SCHEMA, SPEC, {"format-version": "3"})
        if writer == "java":
            iceberg_library.append(f"hadoop:{name}", given(1))
        else:
            folder.load_table(name).append(arrow(1))
        found = sorted(iceberg_library.files(f"hadoop:{name}"), key=lambda f: repr(f["partition"]))
        files.append(found)
    for theirs, ours in zip(*files, strict=True):
        for key in ("partition", "rows", "lower_bounds", "upper_bounds"):
            assert ours[key] == theirs[key], key


@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_that_iceberg_java_deletes_by_nanoseconds_are_gone(
    folder, iceberg_library, file_format
):
    name = f"types3.deleted_{file_format}"
    properties = {"format-version": "3", "write.format.default": file_format}
    iceberg_library.create(f"hadoop:{name}", SCHEMA, [], properties)
    table = folder.load_table(name)
    table.append(arrow(1))
    keys = [["2017-11-16T22:31:08.123456789"], ["2023-11-14T22:13:20.000000002"], [None]]
    more = {"keys": ["z"], "values": keys, "delete_format": file_format}
    iceberg_library.ask("delta", f"hadoop:{name}", **more)
    assert [row[0] for row in plain(table.refresh().scan().to_arrow())] == [12, 13, 14]
    assert sorted(row[0] for row in iceberg_library.scan(f"hadoop:{name}")) == [12, 13, 14]


def variant_text(variant):
    """Text without keys, which is short or long (Parquet: Variant Binary Encoding, Value encoding)."""
    if variant is None:
        return None
    assert variant["metadata"] == bytes([1, 0, 0])
    value = variant["value"]
    if value[0] & 3 == 1:
        assert value[0] >> 2 == len(value) - 1
        return value[1:].decode()
    assert value[0] == 16 << 2
    assert int.from_bytes(value[1:5], "little") == len(value) - 5
    return value[5:].decode()


POINT = "0101000000000000000000f03f0000000000000040"
"""The point 1 2 as well-known binary."""


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_columns_beside_variants_and_shapes_are_read(folder, iceberg_library, file_format):
    inside = StructType(NestedField(7, "v", VariantType()), NestedField(8, "x", LongType()))
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "v", VariantType()),
        NestedField(3, "g", GeometryType("EPSG:3857")),
        NestedField(4, "h", GeographyType("OGC:CRS84", "karney")),
        NestedField(5, "name", StringType()),
        NestedField(6, "s", inside),
    )
    name = f"types3.shapes_{file_format}"
    properties = {"format-version": "3", "write.format.default": file_format}
    iceberg_library.create(f"hadoop:{name}", schema, [], properties)
    rows = [[1, "v1", POINT, POINT, "a", ["w1", 5]], [2, None, None, None, "b", None]]
    iceberg_library.append(f"hadoop:{name}", rows)
    table = folder.load_table(name)
    assert table.schema().fields == schema.fields
    read = table.scan(selected_fields=("id", "name", "s.x")).to_arrow().sort_by("id").to_pylist()
    assert read == [{"id": 1, "name": "a", "s": {"x": 5}}, {"id": 2, "name": "b", "s": None}]
    assert table.scan("s.x > 4", selected_fields=("name",)).to_arrow()["name"].to_pylist() == ["a"]
    found = table.scan(selected_fields=("id", "v", "s.v")).to_arrow().sort_by("id").to_pylist()
    assert [variant_text(row["v"]) for row in found] == ["v1", None]
    assert [row["s"] and variant_text(row["s"]["v"]) for row in found] == ["w1", None]
    for column in ("g", "h"):
        with pytest.raises(UnsupportedError, match="can be neither read nor written"):
            table.scan(selected_fields=("id", column)).to_arrow()
    with table.update_schema() as update:
        update.rename_column("name", "title")
    assert table.inspect.files()["record_count"].to_pylist() == [2]
    table.delete("id >= 1")
    iceberg_library.append(f"hadoop:{name}", rows[:1])
    assert table.refresh().scan(selected_fields=("title",)).to_arrow()["title"].to_pylist() == ["a"]


def without_ids(path, form, zone):
    moments = pa.array([MOMENTS[1][1], -(10**9), None], pa.int64())
    data = pa.table({"id": [1, 2, 3], "t": moments.cast(pa.timestamp("ns", zone))})
    if form == "orc":
        orc.write_table(data, path)
    else:
        pq.write_table(data, path, use_deprecated_int96_timestamps=form == "int96")


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (TimestamptzNanoType(), "int96"),
        (TimestampNanoType(), "nanos"),
        (TimestamptzNanoType(), "nanos"),
        (TimestampNanoType(), "orc"),
    ],
)
def test_iceberg_java_reads_nanoseconds_of_hive_files(
    folder, iceberg_library, tmp_path, kind, form
):
    """As a migration takes them over: by the names of their columns."""
    name = f"types3.hive_{form}_{kind!s}"
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "t", kind))
    iceberg_library.create(f"hadoop:{name}", schema, [], {"format-version": "3"})
    table = folder.load_table(name)
    zone = "UTC" if isinstance(kind, TimestamptzNanoType) else None
    path = f"{table.location().removeprefix('file:')}/given"
    without_ids(path, form, zone)
    if form == "int96":
        with pytest.raises(SchemaError, match=r"INT96, which Iceberg Java .* miss rows"):
            table.add_files([f"file:{path}"])
        with table.update_properties() as update:
            update.set(NAME_MAPPING.key, create_name_mapping(schema).to_json())
        size = Path(path).stat().st_size
        file = DataFile(file_path=f"file:{path}", record_count=3, file_size_in_bytes=size)
        table.commit(table.new_fast_append().append_data_file(file))
    else:
        table.add_files([f"file:{path}"])
    mine = {r["id"]: r["t"] for r in table.scan().to_arrow().to_pylist()}
    assert [getattr(mine[n], "value", None) for n in (1, 2, 3)] == [MOMENTS[1][1], -(10**9), None]
    theirs = {row[0]: row[1] for row in iceberg_library.scan(f"hadoop:{name}")}
    assert theirs == {1: MOMENTS[1][0], 2: "1969-12-31 23:59:59.000000000", 3: None}
    text = f"2017-11-16T22:31:08.123456789{'+00:00' if zone else ''}"
    same = iceberg_library.scan(f"hadoop:{name}", {"type": "eq", "term": "t", "value": text})
    # it compares INT96 in microseconds: that is why a migration takes it over only if asked to
    assert [row[0] for row in same] == ([] if form == "int96" else [1])
    assert table.scan(f"t = '{text}'").to_arrow()["id"].to_pylist() == [1]
