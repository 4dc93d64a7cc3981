"""Plans of tables of format version 3 as the bridge gets them."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import UnsupportedError
from icecomb.format.spec.types import (
    IntegerType,
    ListType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
)
from icecomb.spark.planner import files
from icecomb.spark.schema import iceberg_schema
from tests.spark.planner.protocol import NAMESPACE, Planner, named

BY_POSITION = {f"write.{c}.mode": "merge-on-read" for c in ("delete", "update", "merge")}


@pytest.fixture
def table(folders):
    """Two files of ten rows; some of both are in deletion vectors of one Puffin file."""
    schema = pa.schema([("id", pa.int64())])
    properties = {"format-version": "3", **BY_POSITION}
    made = folders.create_table((*NAMESPACE, "t"), schema, properties=properties)
    for first in (0, 10):
        made.append(pa.table({"id": list(range(first, first + 10))}, schema))
    made.delete("id in (2, 3, 15)")
    return made


@pytest.fixture
def planner(folders):
    return Planner.in_folders(folders)


def positions(packed):
    return np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i8")).tolist()


def test_deleted_positions_of_vectors_come_with_the_plan(table, planner):
    plan = planner.plan(planner.load("t"))
    found = {positions(plan["deletes"][file["deletes"]])[0] for file in plan["files"]}
    assert found == {2, 5}
    assert sorted(map(positions, plan["deletes"])) == [[2, 3], [5]]
    assert plan["statistics"]["rows"] == 17
    assert planner.aggregate(planner.load("t"), [("count", None)]) in (None, [[17]])


def test_too_many_positions_stay_in_the_vectors_which_have_places_of_their_own(
    table, planner, monkeypatch
):
    monkeypatch.setattr(files, "MOST_POSITIONS", 2)
    plan = planner.plan(planner.load("t"))
    vectors = {v["offset"]: v for v in plan["delete_files"]}
    known = table.inspect.delete_files().to_pylist()
    assert len(known) == len(vectors) == 2
    for one in known:
        found = vectors[one["content_offset"]]
        assert found["format"] == "puffin"
        assert found["path"].endswith(one["file_path"].rpartition("/")[2])
        assert (found["length"], found["rows"]) == (
            one["content_size_in_bytes"],
            one["record_count"],
        )
    by_file = {tuple(file["position_delete_files"]["files"]) for file in plan["files"]}
    assert by_file == {(0,), (1,)}
    assert not plan["deletes"]


def test_the_initial_default_of_a_column_comes_with_its_type(table, planner):
    with table.update_schema() as update:
        update.add_column("c", "decimal(5, 2)", default_value="1.50")
        update.add_column("d", "date", default_value="1970-01-03")
    with table.update_schema() as update:
        update.set_default_value("d", "1970-01-09")
    fields = planner.load("t")["schema"]["fields"]
    told = {field["name"]: field["metadata"].get("icecomb.default") for field in fields}
    assert {key: text and json.loads(text) for key, text in told.items()} == {
        "id": None,
        "c": "1.50",
        "d": 2,
    }


@pytest.mark.parametrize(
    ("field_type", "default", "problem"),
    [
        (ListType(9, StringType()), ["a"], "has the default"),
        (TimestampNanoType(), None, "no type for Iceberg's timestamp_ns"),
        (ListType(9, TimestampNanoType()), None, "no type for Iceberg's timestamp_ns"),
    ],
)
def test_a_column_that_spark_cannot_read_is_named_and_the_others_are_read(
    table, planner, field_type, default, problem
):
    with table.update_schema() as update:
        update.add_column("odd", field_type, "its doc", default_value=default)
    loaded = planner.load("t")
    shown = loaded["schema"]["fields"][1]
    assert (shown["name"], shown["type"]) == ("odd", "binary")
    assert "which Spark cannot read: its doc" in shown["metadata"]["comment"]
    assert len(planner.plan(loaded, columns=["id"])["files"]) == 2
    with pytest.raises(UnsupportedError, match=rf"Column odd cannot be read by Spark: .*{problem}"):
        planner.plan(loaded)
    assert planner.aggregate(loaded, [("max", "odd")]) is None
    with pytest.raises(UnsupportedError, match="Column odd cannot be written by Spark"):
        planner.ask("begin_write", reference=loaded["reference"], operation="append")


def test_the_default_of_new_rows_comes_as_sql_and_stays_with_its_table(table, planner):
    with table.update_schema() as update:
        update.add_column("c", "int", default_value=5)
    with table.update_schema() as update:
        update.set_default_value("c", 7)
    loaded = planner.load("t")
    told = loaded["schema"]["fields"][1]["metadata"]
    assert (told["CURRENT_DEFAULT"], told["EXISTS_DEFAULT"]) == ("7", "5")
    copied = iceberg_schema(loaded["schema"]).find_field("c")
    assert (copied.initial_default, copied.write_default) == (None, None)
    begun = planner.ask("begin_write", reference=loaded["reference"], operation="append")
    assert begun["files"]["schema"] == loaded["schema"]


def test_a_default_inside_a_struct_is_named_only_where_rows_may_lack_the_field(table, planner):
    with table.update_schema() as update:
        update.add_column("s", StructType((NestedField(8, "a", IntegerType()),)))
    with table.update_schema() as update:
        update.add_column("s.b", "int", default_value=5)
    reference = planner.load("t")["reference"]
    planner.ask("begin_write", reference=reference, operation="append")
    for merge_or_insert in ("merge", "insert"):
        settings = {f"spark.sql.{merge_or_insert}NestedTypeCoercion.enabled": "true"}
        with pytest.raises(UnsupportedError, match=r"may lack its field s\.b, which has a default"):
            planner.ask("begin_write", reference=reference, operation="append", settings=settings)
    with table.update_properties() as update:
        update.set("write.spark.accept-any-schema", "true")
    loaded = planner.load("t")
    given = {"reference": loaded["reference"], "rows": loaded["schema"]}
    with pytest.raises(UnsupportedError, match=r"may lack its field s\.b, which has a default"):
        planner.ask("begin_write", operation="append", **given)


def test_columns_are_added_with_defaults_and_get_others(table, planner):
    identifier = {"catalog": planner.catalog, "table": named("t")}
    added = {"action": "add_column", "path": ["c"], "type": "integer", "nullable": False}
    added |= {"comment": None, "position": None, "default": "5"}
    planner.ask("alter_table", **identifier, changes=[added])
    change = {"action": "update_column_default", "path": ["c"]}
    planner.ask("alter_table", **identifier, changes=[{**change, "default": "-7"}])
    field = table.refresh().schema().find_field("c")
    assert (field.required, field.initial_default, field.write_default) == (True, 5, -7)
    with pytest.raises(UnsupportedError, match=r"Column c cannot have the default rand\(\)"):
        planner.ask("alter_table", **identifier, changes=[{**change, "default": "rand()"}])
