"""What Spark knows of a commit, and its UI shows: Iceberg's metrics by Iceberg's names."""

from __future__ import annotations

import pytest

from tests.rings import sampled

NAMESPACE = "commit_metrics_tests"
SHOWN = {
    "addedDataFiles": ("number of added data files", "added-data-files"),
    "addedDeleteFiles": ("number of added delete files", "added-delete-files"),
    "addedFileSizeInBytes": ("total size of added files (bytes)", "added-files-size"),
    "addedPositionalDeletes": (
        "number of added positional deletes records",
        "added-position-deletes",
    ),
    "addedRecords": ("number of added records", "added-records"),
    "removedDataFiles": ("number of removed data files", "deleted-data-files"),
    "removedFileSizeInBytes": ("total size of removed files (bytes)", "removed-files-size"),
    "removedRecords": ("number of removed records", "deleted-records"),
    "totalDataFiles": ("total number of data files", "total-data-files"),
    "totalPositionalDeletes": (
        "total number of positional deletes records",
        "total-position-deletes",
    ),
    "totalRecords": ("total number of records", "total-records"),
}
"""Names and words are those of `org.apache.iceberg.spark.source.metrics` in Iceberg 1.12."""


MERGE = (
    "MERGE INTO {t} t USING (SELECT id * 3 AS id FROM range(10)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET k = 8 WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 9)"
)


@pytest.fixture
def name(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    spark.sql(f"CREATE TABLE lake.{NAMESPACE}.t (id BIGINT, k BIGINT) USING iceberg")
    yield f"{NAMESPACE}.t"
    spark.sql(f"DROP TABLE lake.{NAMESPACE}.t PURGE")


def metrics(spark, statement):
    """The metrics of a statement when it has run: each one's words and value, by its name."""
    run = spark.sql(statement)._jdf.queryExecution().commandExecuted().commandPhysicalPlan()
    found = run.metrics()
    names = found.keys().toSeq()
    each = {names.apply(i): found.apply(names.apply(i)) for i in range(names.size())}
    return {name: (metric.name().get(), metric.value()) for name, metric in each.items()}


STATEMENTS = [
    "INSERT INTO {t} SELECT id, id % 2 FROM range(100, 110)",
    "INSERT OVERWRITE {t} SELECT id, id % 2 FROM range(3)",
    "DELETE FROM {t} WHERE id IN (SELECT id + 1 FROM {t} WHERE id < 4)",
    "UPDATE {t} SET k = 7 WHERE id % 3 = 1",
    MERGE,
]


MODES = ["merge-on-read", "copy-on-write"]
CASES = [(mode, each) for n, each in enumerate(STATEMENTS) for mode in MODES[:: 1 - n % 2 * 2]]


# every statement is in the gate, by turns in one mode and in the other
@pytest.mark.parametrize(
    ("mode", "statement"),
    sampled(CASES, keep=2),
    ids=lambda text: " ".join(text.split()[:2]),
)
def test_a_write_shows_what_its_commit_changed(spark, catalog, name, statement, mode):
    modes = ", ".join(f"'write.{c}.mode'='{mode}'" for c in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ({modes})")
    spark.sql(f"INSERT INTO lake.{name} SELECT id, id % 2 FROM range(20)")
    found = metrics(spark, statement.format(t=f"lake.{name}"))
    summary = catalog.load_table(name).current_snapshot().summary
    expected = {
        metric: (words, int(summary[key]))
        for metric, (words, key) in SHOWN.items()
        if key in summary
    }
    assert len(expected) >= 4
    assert {metric: found[metric] for metric in expected} == expected
