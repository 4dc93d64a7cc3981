"""Writers that were killed: when they are gone, and the locks that they leave."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.table.table import Table


def kill(pid: int) -> None:
    """Kills a process, and waits until it is gone: its connections are closed then, and not before.

    Args:
        pid: Whose parent asks what became of it; else it would never be gone.
    """
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"{pid} does not die"
        time.sleep(0.01)


def planner(spark: SparkSession) -> int:
    """The process that plans for the catalogs of a session; tests' own planners are not meant."""
    handles = spark._jvm.java.lang.ProcessHandle.current().children().toArray()  # type: ignore[union-attr]
    commands = {handle.pid(): handle.info().commandLine().orElse("") for handle in handles}
    [pid] = [pid for pid, line in commands.items() if "icecomb.spark.planner" in line]
    return int(pid)


def break_locks(catalog: HiveCatalog, table: Table, until_s: float = 0) -> None:
    """As `icecomb locks break` does: the metastore keeps the locks of the dead for five minutes.

    Args:
        catalog: Of the table.
        table: Which nobody alive is writing.
        until_s: For how long requests of the dead may still arrive.
    """
    deadline = time.monotonic() + until_s
    while True:
        for row in catalog.client.locks(*table.identifier):
            catalog.client.unlock(row.lock_id)
        if time.monotonic() >= deadline:
            return
        time.sleep(0.05)
