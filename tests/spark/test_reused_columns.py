"""Tables that REPLACE gave columns of other types: branches, tags and old snapshots in Spark."""

from __future__ import annotations

from uuid import uuid4

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField
from tests.catalog.test_reused_columns import SameIds
from tests.rings import sampled

REFUSED = (
    PySparkException,
    Py4JError,
    AssertionError,
)  # the last is that of a Spark in another process
NAMESPACE = "reused_columns"
REPLACEMENT = "CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT id + 10 AS id, CAST(x * 7 AS INT) AS x FROM {t}"
BY_ID = Schema((NestedField(1, "id", LongType()), NestedField(2, "x", IntegerType())))


@pytest.fixture(params=sampled(["by Iceberg Java", "by us"], keep=1))
def name(request, sql, catalog):
    """A table of doubles with a branch, a tag and a staged change, which has integers by now."""
    sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    own = f"{NAMESPACE}.t{uuid4().hex}"
    table = f"lake.{own}"
    sql(
        f"CREATE TABLE {table} (id BIGINT, x DOUBLE) USING iceberg "
        "TBLPROPERTIES ('write.wap.enabled'='true')"
    )
    sql(f"INSERT INTO {table} VALUES (1, 1.0), (2, 2.0), (3, 300.0)")
    sql(f"ALTER TABLE {table} CREATE BRANCH b")
    sql(f"ALTER TABLE {table} CREATE TAG old")
    sql("SET `spark.wap.id` = staged")
    sql(f"INSERT INTO {table} VALUES (4, 4.0)")
    sql("RESET `spark.wap.id`")
    if request.param == "by us":
        sql(REPLACEMENT.format(t=table))
    else:
        # the ids of the columns stay, whatever their types
        catalog.load_table(own).commit(SameIds(BY_ID))
        sql(f"REFRESH TABLE {table}")
        sql(f"INSERT INTO {table} VALUES (11, 7), (12, 14), (13, 2100)")
    yield table
    sql(f"DROP TABLE IF EXISTS {table}")
    sql(f"DROP NAMESPACE lake.{NAMESPACE}")


@pytest.mark.full("one of many tables; Python reads them in the gate")
def test_states_of_the_old_table_are_read_with_its_columns_and_not_changed(sql, name):
    old, new = [[1, 1.0], [2, 2.0], [3, 300.0]], [[11, 7], [12, 14], [13, 2100]]
    for state in (f"{name}.branch_b", f"{name}.tag_old", f"{name} VERSION AS OF 'old'"):
        assert sql(f"SELECT * FROM {state} ORDER BY id") == old
        assert sql(f"SELECT id FROM {state} WHERE x > 100") == [[3]]
        assert sql(f"SELECT id FROM {state} WHERE x < 1.5") == [[1]]
        assert sql(f"SELECT * FROM {state} ORDER BY x LIMIT 1") == old[:1]
        assert sql(f"SELECT min(x), max(x), count(x) FROM {state}") == [[1.0, 300.0, 3]]
    assert sql(f"SELECT * FROM {name} WHERE x > 8 ORDER BY x") == new[1:]
    assert sql(f"SELECT min(x), max(x), count(x) FROM {name}") == [[7, 2100, 3]]
    files = sorted(sql(f"SELECT file_path FROM {name}.all_files"))
    for change in (
        f"DELETE FROM {name}.branch_b WHERE x > 100",
        f"DELETE FROM {name}.branch_b WHERE x + 0 > 100",
        f"UPDATE {name}.branch_b SET x = 5 WHERE id = 1",
        f"INSERT INTO {name}.branch_b VALUES (5, 5)",
        f"INSERT OVERWRITE {name}.branch_b VALUES (5, 5)",
        f"CALL lake.system.publish_changes('{name.removeprefix('lake.')}', 'staged')",
        f"CALL lake.system.fast_forward('{name.removeprefix('lake.')}', 'main', 'b')",
        f"CALL lake.system.set_current_snapshot(table => '{name.removeprefix('lake.')}', ref => 'b')",
    ):
        with pytest.raises(REFUSED, match=r"'x' is int .*double|not an ancestor"):
            sql(change)
    assert sql(f"SELECT * FROM {name}.branch_b ORDER BY id") == old
    assert sql(f"SELECT * FROM {name} ORDER BY id") == new
    assert sorted(sql(f"SELECT file_path FROM {name}.all_files")) == files
