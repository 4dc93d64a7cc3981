"""The columns of files by the ids of their fields."""

from __future__ import annotations

import math

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform


def test_files_that_differ_in_ids_of_nested_fields_alone_are_told_apart():
    def schema(number: int) -> pa.Schema:
        inner = pa.field("x", pa.int32(), metadata={"PARQUET:field_id": str(number)})
        return pa.schema([pa.field("s", pa.struct([inner]), metadata={"PARQUET:field_id": "1"})])

    found = [file_fields(schema(number), None, "f")[0].children[0] for number in (2, 3, 3, 2)]
    assert [child.field_id for child in found] == [2, 3, 3, 2]


def test_partitions_of_zeros_of_both_signs_keep_them_file_by_file(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "x"),))
    table = lake.create_table("db.t", pa.schema([("x", pa.float64())]), partition_spec=spec)
    for value in (0.0, -0.0, 1.0):
        table.append(pa.table({"x": [value, value]}))
    signs = [math.copysign(1, x) for x in table.scan().to_arrow()["x"].to_pylist() if x == 0]
    assert sorted(signs) == [-1, -1, 1, 1]
