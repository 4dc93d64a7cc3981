"""A schema as the metastore mirrors it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hive.columns import hive_columns
from icecomb.format.errors import NoSuchTableError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StructType

TWO = [("id", LongType()), ("x", LongType()), ("ID", LongType())]


def test_names_that_differ_in_capitals_only_are_both_named():
    schema = Schema(*(NestedField(at, name, kind) for at, (name, kind) in enumerate(TWO, 1)))
    with pytest.raises(
        ValidationError, match="Columns 'id' and 'ID' are the same to a Hive metastore"
    ):
        hive_columns(schema)


def test_names_inside_of_columns_may():
    inner = StructType(NestedField(3, "id", LongType()), NestedField(4, "ID", LongType()))
    found = hive_columns(Schema(NestedField(1, "s", inner), NestedField(2, "t", LongType())))
    assert found[0].type == "struct<id:bigint,ID:bigint>"


def test_a_metastore_s_table_of_such_columns_is_refused_and_a_folder_s_is_made(
    catalog, namespace, tmp_path
):
    from icecomb.catalog import load_catalog

    columns = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    with pytest.raises(ValidationError, match="'id' and 'ID'"):
        catalog.create_table(f"{namespace}.t", columns)
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{namespace}.t")
    made = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(ValidationError, match="column 'ID': there is a column 'id'"):
        made.update_schema().add_column("ID", "long").commit()
    assert catalog.load_table(f"{namespace}.t").schema().find_column_name(1) == "id"
    folders = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    folders.create_namespace("db")
    folders.create_table("db.t", columns).append(pa.table({"id": [1], "ID": [2]}))
