"""Columns that were dates and are timestamps: files, bounds, deletes and defaults from before (spec: Schema Evolution)."""

from __future__ import annotations

import datetime as dt
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError, UnsupportedError, ValidationError
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.types import TimestampNanoType, TimestampType, TimestamptzType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

FORMATS = ("parquet", "orc", "avro")
KINDS = {"timestamp": pa.timestamp("us"), "timestamp_ns": pa.timestamp("ns")}
DAY = {"timestamp": 86_400 * 10**6, "timestamp_ns": 86_400 * 10**9}
"""A day in units of the type."""
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "d": pa.date32(),
        "s": pa.struct({"x": pa.date32()}),
        "l": pa.list_(pa.date32()),
    }
)


@pytest.fixture
def catalog(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


def created(catalog, file_format="parquet", version="3", **properties):
    properties = {"format-version": version, "write.format.default": file_format, **properties}
    return catalog.create_table("db.t", SCHEMA, properties=properties)


def rows(*days):
    """Rows with ids 0, 1, ... and these days since 1970, in all columns of dates."""
    dates = pa.array(days, pa.int32()).view(pa.date32())
    columns = [dates, pa.StructArray.from_arrays([dates], ["x"]), [[d] for d in dates.to_pylist()]]
    return pa.table([pa.array(range(len(days)), pa.int64()), *columns], SCHEMA)


def promoted(table, kind, *columns):
    with table.update_schema() as update:
        for column in columns or ("d", "s.x", "l.element"):
            update.update_column(column, kind)
    return table


def found(table, where):
    """The ids of the rows that match, and the number of files that were read."""
    scan = table.scan(where)
    kept = sorted(scan.to_arrow()["id"].to_pylist())
    assert scan.count() == len(kept)
    return kept, len(list(scan.plan_files()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_dates_of_older_files_are_read_as_midnights(catalog, file_format, kind):
    table = created(catalog, file_format)
    table.append(rows(-1, None, 18_262))
    promoted(table, kind)
    read = table.scan().to_arrow()
    midnights = [-DAY[kind], None, 18_262 * DAY[kind]]
    assert read["d"].type == KINDS[kind]
    assert read["d"].cast(pa.int64()).to_pylist() == midnights
    inner = read["s"].combine_chunks().field("x")
    assert inner.cast(pa.int64()).to_pylist() == midnights
    elements = read["l"].combine_chunks().flatten()
    assert elements.cast(pa.int64()).to_pylist() == midnights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_filters_and_bounds_take_older_files_for_what_they_were(catalog, file_format, kind):
    table = created(catalog, file_format)
    table.append(rows(0, 1))
    table.append(rows(9, None))
    promoted(table, kind)
    later = pa.array([DAY[kind] + 1], KINDS[kind])
    table.append(pa.table({"id": pa.array([7]), "d": later}))
    assert found(table, "d = '1970-01-02 00:00:00'") == ([1], 1)
    assert found(table, "d > '1970-01-02 00:00:00'") == ([0, 7], 2)
    assert found(table, "d < '1970-01-01 00:00:00'") == ([], 0)
    assert found(table, "d in ('1970-01-10T00:00:00', '1970-01-09T23:59:59')") == ([0], 1)
    assert found(table, "d is null") == ([1], 1)
    assert found(table, "s.x >= '1970-01-02 00:00:00'")[0] == [0, 1]
    bounds = {
        (row["readable_metrics"]["d"]["lower_bound"], row["readable_metrics"]["d"]["upper_bound"])
        for row in table.inspect.files().to_pylist()
    }
    assert {(str(low)[:10], str(high)[:10]) for low, high in bounds} == {
        ("1970-01-01", "1970-01-02"),
        ("1970-01-02", "1970-01-02"),
        ("1970-01-10", "1970-01-10"),
    }
    (d,) = (f.field_id for f in table.schema().fields if f.name == "d")
    if file_format == "parquet":
        extremes = [AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.COUNT]
        known = table.scan().known_aggregates([Aggregate(f, d) for f in extremes])
        assert known == [(0, 9 * DAY[kind], 4)]


def test_row_groups_of_dates_are_skipped_by_days(catalog):
    table = created(catalog, **{"write.parquet.row-group-limit": "100"})
    table.append(rows(*range(1000)))
    promoted(table, "timestamp")
    assert found(table, "d >= '1972-01-01 00:00:00' and d < '1972-01-01 00:00:01'")[0] == [730]
    assert found(table, "d >= '1971-12-31 12:00:00' and d < '1972-01-02 12:00:00'")[0] == [730, 731]


@pytest.mark.parametrize("file_format", FORMATS)
def test_equality_deletes_and_rows_meet_across_the_promotion(catalog, file_format):
    table = created(catalog, file_format)
    table.append(rows(0, 1, 2, 3))

    def delete(*values):
        writer = EqualityDeleteWriter(table.io, table.metadata, str(uuid4()), ["d"])
        kind = table.schema().as_arrow().field("d").type
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        writer.write(pa.record_batch({"d": pa.array(values, width).view(kind)}))
        (deletes,) = writer.close()
        table.commit(RowDelta(table.io).add_deletes(deletes))

    delete(1)
    promoted(table, "timestamp")
    delete(2 * DAY["timestamp"], 3 * DAY["timestamp"] + 1)
    assert found(table, "true")[0] == [0, 3]
    assert found(table, "d >= '1970-01-02 00:00:00'")[0] == [3]
    table.maintenance.convert_equality_deletes()
    assert found(table.refresh(), "true")[0] == [0, 3]


@pytest.mark.parametrize("file_format", FORMATS)
def test_rewritten_files_hold_timestamps(catalog, file_format):
    """Row groups of dates are not copied as they are, nor are their bounds."""
    table = created(catalog, file_format)
    for day in range(5):
        table.append(rows(day))
    promoted(table, "timestamp")
    table.append(pa.table({"id": [9], "d": pa.array([5], pa.timestamp("us"))}))
    assert table.maintenance.rewrite_data_files().rewritten_data_files_count == 6
    (task,) = table.refresh().scan().plan_files()
    (entry,) = table.inspect.files().to_pylist()
    assert [len(dict(entry[name])[2]) for name in ("lower_bounds", "upper_bounds")] == [8, 8]
    if file_format == "parquet":
        local = task.file_path.removeprefix("file:")
        assert pq.read_schema(local).field("d").type == pa.timestamp("us")
    days = [day * DAY["timestamp"] for day in range(5)]
    assert sorted(table.scan().to_arrow()["d"].cast(pa.int64()).to_pylist()) == sorted([5, *days])
    assert found(table, "d = '1970-01-04 00:00:00'") == ([0], 1)


def test_an_older_snapshot_still_has_dates(catalog):
    table = created(catalog)
    table.append(rows(0, 1))
    first = table.current_snapshot().snapshot_id
    promoted(table, "timestamp")
    table.append(pa.table({"id": [9], "d": pa.array([5], pa.timestamp("us"))}))
    older = table.scan(snapshot_id=first)
    assert older.to_arrow()["d"].to_pylist() == [dt.date(1970, 1, 1), dt.date(1970, 1, 2)]
    assert table.scan("d > '1970-01-01 00:00:00'").count() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_become_midnights(catalog, kind):
    table = created(catalog)
    table.append(rows(0))
    with table.update_schema() as update:
        update.add_column("x", "date", default_value=dt.date(1970, 1, 3))
    with table.update_schema() as update:
        update.set_default_value("x", dt.date(1970, 1, 4)).update_column("x", kind)
    field = table.schema().find_field("x")
    assert (field.initial_default, field.write_default) == (2 * DAY[kind], 3 * DAY[kind])
    table.append(pa.table({"id": [9]}))
    assert table.scan().to_arrow()["x"].cast(pa.int64()).to_pylist() == [
        3 * DAY[kind],
        2 * DAY[kind],
    ]
    assert found(table, "x = '1970-01-03 00:00:00'")[0] == [0]


def test_dates_beyond_the_range_of_the_type_are_errors_where_they_are_read(catalog):
    table = created(catalog)
    table.append(rows(0))
    table.append(rows(200_000))
    promoted(table, "timestamp_ns")
    with pytest.raises(SchemaError, match="'d': a value does not fit timestamp"):
        table.scan().to_arrow()
    with pytest.raises(SchemaError, match="'d': a value does not fit timestamp"):
        table.scan("d > '2200-01-01 00:00:00'").to_arrow()
    assert found(table, "d < '1971-01-01 00:00:00'") == ([0], 2)
    with pytest.raises(ValidationError, match="Day 106752 since 1970 is out of the range"):
        from_bytes(TimestampNanoType(), (106_752).to_bytes(4, "little"))


def test_bounds_of_four_bytes_are_days_only_without_a_zone():
    """The table of the specification's "Schema Evolution"."""
    assert from_bytes(TimestampType(), b"\x02\x00\x00\x00") == 2 * DAY["timestamp"]
    assert from_bytes(TimestampNanoType(), b"\xff\xff\xff\xff") == -DAY["timestamp_ns"]
    with pytest.raises(ValidationError, match="is not a value of type timestamptz"):
        from_bytes(TimestamptzType(), b"\x02\x00\x00\x00")


@pytest.mark.parametrize("kind", ["timestamptz", "timestamptz_ns", "string", "long"])
def test_dates_become_timestamps_without_a_zone_only(catalog, kind):
    with pytest.raises(SchemaError, match=f"from date to {kind}"):
        promoted(created(catalog), kind)


def test_timestamps_do_not_become_dates_or_nanoseconds(catalog):
    table = promoted(created(catalog), "timestamp")
    for kind in ("date", "timestamp_ns"):
        with pytest.raises(SchemaError, match=f"from timestamp to {kind}"):
            promoted(table, kind, "d")


@pytest.mark.parametrize("version", ["1", "2"])
def test_versions_before_3_refuse_the_promotion(catalog, version):
    table = created(catalog, version=version)
    with pytest.raises(UnsupportedError, match=r"format version 3 \(v3\)") as refused:
        promoted(table, "timestamp")
    assert "format-version to 3" in refused.value.hint
    # not by names either, nor where anything else is allowed
    with pytest.raises(UnsupportedError):
        UpdateSchema(table.metadata, allow_incompatible_changes=True).update_column(
            "d", "timestamp"
        )
    with pytest.raises(UnsupportedError):
        UpdateSchema(table.metadata).union_by_name(pa.schema({"d": pa.timestamp("us")}))


def test_a_union_by_name_promotes_and_keeps_what_is_wider(catalog):
    table = created(catalog)
    with table.update_schema() as update:
        update.union_by_name(pa.schema({"d": pa.timestamp("us")}))
    with table.update_schema() as update:
        update.union_by_name(pa.schema({"d": pa.date32()}))
    assert str(table.schema().find_type("d")) == "timestamp"


@pytest.mark.parametrize("transform", ["year", "month", "day", "void"])
def test_files_by_year_month_and_day_stay_in_their_partitions(catalog, transform):
    table = created(catalog)
    with table.update_spec() as update:
        update.add_field("d", transform, "p")
    table.append(rows(0, 400))
    promoted(table, "timestamp")
    table.append(pa.table({"id": [9], "d": pa.array([7], pa.timestamp("us"))}))
    assert found(table, "d < '1970-01-01 00:00:01'") == ([0, 9], 2)
    assert found(table, "d >= '1971-01-01 00:00:00'") == ([1], 1)
    labels = {str(row["partition"]["p"]) for row in table.inspect.partitions().to_pylist()}
    assert len(labels) == (1 if transform == "void" else 2)
    table.delete("d >= '1971-02-05 00:00:00' and d < '1971-02-06 00:00:00'")
    assert found(table, "true")[0] == [0, 9]


@pytest.mark.parametrize("transform", ["identity", "bucket[4]"])
@pytest.mark.parametrize("former", [False, True])
def test_no_column_is_promoted_whose_partition_values_would_change(catalog, transform, former):
    """The hash of a day is not that of its midnight, and a day is not its midnight."""
    table = created(catalog)
    with table.update_spec() as update:
        update.add_field("d", transform, "p")
    table.append(rows(0))
    if former:
        with table.update_spec() as update:
            update.remove_field("p")
    with pytest.raises(SchemaError, match="partition field 'p' would have other values"):
        promoted(table, "timestamp")
    promoted(table, "timestamp", "s.x")


@pytest.mark.parametrize("version", ["2", "3"])
def test_no_file_of_dates_is_added_to_a_column_of_timestamps(catalog, tmp_path, version):
    """Iceberg Java cannot read it (1.12)."""
    table = catalog.create_table(
        "db.t", pa.schema({"d": pa.timestamp("us")}), properties={"format-version": version}
    )
    path = str(tmp_path / "dates.parquet")
    pq.write_table(pa.table({"d": [dt.date(2024, 1, 1)]}), path)
    with pytest.raises(SchemaError, match="Java cannot read as timestamp"):
        table.add_files([path])
