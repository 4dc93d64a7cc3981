"""A Spark in another environment: one JSON statement a line in, one JSON answer a line out.

Runs with that environment's interpreter, in which only pyspark is installed. The argument is Spark's configuration,
as JSON. Requests: {"sql": text}, with "columns" for their names and types as the first row; {"plan": table, "where": text or null}
and {"delete": table, "columns": [...], "where": text, "format": name} with Iceberg's jar; {"stream": table, "checkpoint": folder,
"into": folder, "options": {...}} for a streaming query that ends with what there is; {"sink": table, "schema": text, "source": folder,
"checkpoint": folder, "options": {...}} for one that writes the rows of JSON files into a table (null: nowhere), a file a batch; {"prepare": text} for a
statement that {"run": number} runs later; {"overwrite": table, "where": text, "sql": text, "options": {...}}; {"insert into": table, "sql": text, "options": {...}}; {"read": table, "options": {...}, "cache": true or false}; {"function": name, "code": text, "kind": type} makes a function of SQL of the code's function of
that name. Answers: {"rows": [...]} or {"error": text}.
"""

import datetime as dt
import decimal
import json
import os
import sys
import uuid
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

PREPARED: list[Any] = []


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


def session(conf: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def loaded(spark: SparkSession, table: str) -> Any:
    """Iceberg's table."""
    spark3 = spark._jvm.org.apache.iceberg.spark.Spark3Util
    return spark3.loadIcebergTable(spark._jsparkSession, table)


def expression(spark: SparkSession, table: str, where: str) -> Any:
    """Iceberg's expression of a condition."""
    converter = spark._jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(spark._jsparkSession, table, where)
    return converter.convertToIcebergExpression(resolved)


def plan(spark: SparkSession, table: str, where: str | None) -> list[list[object]]:
    """The data files that are planned, each with its delete files."""
    scan = loaded(spark, table).newScan()
    if where is not None:
        scan = scan.filter(expression(spark, table, where))
    planned = scan.planFiles()
    tasks = planned.iterator()
    found: list[list[object]] = []
    while tasks.hasNext():
        task = tasks.next()
        deletes: list[object] = sorted(delete.location() for delete in task.deletes())
        found.append([task.file().location(), deletes])
    planned.close()
    return found


def delete_by_values(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Writes an equality delete file: the values in some columns that match a condition on these."""
    jvm, gateway, name = spark._jvm, spark.sparkContext._gateway, request["delete"]
    table = loaded(spark, name)
    keys = table.schema().select(jvm.java.util.ArrayList(request["columns"]))
    ids = gateway.new_array(jvm.int, len(request["columns"]))
    for place, column in enumerate(request["columns"]):
        ids[place] = keys.findField(column).fieldId()
    data, spec = jvm.org.apache.iceberg.data, jvm.org.apache.iceberg.PartitionSpec.unpartitioned()
    file_format = jvm.org.apache.iceberg.FileFormat.fromString(request["format"])
    wanted = data.GenericFileWriterFactory.Builder(table).deleteFileFormat(file_format)
    factory = wanted.equalityFieldIds(ids).equalityDeleteRowSchema(keys).build()
    place = table.locationProvider().newDataLocation(f"{uuid.uuid4()}.{request['format']}")
    output = table.io().newOutputFile(place)
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = factory.newEqualityDeleteWriter(encrypted, spec, None)
    condition = expression(spark, name, request["where"])
    found = data.IcebergGenerics.read(table).project(keys).where(condition).build()
    rows = found.iterator()
    while rows.hasNext():
        writer.write(rows.next())
    found.close()
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    return []


def stream(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Appends to Parquet files what is new in a table since the checkpoint."""
    rows = spark.readStream.options(**request["options"]).table(request["stream"])
    sink = rows.writeStream.format("parquet").option("path", request["into"])
    query = sink.option("checkpointLocation", request["checkpoint"]).trigger(availableNow=True)
    query.start().awaitTermination()
    return []


def sink(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Appends to a table the rows of JSON files, a file a batch."""
    source = spark.readStream.schema(request["schema"]).option("maxFilesPerTrigger", 1)
    writer = source.json(request["source"]).writeStream.options(**request["options"])
    query = writer.option("checkpointLocation", request["checkpoint"]).trigger(availableNow=True)
    table = request["sink"]
    started = query.format("noop").start() if table is None else query.toTable(table)
    started.awaitTermination()
    return []


def overwrite(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Replaces the rows of a table that match a condition by those of a query."""
    write = spark.sql(request["sql"]).writeTo(request["overwrite"])
    write.options(**request["options"]).overwrite(expr(request["where"]))
    return []


def insert_into(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Overwrites a table by `insertInto` with the rows of a query."""
    write = spark.sql(request["sql"]).write.options(**request["options"])
    write.insertInto(request["insert into"], overwrite=True)
    return []


def function(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    """Registers a function; one of a module that tasks could not import goes with them."""
    module: dict[str, Any] = {"__name__": "__main__"}
    exec(request["code"], module)  # noqa: S102 - the tests' own
    spark.udf.register(request["function"], module[request["function"]], request["kind"])
    return []


def answer(spark: SparkSession, request: dict[str, Any]) -> list[list[object]]:
    if "stream" in request:
        return stream(spark, request)
    if "sink" in request:
        return sink(spark, request)
    if "overwrite" in request:
        return overwrite(spark, request)
    if "insert into" in request:
        return insert_into(spark, request)
    if "delete" in request:
        return delete_by_values(spark, request)
    if "prepare" in request or "run" in request:
        # beside this file where it is a script, which it is whenever it answers
        from prepared_statement import prepare, run

        if "run" in request:
            run(PREPARED[request["run"]])
            return []
        PREPARED.append(prepare(spark, request["prepare"]))
        return [[len(PREPARED) - 1]]
    if "read" in request:
        rows = spark.read.options(**request["options"]).table(request["read"])
        return [list(row) for row in (rows.cache() if request["cache"] else rows).collect()]
    if "function" in request:
        return function(spark, request)
    if "plan" in request:
        return plan(spark, request["plan"], request["where"])
    found = spark.sql(request["sql"])
    rows: list[list[object]] = [[plain(value) for value in row] for row in found.collect()]
    return [[list(column) for column in found.dtypes], *rows] if "columns" in request else rows


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ivy and Spark print must not stand between the answers
    spark = session(json.loads(sys.argv[1]))
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
