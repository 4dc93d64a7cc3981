"""Nanoseconds that Spark is shown in microseconds: filters, plans and refusals as values."""

from __future__ import annotations

import base64
import datetime as dt
import io
import operator
import zlib

import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

from icecomb.catalog import load_catalog
from icecomb.catalog.configuration.catalog_property import DOWNCAST_NANOSECONDS
from icecomb.format.errors import UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, TimestampNanoType
from icecomb.spark.planner.scan.predicates import exact_filter
from icecomb.spark.values import shown_to_json
from tests.spark.planner.protocol import NAMESPACE, Planner

MOST = (1 << 63) - 1
NANOS = [None, -MOST - 1, -MOST, -1001, -1000, -999, -1, 0, 1, 999, 1000, 1001, MOST - 1, MOST]
MICROS = sorted({n // 1000 + more for n in NANOS[1:] for more in (-1, 0, 1)} | {1 << 62, -1 << 62})
SCHEMA = Schema(NestedField(1, "t", TimestampNanoType()))
COMPARE = {
    "eq": operator.eq, "not_eq": operator.ne, "lt": operator.lt, "lt_eq": operator.le,
    "gt": operator.gt, "gt_eq": operator.ge, "eq_null_safe": operator.eq,
}  # fmt: skip
DOWNCAST = {DOWNCAST_NANOSECONDS.key: "true"}


def compared(op, value, column="t"):
    key = "values" if op == "in" else "value"
    return {"op": op, "column": [column], "type": "timestamp_ntz", key: value}


def negated(predicate):
    return {"op": "not", "child": predicate}


def shown(predicate, nanos):
    """What Spark says about a row of which it is shown microseconds: True, False or None (unknown)."""
    if predicate["op"] == "not":
        inner = shown(predicate["child"], nanos)
        return None if inner is None else not inner
    if nanos is None:
        return False if predicate["op"] == "eq_null_safe" else None
    micros = nanos // 1000
    if predicate["op"] == "in":
        return micros in predicate["values"]
    return COMPARE[predicate["op"]](micros, predicate["value"])


LEAVES = st.builds(compared, st.sampled_from(sorted(COMPARE)), st.sampled_from(MICROS)) | st.builds(
    compared, st.just("in"), st.lists(st.sampled_from(MICROS), min_size=1, max_size=4)
)


@given(LEAVES | st.builds(negated, LEAVES))
@example(negated(compared("lt", 1 << 62)))
@example(negated(compared("eq", MOST // 1000)))
def test_a_filter_in_microseconds_selects_the_nanoseconds_that_are_shown_so(predicate):
    bound = bind(SCHEMA, exact_filter([predicate], SCHEMA, case_sensitive=True))
    mask = row_mask(bound, {1: pa.array(NANOS, pa.timestamp("ns"))}, len(NANOS))
    assert mask.to_pylist() == [shown(predicate, nanos) is True for nanos in NANOS]


def test_microseconds_are_rounded_down_also_before_1970():
    found = [shown_to_json(TimestampNanoType(), nanos) for nanos in (-1001, -1000, -1, 0, 999)]
    assert found == [-2, -1, -1, 0, 0]


@pytest.fixture
def planners(tmp_path):
    """A table of one day in each partition, and two planners: one shows microseconds."""
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(tuple(NAMESPACE))
    columns = {
        "id": pa.int64(),
        "t": pa.timestamp("ns"),
        "l": pa.list_(pa.timestamp("ns", "UTC")),
        "m": pa.map_(pa.timestamp("ns"), pa.int32()),
    }
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table((*NAMESPACE, "t"), pa.schema(columns), properties=properties)
    with table.update_spec() as update:
        update.add_field("t", "identity", "t")
    rows = [{"id": n, "t": n, "l": [n], "m": []} for n in (-1, -1000, 1500, 1999, 86_400 * 10**9)]
    table.append(pa.Table.from_pylist(rows, pa.schema(columns)))
    place = {"type": "hadoop", "warehouse": str(tmp_path), "python": "p"}
    yield Planner(**place), Planner(**place, **DOWNCAST)
    catalog.close()


def columns_of(loaded):
    return {
        f["name"]: (f["type"], f["metadata"].get("comment")) for f in loaded["schema"]["fields"]
    }


def test_they_are_shown_only_where_the_catalog_asks_for_it(planners):
    plain, asked = planners
    assert columns_of(plain.load("t"))["t"] == ("binary", "timestamp_ns, which Spark cannot read")
    found = columns_of(asked.load("t"))
    assert found["t"] == ("timestamp_ntz", "timestamp_ns in microseconds")
    assert found["l"][0]["elementType"] == "timestamp"
    assert found["m"][0] == "binary"
    with pytest.raises(UnsupportedError, match="no type for Iceberg's timestamp_ns") as refused:
        plain.plan(plain.load("t"), columns=["t"])
    assert f"option {DOWNCAST_NANOSECONDS.key} to true" in refused.value.hint
    with pytest.raises(UnsupportedError, match="as keys of maps, of which several may be the same"):
        asked.plan(asked.load("t"), columns=["m"])


def test_files_are_planned_by_the_microseconds_and_constants_stay_whole(planners):
    _, asked = planners
    loaded = asked.load("t")

    def constants(*filters):
        plan = asked.plan(loaded, *filters, columns=["id", "t"])
        return sorted(file["constants"]["2"] for file in plan["files"])

    assert constants(compared("eq", 1)) == [1500, 1999]
    assert constants(compared("lt", 0)) == [-1000, -1]
    assert constants(negated(compared("in", [-1, 1]))) == [86_400 * 10**9]
    assert asked.decide(loaded, compared("eq", 1), compared("lt", 1)) == [True, True]


def test_partitions_that_are_shown_alike_are_no_groups_and_no_bounds(planners):
    _, asked = planners
    loaded = asked.load("t")
    kept = {"spark.sql.iceberg.planning.preserve-data-grouping": "true"}
    assert asked.plan(loaded, columns=["id", "t"], settings=kept)["grouping"] == []
    assert asked.aggregate(loaded, [("max", "t")]) is None
    assert asked.aggregate(loaded, [("count", None)], group_by=["t"]) is None
    assert asked.aggregate(loaded, [("count", "t")]) == [[5]]


def test_statements_that_would_cut_them_are_refused(planners):
    _, asked = planners
    loaded = asked.load("t")
    for operation, command in (
        ("append", None), ("replace_files", "delete"), ("change_rows", "update"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="Column t cannot be written by Spark"):
            asked.ask(
                "begin_write", reference=loaded["reference"], operation=operation, command=command
            )


def test_metadata_tables_show_them_rounded_down(planners):
    plain, asked = planners
    with pytest.raises(UnsupportedError, match="no type for Iceberg's timestamp_ns"):
        plain.ask("load_table", catalog=plain.catalog, table=below("partitions"))
    loaded = asked.ask("load_table", catalog=asked.catalog, table=below("partitions"))
    ids = [f["metadata"]["parquet.field.id"] for f in loaded["schema"]["fields"]]
    answer = asked.ask(
        "read_rows", reference=loaded["reference"], filters=[], case_sensitive=False,
        field_ids=ids[:1], options={}, limit=None,
    )  # fmt: skip
    [text] = answer["streams"]
    rows = pa.ipc.open_stream(io.BytesIO(zlib.decompress(base64.b64decode(text)))).read_all()
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone
    found = sorted(
        (row["t"] - epoch) // dt.timedelta(microseconds=1) for row in rows[0].to_pylist()
    )
    assert found == [-1, -1, 1, 1, 86_400 * 10**6]


def below(selector):
    return {"namespace": [*NAMESPACE, "t"], "name": selector}
