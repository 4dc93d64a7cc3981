"""Columns decoded block by block are those that fastavro reads row by row."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from unittest import mock

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.rows.avro import reader as avro_reader
from icecomb.format.rows.avro.reader import AvroReader, columnar_layout
from icecomb.format.storage.file_io import FileIO

NAN = float("nan")


def fixed(name, size, **more):
    return {"type": "fixed", "name": name, "size": size, **more}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


LEAVES = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -1, 2**31 - 1]),
    "long": ("long", [0, -(2**63), 2**63 - 1]),
    "float": ("float", [0.5, -1.0]),
    "double": ("double", [0.1, 1e300]),
    "string": ("string", ["", "é\U0001f600", "x" * 300]),
    "bytes": ("bytes", [b"", b"\x00\xff"]),
    "fixed": (fixed("f3", 3), [b"abc", b"\x00\x00\x00"]),
    "date": (logical("int", "date"), [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    "millis": (logical("int", "time-millis"), [dt.time(0), dt.time(23, 59, 59, 999000)]),
    "time": (logical("long", "time-micros"), [dt.time(1, 2, 3, 4)]),
    "zoned": (logical("long", "timestamp-micros"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.timezone.utc)]),
    "local": (logical("long", "local-timestamp-micros"), [dt.datetime(2024, 2, 29, 1, 2, 3, 4)]),  # noqa: DTZ001
    "decimal": (fixed("d4", 4, logicalType="decimal", precision=9, scale=2), [Decimal("-1.50"), Decimal("9999999.99"), Decimal("0.00")]),
    "wide": (fixed("d16", 16, logicalType="decimal", precision=38, scale=0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    "wider": (fixed("d20", 20, logicalType="decimal", precision=38, scale=1), [Decimal("-0.1"), Decimal("7.0")]),
    "uuid": (fixed("u16", 16), [b"0123456789abcdef"]),
}  # fmt: skip


@st.composite
def typed(draw, depth=2):
    """A schema, and what values it has; names of types are made different later."""
    kinds = list(LEAVES) + (["array", "record", "map"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind in LEAVES:
        schema, values = LEAVES[kind]
        found = schema, st.sampled_from(values)
    elif kind == "array":
        inner, values = draw(typed(depth - 1))
        found = {"type": "array", "items": inner}, st.lists(values, max_size=3)
    elif kind == "record":
        parts = draw(st.lists(typed(depth - 1), min_size=1, max_size=3))
        fields = [{"name": f"x{i}", "type": s} for i, (s, _) in enumerate(parts)]
        schema = {"type": "record", "name": "r", "fields": fields}
        found = schema, st.fixed_dictionaries({f"x{i}": v for i, (_, v) in enumerate(parts)})
    else:
        inner, values = draw(typed(depth - 1))
        fields = [{"name": "key", "type": "int"}, {"name": "value", "type": inner}]
        pair = {"type": "record", "name": "kv", "fields": fields}
        entries = st.lists(
            st.fixed_dictionaries({"key": st.integers(0, 9), "value": values}), max_size=3
        )
        found = logical("array", "map", items=pair), entries
    schema, values = found
    order = draw(st.sampled_from(["required", "first", "last"]))
    if order == "required":
        return schema, values
    return (["null", schema] if order == "first" else [schema, "null"]), st.none() | values


def distinct(schema, counter):
    """The same schema, each named type with a name of its own."""
    if isinstance(schema, list):
        return [distinct(s, counter) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    if "name" in out and out["type"] in ("record", "fixed"):
        counter[0] += 1
        out["name"] = f"{out['name']}_{counter[0]}"
    if "fields" in out:
        out["fields"] = [{**f, "type": distinct(f["type"], counter)} for f in out["fields"]]
    if "items" in out:
        out["items"] = distinct(out["items"], counter)
    return out


@st.composite
def files(draw):
    parts = draw(st.lists(typed(), min_size=1, max_size=3))
    fields = [{"name": f"c{i}", "type": s, "field-id": i + 1} for i, (s, _) in enumerate(parts)]
    schema = distinct({"type": "record", "name": "t", "fields": fields}, [0])
    row = st.fixed_dictionaries({f"c{i}": v for i, (_, v) in enumerate(parts)})
    rows = draw(st.lists(row, min_size=1, max_size=12))
    data = io.BytesIO()
    fastavro.writer(data, fastavro.parse_schema(schema), rows, codec="deflate", sync_interval=40)
    return data.getvalue()


def read(path, *, rowwise, batch_size=5):
    layout = (lambda *_: None) if rowwise else columnar_layout
    with mock.patch.object(avro_reader, "columnar_layout", layout):
        reader = AvroReader(FileIO(), str(path))
    assert (reader._layout is None) == rowwise
    leaves = [leaf for f in reader.fields for leaf in f.leaves]
    found = list(reader.batches(leaves, [0], batch_size))
    reader.close()
    return [position for position, _ in found], pa.Table.from_batches([b for _, b in found])


@given(files())
def test_any_file_is_decoded_as_fastavro_reads_it(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.avro"
    path.write_bytes(data)
    places, columns = read(path, rowwise=False)
    expected_places, expected = read(path, rowwise=True)
    assert places == expected_places
    columns.validate(full=True)
    assert columns.schema == expected.schema
    assert columns.to_pylist() == expected.to_pylist()


def test_no_python_object_is_made_for_a_row(tmp_path, monkeypatch):
    schema = {
        "type": "record",
        "name": "t",
        "fields": [
            {"name": n, "type": ["null", s], "field-id": i}
            for i, (n, (s, _)) in enumerate(LEAVES.items(), 1)
        ],
    }
    rows = [{n: values[i % len(values)] for n, (_, values) in LEAVES.items()} for i in range(10)]
    path = tmp_path / "f.avro"
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), rows)

    def refuse(*_):
        raise AssertionError("rows were read one by one")

    monkeypatch.setattr(avro_reader.fastavro, "reader", refuse)
    _, table = read(path, rowwise=False)
    assert table["string"].to_pylist() == [row["string"] for row in rows]


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "map", "values": "int"},
        logical("bytes", "decimal", precision=9, scale=2),
        {"type": "enum", "name": "e", "symbols": ["A", "B"]},
    ],
)
def test_types_that_polars_does_not_know_are_read_row_by_row(tmp_path, kind):
    value = {"map": {"a": 1}, "bytes": Decimal("-1.50"), "enum": "B"}[kind["type"]]
    schema = {"type": "record", "name": "t", "fields": [{"name": "a", "type": kind, "field-id": 1}]}
    path = tmp_path / "f.avro"
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), [{"a": value}])
    reader = AvroReader(FileIO(), str(path))
    assert reader._layout is None
    leaves = [leaf for f in reader.fields for leaf in f.leaves]
    ((_, batch),) = reader.batches(leaves, [0], 10)
    expected = [("a", 1)] if kind["type"] == "map" else value
    assert batch.to_pydict() == {"a": [expected]}
    reader.close()
