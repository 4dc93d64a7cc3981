"""The source of a MERGE, which Spark may read twice: what it finds to change, and what it changes, agree."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from tests.peers.prepared_statement import prepare, run

NAMESPACE = "merge_source_tests"
NUMBERS = itertools.count(1)
FILTER = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
MODES = ("copy-on-write", "merge-on-read")
MERGE = """MERGE INTO {t} t USING {s} s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET v = 'new'
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"""


@pytest.fixture(scope="module", autouse=True)
def namespace(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")


def table_of(catalog, *files, **properties):
    table = catalog.create_table(
        f"{NAMESPACE}.t{next(NUMBERS)}", SCHEMA, properties={"format-version": "2", **properties}
    )
    for ids in files:
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "v": ["old"] * len(ids)}, SCHEMA))
    return table


@pytest.fixture(params=MODES)
def target(request, catalog):
    """Twenty rows in five files."""
    files = [range(first, first + 4) for first in range(0, 20, 4)]
    table = table_of(catalog, *files, **{"write.merge.mode": request.param})
    yield table
    catalog.drop_table(table.identifier)


def name_of(table):
    return f"lake.{'.'.join(table.identifier)}"


def values(table):
    rows = table.refresh().scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


@pytest.mark.parametrize("random", ["rand() < 0.5", "hash(uuid()) % 2 = 0"])
def test_a_source_that_says_it_is_random_is_read_once_or_refused(sql, target, random):
    source = f"(SELECT id FROM range(40) WHERE {random})"
    try:
        sql(MERGE.format(t=name_of(target), s=source))
    except Exception as refused:  # noqa: BLE001 - another one in each Spark
        assert "NON_DETERMINISTIC_EXPRESSIONS" in str(refused)  # noqa: PT017
        assert set(values(target).values()) == {"old"}
    else:
        assert target.metadata.properties["write.merge.mode"] == "merge-on-read"
        assert set(range(20)) <= values(target).keys()


def test_a_table_that_changes_meanwhile_is_read_in_one_state(spark, catalog, target):
    source = table_of(catalog, [0, 5, 50])
    statement = prepare(spark, MERGE.format(t=name_of(target), s=name_of(source)))
    rows = pa.table({"id": [9, 13, 60], "v": ["later"] * 3}, SCHEMA)
    catalog.load_table(source.identifier).append(rows)
    catalog.load_table(source.identifier).delete("id = 5")
    run(statement)
    found = values(target)
    assert {key for key, value in found.items() if value == "new"} == {0, 5, 50}
    assert found.keys() == {*range(20), 50}
    catalog.drop_table(source.identifier)


@pytest.fixture
def growing(spark, tmp_path):
    """A view of rows of which there are more at each reading, unknown to Spark; and how often it was read."""
    readings = tmp_path / "readings"

    def read(_):
        with readings.open("a") as file:
            file.write("x")
        return [(key,) for key in range(0, 4 * len(readings.read_text()), 2)]

    rdd = spark.sparkContext.parallelize([0], 1).mapPartitions(read)
    frame = spark.createDataFrame(rdd, "id BIGINT")
    frame.createOrReplaceTempView("growing")
    yield frame, lambda: len(readings.read_text())
    frame.unpersist()
    spark.catalog.dropTempView("growing")


def test_a_source_that_grows_is_read_once_where_spark_looks_for_no_files_first(
    spark, target, growing
):
    _, readings = growing
    spark.conf.set(FILTER, "false")
    try:
        spark.sql(MERGE.format(t=name_of(target), s="growing"))
    finally:
        spark.conf.unset(FILTER)
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))


def test_a_source_that_grows_and_is_persisted_is_read_once(spark, target, growing):
    frame, readings = growing
    frame.persist()
    spark.sql(MERGE.format(t=name_of(target), s="growing"))
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))
