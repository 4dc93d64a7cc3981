"""How many manifests a scan of a partition reads, as the scan planner itself counts them."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.inspect.file_census import CensusLimits, take_census
from icecomb.format.inspect.manifest_overlap import manifests_per_partition, sampled
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, UUIDType

LIMITS = CensusLimits(1, 1)


def read(tmp_path: Path, schema: Any, values: list[Any], transform: str = "identity") -> float:
    """Each value of its own manifest, and the first one in all of them."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", schema, properties={"commit.manifest-merge.enabled": "false"})
    with table.update_spec() as spec:
        spec.add_field("v", transform, "part")
    arrow = table.schema().as_arrow()
    for value in values:
        chosen = [v.bytes if isinstance(v, uuid.UUID) else v for v in (values[0], value)]
        table.append(pa.table([pa.array(chosen, arrow.field("v").type)], schema=arrow))
    manifests = read_manifests(table.io, table.current_snapshot())
    found = take_census(table.metadata, table.io, manifests, LIMITS)
    return manifests_per_partition(
        table.metadata, table.metadata.default_spec_id, found.manifests, found.partitions[1]
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [5, 6, 7]),
        (pa.string(), ["a", "b" * 40, "it's"]),
        (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
        (pa.decimal128(9, 2), [Decimal("-1.00"), Decimal("0.50"), Decimal("7.25")]),
        (pa.float64(), [-1.5, 0.25, 2.0]),
        (pa.bool_(), [False, True]),
        (pa.binary(), [b"\x00", b"\x80", b"\xff"]),
    ],
)
def test_the_first_value_is_in_all_and_each_other_in_those_from_its_own_on(
    tmp_path: Path, kind: pa.DataType, values: list[Any]
) -> None:
    # manifests have the ranges [v0, vi]: that of vi has all values up to it
    count = len(values)
    found = read(tmp_path, pa.schema([("v", kind)]), values)
    assert found == (count + sum(count - at for at in range(1, count))) / count


def test_nulls_and_nans_are_partitions_too(tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.float64())])
    # null is in both manifests; one has nothing else, the other NaN
    assert read(tmp_path, schema, [None, math.nan]) == (2 + 1) / 2


def test_uuids_are_compared_as_the_specification_says(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "v", UUIDType()),))
    low, high = uuid.UUID(int=1), uuid.UUID(int=1 << 127)
    assert read(tmp_path, schema, [low, high]) == (2 + 1) / 2


def test_the_values_of_transforms_are_asked_for(tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.date32())])
    days = [dt.date(2024, month, 1) for month in (1, 2, 3)]
    assert read(tmp_path, schema, days, "month") == (3 + 2 + 1) / 3


def test_a_sample_is_spread_over_all_partitions() -> None:
    assert sampled(1000, 5).tolist() == [0, 249, 499, 749, 999]
    assert sampled(3, 5).tolist() == [0, 1, 2]
    assert sampled(0, 5).tolist() == []
