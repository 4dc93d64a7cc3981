"""Timestamps whose hours no int holds: refused by Spark before a row is there, and read where others wrote them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tests.rings import sampled

REFUSED = (
    PySparkException,
    Py4JError,
    AssertionError,
)  # the last is that of a Spark in another process
NAMESPACE = "far_hours"
FAR = "timestamp_micros(9223372036854775807L)"


@pytest.fixture
def name(sql):
    sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    table = f"lake.{NAMESPACE}.t{uuid4().hex}"
    yield table
    sql(f"DROP TABLE IF EXISTS {table}")
    sql(f"DROP NAMESPACE lake.{NAMESPACE}")


@pytest.mark.parametrize("distribution", sampled(["hash", "none"], keep=1))
def test_a_timestamp_whose_hours_no_int_holds_is_refused_by_its_value(sql, name, distribution):
    sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP) USING iceberg PARTITIONED BY (hours(at)) "
        f"TBLPROPERTIES ('write.distribution-mode'='{distribution}')"
    )
    with pytest.raises(REFUSED, match="2562047788 hours from 1970") as refused:
        sql(f"INSERT INTO {name} VALUES (1, {FAR}), (2, TIMESTAMP '2026-01-01 00:00:00')")
    assert "+294247-01-10T04:00:54" in str(refused.value)
    assert "partition by days" in str(refused.value)
    assert sql(f"SELECT count(*) FROM {name}.all_files") == [[0]]
    sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD at_hour WITH days(at)")
    sql(f"INSERT INTO {name} VALUES (1, {FAR}), (2, TIMESTAMP '2026-01-01 00:00:00')")
    for comparison in (f"= {FAR}", f">= {FAR}", "> TIMESTAMP '2026-01-02 00:00:00'"):
        assert sql(f"SELECT id FROM {name} WHERE at {comparison}") == [[1]]
    assert sql(f"SELECT id FROM {name} WHERE at < {FAR}") == [[2]]
