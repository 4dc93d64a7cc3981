"""A schema as the metastore mirrors it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hive.parameters import hive_columns
from icecomb.format.errors import NoSuchTableError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StructType, VariantType

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


V3_COLUMNS = {
    "t": ("timestamp_ns", "timestamp"),
    "z": ("timestamptz_ns", "timestamp"),
    "u": ("unknown", "void"),
    "v": (VariantType(), "binary"),
    "g": ("geometry(EPSG:3857)", "binary"),
    "h": ("geography", "binary"),
    "s": (StructType(NestedField(20, "x", "unknown")), "struct<x:void>"),
}


def evolve_a_table_of_version_3(catalog, namespace):
    catalog.create_namespace_if_not_exists(namespace)
    schema = Schema(NestedField(1, "id", LongType()))
    made = catalog.create_table(f"{namespace}.v3", schema, properties={"format-version": "3"})
    made.append(pa.table({"id": [1]}))
    with made.update_schema() as update:
        for name, (kind, _) in V3_COLUMNS.items():
            update.add_column(name, kind)
    entry = catalog.client.table(namespace, "v3")
    found = {column.name: column.type for column in entry.storage.columns}
    assert found == {"id": "bigint"} | {name: kind for name, (_, kind) in V3_COLUMNS.items()}
    with made.update_schema() as update:
        update.update_column("u", "string").update_column("s.x", "int")
    kept = catalog.load_table(f"{namespace}.v3").scan(selected_fields=("id", "t", "u", "s"))
    assert kept.to_arrow().to_pylist() == [{"id": 1, "t": None, "u": None, "s": None}]


def test_types_of_version_3_have_types_that_a_metastore_takes(catalog, namespace):
    evolve_a_table_of_version_3(catalog, namespace)


@pytest.mark.full("needs Hive 3 and 4")
@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_types_of_version_3_have_types_that_later_metastores_take(
    hive_catalogs, namespace, version
):
    evolve_a_table_of_version_3(hive_catalogs[version], namespace)
