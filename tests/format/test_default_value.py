"""Default values of columns belong to version 3: kept and honoured where a file has them."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.spec.change.update import AddSchemaUpdate, update_table_metadata
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DateType, LongType, NestedField, StringType, StructType

ID = NestedField(1, "id", LongType())


@pytest.fixture
def catalog(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def table(catalog):
    """A version 2 table to whose schema another writer added a column with defaults."""
    table = catalog.create_table("db.t", Schema((ID,)))
    table.append(pa.table({"id": [1, 2]}))
    edit(table, lambda fields: fields.append(field("x", initial=7, write=8)))
    return catalog.load_table("db.t")


def field(name, initial, write):
    return {
        "id": 2,
        "name": name,
        "required": False,
        "type": "long",
        "initial-default": initial,
        "write-default": write,
    }


def edit(table, change):
    file = Path(table.metadata_location)
    content = json.loads(file.read_text())
    change(content["schemas"][0]["fields"])
    content["last-column-id"] = 2
    file.write_text(json.dumps(content))


def test_defaults_in_a_file_fill_old_rows_and_new_ones(table):
    assert table.scan().to_arrow()["x"].to_pylist() == [7, 7]
    table.append(pa.table({"id": [3]}))
    table.append(pa.table({"id": [4], "x": pa.array([None], pa.int64())}))
    found = table.scan().to_arrow()
    rows = dict(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True))
    assert rows == {1: 7, 2: 7, 3: 8, 4: None}
    assert table.scan("x = 7").to_arrow()["id"].to_pylist() == [1, 2]


def test_defaults_in_a_file_survive_commits_and_evolution(table):
    table.append(pa.table({"id": [3]}))
    with table.update_schema() as update:
        update.rename_column("x", "y")
        update.add_column("z", "string")
    schemas = json.loads(Path(table.metadata_location).read_text())["schemas"]
    assert schemas[0]["fields"][1] == field("x", initial=7, write=8)
    assert schemas[1]["fields"][1] == field("y", initial=7, write=8)


def test_a_default_that_its_type_does_not_have_is_named(catalog, table):
    edit(table, lambda fields: fields[1].update({"initial-default": "many"}))
    with pytest.raises(CorruptFileError, match="many"):
        catalog.load_table("db.t")


def test_a_table_of_version_3_is_created_and_replaced_with_defaults(catalog):
    day = dt.date(1970, 1, 2)
    inner = NestedField(4, "city", StringType(), write_default="Rome")
    schema = Schema(
        ID,
        NestedField(2, "day", DateType(), required=True, write_default=day),
        NestedField(3, "place", StructType(inner), write_default={}),
    )
    version = {"format-version": "3"}
    with catalog.create_table_transaction("db.new", schema, properties=version) as new:
        new.append(pa.table({"id": [1]}))
    found = catalog.load_table("db.new").scan().to_arrow().to_pylist()
    assert found == [{"id": 1, "day": day, "place": {"city": "Rome"}}]
    with catalog.replace_table_transaction("db.new", schema.select("day")) as new:
        new.append(pa.Table.from_batches([pa.record_batch([pa.nulls(2)], ["_"]).select([])]))
    assert catalog.load_table("db.new").scan().to_arrow().to_pylist() == [{"day": day}] * 2
    with pytest.raises(ValidationError, match="'day' of type date cannot have the default 'x'"):
        catalog.create_table(
            "db.other", Schema(replace(schema.fields[1], write_default="x")), properties=version
        )


def test_an_upgraded_table_may_have_new_defaults(table):
    with table.update_schema() as update, pytest.raises(UnsupportedError) as caught:
        update.add_column("z", "string", default_value="z")
    assert "property format-version to 3" in caught.value.hint
    with table.transaction() as change:
        change.set_properties({"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("z", "string", default_value="z").set_default_value("x", 9)
    table.append(pa.table({"id": [3]}))
    rows = table.scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(1, 7, "z"), (2, 7, "z"), (3, 9, "z")]


@pytest.mark.parametrize("kind", ["initial_default", "write_default"])
def test_new_defaults_are_refused_by_the_name_of_the_version(catalog, table, kind):
    inner = NestedField(3, "city", StringType(), **{kind: "x"})
    schema = Schema((ID, NestedField(2, "place", StructType((inner,)))))
    with pytest.raises(UnsupportedError, match=r"'place.city' has a default value.*\(v3\)"):
        catalog.create_table("db.new", schema)
    assert not catalog.table_exists("db.new")
    with pytest.raises(UnsupportedError, match=r"'place.city' has a default value.*\(v3\)"):
        update_table_metadata(table.metadata, (AddSchemaUpdate(schema),))
