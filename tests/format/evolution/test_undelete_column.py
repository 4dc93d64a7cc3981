"""Dropped columns that come back under their ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.spec.change.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    update_table_metadata,
)
from icecomb.format.spec.name_mapping import NameMapping, create_name_mapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType, StructType
from tests.format.evolution.test_schema_update import SCHEMA, commit, evolved, table


def without(name, base=None):
    return evolved(table() if base is None else base, lambda u: u.delete_column(name))


def test_a_dropped_column_comes_back_last_under_its_ids_with_all_that_it_was():
    base = table()
    back = evolved(without("place", base), lambda u: u.undelete_column("place"))
    fields = base.schema().fields
    assert back.schema().fields == (*fields[:3], *fields[4:], fields[3])
    assert back.last_column_id == base.last_column_id


def test_a_field_comes_back_inside_its_struct_also_in_lists_and_maps():
    for path in ("place.x", ("place", "x"), "points.z", "by_day.n"):
        base = table()
        name = path if isinstance(path, str) else ".".join(path)
        field_id = base.schema().find_field(name).field_id
        with_other = evolved(base, lambda u, n=name: u.add_column(f"{n}2", StringType()))
        back = evolved(
            without(path, with_other), lambda u, p=path: u.undelete_column(p, required=False)
        )
        assert back.schema().find_field(name).field_id == field_id


def test_the_last_definition_of_a_column_counts():
    wider = evolved(table(), lambda u: u.delete_column("price"))
    wider = evolved(wider, lambda u: u.add_column("price", "int", doc="in cents"))
    number = wider.schema().find_field("price").field_id
    wider = evolved(wider, lambda u: u.update_column("price", LongType()))
    back = evolved(without("price", wider), lambda u: u.undelete_column("price"))
    assert back.schema().find_field("price") == NestedField(
        number, "price", LongType(), doc="in cents"
    )


def test_a_renamed_column_comes_back_by_its_last_name_only():
    renamed = evolved(table(), lambda u: u.rename_column("price", "cost"))
    with pytest.raises(SchemaError, match="'price': it is called 'cost' now"):
        evolved(renamed, lambda u: u.undelete_column("price"))
    gone = without("cost", renamed)
    with pytest.raises(SchemaError, match="'price': it was called 'cost' later"):
        evolved(gone, lambda u: u.undelete_column("price"))
    assert evolved(gone, lambda u: u.undelete_column("cost")).schema().contains(3)


def test_a_name_in_use_or_never_used_is_refused_in_any_case():
    with pytest.raises(SchemaError, match="no schema of the table has it there"):
        evolved(table(), lambda u: u.undelete_column("ghost"))
    with pytest.raises(SchemaError, match="there is a column 'price' already"):
        evolved(table(), lambda u: u.undelete_column("price"))
    taken = evolved(without("price"), lambda u: u.add_column("PRICE", "int"))
    with pytest.raises(SchemaError, match="there is a column 'PRICE' already"):
        evolved(taken, lambda u: u.undelete_column("price"))
    with pytest.raises(SchemaError, match="Required must be True or False, not 'no'"):
        evolved(without("price"), lambda u: u.undelete_column("price", required="no"))
    found = evolved(without("price"), lambda u: u.undelete_column("Price"), case_sensitive=False)
    assert found.schema().find_field(3).name == "price"


def test_a_field_whose_struct_is_another_one_now_is_refused():
    renamed = evolved(without("place.x"), lambda u: u.rename_column("place", "where"))
    back = evolved(renamed, lambda u: u.undelete_column("where.x", required=False))
    assert (
        back.schema().find_field("where.x").field_id
        == table().schema().find_field("place.x").field_id
    )
    gone = without("place", without("place.x"))
    with pytest.raises(SchemaError, match="no column 'place'"):
        evolved(gone, lambda u: u.undelete_column("place.x"))
    other = evolved(
        gone,
        lambda u: u.add_column("place", StructType((NestedField(1, "y", LongType()),))),
    )
    with pytest.raises(SchemaError, match="'x': no schema of the table has it there"):
        evolved(other, lambda u: u.undelete_column("place.x"))


def test_a_column_may_be_dropped_and_come_back_in_one_update():
    base = table()
    back = evolved(base, lambda u: u.delete_column("price").undelete_column("price"))
    assert [f.name for f in back.schema().fields][-1] == "price"
    assert back.schema().find_field("price").field_id == 3
    with pytest.raises(SchemaError, match="there is a column 'price' already"):
        evolved(without("price"), lambda u: u.undelete_column("price").undelete_column("price"))


def test_its_name_mapping_is_found_again_and_an_update_is_repeated_on_a_newer_base():
    mapping = create_name_mapping(SCHEMA).to_json()
    gone = without("price", table(**{"schema.name-mapping.default": mapping}))
    update = UpdateSchema(gone).undelete_column("price")
    newer = evolved(gone, lambda u: u.add_column("note", StringType()))
    update.apply(gone)
    back = commit(newer, update)
    kept = NameMapping.from_json(back.properties["schema.name-mapping.default"])
    assert [m.names for m in kept.fields if m.field_id == 3] == [("price",)]
    assert back.schema().find_field("price").field_id == 3


def test_a_column_is_refused_whose_fields_have_ids_that_other_columns_took():
    """The table was replaced by one whose columns got the ids anew, as by Iceberg Java."""
    old = Schema(NestedField(1, "place", StructType(NestedField(2, "x", LongType()))))
    new = Schema(NestedField(2, "x", LongType()), schema_id=1)
    replaced = update_table_metadata(table(old), [AddSchemaUpdate(new), SetCurrentSchemaUpdate()])
    with pytest.raises(SchemaError, match="'place': its field id 2 is in use, by 'x'"):
        evolved(replaced, lambda u: u.undelete_column("place"))


@pytest.fixture
def filled(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.string(), nullable=False)])
    made = lake.create_table("db.t", schema)
    made.append(pa.table({"id": [1], "s": ["a"]}, schema=schema))
    return made


def test_values_in_files_are_back_and_rows_written_meanwhile_have_none(filled):
    with filled.update_schema() as update:
        update.delete_column("s")
    filled.append(pa.table({"id": pa.array([2], pa.int64())}))
    with filled.update_schema() as update:
        update.undelete_column("s", required=False)
    found = sorted(filled.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]


def test_a_required_column_stays_so_only_if_nothing_was_written_without_it(filled):
    with filled.update_schema() as update:
        update.delete_column("s")
    with filled.update_schema() as update:
        update.undelete_column("s")
    assert filled.schema().find_field("s").required
    with filled.update_schema() as update:
        update.delete_column("s")
    # also on a branch, which is read with the column
    filled.manage_snapshots().create_branch(filled.current_snapshot().snapshot_id, "b").commit()
    filled.append(pa.table({"id": pa.array([2], pa.int64())}), branch="b")
    with pytest.raises(SchemaError, match="required column 's': rows may have been written"):
        filled.update_schema().undelete_column("s")
    with filled.update_schema(allow_incompatible_changes=True) as update:
        update.undelete_column("s")
    assert filled.schema().find_field("s").required


def test_a_required_column_with_a_default_comes_back_whatever_was_written():
    base = table(**{"format-version": "3"})
    base = evolved(base, lambda u: u.add_column("n", "int", required=True, default_value=7))
    back = evolved(without("n", base), lambda u: u.undelete_column("n"))
    field = back.schema().find_field("n")
    assert (field.required, field.initial_default, field.write_default) == (True, 7, 7)
