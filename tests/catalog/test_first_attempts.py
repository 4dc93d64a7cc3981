"""What somebody new tries first on tables: it works, or the error says what to write instead."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    NoSuchTableError,
    SchemaError,
    ValidationError,
)

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})


@pytest.fixture
def lake(tmp_path):
    with load_catalog("files", type="hadoop", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("shop")
        yield catalog


@pytest.fixture
def table(lake):
    table = lake.create_table("shop.t", ROWS.schema)
    table.append(ROWS)
    return table


def test_one_column_or_key_may_be_given_as_text(table):
    assert table.scan(selected_fields="id").to_arrow().column_names == ["id"]
    assert table.upsert(pa.table({"id": [2], "s": ["B"]}), join_cols="id").rows_updated == 1


def test_one_file_may_be_given_as_text(table, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "x.parquet")
    table.add_files(str(tmp_path / "x.parquet"))
    assert table.scan().count() == 6


def test_a_list_of_dicts_becomes_rows_as_the_error_says(table):
    rows = [{"id": 4, "s": None}]
    with pytest.raises(ValidationError, match="from_pylist"):
        table.append(rows)
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    assert table.scan("id = 4").count() == 1


def test_a_table_is_created_only_where_there_is_none(lake, table):
    same = lake.create_table_if_not_exists("shop.t", pa.schema([("other", pa.int32())]))
    assert same.metadata.table_uuid == table.metadata.table_uuid
    assert lake.create_table_if_not_exists("shop.u", ROWS.schema).scan().count() == 0
    assert (lake.namespace_exists("shop"), lake.namespace_exists("no_such")) == (True, False)
    with pytest.raises(NoSuchTableError):
        lake.load_table("shop.v")


def test_what_pyiceberg_users_look_up_is_there(table):
    [snapshot] = table.snapshots()
    assert table.schemas() == {0: table.schema()}
    assert table.sort_orders() == {0: table.sort_order()}
    assert table.name_mapping() is None
    assert table.snapshot_as_of_timestamp(snapshot.timestamp_ms) == snapshot
    assert table.snapshot_as_of_timestamp(snapshot.timestamp_ms, inclusive=False) is None


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("to_arrow", r"table\.scan\(\)\.to_arrow\(\)"),
        ("create_tag", r"manage_snapshots\(\) as manage: manage\.create_tag"),
        ("set_properties", r"update_properties\(\)"),
        ("no_such_thing", r"no attribute 'no_such_thing'$"),
    ],
)
def test_a_name_of_another_library_leads_to_ours(table, name, instead):
    assert not hasattr(table, name)
    with pytest.raises(AttributeError, match=instead):
        getattr(table, name)


@pytest.mark.parametrize("time", ["2026-01-01", 1.5, None])
def test_a_time_that_is_none_is_refused_with_what_it_may_be(table, time):
    with pytest.raises(ValidationError, match="datetime"):
        table.scan().as_of(time)
    with pytest.raises(ValidationError, match="datetime"):
        table.expire_snapshots().older_than(time)
    table.scan().as_of(dt.datetime.now(dt.timezone.utc))


def test_other_arguments_that_do_not_fit_are_named(table):
    with pytest.raises(ValidationError, match=r"to_duckdb\(\)\.create_view"):
        table.scan().to_duckdb("orders")
    with pytest.raises(SchemaError, match="Not a column's type"):
        table.update_schema().add_column("n", pa.string())
