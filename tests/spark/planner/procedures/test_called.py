"""Procedures called in Python on tables in a folder: arguments, rows and their columns."""

from __future__ import annotations

import re
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError, SchemaError
from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.procedure_calls import find

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["mon", "tue"]})


@pytest.fixture
def lake(tmp_path):
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.orders", ROWS.schema)
    with made.update_spec() as update:
        update.add_identity("day")
    made.append(ROWS)
    return catalog


def called(context: Call, name: str, *positional: Any, **named: Any) -> Any:
    given = [(None, value) for value in positional] + list(named.items())
    procedure = find(("system",), name)
    return procedure.run(context, **procedure.bind(given))


@pytest.fixture
def call(lake):
    """Runs a procedure; the rows by column, and what the session runs afterwards."""

    def run(name: str, *positional: Any, **named: Any) -> list[dict[str, Any]]:
        procedure = find(("system",), name)
        context = Call(lake, ("shop",), None, lambda _: iter(()))
        rows = called(context, name, *positional, **named)
        assert context.refreshed == ["`lake`.`shop`.`orders`"]
        assert not context.views
        columns = [column.name for column in procedure.columns]
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return run


def test_partition_statistics_are_those_of_the_snapshot_or_there_is_no_row(lake, call):
    first = lake.load_table("shop.orders").current_snapshot().snapshot_id
    lake.load_table("shop.orders").append(ROWS)
    [row] = call("compute_partition_stats", table="orders", snapshot_id=first)
    [file] = lake.load_table("shop.orders").metadata.partition_statistics
    assert row == {"partition_statistics_file": file["statistics-path"]}
    assert file["snapshot-id"] == first
    lake.load_table("shop.orders").delete("true")
    assert call("compute_partition_stats", "shop.orders") == []


def test_an_undeleted_column_is_described_with_what_happened_meanwhile(lake, call):
    with lake.load_table("shop.orders").update_schema() as update:
        update.add_column("note", "string")
    table = lake.load_table("shop.orders")
    table.append(ROWS.append_column("note", pa.array(["a", "b"])))
    number = table.schema().find_field("note").field_id
    with table.update_schema() as update:
        update.delete_column("note")
    rows = call("undelete_column", "shop.orders", "NOTE")
    schema = table.refresh().schema()
    expected = {
        "restored_field_id": number,
        "applied_schema_id": schema.schema_id,
        "wrote_during_window": False,
        "was_identifier": False,
    }
    assert rows == [expected]
    with table.update_schema() as update:
        update.delete_column("note")
    table.append(ROWS)
    assert call("undelete_column", table="orders", column="`note`") == [
        {**expected, "wrote_during_window": True}
    ]
    assert sorted(map(repr, table.refresh().scan().to_arrow()["note"].to_pylist())) == [
        "'a'", "'b'", *["None"] * 4
    ]  # fmt: skip


def test_an_undeleted_identifier_is_none_any_more(lake, call):
    table = lake.load_table("shop.orders")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    with table.update_schema() as update:
        update.set_identifier_fields()
        update.delete_column("id")
    [row] = call("undelete_column", "shop.orders", "id")
    assert (row["restored_field_id"], row["was_identifier"]) == (1, True)
    assert table.refresh().schema().identifier_field_ids == ()
    with pytest.raises(SchemaError, match="no schema of the table has it there"):
        call("undelete_column", "shop.orders", "ghost")


def test_hints_of_refused_calls_name_no_arguments_that_procedures_lack(lake, tmp_path):
    """An option of the shell, or a call of Python that is not said to be one."""
    flat = lake.create_table("shop.flat", ROWS.schema)
    with flat.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("old", "long", required=True)
    with flat.update_schema() as update:
        update.delete_column("old")
    for _ in range(2):
        flat.append(ROWS, snapshot_properties={"wap.id": "twice"})
    for folder, names in (("in/day=mon", ["id"]), ("several", ["id", "day"]), ("bare", ["id"])):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(ROWS.select(names), tmp_path / folder / "a.parquet")
    context = Call(lake, ("shop",), None, lambda _: iter(()))
    called(context, "add_files", "orders", f"parquet.`{tmp_path}/in`")
    refused = [
        ("remove_orphan_files", "orders", int(time.time() * 1e6)),
        ("compute_partition_stats", "orders", 1),
        ("compute_partition_stats", "flat"),
        ("compute_table_stats", "flat", 1),
        ("undelete_column", "flat", "nothing"),
        ("undelete_column", "flat", "old"),
        ("publish_changes", "flat", "twice"),
        ("add_files", "orders", f"parquet.`{tmp_path}/in`"),
        ("add_files", "orders", f"parquet.`{tmp_path}/several`"),
        ("add_files", "orders", f"parquet.`{tmp_path}/bare`"),
        ("migrate", "orders"),
    ]
    for name, *arguments in refused:
        with pytest.raises(IcecombError) as error:
            called(context, name, *arguments)
        assert error.value.hint, name
        said = re.sub("`.*?`", "", error.value.hint)
        assert re.search(r"--\w|=True|=False|table\.\w|\w\(|='|={", said) is None, said
