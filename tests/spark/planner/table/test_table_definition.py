"""What of a CREATE TABLE becomes properties of the table, and what is refused."""

from __future__ import annotations

import pytest

from icecomb.format.errors import IcecombError, UnsupportedError, ValidationError
from icecomb.spark.planner.protocol.tables import NewTable, TableName
from icecomb.spark.planner.table.tables import alter_table, parsed_definition


def properties(**given):
    schema = {"type": "struct", "fields": []}
    name = TableName(("db",), "t")
    said = {key.replace("__", "-").replace("_", "."): value for key, value in given.items()}
    return parsed_definition(NewTable(name, schema, (), said))[-1]


def test_what_spark_says_beside_the_users_properties_is_left_out():
    assert properties(
        provider="iceberg", location="/t", owner="me", comment="c", option_x="1", x="1"
    ) == {"owner": "me", "comment": "c", "option.x": "1", "x": "1"}


def test_options_of_row_format_are_kept_as_iceberg_java_keeps_them():
    assert properties(option_delim=",") == {"option.delim": ","}


def test_using_a_file_format_makes_an_iceberg_table_of_such_files():
    for kind in ("parquet", "orc", "avro"):
        assert properties(provider=kind.upper()) == {"write.format.default": kind}
    assert properties(provider="parquet", write_format_default="Parquet") == {
        "write.format.default": "parquet"
    }


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"provider": "csv"}, ValidationError, "creates Iceberg tables, not csv"),
        ({"provider": "parquet", "write_format_default": "orc"}, ValidationError, "contradicts"),
        ({"sort__order": "id"}, UnsupportedError, "reserved"),
        ({"identifier__fields": "id"}, UnsupportedError, "reserved"),
    ],
)
def test_what_spark_cannot_make_is_refused_with_the_way_out(given, error, said):
    with pytest.raises(error, match=said) as refused:
        properties(**given)
    assert refused.value.hint is not None


def test_what_show_create_table_shows_of_a_tables_state_is_passed_over():
    shown = {"format": "iceberg/parquet", "current__snapshot__id": "none", "format__version": "2"}
    assert properties(**shown) == {"format-version": "2"}
    assert properties(format="wide") == {"format": "wide"}


@pytest.fixture
def table(tmp_path):
    import pyarrow as pa

    from icecomb.catalog.hadoop.catalog import HadoopCatalog

    catalog = HadoopCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in (1, 2):
        made.append(pa.table({"id": [number]}))
    return made


def set_property(table, key, value):
    alter_table(table, [{"action": "set_property", "key": key, "value": value}])


def test_properties_that_are_actions_move_the_table_and_are_no_properties(table):
    first, second = (s.snapshot_id for s in table.metadata.snapshots)
    set_property(table, "current-snapshot-id", str(first))
    assert table.current_snapshot().snapshot_id == first
    set_property(table, "cherry-pick-snapshot-id", str(second))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert not {"current-snapshot-id", "cherry-pick-snapshot-id"} & set(table.metadata.properties)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sort-order", "id ASC", "WRITE ORDERED BY"),
        ("identifier-fields", "id", "SET IDENTIFIER FIELDS"),
        ("current-snapshot-id", "latest", "not a snapshot id"),
        ("current-snapshot-id", "77", "77"),
        ("cherry-pick-snapshot-id", "77", "77"),
        ("uuid", "x", "uuid"),
    ],
)
def test_what_is_reserved_or_unknown_is_refused_and_changes_nothing(table, key, value, said):
    before = table.metadata_location
    with pytest.raises(IcecombError, match=said):
        set_property(table, key, value)
    assert table.refresh().metadata_location == before
