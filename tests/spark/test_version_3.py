"""Tables of format version 3 in Spark SQL: deletion vectors, defaults."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icecomb.catalog.hive.catalog import HiveCatalog
from tests.rings import sampled

NAMESPACE = "version_3_tests"
NUMBERS = itertools.count(1)
BY_POSITION = {f"write.{c}.mode": "merge-on-read" for c in ("delete", "update", "merge")}
U = "00000000-0000-0000-0000-000000000001"
BEYOND_A_PLAN = (1 << 20) + 1
"""More deleted rows than a plan tells Spark's tasks."""


@pytest.fixture(scope="module", autouse=True)
def namespace(catalog):
    catalog.create_namespace_if_not_exists((NAMESPACE,))


@pytest.fixture
def name():
    return f"{NAMESPACE}.t{next(NUMBERS)}"


def created(catalog: HiveCatalog, name, schema, **properties):
    """A table of version 3 that is merged on read."""
    properties = {"format-version": "3", **BY_POSITION} | {
        key.replace("_", "."): value for key, value in properties.items()
    }
    return catalog.create_table(name, schema, properties=properties)


@pytest.mark.sparks("4.3", "3.5", "4.1")
@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_rows_in_deletion_vectors_are_left_out_and_defaults_filled_in(
    sql_on, catalog, name, minor, file_format
):
    sql = sql_on(minor)
    inner = pa.struct([("a", pa.int32())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("l", pa.list_(inner))])
    table = created(catalog, name, schema, write_format_default=file_format)
    rows = [{"id": i, "s": None if i == 3 else {"a": i}, "l": [{"a": i}, None]} for i in range(8)]
    table.append(pa.Table.from_pylist(rows, schema))
    table.delete("id in (2, 4, 5)")
    table.upsert(pa.Table.from_pylist([rows[6]], schema), ["id"])
    with table.update_schema() as update:
        update.add_column("c", "int", default_value=5)
        update.add_column("s.n", "decimal(20, 2)", default_value="1.50")
        update.add_column("l.element.n", "date", default_value="2020-01-02")
        update.add_column("u", "uuid", default_value=U)
    there, day = f"lake.{name}", date(2020, 1, 2)
    assert sql(f"SELECT id, c, s.a, s.n, l[0].n, l[1].n, u FROM {there} ORDER BY id") == [
        [i, 5, None if i == 3 else i, None if i == 3 else Decimal("1.50"), day, None, U]
        for i in (0, 1, 3, 6, 7)
    ]
    assert sql(f"SELECT count(*), count(c), max(c) FROM {there}") == [[5, 5, 5]]
    assert sql(f"SELECT id FROM {there} WHERE c = 5 AND s.n > 1 ORDER BY id") == [
        [0],
        [1],
        [6],
        [7],
    ]
    assert sql(f"SELECT id FROM {there} WHERE c IS NULL OR c < 5") == []
    assert sql(f"SELECT id FROM {there} WHERE _deleted ORDER BY id")[:3] == [[2], [4], [5]]


@pytest.mark.sparks("4.3", "3.5", "4.1")
def test_tasks_read_the_vectors_that_are_too_large_for_a_plan(sql_on, catalog, name, minor):
    sql = sql_on(minor)
    schema = pa.schema([("id", pa.int64()), ("part", pa.int8())])
    table = created(catalog, name, schema)
    ids = np.arange(3 * BEYOND_A_PLAN)
    # in bitmaps, in runs, and in short lists
    part = np.where(ids % 3 == 0, 1, 0)
    part[-70_000:] = 1
    part[:200_000] = ids[:200_000] % 100 == 0
    table.append(pa.table({"id": ids, "part": pa.array(part, pa.int8())}))
    table.delete("part = 1")
    live = ids[part == 0]
    assert len(ids) - len(live) > BEYOND_A_PLAN - 200_000
    table.append(pa.table({"id": ids, "part": pa.array(part, pa.int8())}))
    table.delete("part = 1")
    assert sql(f"SELECT count(id), sum(id), max(id), min(id) FROM lake.{name}") == [
        [2 * len(live), 2 * int(live.sum()), int(live.max()), int(live.min())]
    ]
