"""Iceberg Java in its own Spark: one JSON statement a line in, one JSON answer a line out.

Runs with the interpreter of ``.venv-iceberg-java``; its jar comes by the Ivy inside pyspark.
Arguments: the metastore's URI, the warehouse, and settings of Hadoop as NAME=VALUE. Requests: {"sql": text}, or {"plan": table, "where": text or null};
answers: {"rows": [...]} or {"error": text}.
"""

import datetime as dt
import decimal
import json
import os
import sys

from pyspark.sql import SparkSession

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"


def plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytearray | bytes):
        return value.hex()
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize():f}" if "E" in str(value) else str(value)
    if isinstance(value, dt.date | dt.datetime):
        return str(value)
    return value


def session(uri: str, warehouse: str, *settings: str) -> SparkSession:
    catalog = "spark.sql.catalog.ice"
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars.packages", RUNTIME)
        .config("spark.jars.ivy", os.path.join(sys.prefix, "ivy"))  # noqa: PTH118 - one line, no import
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "hive")
        .config(f"{catalog}.uri", uri)
        .config(f"{catalog}.warehouse", warehouse)
        .config(f"{catalog}.cache-enabled", "false")
        .config(f"{catalog}_hadoop", "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}_hadoop.type", "hadoop")
        .config(f"{catalog}_hadoop.warehouse", f"{warehouse}/hadoop")
        .config(f"{catalog}_hadoop.cache-enabled", "false")
    )
    for setting in settings:
        name, _, value = setting.partition("=")
        builder = builder.config(f"spark.hadoop.{name}", value)
    return builder.getOrCreate()


def plan(spark: SparkSession, table: str, where: str | None) -> list[list[object]]:
    """The data files that are planned, each with its delete files."""
    jvm, session = spark._jvm, spark._jsparkSession
    scan = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, table).newScan()
    if where is not None:
        converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
        resolved = converter.collectResolvedSparkExpression(session, table, where)
        scan = scan.filter(converter.convertToIcebergExpression(resolved))
    planned = scan.planFiles()
    tasks = planned.iterator()
    found: list[list[object]] = []
    while tasks.hasNext():
        task = tasks.next()
        deletes: list[object] = sorted(delete.location() for delete in task.deletes())
        found.append([task.file().location(), deletes])
    planned.close()
    return found


def answer(spark: SparkSession, request: dict[str, str]) -> list[list[object]]:
    if "plan" in request:
        return plan(spark, request["plan"], request["where"])
    return [[plain(value) for value in row] for row in spark.sql(request["sql"]).collect()]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ivy and Spark print must not stand between the answers
    spark = session(*sys.argv[1:])
    spark.sparkContext.setLogLevel("ERROR")
    answers.write(json.dumps({"rows": [[spark.version]]}) + "\n")
    for line in sys.stdin:
        try:
            result: dict[str, object] = {"rows": answer(spark, json.loads(line))}
        except Exception as error:  # noqa: BLE001 - whatever it is, the test that asked must see it
            result = {"error": str(error)}
        answers.write(json.dumps(result) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
