"""DEFAULT clauses: their constants, and internal values as SQL."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icecomb.format.errors import UnsupportedError
from icecomb.format.evolution.schema_edit import given_default
from icecomb.format.expressions.sql.parser import constant_of
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from icecomb.spark.schema import sql_of

CASES = [
    (BooleanType(), True, "true"),
    (IntegerType(), -5, "-5"),
    (LongType(), 5, "5L"),
    (LongType(), -(2**63), "CAST('-9223372036854775808' AS BIGINT)"),
    (DoubleType(), 1.5, "CAST('1.5' AS DOUBLE)"),
    (DecimalType(5, 2), Decimal("1.50"), "CAST('1.50' AS DECIMAL(5, 2))"),
    (DateType(), 2, "DATE '1970-01-03'"),
    (TimestampType(), 1_000_001, "TIMESTAMP_NTZ '1970-01-01 00:00:01.000001'"),
    (TimestamptzType(), 0, "TIMESTAMP_LTZ '1970-01-01 00:00:00.000000+00:00'"),
    (BinaryType(), b"\xca\xfe", "X'cafe'"),
    (StringType(), "a b", "'a b'"),
    (StringType(), "it's", "CAST(X'69742773' AS STRING)"),
    (StringType(), "${env:HOME}", "CAST(X'247b656e763a484f4d457d' AS STRING)"),
]


@pytest.mark.parametrize(("field_type", "value", "sql"), CASES)
def test_a_default_is_written_as_sparks_sql(field_type, value, sql):
    assert sql_of(field_type, value) == sql


@pytest.mark.parametrize(("field_type", "value", "sql"), CASES[:-2])
def test_a_default_of_sparks_sql_is_read_again(field_type, value, sql):
    constant = constant_of(sql, "c")
    assert given_default(field_type, constant, "c") == value


@pytest.mark.parametrize("sql", ["NULL", "null", "", " ", "CAST(NULL AS DECIMAL(5, 2))"])
def test_no_default_is_null(sql):
    assert constant_of(sql, "c") is None


@pytest.mark.parametrize(
    "sql", ["current_date()", "now", "other + 1", "rand()", "5) OR (c = 3", "5 OR true", "uuid()"]
)
def test_what_is_not_a_constant_is_refused_by_the_name_of_its_column(sql):
    with pytest.raises(UnsupportedError, match=r"Column s\.c cannot have the default"):
        constant_of(sql, "s.c")
