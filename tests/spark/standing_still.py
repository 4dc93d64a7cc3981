"""Statements that stand still in the middle of their rows while something else happens."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import functions as f

FUNCTION = "standing_still"


class StandingStill:
    """The function `standing_still` of a session gives back the numbers it is given.

    The first task that asks it waits until it is told to go on; the others are not held up.
    """

    def __init__(self, spark, folder):
        self._spark = spark
        folder.mkdir(exist_ok=True)
        self._started, self._go = folder / "started", folder / "go"
        started, go = str(self._started), str(self._go)

        def wait(value: int) -> int:
            if TaskContext.get().partitionId() == 0:
                Path(started).touch()
                while not Path(go).exists():
                    time.sleep(0.02)
            return value

        spark.udf.register(FUNCTION, f.udf(wait, "bigint", useArrow=False))

    def run(self, statement, meanwhile):
        """Runs a statement, or what a function does, and something else while it is on its way."""
        begin = statement if callable(statement) else partial(self._spark.sql, statement)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(begin)
            try:
                while not (self._started.exists() or running.done()):
                    time.sleep(0.02)
                meanwhile()
            finally:
                self._go.touch()
            running.result()

    def close(self):
        self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {FUNCTION}")
