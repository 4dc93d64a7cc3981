"""Random tables changed by random operations, against a list of rows in memory."""

from __future__ import annotations

import math
import tempfile

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DoubleType, LongType, StringType

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
NAN = float("nan")
PARTITIONS = ((), ((2, "identity"),), ((1, "bucket[3]"), (3, "identity")), ((1, "truncate[4]"),))
TYPES = (LongType(), StringType(), DoubleType())
COLUMNS = {"k": 0, "s": 1, "x": 2}

keys = st.integers(0, 12)
texts = st.none() | st.sampled_from(["", "a", "b", "é", "a b/c"])
floats = st.none() | st.sampled_from([NAN, -1.0, 0.0, 2.5])
row_lists = st.lists(st.tuples(st.none() | keys, texts, floats), max_size=8)
keyed = st.lists(st.tuples(keys, texts, floats), max_size=6, unique_by=lambda row: row[0])


@st.composite
def predicates(draw):
    """SQL text, and what it says of a row: True, False or None for unknown."""
    if draw(st.integers(0, 3)) == 0:
        word = draw(st.sampled_from(["and", "or"]))
        (left, one), (right, other) = draw(predicates()), draw(predicates())
        return f"({left} {word} {right})", lambda row: _joined(word, one(row), other(row))
    kind = draw(st.sampled_from(["k", "s", "null", "nan"]))
    if kind == "null":
        column = draw(st.sampled_from(list(COLUMNS)))
        return f"{column} is null", lambda row: row[COLUMNS[column]] is None
    if kind == "nan":
        return "x is nan", lambda row: row[2] is not None and math.isnan(row[2])
    sign = draw(st.sampled_from(["<", ">=", "=", "!="]))
    value = draw(keys if kind == "k" else st.sampled_from(["", "a", "b", "é"]))
    text = f"{kind} {sign} {value!r}"
    return text, lambda row: _compared(sign, row[COLUMNS[kind]], value)


def _joined(word, one, other):
    decisive = word == "or"
    if one is decisive or other is decisive:
        return decisive
    return None if one is None or other is None else not decisive


def _compared(sign, left, right):
    if left is None:
        return None
    return {"<": left < right, ">=": left >= right, "=": left == right, "!=": left != right}[sign]


operations = st.one_of(
    st.tuples(st.just("append"), row_lists),
    st.tuples(st.just("delete"), predicates()),
    st.tuples(st.just("overwrite"), predicates(), row_lists),
    st.tuples(st.just("dynamic"), row_lists),
    st.tuples(st.just("upsert"), keyed),
)


def frame(rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def key(row) -> tuple:
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row)


def partition_of(spec, row) -> tuple:
    values = (
        None
        if row[f.source_id - 1] is None
        else f.transform.apply(row[f.source_id - 1], TYPES[f.source_id - 1])
        for f in spec.fields
    )
    return key(values)


def changed(table, model, operation):
    """Does an operation to a table; what the rows must be then, and how many were updated."""
    name, *arguments = operation
    if name == "append":
        table.append(frame(arguments[0]))
        return model + arguments[0]
    if name == "delete":
        text, says = arguments[0]
        table.delete(text)
        return [row for row in model if says(row) is not True]
    if name == "overwrite":
        (text, says), new = arguments
        table.overwrite(frame(new), text)
        return [row for row in model if says(row) is not True] + new
    if name == "dynamic":
        if table.spec().is_unpartitioned:
            return model
        table.dynamic_partition_overwrite(frame(arguments[0]))
        gone = {partition_of(table.spec(), row) for row in arguments[0]}
        kept = [row for row in model if partition_of(table.spec(), row) not in gone]
        return kept + arguments[0]
    return _upserted(table, model, arguments[0])


def _upserted(table, model, new):
    mine = [row[0] for row in model]
    if any(mine.count(row[0]) > 1 for row in new):
        return model
    old = {row[0]: row for row in model if row[0] is not None}
    result = table.upsert(frame(new), ["k"])
    assert result.rows_inserted == sum(row[0] not in old for row in new)
    assert result.rows_updated == sum(row[0] in old and key(old[row[0]]) != key(row) for row in new)
    given_keys = {row[0] for row in new}
    return [row for row in model if row[0] not in given_keys] + new


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    partition=st.sampled_from(PARTITIONS),
    version=st.sampled_from(["1", "2"]),
    granularity=st.sampled_from(["file", "partition"]),
    steps=st.lists(operations, min_size=1, max_size=7),
    file_format=st.sampled_from(["parquet", "orc", "avro"]),
)
def test_any_operations_leave_the_rows_that_they_leave_of_a_list(
    mode, partition, version, granularity, steps, file_format
):
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(source, 1000 + i, parse_transform(t), f"p{i}")
            for i, (source, t) in enumerate(partition)
        ),
    )
    properties = {"format-version": "2" if mode == "merge-on-read" else version}
    properties["write.delete.granularity"] = granularity
    properties["write.format.default"] = file_format
    properties |= {f"write.{command}.mode": mode for command in ("delete", "merge")}
    with tempfile.TemporaryDirectory() as folder:
        lake = load_catalog("lake", type="hadoop", warehouse=folder)
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties)
        model = []
        for step in steps:
            model = changed(table, model, step)
            expected = sorted(map(key, model), key=repr)
            found = table.scan().to_arrow()
            assert sorted((key(r.values()) for r in found.to_pylist()), key=repr) == expected
        if file_format == "parquet":  # others it does not read, or not their deletes
            peer = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
            assert sorted((key(r.values()) for r in peer.to_pylist()), key=repr) == expected
        lake.close()
