"""Columns of nanoseconds, which tables of format version 3 have, made of Arrow schemas."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, TimestampNanoType

NS, ZONED = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
SCHEMA = pa.schema(
    [
        ("t", NS),
        ("z", ZONED),
        ("u", pa.timestamp("us")),
        ("p", pa.struct([("t", NS)])),
        ("l", pa.list_(ZONED)),
        ("m", pa.map_(pa.string(), NS)),
    ]
)
ODD = 1_700_000_000_000_000_001
ROWS = pa.table(
    {
        "t": [ODD, None],
        "z": [ODD, 1],
        "u": [1, 2],
        "p": [{"t": ODD}, None],
        "l": [[ODD], None],
        "m": [[("k", ODD)], None],
    },
    SCHEMA,
)
FINE = ["timestamp_ns", "timestamptz_ns", "timestamp", "timestamp_ns", "timestamptz_ns"]
COARSE = ["timestamp", "timestamptz", "timestamp", "timestamp", "timestamptz"]


def types(table) -> list[str]:
    schema = table.schema()
    names = ("t", "z", "u", "p.t", "l.element", "m.value")
    found = [str(schema.find_type(name)) for name in names]
    assert found.pop() == found[0]
    return found


def of_version(lake, version, name="db.t"):
    return lake.create_table(name, SCHEMA, properties={"format-version": version})


def test_arrow_schemas_make_columns_of_nanoseconds_from_version_3_on(lake, tmp_path):
    table = of_version(lake, "3")
    assert types(table) == FINE
    # as PyIceberg makes them
    theirs = pyarrow_to_schema(schema_to_pyarrow(table.schema()), format_version=3)
    assert [str(f.field_type) for f in theirs.fields] == [
        str(f.field_type) for f in table.schema().fields
    ]
    table.append(ROWS)
    assert table.scan().to_arrow().equals(ROWS)
    (task,) = table.scan().plan_files()
    assert pq.read_schema(task.file.file_path).field("t").type == NS
    assert table.scan("t = '2023-11-14T22:13:20.000000001'").count() == 1
    with lake.create_table_transaction("db.u", SCHEMA, properties={"format-version": "3"}) as new:
        new.append(ROWS)
    assert lake.load_table("db.u").scan().to_arrow().equals(ROWS)
    by_default = {"type": "hadoop", "warehouse": str(tmp_path / "other")}
    with load_catalog("o", **by_default, **{"table-default.format-version": "3"}) as other:
        other.create_namespace("db")
        assert types(other.create_table("db.t", SCHEMA)) == FINE
        assert types(of_version(other, "2", "db.u")) == COARSE


def test_before_version_3_they_are_microseconds_and_nothing_is_cut(lake):
    table = of_version(lake, "2")
    assert types(table) == COARSE
    with pytest.raises(SchemaError, match="'t'"):
        table.append(ROWS)
    even = pa.table({"t": pa.array([ODD - 1], NS)})
    table.append(even)
    assert table.scan(selected_fields=("t",)).to_arrow()["t"].cast(NS).equals(even["t"])


def test_a_replaced_table_has_the_columns_of_its_version(lake):
    of_version(lake, "2")
    assert types(lake.replace_table("db.t", SCHEMA)) == COARSE
    upgraded = lake.replace_table("db.t", SCHEMA, properties={"format-version": "3"})
    assert types(upgraded) == FINE
    assert types(lake.create_or_replace_table("db.t", SCHEMA)) == FINE


def test_a_union_adds_nanoseconds_and_leaves_columns_of_microseconds(lake):
    table = of_version(lake, "2")
    more = pa.table({"t": pa.array([ODD - 1], NS), "n": pa.array([ODD], NS)})
    with table.update_properties() as update:
        update.set("format-version", "3")
    table.append(more, merge_schema=True)
    assert types(table) == COARSE
    assert str(table.schema().find_type("n")) == "timestamp_ns"
    assert table.scan(selected_fields=("n",)).to_arrow()["n"].to_pylist() == more["n"].to_pylist()
    with table.update_schema() as update:
        update.union_by_name(SCHEMA)
    assert types(table) == COARSE
    wanted = Schema((NestedField(1, "t", TimestampNanoType()),))
    with pytest.raises(SchemaError, match="'t'"), table.update_schema() as update:
        update.union_by_name(wanted)
