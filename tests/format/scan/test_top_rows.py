"""Files of the first rows of an order, against the rows themselves."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.scan.top_rows import TopRows
from tests.catalog.random_table import changed_table
from tests.rings import sampled

ORDERS = [(descending, nulls) for descending in (False, True) for nulls in (False, True)]


def first_rows(table, name, top):
    """The values of the key in the first rows."""
    values = table[name].to_pylist()
    present = sorted((v for v in values if v is not None), reverse=top.descending)
    nulls = [None] * (len(values) - len(present))
    return [*nulls, *present][: top.count] if top.nulls_first else [*present, *nulls][: top.count]


def check(scan):
    """Of every column and order, the files have the first rows; says how many were left out."""
    rows, left_out = scan.to_arrow(), 0
    files = len(list(scan.plan_files()))
    read = {}
    for field in scan.schema().fields:
        if not field.field_type.is_primitive or str(field.field_type) in {"float", "double"}:
            continue
        for descending, nulls_first in ORDERS:
            for count in (1, 3, max(1, len(rows) - 1)):
                top = TopRows(field.field_id, descending, nulls_first, count)
                tasks = list(scan.plan_top_files(top))
                left_out += files - len(tasks)
                # most orders leave the same files
                chosen = tuple(task.file.file_path for task in tasks)
                if chosen not in read:
                    read[chosen] = scan.to_arrow(tasks)
                found = first_rows(read[chosen], field.name, top)
                assert found == first_rows(rows, field.name, top), (field.name, top)
    return left_out


@pytest.mark.gate("plans every order of random tables")
@pytest.mark.parametrize("file_format", sampled(["parquet", "avro", "orc"], keep=1))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), steps=st.integers(2, 9))
def test_files_of_random_tables_have_the_first_rows_of_every_order(file_format, random, steps):
    with changed_table(random, steps, file_format) as made:
        table = made.table
        check(table.scan())
        for snapshot_id, _ in made.history[-2:]:
            check(table.scan(snapshot_id=snapshot_id))
        check(IncrementalAppendScan(table.metadata, table.io))
        check(table.scan(f"id >= {random.randint(0, 20)}"))


@pytest.fixture
def table(tmp_path):
    """Four files: 0-9, 10-19, one with nulls among 20-29, and nulls alone."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    kinds = {"n": pa.int64(), "day": pa.date32(), "x": pa.float64(), "s": pa.string()}
    made = lake.create_table(
        "db.t", pa.schema(kinds), properties={"write.delete.mode": "merge-on-read"}
    )
    for first, last in ((0, 10), (10, 20), (20, 30), (None, 5)):
        n = [None] * 5 if first is None else [*range(first, last)]
        if first == 20:
            n[0] = n[5] = None
        columns = {
            "n": n,
            "day": [None if v is None else date(2026, 1, 1 + v) for v in n],
            "x": [None if v is None else float(v) for v in n],
            "s": [None if v is None else str(v) for v in n],
        }
        made.append(pa.table({k: pa.array(v, kinds[k]) for k, v in columns.items()}))
    return made


def files_of(table, name, descending, nulls_first, count, where="true"):
    """The numbers of the files that are read, in the order they were appended."""
    numbers = {}
    for task in table.scan().plan_files():
        found = [n for n in table.scan().to_arrow([task])["n"].to_pylist() if n is not None]
        numbers[task.file.file_path] = min(found) // 10 if found else 3
    top = TopRows(table.schema().find_field(name).field_id, descending, nulls_first, count)
    tasks = table.scan(where).plan_top_files(top)
    return sorted(numbers[task.file.file_path] for task in tasks)


ASCENDING, DESCENDING, FIRST, LAST = False, True, True, False


@pytest.mark.parametrize(
    ("order", "count", "files"),
    [
        ((ASCENDING, LAST), 1, [0]),
        ((ASCENDING, LAST), 10, [0]),
        ((ASCENDING, LAST), 11, [0, 1]),
        ((ASCENDING, LAST), 28, [0, 1, 2]),
        ((ASCENDING, LAST), 29, [0, 1, 2, 3]),
        ((ASCENDING, FIRST), 7, [2, 3]),
        ((ASCENDING, FIRST), 8, [0, 2, 3]),
        ((DESCENDING, LAST), 8, [2]),
        ((DESCENDING, LAST), 9, [1, 2]),
        ((DESCENDING, FIRST), 7, [2, 3]),
        ((DESCENDING, FIRST), 15, [2, 3]),
        ((DESCENDING, FIRST), 16, [1, 2, 3]),
    ],
)
def test_files_whose_rows_come_later_are_left_out(table, order, count, files):
    assert files_of(table, "n", *order, count) == files
    assert files_of(table, "day", *order, count) == files
    for name in ("x", "s"):
        assert files_of(table, name, *order, count) == [0, 1, 2, 3]


def test_rows_that_may_be_deleted_or_filtered_are_not_counted(table):
    table.delete("n = 3")
    assert files_of(table, "n", ASCENDING, LAST, 5) == [0, 1]
    assert files_of(table, "n", DESCENDING, LAST, 8) == [2]
    assert files_of(table, "n", ASCENDING, LAST, 1, "s <> '11'") == [0, 1, 2]
    # a file that is left out by its bounds need not be sure of its own rows
    table.delete("n = 25")
    assert files_of(table, "n", ASCENDING, LAST, 5) == [0, 1]


def test_old_snapshots_and_new_columns_are_ordered_by_what_files_know(table):
    with table.update_schema() as update:
        update.add_column("later", "long")
    rows = pa.table({"n": pa.array([40], pa.int64()), "later": pa.array([1], pa.int64())})
    table.append(rows)
    field = table.schema().find_field("later").field_id
    scan = table.refresh().scan()
    # a file that has no counts of a column may have any values
    assert len(list(scan.plan_top_files(TopRows(field, ASCENDING, LAST, 1)))) == 5
    first = scan.plan_top_files(
        TopRows(table.schema().find_field("n").field_id, DESCENDING, LAST, 1)
    )
    assert [task.record_count for task in first] == [1]
