"""Counts that another writer got wrong are taken for unknown: no row is left out, none is deleted by them."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.manifests import writer
from icecomb.format.operation import snapshot_producer
from tests.catalog.metadata_of_others import NO_CACHE, again, told_otherwise, with_its_file

NAN = float("nan")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "x": pa.array([1.5, None, NAN], pa.float64()),
        "s": pa.array([{"a": 1}, {"a": None}, {"a": 3}], pa.struct([("a", pa.int64())])),
    }
)
MATCHING = {
    "x is null": [2],
    "x is not null": [1, 3],
    "is_nan(x)": [3],
    "not is_nan(x)": [1, 2],
    "x = 1.5": [1],
    "x <> 1.5": [3],
    "s.a is not null": [1, 3],
    "s.a >= 1": [1, 3],
    "id in (1, 3)": [1, 3],
    "id is not null": [1, 2, 3],
}


def every(counts, value):
    return dict.fromkeys(counts, value)


WRONG = {
    "all counts are -1": lambda f: {
        "value_counts": every(f.value_counts, -1),
        "null_value_counts": every(f.value_counts, -1),
        "nan_value_counts": every(f.value_counts, -1),
    },
    "no value is counted": lambda f: {
        "value_counts": every(f.value_counts, 0),
        "null_value_counts": every(f.value_counts, 0),
        "nan_value_counts": every(f.value_counts, 0),
    },
    "only nulls are -1": lambda f: {"null_value_counts": every(f.value_counts, -1)},
    "more nulls than values": lambda f: {"null_value_counts": every(f.value_counts, 7)},
    # not of a nested column: rows without the struct around it need not be counted
    "fewer values than rows": lambda f: {
        "value_counts": f.value_counts | {1: 1, 2: 1},
        "null_value_counts": f.null_value_counts | {1: 1, 2: 1},
    },
    "fewer values, all of them NaN": lambda f: {
        "value_counts": every(f.value_counts, 1),
        "null_value_counts": every(f.value_counts, 0),
        "nan_value_counts": every(f.value_counts, 1),
    },
    "the rows are -1": lambda _: {"record_count": -1},
}


@pytest.fixture(scope="module", params=WRONG)
def tables(request, tmp_path_factory):
    """Three rows in one file, with what their manifest says of them."""
    warehouse = tmp_path_factory.mktemp("counts")
    catalog = load_catalog("files", type="hadoop", warehouse=str(warehouse))
    catalog.create_namespace("db")
    right = catalog.create_table("db.right", ROWS.schema)
    right.append(ROWS)

    def make(name):
        with pytest.MonkeyPatch.context() as patch:
            # icecomb writes no such file: another writer does
            for module in (snapshot_producer, writer):
                patch.setattr(module, "check_data_file", lambda _: None)
            return with_its_file(catalog, right, f"db.{name}", WRONG[request.param])

    return SimpleNamespace(shared=make("shared"), make=make)


def ids(found):
    return sorted(found["id"].to_pylist())


@pytest.mark.parametrize("where", MATCHING)
def test_a_filter_leaves_no_matching_row_out(tables, where):
    assert ids(tables.shared.scan(where).to_arrow()) == MATCHING[where]


def test_rows_are_counted(tables):
    assert tables.shared.scan().count() == 3
    assert tables.shared.scan("x is null").count() == 1


@pytest.mark.parametrize("where", ["x is null", "x is not null", "is_nan(x)", "s.a is not null"])
def test_a_delete_removes_what_matches_and_nothing_else(tables, request, where):
    name = "".join(filter(str.isalnum, request.node.name))
    changed = tables.make(name)
    changed.delete(where)
    left = sorted({1, 2, 3} - set(MATCHING[where]))
    assert ids(changed.scan().to_arrow()) == left
    # the files that are left have counts of our own
    assert changed.scan().count() == len(left)


def test_a_compaction_keeps_the_rows(tables):
    changed = tables.make("compacted")
    changed.append(ROWS)
    changed.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert ids(changed.scan().to_arrow()) == [1, 1, 2, 2, 3, 3]
    assert changed.scan().count() == 6


@pytest.mark.parametrize("kind", ["added", "existing"])
def test_a_list_that_states_too_many_rows_does_not_end_the_commits_of_version_3(tmp_path, kind):
    """Their ids seem to be those of the next rows."""
    catalog = load_catalog("files", type="hadoop", warehouse=f"file:{tmp_path}", **NO_CACHE)
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"})
    made.append(ROWS)

    def more(record):
        record[f"{kind}_rows_count"] += 1

    table = told_otherwise(made, manifest=more)
    table.append(ROWS)
    table.delete("id = 1")
    found = again(table).scan(selected_fields=("id", "_row_id")).to_arrow()
    assert found["_row_id"].to_pylist() == list(dict.fromkeys(found["_row_id"].to_pylist()))
    assert ids(found) == [2, 2, 3, 3]
