"""The statements of `sql/*.sql` answer the same on every Spark, and from Iceberg's own runtime there."""

from __future__ import annotations

import pytest

from tests.peers.spark_worker import plain
from tests.rings import sampled
from tests.spark.sql_file import FILES, check, statements

# Sparks that the gate has an environment for, besides ours; the others by `python3 -m tests spark VERSION`
WHOLLY, SMOKE = "3.5", "4.1"


def test_every_file_says_what_it_expects():
    assert FILES
    assert all(
        any(each.rows is not None for each in statements(file))
        and any(each.error for each in statements(file))
        for file in FILES
    )


@pytest.mark.parametrize("file", sampled(FILES, keep=8))
def test_on_our_spark(spark, file):
    def run(text):
        return [[plain(value) for value in row] for row in spark.sql(text).collect()]

    check(run, file, "lake", f"sql_{file}")


@pytest.mark.parametrize("file", FILES)
def test_on_icebergs_own_runtime(iceberg_java, file):
    check(iceberg_java.sql, file, "ice", f"sql_{file}_of_iceberg")


def pytest_generate_tests(metafunc):
    if "minor" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--spark")
        gate = [*((WHOLLY, file) for file in FILES), (SMOKE, "changing_rows")]
        metafunc.parametrize(
            ("minor", "file"), [(asked, file) for file in FILES] if asked else gate
        )


def test_on_another_spark(other_spark, minor, file):
    check(other_spark(minor).sql, file, "lake", f"sql_{file}_{minor.replace('.', '_')}")
