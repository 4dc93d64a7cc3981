"""Iceberg Java and we append to one table at the same time: every row of both is there, once."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

TIMES = 8


@pytest.mark.parametrize("locks", ["true", "false"], ids=["locks", "lock-free"])
def test_iceberg_java_and_we_append_at_the_same_time(
    catalog: Any, iceberg_java: Any, locks: str
) -> None:
    name = f"together_{locks}"
    catalog.create_namespace_if_not_exists("concurrent")
    properties = {"engine.hive.lock-enabled": locks, "commit.retry.num-retries": "20"}
    table = catalog.create_table(
        f"concurrent.{name}", pa.schema([("id", pa.int64())]), properties=properties
    )
    failed: list[BaseException] = []
    began = threading.Barrier(2)

    def java() -> None:
        began.wait()
        try:
            for number in range(TIMES):
                iceberg_java.sql(f"INSERT INTO ice.concurrent.{name} VALUES ({number})")
        except BaseException as error:  # noqa: BLE001 - any is a failure of the test
            failed.append(error)

    writer = threading.Thread(target=java)
    writer.start()
    began.wait()
    ours = 2 * TIMES
    for number in range(ours):
        table.append(pa.table({"id": pa.array([1000 + number], pa.int64())}))
    writer.join()
    assert failed == []
    expected = [*range(TIMES), *range(1000, 1000 + ours)]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == expected
    assert [
        row[0] for row in iceberg_java.sql(f"SELECT id FROM ice.concurrent.{name} ORDER BY id")
    ] == expected
    chain = {each.snapshot_id: each.parent_snapshot_id for each in table.snapshots()}
    assert len(chain) == TIMES + ours
    assert len(set(chain.values())) == len(chain)
    catalog.purge_table(f"concurrent.{name}")
