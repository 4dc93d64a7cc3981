"""Statements in sessions of one Spark, one after the other: JSON in, one line of JSON out.

Runs with any interpreter that has pyspark. The request: {"settings": {...}, "sessions": [{"conf": {...}, "statements":
[...]}]}; the answer has for each session a list, for each statement rows or the text of its error.
"""

import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def answer(spark: SparkSession, statement: str) -> object:
    try:
        return [
            [str(v) if not isinstance(v, int) else v for v in row]
            for row in spark.sql(statement).collect()
        ]
    except PySparkException as error:
        return str(error)


def answers(settings: dict[str, str], conf: dict[str, str], statements: list[str]) -> list[object]:
    builder = SparkSession.builder
    for key, value in {**settings, **conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return [answer(spark, statement) for statement in statements]
    finally:
        spark.stop()
        # the next builder begins without what this one was given
        SparkSession.builder._options.clear()


request = json.load(sys.stdin)
print(json.dumps([answers(request["settings"], **session) for session in request["sessions"]]))
