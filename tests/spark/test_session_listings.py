"""CALL remove_orphan_files by the session's own executors, on the newest Spark and the oldest."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "session_listings"
NUMBERS = itertools.count(1)
REFUSED = (PySparkException, AssertionError)  # the second is that of a Spark in another process
OLD = time.time() - 7 * 86_400


@pytest.fixture
def table(sql, catalog):
    """Eight partitions, and what others left in the folder; all of it is old."""
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    sql(f"CREATE TABLE lake.{name} (id bigint, _k int) PARTITIONED BY (_k)")
    sql(f"INSERT INTO lake.{name} SELECT id, id % 8 FROM range(64)")
    sql(f"DELETE FROM lake.{name} WHERE _k = 3")
    made = catalog.load_table(name)
    place = Path(made.location().removeprefix("file:"))
    for left in (
        "data/_k=1/left.parquet",
        "data/_k=9/deep/left ü%20+.parquet",
        "data/_hidden/left.parquet",
        "data/.left.parquet.crc",
        "delta/_delta_log/0.json",
        "delta/part-0.parquet",
        "metadata/left-m0.avro",
    ):
        (place / left).parent.mkdir(parents=True, exist_ok=True)
        (place / left).write_bytes(b"PAR1")
    elsewhere = place.parent / f"{place.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept.parquet").write_bytes(b"PAR1")
    (place / "data" / "link").symlink_to(elsewhere)
    for path in place.rglob("*"):
        os.utime(path, (OLD, OLD))
    os.utime(elsewhere / "kept.parquet", (OLD, OLD))
    (place / "data/_k=1/young.parquet").write_bytes(b"PAR1")
    return made


def orphans(sql, table, more):
    name = ".".join(table.name())
    rows = sql(f"CALL lake.system.remove_orphan_files(table => '{name}'{more})")
    return {row[0] for row in rows}


def test_executors_find_what_the_planner_finds(sql, table):
    theirs = orphans(sql, table, ", dry_run => true, engine => 'spark'")
    assert theirs == orphans(sql, table, ", dry_run => true, engine => 'local'")
    assert theirs == orphans(sql, table, ", dry_run => true")
    place = table.location()
    left = ("data/_k=1/left.parquet", "data/_k=9/deep/left ü%20+.parquet", "metadata/left-m0.avro")
    assert theirs == {f"{place}/{name}" for name in left}
    name = ".".join(table.name())
    before = sql(f"SELECT * FROM lake.{name} ORDER BY id")
    assert orphans(sql, table, ", engine => 'SPARK'") == theirs
    assert not any(Path(path.removeprefix("file:")).exists() for path in theirs)
    sql(f"REFRESH TABLE lake.{name}")
    assert sql(f"SELECT * FROM lake.{name} ORDER BY id") == before
    assert len(before) == 56
    assert orphans(sql, table, ", engine => 'spark'") == set()


@pytest.mark.parametrize(
    ("call", "problem"),
    sampled(
        [
            (
                "remove_orphan_files(table => '{0}', engine => 'flink')",
                "There is no engine 'flink'",
            ),
            ("expire_snapshots(table => '{0}', engine => 'spark')", "reads manifests"),
            ("rewrite_manifests(table => '{0}', engine => 'spark')", "reads and writes manifests"),
            (
                "rewrite_position_delete_files(table => '{0}', options => map('engine', 'spark'))",
                "does not run on Spark",
            ),
            (
                "convert_equality_deletes(table => '{0}', options => map('engine', 'spark'))",
                "does not run on Spark",
            ),
        ],
        keep=1,
    ),
)
def test_what_executors_do_not_do_is_refused(spark, sql_on, catalog, call, problem):
    sql = sql_on("4.3")
    name = f"{NAMESPACE}.refusing"
    sql(f"CREATE TABLE IF NOT EXISTS lake.{name} (id bigint)")
    with pytest.raises(REFUSED, match=problem):
        sql(f"CALL lake.system.{call.format(name)}")
    for engine in ("auto", "local"):
        sql(
            f"CALL lake.system.{call.format(name)}".replace("spark", engine).replace(
                "flink", engine
            )
        )
