"""Staged changes of rows are published, or refused, as by Iceberg's runtime."""

from __future__ import annotations

import itertools

import pytest

NAMESPACE = "published_changes_tests"
NUMBERS = itertools.count(1)
CHANGES = {
    "insert": "INSERT INTO {t} VALUES (7, 'p', 7)",
    "overwrite": "INSERT OVERWRITE {t} VALUES (1, 'p', 10)",
    "delete": "DELETE FROM {t} WHERE v * 2 = 4",
    "update": "UPDATE {t} SET v = v * 10 WHERE id = 2",
    "merge": "MERGE INTO {t} t USING (SELECT 2L AS id UNION ALL SELECT 9L) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, 'p', 9)",
}


@pytest.fixture
def name(peers):
    table = f"{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    for each in (table, f"{table}_of_iceberg"):
        peers["lake"](f"DROP TABLE IF EXISTS lake.{each}")


def published(sql, catalog, table, change, mode, meanwhile):
    """The rows after a change was staged and published, or that this was refused."""
    modes = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
    t = f"{catalog}.{table}"
    sql(
        f"CREATE TABLE {t} (id BIGINT, k STRING, v INT) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('write.wap.enabled'='true', {modes})"
    )
    sql(f"INSERT INTO {t} VALUES (1, 'p', 1), (2, 'p', 2), (3, 'q', 3)")
    sql("SET `spark.wap.id` = load")
    sql("SET `spark.sql.sources.partitionOverwriteMode` = dynamic")
    try:
        sql(CHANGES[change].format(t=t))
    finally:
        sql("RESET `spark.wap.id`")
        sql("RESET `spark.sql.sources.partitionOverwriteMode`")
    staged = sql(f"SELECT * FROM {t} ORDER BY id")
    if meanwhile:
        sql(f"INSERT INTO {t} VALUES (4, 'q', 4)")
    try:
        sql(f"CALL {catalog}.system.publish_changes('{table}', 'load')")
    except AssertionError:
        return staged, "refused", sql(f"SELECT * FROM {t} ORDER BY id")
    return staged, "published", sql(f"SELECT * FROM {t} ORDER BY id")


@pytest.mark.parametrize("meanwhile", [False, True], ids=["at once", "after others"])
@pytest.mark.parametrize(
    ("change", "mode"),
    [
        ("insert", "merge-on-read"),
        ("overwrite", "copy-on-write"),
        ("delete", "merge-on-read"),
        ("update", "merge-on-read"),
        ("update", "copy-on-write"),
        ("merge", "merge-on-read"),
    ],
)
def test_staged_changes_are_published_or_refused_as_by_icebergs_runtime(
    peers, name, change, mode, meanwhile
):
    expected = published(peers["ice"], "ice", f"{name}_of_iceberg", change, mode, meanwhile)
    found = published(peers["lake"], "lake", name, change, mode, meanwhile)
    assert found == expected
    if change == "insert" or not meanwhile:
        assert found[1] == "published"
    elif change != "overwrite":
        assert found[1] == "refused"
    assert peers["ice"](f"SELECT * FROM ice.{name} ORDER BY id") == expected[2]
