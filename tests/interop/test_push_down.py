"""What Spark has answered from metadata is what Iceberg Java answers, and what the rows say."""

from __future__ import annotations

import pytest

TABLE = "pushed_{}"
QUERIES = (
    "SELECT count(*), count(id), min(id), max(id), min(day), max(day), max(dec), min(b) FROM {t}",
    "SELECT count(country), min(country), max(country), max(st.x), max(tz), min(ts), max(d) FROM {t}",
    "SELECT count(*), count(d), min(d), max(f), min(s), max(bi), count(st.x), count(st) FROM {t}",
    "SELECT country, count(*), max(id), min(day) FROM {t} GROUP BY country ORDER BY country",
    "SELECT DISTINCT country FROM {t} ORDER BY country",
    "SELECT count(*), max(id) FROM {t} WHERE country = 'de'",
    "SELECT count(*), max(id) FROM {t} WHERE country <> 'de'",
    "SELECT count(*), max(id) FROM {t} WHERE country IS NULL OR country IN ('fr', 'it')",
    "SELECT count(*), count(new), max(new) FROM {t}",
    "SELECT count(*) FROM {t} WHERE ts >= TIMESTAMP_NTZ '2024-01-02 00:00:00'",
    "SELECT count(*) FROM {t} WHERE ts > TIMESTAMP_NTZ '2024-01-02 00:00:00' AND country = 'de'",
    "SELECT country, day, count(*) FROM {t} GROUP BY country, day ORDER BY country, day",
    "SELECT id FROM {t} WHERE {f}.days(ts) = DATE '2024-01-02' ORDER BY id",
    "SELECT id FROM {t} WHERE {f}.bucket(4, id) IN (1, 2) AND {f}.hours(ts) < 473377 ORDER BY id",
    "SELECT count(*) FROM {t} WHERE NOT {f}.truncate(1, s) = 'a'",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 3)",
    "SELECT id FROM {t} WHERE country = 'de' ORDER BY id DESC LIMIT 2",
)
VALUES = (
    "id, id % 2 = 0, CAST(id AS FLOAT) / 3, IF(id = 7, double('NaN'), id - 2.5), CAST(id * 1.25 AS DECIMAL(9,2)), "
    "date_add(DATE '1969-12-28', CAST(id AS INT)), "
    "CAST(timestamp_micros(1704150000123456 + id * 7000000001) AS TIMESTAMP_NTZ), "
    "timestamp_micros(id * 999999999999 - 3000000000001), IF(id % 5 = 0, NULL, concat('a long enough text é', id)), "
    "CAST(concat('b', id) AS BINARY), IF(id % 4 = 0, NULL, named_struct('x', CAST(id AS INT))), "
    "element_at(array('de', 'fr', NULL), CAST(id % 3 + 1 AS INT))"
)


@pytest.fixture(scope="module", params=["parquet", "orc", "avro"])
def table(request, readers):
    """Rows of Iceberg Java, then of our Spark; another column, and another partitioning, between."""
    name = TABLE.format(request.param)
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} (id BIGINT, b BOOLEAN, f FLOAT, d DOUBLE, dec DECIMAL(9,2), day DATE, "
        "ts TIMESTAMP_NTZ, tz TIMESTAMP, s STRING, bi BINARY, st STRUCT<x: INT>, country STRING) USING iceberg "
        f"PARTITIONED BY (country, days(ts)) TBLPROPERTIES ('write.format.default'='{request.param}', "
        "'write.delete.mode'='merge-on-read')"
    )
    readers.java_sql(f"INSERT INTO {{ns}}.{name} SELECT {VALUES} FROM range(0, 9)")
    return name


def agree(readers, table):
    off = "spark.sql.iceberg.aggregate-push-down.enabled"
    for query in QUERIES:
        if "new" in query and "new" not in readers.load(table).schema().column_names:
            continue
        java = readers.java_sql(query.format(t="{ns}." + table, f="ice.system"))
        text = query.format(t="{ns}." + table, f="lake.system")
        ours = readers.spark_sql(text)
        assert str(ours).replace("'NaN'", "nan") == str(java), query
        readers.spark_sql(f"SET `{off}`=false")
        try:
            assert str(readers.spark_sql(text)) == str(ours), query
        finally:
            readers.spark_sql(f"RESET `{off}`")


def test_answers_are_the_same_as_the_table_changes(table, readers):
    agree(readers, table)
    readers.java_sql(f"ALTER TABLE {{ns}}.{table} ADD COLUMN new INT")
    readers.java_sql(
        f"ALTER TABLE {{ns}}.{table} REPLACE PARTITION FIELD ts_day WITH bucket(4, id)"
    )
    readers.spark_sql(f"REFRESH TABLE {{ns}}.{table}")
    if table.endswith("parquet"):
        readers.spark_sql(f"INSERT INTO {{ns}}.{table} SELECT {VALUES}, 5 FROM range(20, 26)")
    agree(readers, table)
    readers.java_sql(f"DELETE FROM {{ns}}.{table} WHERE id = 4")
    agree(readers, table)


def test_the_optimiser_is_told_the_distinct_values_that_iceberg_java_counted(readers, spark):
    name = "sketched"
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} USING iceberg AS SELECT id, id % 3 AS k FROM range(10)"
    )
    readers.java_sql(f"CALL ice.system.compute_table_stats(table => '{readers.namespace}.{name}')")
    readers.java_sql(f"INSERT INTO {{ns}}.{name} VALUES (10, 10)")

    def statistics():
        query = f"SELECT k, id FROM lake.{readers.namespace}.{name}"
        plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
        return {one.toString() for one in scala(plan.stats().attributeStats().values())}

    def scala(found):
        each = found.iterator()
        while each.hasNext():
            yield each.next()

    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        found = {text[: text.index(",")] for text in statistics()}
        spark.conf.set("spark.sql.iceberg.report-column-stats", "false")
        without = statistics()
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
        spark.conf.unset("spark.sql.iceberg.report-column-stats")
    assert (found, without) == ({"ColumnStat(Some(3)", "ColumnStat(Some(10)"}, set())
