"""Columns that no data file can hold are refused by name before anything is written, and harm no table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.spec.types import ListType, LongType, NestedField, StructType

FORMATS = ["parquet", "orc", "avro"]


@pytest.fixture
def lake(tmp_path):
    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    found.create_namespace("d")
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_no_row_is_written_to_a_table_that_has_lost_its_last_column(lake, form):
    given = {"write.format.default": form}
    table = lake.create_table("d.t", pa.schema([("a", pa.int64())]), properties=given)
    table.append(pa.table({"a": [1, 2]}))
    with table.update_schema() as update:
        update.delete_column("a")
    for write in (
        lambda: table.append(pa.table({"x": [1]}).select([])),
        lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
    ):
        with pytest.raises(UnsupportedError, match="The table has no columns"):
            write()
    assert table.refresh().scan().count() == 2
    with table.update_schema() as update:
        update.add_column("b", "long")
    table.append(pa.table({"b": [3]}))
    assert table.scan().to_arrow()["b"].to_pylist().count(None) == 2


def test_a_file_without_columns_needs_no_name_mapping():
    """Other writers may have left one."""
    assert file_fields(pa.schema([]), None, "a.orc") == ()


@pytest.mark.parametrize("form", FORMATS)
def test_a_struct_without_fields_is_refused_by_name(lake, form):
    schema = pa.schema([("a", pa.int64()), ("s", pa.struct([("inner", pa.struct([]))]))])
    table = lake.create_table("d.t", schema, properties={"write.format.default": form})
    rows = pa.table({"a": [1], "s": pa.array([{"inner": {}}], schema.field("s").type)})
    with pytest.raises(UnsupportedError, match=r"'s\.inner' is a struct without fields"):
        table.append(rows)
    assert table.current_snapshot() is None


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_read_without_the_last_field_of_a_struct(lake, form):
    """A struct has none while one takes the place of the other."""
    kind = pa.struct([("a", pa.int64())])
    columns = {"s": kind, "l": pa.list_(kind), "m": pa.map_(pa.string(), kind)}
    schema = pa.schema(list(columns.items()))
    table = lake.create_table("d.t", schema, properties={"write.format.default": form})
    one = {"a": 1}
    table.append(pa.table({"s": [one, one], "l": [[one], []], "m": [[("k", one)], []]}, schema))
    with table.update_schema() as update:
        for column in "s", "l", "m":
            update.delete_column(f"{column}.a")
    rows = [{"s": {}, "l": [{}], "m": [("k", {})]}, {"s": {}, "l": [], "m": []}]
    assert table.scan().to_arrow().to_pylist() == rows


def nested(kind, levels):
    found, value = pa.int64(), 1
    for _ in range(levels):
        if kind == "list":
            found, value = pa.list_(found), [value]
        elif kind == "map":
            found, value = pa.map_(pa.string(), found), [("k", value)]
        else:
            found, value = pa.struct([("a", found)]), {"a": value}
    return found, value


@pytest.mark.parametrize(("kind", "most"), [("struct", 98), ("list", 49), ("map", 49)])
def test_columns_are_nested_as_deep_as_every_format_can_be_read_and_no_deeper(lake, kind, most):
    found, value = nested(kind, most)
    for form in FORMATS:
        given = {"write.format.default": form}
        table = lake.create_table(f"d.{form}", pa.schema([("c", found)]), properties=given)
        table.append(pa.table({"c": pa.array([value], found)}))
        assert table.scan().to_arrow()["c"].to_pylist() == [value]
    for levels in (most + 1, 400):
        schema = pa.schema([("m", nested(kind, levels)[0])])
        with pytest.raises(SchemaError, match="levels deep"):
            lake.create_table("d.deeper", schema)
        with pytest.raises(SchemaError, match="levels deep"), table.update_schema() as update:
            update.union_by_name(schema)
    inside = {"struct": "a", "list": "element", "map": "value"}[kind]
    if kind == "struct":
        with pytest.raises(SchemaError, match="100 levels deep"), table.update_schema() as update:
            update.add_column(("c", *[inside] * (most - 1), "b"), StructType(NestedField(1, "c", LongType(), required=False)))  # fmt: skip
    by_hand = LongType()
    for number in range(400):
        by_hand = ListType(number + 1, by_hand, element_required=False)
    with pytest.raises(SchemaError, match="levels deep"), table.update_schema() as update:
        update.add_column("m", by_hand)
    assert len(table.refresh().schemas()) == 1
