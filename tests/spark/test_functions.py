"""The functions of a catalog, as Iceberg Java's answer."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from tests.rings import sampled

VALUES = {
    "tinyint": ("-7Y", "127Y", "CAST(NULL AS TINYINT)"),
    "smallint": ("-7S", "300S", "CAST(NULL AS SMALLINT)"),
    "int": ("-2147483648", "-7", "34", "CAST(NULL AS INT)"),
    "bigint": ("-9223372036854775808L", "34L", "CAST(NULL AS BIGINT)"),
    "decimal": ("14.20BD", "-12.3456BD", "CAST(NULL AS DECIMAL(9,2))"),
    "string": ("'iceberg'", "'日本語テキスト'", "''", "CAST(NULL AS STRING)"),
    "binary": ("X'00010203040506'", "X''", "CAST(NULL AS BINARY)"),
    "date": ("DATE'2017-11-16'", "DATE'1969-12-30'", "CAST(NULL AS DATE)"),
    "timestamp": (
        "TIMESTAMP'2017-11-16 22:31:08.000001Z'",
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
    ),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2017-11-16 22:31:08'", "CAST(NULL AS TIMESTAMP_NTZ)"),
}
COUNTED = ("tinyint", "smallint", "int", "bigint", "decimal", "string", "binary")
TIMES = ("timestamp", "timestamp_ntz")
CALLS = [
    *(
        f"bucket({count}, {value})"
        for kind in (*COUNTED, "date", *TIMES)
        for value in VALUES[kind]
        for count in ("16", "3Y", "100S")
    ),
    *(
        f"truncate({count}, {value})"
        for kind in COUNTED
        for value in VALUES[kind]
        for count in ("10", "3Y", "2S")
    ),
    *(
        f"{unit}({value})"
        for unit in ("years", "months", "days", "hours")
        for kind in ((*TIMES, "date") if unit != "hours" else TIMES)
        for value in VALUES[kind]
    ),
    "bucket(CAST(NULL AS INT), 1)",
    "truncate(CAST(NULL AS INT), 'abc')",
]


def _selected(catalog, call, source):
    return f"{catalog}.system.{call} AS c{source}"


def test_every_function_has_type_and_value_of_iceberg_java_s(spark, iceberg_java):
    for calls in itertools.batched(CALLS, 60) if hasattr(itertools, "batched") else [CALLS]:
        ours = ", ".join(_selected("lake", call, i) for i, call in enumerate(calls))
        theirs = ", ".join(_selected("ice", call, i) for i, call in enumerate(calls))
        found = spark.sql(f"SELECT {ours}")
        expected, [values] = iceberg_java.table(f"SELECT {theirs}")
        names = list(calls)
        assert dict(zip(names, found.dtypes, strict=True)) == dict(
            zip(names, expected, strict=True)
        )
        [row] = found.collect()
        plain = [
            v.hex()
            if isinstance(v, bytes | bytearray)
            else str(v)
            if not isinstance(v, int | str | None)
            else v
            for v in row
        ]
        assert dict(zip(names, plain, strict=True)) == dict(zip(names, values, strict=True))


def test_every_function_has_type_and_value_of_the_transform_of_its_name(spark):
    calls = [
        *((f"bucket({n}, ", BucketTransform(n), (*COUNTED, "date", *TIMES)) for n in (3, 16)),
        *((f"truncate({n}, ", TruncateTransform(n), COUNTED) for n in (2, 10)),
        ("years(", YearTransform(), (*TIMES, "date")),
        ("months(", MonthTransform(), (*TIMES, "date")),
        ("days(", DayTransform(), (*TIMES, "date")),
        ("hours(", HourTransform(), TIMES),
    ]
    asked = [
        (f"lake.system.{call}{value})", value, transform)
        for call, transform, kinds in calls
        for kind in kinds
        for value in VALUES[kind]
    ]
    columns = (f"{text} AS c{i}" for i, asks in enumerate(asked) for text in asks[:2])
    # of two columns, which have one name, the first is the function's
    found = spark.sql(f"SELECT {', '.join(columns)}").toArrow()
    for i, (text, _, transform) in enumerate(asked):
        told, source = found.column(2 * i), found.column(2 * i + 1)
        expected = transform.apply_array(widened(source))
        assert (text, told.to_pylist()) == (text, expected.to_pylist())
        truncated = isinstance(transform, TruncateTransform)
        assert (text, told.type) == (text, source.type if truncated else expected.type)


def widened(array):
    """Integers as Iceberg has them."""
    return (
        array.cast("int32")
        if pa.types.is_integer(array.type) and array.type.bit_width < 32
        else array
    )


def test_functions_run_in_generated_code_with_the_values_of_rows(spark):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.function_tests")
    spark.sql(
        "CREATE TABLE lake.function_tests.t (n int, i bigint, s string, d decimal(9,2), at timestamp)"
    )
    spark.sql(
        "INSERT INTO lake.function_tests.t VALUES (16, 34, 'iceberg', 14.20, TIMESTAMP'2017-11-16 22:31:08'),"
        " (NULL, NULL, NULL, NULL, NULL)"
    )
    query = (
        "SELECT lake.system.bucket(n, i), lake.system.truncate(n, i), lake.system.bucket(16, s), "
        "lake.system.truncate(3, s), lake.system.truncate(500, d), lake.system.hours(at) "
        "FROM lake.function_tests.t"
    )
    [[plan]] = spark.sql(f"EXPLAIN {query}").collect()
    assert "applyfunctionexpression" not in plan.lower()
    [nothing, row] = sorted((list(r) for r in spark.sql(query).collect()), key=lambda r: r[0] or -1)
    assert nothing == [None] * 6
    # the specification's Appendix B, and its examples of truncation
    assert row[0] == (2017239379 & 0x7FFFFFFF) % 16
    assert row[1:4] == [32, (1210000089 & 0x7FFFFFFF) % 16, "ice"]
    assert [str(row[4]), row[5]] == ["10.00", 419686]
    with pytest.raises(Py4JJavaError, match="at least 1"):
        spark.sql("SELECT lake.system.bucket(n - 16, i) FROM lake.function_tests.t").collect()


def test_functions_of_a_namespace_that_is_not_there_are_not_listed_in_silence(spark):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.function_tests")
    assert spark.sql("SHOW USER FUNCTIONS IN lake.function_tests").collect() == []
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("SHOW USER FUNCTIONS IN lake.nowhere_at_all").collect()


def test_the_version_is_icecomb_s_and_functions_are_listed(spark):
    [[version]] = spark.sql("SELECT lake.system.iceberg_version()").collect()
    assert version.startswith("icecomb ")
    listed = {row[0] for row in spark.sql("SHOW USER FUNCTIONS IN lake.system").collect()}
    assert {"lake.system.bucket", "lake.system.iceberg_version"} <= listed


# in the words of Iceberg's functions
INPUTS = "Wrong number of inputs"
TEMPORAL = "Expected value to be date or timestamp"
REFUSED = {
    "bucket('16', 1)": "Expected number of buckets to be tinyint, shortint or int",
    "bucket(16L, 1)": "Expected number of buckets to be tinyint, shortint or int",
    "bucket(16)": rf"{INPUTS} \(expected numBuckets and value\)",
    "truncate(16)": rf"{INPUTS} \(expected width and value\)",
    "days()": INPUTS,
    "bucket(4, 1.5D)": "Expected column to be date, tinyint, smallint, int, bigint, decimal, times",
    "years('x')": TEMPORAL,
    "days(1)": TEMPORAL,
    "hours(DATE'2020-01-01')": "Expected value to be timestamp",
    "truncate('x', 1)": "Expected truncation width to be tinyint, shortint or int",
    "truncate(4, DATE'2020-01-01')": "Expected truncation col to be tinyint, shortint, int, bigint",
    "iceberg_version(1)": "cannot process input",
}


@pytest.mark.parametrize("call", sampled(REFUSED, keep=4))
def test_what_no_function_takes_is_refused(spark, call):
    with pytest.raises(PySparkException, match=REFUSED[call]):
        spark.sql(f"SELECT lake.system.{call}")


@pytest.mark.parametrize("call", REFUSED)
def test_iceberg_refuses_the_same(iceberg_java, call):
    with pytest.raises(AssertionError, match=REFUSED[call]):
        iceberg_java.sql(f"SELECT ice.system.{call}")
