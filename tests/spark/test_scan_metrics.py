"""What Spark's UI shows of a scan: Iceberg's metrics by Iceberg's names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.rings import sampled

NAME = "scan_metrics_tests.t"


@pytest.fixture
def table(spark, catalog):
    """Two manifests with files of three partitions, and one row deleted in each of two of them."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.scan_metrics_tests")
    spark.sql(
        f"CREATE TABLE lake.{NAME} (id BIGINT, k BIGINT) PARTITIONED BY (k) "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'commit.manifest-merge.enabled'='false')"
    )
    table = catalog.load_table(NAME)
    for partitions in ((1, 2), (3,)):
        rows = [(k * 10 + n, k) for k in partitions for n in range(10)]
        table.append(pa.table({"id": [i for i, _ in rows], "k": [k for _, k in rows]}))
    for row in (15, 25):
        table.delete(f"id = {row}")
    yield table
    spark.sql(f"DROP TABLE lake.{NAME} PURGE")


def _metrics(spark, where, vectorized="true"):
    """The metrics of a scan when it has run: as the driver has them, and as the UI shows them."""
    frame = (
        spark.read.option("vectorization-enabled", vectorized).table(f"lake.{NAME}").where(where)
    )
    assert len(frame.collect()) == 9
    found = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics()
    names = found.keys().toSeq()
    metrics = {names.apply(i): found.apply(names.apply(i)) for i in range(names.size())}
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    shown = store.executionMetrics(store.executionsList().last().executionId())
    return (
        {name: metric.value() for name, metric in metrics.items()},
        {name: shown.get(metric.id()) for name, metric in metrics.items()},
    )


@pytest.mark.parametrize("vectorized", sampled(["true", "false"], keep=1))
def test_a_scan_shows_what_it_read_and_what_it_left_out(spark, table, vectorized):
    task = next(task for task in table.scan("k = 1").plan_files())
    found, shown = _metrics(spark, "k = 1", vectorized)
    expected = {
        "numSplits": 1,
        "numDeletes": 1,
        "totalDataManifest": 2,
        "scannedDataManifests": 1,
        "skippedDataManifests": 1,
        "resultDataFiles": 1,
        "skippedDataFiles": 1,
        "totalDataFileSize": task.file.file_size_in_bytes,
        "totalDeleteManifests": 2,
        "scannedDeleteManifests": 1,
        "skippedDeleteManifests": 1,
        "totalDeleteFileSize": task.delete_files[0].file_size_in_bytes,
        "resultDeleteFiles": 1,
        "equalityDeleteFiles": 0,
        "indexedDeleteFiles": 1,
        "positionalDeleteFiles": 1,
        "skippedDeleteFiles": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["totalPlanningDuration"] >= 0
    assert shown["numDeletes"].get() == "1"
    assert shown["skippedDataManifests"].get() == "1"
