from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.rows.parquet.writer import dictionary_columns
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

LIMIT = 1 << 20
ROWS = 200_000


@pytest.mark.parametrize(
    ("distinct", "worth"),
    [(1, True), (1000, True), (20_000, True), (100_000, True), (10**9, False)],
)
def test_a_column_gets_a_dictionary_if_all_its_values_would_fit(distinct, worth):
    source = random.Random(3)
    values = pa.array([source.randrange(distinct) for _ in range(ROWS)], pa.int64())
    fields = (NestedField(1, "c", LongType()),)
    chosen = dictionary_columns(fields, pa.record_batch([values], ["c"]), LIMIT)
    assert chosen == (["c"] if worth else [])


def test_few_rows_and_nulls_are_no_reason_against_a_dictionary():
    fields = (NestedField(1, "a", StringType()), NestedField(2, "b", LongType()))
    columns = [pa.nulls(5000, pa.string()), pa.array([1, *[None] * 4999], pa.int64())]
    assert dictionary_columns(fields, pa.record_batch(columns, ["a", "b"]), LIMIT) == ["a", "b"]


def test_columns_inside_others_are_named_as_parquet_names_them(tmp_path):
    schema = Schema(
        (
            NestedField(1, "s", StructType((NestedField(2, "x.y", LongType()),))),
            NestedField(3, "l", ListType(4, StructType((NestedField(5, "z", LongType()),)))),
            NestedField(6, "m", MapType(7, StringType(), 8, ListType(9, LongType()))),
        )
    )
    arrow = schema_to_pyarrow(schema)
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in arrow], schema=arrow)
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "f.parquet")
    footer = pq.read_metadata(tmp_path / "f.parquet")
    paths = [footer.schema.column(i).path for i in range(footer.num_columns)]
    assert dictionary_columns(schema.fields, batch, LIMIT) == paths
