"""NaN in filters: it differs from every number and compares with none, in rows as in files."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog

NAN = math.nan
FILES = [[NAN, NAN], [NAN, 50.0], [1.0, 2.0], [None, NAN], [None], [math.inf, 11.0], [-0.0, 0.0]]
COMPARISONS = ["d > 10", "d >= 10", "d < 10", "d <= 10", "d = 50"]
FILTERS = [
    *COMPARISONS, "d != 50", "d in (1, 50)", "not d > 10",
    "d not in (1, 50)", "isnan(d)", "not isnan(d)", "d is null", "d is not null", "d > 10 or isnan(d)",
]  # fmt: skip


@pytest.fixture(scope="module", params=[None, "d"], ids=["unpartitioned", "partitioned by it"])
def lake(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nan")
    catalog = load_catalog("files", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")

    def make(name):
        schema = pa.schema([("id", pa.int64()), ("d", pa.float64())])
        table = catalog.create_table(f"db.{name}", schema)
        if request.param:
            with table.update_spec() as spec:
                spec.add_identity(request.param)
        number = 0
        for values in FILES:
            ids = range(number, number + len(values))
            number += len(values)
            table.append(pa.table({"id": ids, "d": pa.array(values, pa.float64())}))
        return table

    return make


def ids(table):
    return sorted(table["id"].to_pylist())


@pytest.fixture(scope="module")
def table(lake):
    return lake("t")


@pytest.mark.parametrize("text", FILTERS)
def test_files_are_left_out_as_rows_are_selected(table, text):
    everything = table.scan().to_arrow()
    expected = ids(everything.filter(mask(everything, text)))
    assert ids(table.scan(text).to_arrow()) == expected
    planned = {task.file.file_path for task in table.scan(text).plan_files()}
    for task in table.scan().plan_files():
        rows = pq.read_table(task.file.file_path.removeprefix("file:"), partitioning=None)
        there = set(ids(rows)) & set(expected)
        assert not there or task.file.file_path in planned
    if text in COMPARISONS:
        peer = StaticTable.from_metadata(table.metadata_location)
        assert ids(peer.scan(text).to_arrow()) == expected


def mask(rows, text):
    """Each filter in pyarrow, which compares as IEEE 754 does; null is not selected."""
    d = rows["d"]
    nan = pc.fill_null(pc.is_nan(d), False)
    found = {
        "d > 10": pc.greater(d, 10),
        "d >= 10": pc.greater_equal(d, 10),
        "d < 10": pc.less(d, 10),
        "d <= 10": pc.less_equal(d, 10),
        "d = 50": pc.equal(d, 50),
        "d != 50": pc.not_equal(d, 50),
        "d in (1, 50)": pc.or_(pc.equal(d, 1), pc.equal(d, 50)),
        "not d > 10": pc.less_equal(d, 10),  # the negation of a comparison is the opposite one
        "d not in (1, 50)": pc.and_(pc.not_equal(d, 1), pc.not_equal(d, 50)),
        "isnan(d)": nan,
        "not isnan(d)": pc.invert(nan),
        "d is null": d.is_null(),
        "d is not null": d.is_valid(),
        "d > 10 or isnan(d)": pc.or_kleene(pc.greater(d, 10), nan),
    }[text]
    return pc.fill_null(found, False)


@pytest.mark.parametrize("text", ["d > 10", "d <= 10", "d != 50", "isnan(d)"])
def test_rows_that_a_filter_does_not_select_are_not_deleted(lake, text):
    table = lake(f"t{FILTERS.index(text)}")
    everything = table.scan().to_arrow()
    kept = ids(everything.filter(pc.invert(mask(everything, text))))
    table.delete(text)
    assert ids(table.scan().to_arrow()) == kept
