"""Ranges of columns are limits of the values in the chosen files, or unknown."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.scan.column_ranges import ColumnRange

DAY = dt.date(2026, 1, 1)
KINDS = {
    "i": pa.int32(),
    "d": pa.float64(),
    "c": pa.decimal128(9, 2),
    "day": pa.date32(),
    "b": pa.bool_(),
    "s": pa.string(),
    "none": pa.int64(),
    "l": pa.list_(pa.int64()),
}


def frame(first, end):
    rows = range(first, end)
    columns = {
        "i": [None if n % 4 == 1 else n for n in rows],
        "d": [n / 2 for n in rows],
        "c": [Decimal(n) for n in rows],
        "day": [DAY + dt.timedelta(n) for n in rows],
        "b": [n > 8 for n in rows],
        "s": [f"s{n}" for n in rows],
        "none": [None for _ in rows],
        "l": [[n] for n in rows],
    }
    return pa.table({name: pa.array(columns[name], kind) for name, kind in KINDS.items()})


@pytest.fixture
def lake(tmp_path):
    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    found.create_namespace("db")
    yield found
    found.close()


def new_table(lake, **properties):
    table = lake.create_table("db.t", pa.schema(list(KINDS.items())), properties=properties)
    table.append(frame(0, 8))
    table.append(frame(8, 12))
    return table


def ranges(scan):
    schema = scan.schema()
    found = scan.column_ranges([field.field_id for field in schema.fields])
    return {schema.find_column_name(field_id): known for field_id, known in found.items()}


def test_they_are_those_of_the_files_that_the_filter_selects(lake):
    table = new_table(lake)
    days = (DAY - dt.date(1970, 1, 1)).days
    assert ranges(table.scan()) == {
        "i": ColumnRange(3, 0, 11, is_empty=False),
        "d": ColumnRange(0, 0.0, 5.5, is_empty=False),
        "c": ColumnRange(0, Decimal(0), Decimal(11), is_empty=False),
        "day": ColumnRange(0, days, days + 11, is_empty=False),
        "b": ColumnRange(0, False, True, is_empty=False),
        "s": ColumnRange(0, None, None, is_empty=False),
        "none": ColumnRange(12, None, None, is_empty=True),
    }
    found = ranges(table.scan("i > 9"))
    assert (found["i"].nulls, found["i"].lower, found["i"].upper) == (1, 8, 11)
    assert ranges(table.scan("i > 90"))["i"] == ColumnRange(0, None, None, is_empty=True)


def test_what_a_file_does_not_tell_is_unknown(lake):
    table = new_table(lake)
    with table.update_properties() as update:
        update.set("write.metadata.metrics.column.i", "none")
        update.set("write.metadata.metrics.column.c", "counts")
    table.append(frame(12, 14).set_column(1, "d", pa.array([float("nan")] * 2)))
    found = ranges(table.scan())
    assert found["i"] == ColumnRange(None, None, None, is_empty=False)
    assert found["c"] == ColumnRange(0, None, None, is_empty=False)
    assert found["d"] == ColumnRange(0, None, None, is_empty=False)
    assert found["none"].nulls == 14


def test_a_column_that_files_lack_is_unknown_and_bounds_before_a_promotion_are_read(lake):
    table = new_table(lake)
    with table.update_schema() as update:
        update.add_column("late", "int")
        update.update_column("i", "long")
    assert ranges(table.scan())["late"] == ColumnRange(None, None, None, is_empty=False)
    assert ranges(table.scan())["i"] == ColumnRange(3, 0, 11, is_empty=False)
