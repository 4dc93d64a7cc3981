"""Rows of Hive's files as Hive reads them, before they are compared."""

from __future__ import annotations

import pyarrow as pa

from icecomb.catalog.migrate.verifying.comparison import as_hive_reads
from icecomb.format.spec.types import LongType, NestedField, StringType, StructType

KIND = StructType((NestedField(1, "a", LongType()), NestedField(2, "b", StringType())))
TARGET = pa.struct([("a", pa.int64()), ("b", pa.string())])


def test_nested_columns_are_found_by_name_in_any_case_and_a_null_struct_stays_null() -> None:
    array = pa.StructArray.from_arrays(
        [pa.array([1, 2], pa.int32())], ["A"], mask=pa.array([False, True])
    )
    found = as_hive_reads(array, KIND, TARGET)
    assert found.type == TARGET
    assert found.to_pylist() == [{"a": 1, "b": None}, None]
