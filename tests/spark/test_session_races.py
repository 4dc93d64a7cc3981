"""CALL rewrite_data_files by executors beside writers: no row is lost, none comes twice."""

from __future__ import annotations

import threading
import time
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.errors import CommitFailedError, ValidationError

pytestmark = pytest.mark.full("threads that race for a quarter of a minute")

NAME = "session_races.t"
SECONDS = 15
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
LATER = 4_102_444_800_000


class Ledger:
    """What each writer was told is done; ids of one writer are touched by no other."""

    def __init__(self):
        self.rows = {}
        self.problems = []
        self.done = {"append": 0, "delete": 0, "upsert": 0, "rewrite": 0, "spark": 0, "expire": 0}
        self.refused = 0
        self.end = time.monotonic() + SECONDS


def rows(ids, v):
    return pa.table([list(ids), [i % 3 for i in ids], [v] * len(ids)], SCHEMA)


def working(ledger, act):
    def once():
        try:
            act()
        except (CommitFailedError, ValidationError, PySparkException) as problem:
            if "unknown" in str(problem).lower():
                raise
            ledger.refused += 1

    def work():
        try:
            while time.monotonic() < ledger.end:
                once()
        except BaseException as problem:  # noqa: BLE001 - told by the test
            ledger.problems.append(problem)

    return threading.Thread(target=work)


def writer(ledger, catalog, number):
    """Appends, deletes and upserts rows of its own."""
    random, ids = Random(number), iter(range(number * 1_000_000, (number + 1) * 1_000_000))
    own = []

    def act():
        table = catalog.load_table(NAME)
        kind = random.choice(["append", "append", "delete", "upsert"])
        if kind == "append" or len(own) < 20:
            new = [next(ids) for _ in range(5)]
            table.append(rows(new, 0))
            own.extend(new)
            ledger.rows.update(dict.fromkeys(new, 0))
            kind = "append"
        elif kind == "delete":
            gone = random.sample(own, 2)
            table.delete(f"id in ({gone[0]}, {gone[1]})")
            for one in gone:
                own.remove(one)
                del ledger.rows[one]
        else:
            chosen, v = random.sample(own, 2), random.randrange(1, 1 << 30)
            table.upsert(rows(chosen, v), join_cols=["id"])
            ledger.rows.update(dict.fromkeys(chosen, v))
        ledger.done[kind] += 1

    return act


def test_executors_rewrite_beside_writers_and_expiry(spark, catalog):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.session_races")
    spark.sql(
        f"CREATE TABLE lake.{NAME} (id bigint, k bigint, v bigint) PARTITIONED BY (k) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        "'write.merge.mode'='merge-on-read', 'commit.retry.num-retries'='20', "
        "'write.delete.granularity'='partition')"
    )
    ledger = Ledger()

    def by_spark():
        options = "'engine', 'spark', 'rewrite-all', 'true', 'partial-progress.enabled', 'true'"
        call = f"CALL lake.system.rewrite_data_files(table => '{NAME}', options => map({options}))"
        ledger.done["spark"] += spark.sql(call).collect()[0][0]

    def here():
        table = catalog.load_table(NAME)
        done = table.maintenance.rewrite_data_files(
            options={"min-input-files": "2", "remove-dangling-deletes": "true"},
            where=f"k = {Random().randrange(3)}",
        )
        ledger.done["rewrite"] += done.rewritten_data_files_count
        table.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"})
        table.maintenance.rewrite_manifests()

    def expire():
        time.sleep(1)
        catalog.load_table(NAME).maintenance.expire_snapshots().older_than(LATER).retain_last(
            30
        ).commit()
        ledger.done["expire"] += 1

    acts = [*(writer(ledger, catalog, n) for n in (1, 2, 3)), by_spark, here, expire]
    threads = [working(ledger, act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if ledger.problems:
        raise ledger.problems[0]

    def found():
        scanned = catalog.load_table(NAME).scan().to_arrow().to_pylist()
        return sorted((row["id"], row["v"]) for row in scanned)

    wanted = sorted(ledger.rows.items())
    assert found() == wanted
    spark.sql(f"REFRESH TABLE lake.{NAME}")
    read = spark.sql(f"SELECT id, v FROM lake.{NAME}").collect()
    assert sorted((row[0], row[1]) for row in read) == wanted
    assert ledger.done["append"]
    by_spark()
    table = catalog.load_table(NAME)
    table.maintenance.expire_snapshots().older_than(LATER).retain_last(1).commit()
    table.maintenance.remove_orphan_files(older_than=LATER, any_age=True, dry_run=False)
    assert found() == wanted
