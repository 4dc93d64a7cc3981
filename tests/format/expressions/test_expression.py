"""Predicates: built, combined, parsed, sent as JSON and bound to a schema."""

import copy
import datetime as dt
import functools
import math
import operator
import pickle
import re
from decimal import Decimal
from uuid import UUID

import pytest

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundSetPredicate,
    BoundUnaryPredicate,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    PredicateOperation,
    StartsWith,
    rewrite_not,
)
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.expressions.term import bucket, days
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.format.expressions.unbound import unbind

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "i", IntegerType()),
        NestedField(3, "f", FloatType()),
        NestedField(4, "d", DoubleType()),
        NestedField(5, "dec", DecimalType(5, 2)),
        NestedField(6, "day", DateType()),
        NestedField(7, "at", TimeType()),
        NestedField(8, "ts", TimestampType()),
        NestedField(9, "tz", TimestamptzType()),
        NestedField(10, "s", StringType()),
        NestedField(11, "u", UUIDType()),
        NestedField(12, "b", BinaryType()),
        NestedField(13, "fixed", FixedType(2)),
        NestedField(14, "flag", BooleanType()),
        NestedField(
            15,
            "address",
            StructType(
                (
                    NestedField(16, "city", StringType(), required=True),
                    NestedField(17, "zip code", IntegerType()),
                )
            ),
        ),
        NestedField(18, "tags", ListType(19, StringType())),
        NestedField(20, "Price", LongType()),
    )
)


def bound(text_or_expression):
    expression = (
        parse(text_or_expression) if isinstance(text_or_expression, str) else text_or_expression
    )
    return bind(SCHEMA, expression)


def literal_of(text_or_expression):
    predicate = bound(text_or_expression)
    assert isinstance(predicate, BoundLiteralPredicate), predicate
    return predicate.operation, predicate.literal


def test_constants_are_absorbed_and_operands_flattened():
    a, b, c = EqualTo("a", 1), EqualTo("b", 2), EqualTo("c", 3)
    assert And(a, AlwaysTrue()) is a
    assert And(a, AlwaysFalse()) == AlwaysFalse()
    assert Or(a, AlwaysTrue()) == AlwaysTrue()
    assert Or(AlwaysFalse(), AlwaysFalse()) == AlwaysFalse()
    assert And(a, And(b, c)) == And(And(a, b), c) == (a & b & c)
    assert And(a, a) is a
    assert (a & b & c).left == a
    assert (a & b & c).right == And(b, c)


def test_negation_of_predicates_gives_the_opposite_predicate():
    assert ~EqualTo("a", 1) == NotEqualTo("a", 1)
    assert ~LessThan("a", 1) == GreaterThanOrEqual("a", 1)
    assert ~GreaterThan("a", 1) == LessThanOrEqual("a", 1)
    assert ~IsNull("a") == NotNull("a")
    assert ~NotNaN("a") == IsNaN("a")
    assert ~In("a", [1, 2]) == NotIn("a", [2, 1])
    assert ~StartsWith("a", "x") == NotStartsWith("a", "x")
    assert ~(EqualTo("a", 1) & IsNull("b")) == (NotEqualTo("a", 1) | NotNull("b"))
    assert Not(Not(EqualTo("a", 1))) == EqualTo("a", 1)
    assert rewrite_not(Not(Or(EqualTo("a", 1), Not(EqualTo("b", 1))))) == And(
        NotEqualTo("a", 1), EqualTo("b", 1)
    )


def test_short_lists_become_simpler_predicates():
    assert In("a", [1]) == EqualTo("a", 1)
    assert NotIn("a", ["x"]) == NotEqualTo("a", "x")
    assert In("a", []) == AlwaysFalse()
    assert NotIn("a", []) == AlwaysTrue()


def test_thousands_of_predicates_can_be_combined_one_by_one():
    expression = functools.reduce(operator.or_, (EqualTo("id", n) for n in range(2000)))
    assert len(bind(SCHEMA, expression).operands) == 2000


def test_expressions_can_be_copied_and_pickled():
    expression = Not((EqualTo("a", 1) & In("b", [1, 2])) | IsNaN("c"))
    assert pickle.loads(pickle.dumps(expression)) == expression  # noqa: S301 - our own bytes
    assert copy.deepcopy(expression) == expression


def test_an_expression_has_no_truth_value():
    with pytest.raises(ExpressionError, match="&"):
        bool(EqualTo("a", 1))


@pytest.mark.parametrize("value", [None, math.nan])
def test_comparing_with_null_or_nan_is_refused(value):
    with pytest.raises(ExpressionError, match="never true"):
        EqualTo("a", value)


def test_a_string_is_not_a_list_of_values():
    with pytest.raises(ExpressionError, match="list of values"):
        In("a", "abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", EqualTo("a", 1)),
        ("a == 1", EqualTo("a", 1)),
        ("5 < a", GreaterThan("a", 5)),
        ("a <> 'it''s'", NotEqualTo("a", "it's")),
        (
            "day >= '2024-01-01' and id in (1,2)",
            GreaterThanOrEqual("day", "2024-01-01") & In("id", [1, 2]),
        ),
        ("a.b.c = -1.5", EqualTo("a.b.c", -1.5)),
        ('`a b` = 1 or "c" = 2', EqualTo("a b", 1) | EqualTo("c", 2)),
        ("not (a = 1 or b is not null)", NotEqualTo("a", 1) & IsNull("b")),
        ("a between 1 and 2", GreaterThanOrEqual("a", 1) & LessThanOrEqual("a", 2)),
        ("a not between 1 and 2", LessThan("a", 1) | GreaterThan("a", 2)),
        ("a not in (1, 2)", NotIn("a", [1, 2])),
        ("a like 'x%'", StartsWith("a", "x")),
        ("a like 'x'", EqualTo("a", "x")),
        ("a like '%'", StartsWith("a", "")),
        ("a not like '%'", NotStartsWith("a", "")),
        ("a not like 'x%'", NotStartsWith("a", "x")),
        ("a like 'x!_%' escape '!'", StartsWith("a", "x_")),
        ("a not like 'x!_%' escape '!'", NotStartsWith("a", "x_")),
        ("starts_with(a, 'x')", StartsWith("a", "x")),
        ("isnan(a)", IsNaN("a")),
        ("a is not nan", NotNaN("a")),
        ("a = X'CAFE'", EqualTo("a", b"\xca\xfe")),
        ("a = DATE '2024-01-31'", EqualTo("a", "2024-01-31")),
        ("a in (date('2024-01-31'))", EqualTo("a", "2024-01-31")),
        ("to_date('2024-01-31') < a", GreaterThan("a", "2024-01-31")),
        ("a > timestamp('2024-01-31 10:00')", GreaterThan("a", "2024-01-31 10:00")),
        ("a > TIMESTAMP '2024-01-31 10:00:00'", GreaterThan("a", "2024-01-31 10:00:00")),
        ("a <=> null", IsNull("a")),
        ("not (a <=> 1)", IsNull("a") | NotEqualTo("a", 1)),
        ("flag and not other", EqualTo("flag", True) & NotEqualTo("other", True)),
        ("a is not true", IsNull("a") | NotEqualTo("a", True)),
        ("true", AlwaysTrue()),
        ("a = 1 and false", AlwaysFalse()),
        ("1=1", AlwaysTrue()),
        ("0 = 1", AlwaysFalse()),
        ("a = 1 and 2.5 >= 2", EqualTo("a", 1)),
        ("not 1 <> 1", AlwaysTrue()),
        ("lake.system.bucket(2, a) = 0", EqualTo(bucket("a", 2), 0)),
        ("`l`.`system`.`days`(ts) < 9", LessThan(days("ts"), 9)),
        ("a = 0.1", EqualTo("a", 0.1)),
        ("a = 1234567890123456789.01", EqualTo("a", Decimal("1234567890123456789.01"))),
        ("(a) = (-(1)) -- a comment", EqualTo("a", -1)),
        ("cast('2024-01-31' as date) <= a", GreaterThanOrEqual("a", "2024-01-31")),
        ("a < 5::decimal(10, 2) /* and b */", LessThan("a", 5)),
        ("a = 1 or b = 2 and c = 3", EqualTo("a", 1) | (EqualTo("b", 2) & EqualTo("c", 3))),
        ("not a = 1 and b = 2", NotEqualTo("a", 1) & EqualTo("b", 2)),
        ("date = 1 and `select` = 2", EqualTo("date", 1) & EqualTo("select", 2)),
        ('"a""b" = .5e1', EqualTo('a"b', 5.0)),
    ],
)
def test_sql_text_is_read(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a = "x"', EqualTo("a", "x")),
        ("a = 'x'", EqualTo("a", "x")),
        ('`a``b` = "say ""x"" it"', EqualTo("a`b", 'say "x" it')),
        ('a like "x%"', StartsWith("a", "x")),
    ],
)
def test_double_quotes_of_spark_are_around_constants(text, expected):
    assert parse(text, of_spark=True) == expected


@pytest.mark.parametrize("text", [r"a = 'x\'", r'a = "x\n"', '"a" = 1'])
def test_what_means_something_else_to_spark_is_refused(text):
    with pytest.raises(ExpressionError):
        parse(text, of_spark=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = b", "found a column: 'b'"),
        ("a + 1 = 2", "Expected a column"),
        ("upper(a) = 'x'", "Expected a column"),
        ("cast(a as int) = 1", "Expected a column"),
        ("a = date '2024-01-31 10:00'", "Expected a constant"),
        ("a = cast('2024-01-31 10:00' as date)", "Expected a constant"),
        ("a = '2024-01-31 10:00'::date", "Expected a constant"),
        ("a = cast(1.5 as int)", "Expected a constant"),
        ("a = 1.5e0::bigint", "Expected a constant"),
        ("a = ", "Cannot read the predicate"),
        ("a = 'x", "Cannot read the predicate"),
        ("a = 1; drop table t", "Cannot read the predicate"),
        ("a = 1 b = 2", "Cannot read the predicate"),
        ("select 1", "Cannot read the predicate"),
        ("a in (select 1)", "Not a predicate on columns"),
        ("a ilike 'x%'", "Not a predicate on columns"),
        ("case when a then b end", "Not a predicate on columns"),
        ("a like '%x'", "Only patterns that are a prefix"),
        ("a like any ('x')", "Expected a constant"),
        ("a = date('2024-01-31 10:00')", "Expected a constant"),
        ("a = date('2024-01-31', 'x')", "Expected a constant"),
        ("a = date(b)", "Expected a constant"),
        ("a = null", "Use IS NULL"),
        ("a in (1, null)", "NULL"),
        ("a not in (1, null)", "NULL"),
        ("'1' = 1", "Expected a column"),
        ("1 = null", "Expected a column"),
        ("lake.other.bucket(2, a) = 0", "unexpected '('"),
        ("lake.system.upper(a) = 0", "unexpected '('"),
        ("", "empty"),
        ("(" * 100_000 + "a", "it ends too early"),
        ("a = X'0'", "Not hexadecimal"),
        ("a = 1)", "unexpected ')', column 6"),
        ("a = 1L", "unexpected text at '1L', column 5"),
        ("a = (select 1)", "Cannot read the predicate"),
        ("a = b || 'x'", "found an expression: \"b || 'x'\""),
        ("5", "Not a predicate on columns"),
    ],
)
def test_sql_text_that_is_no_predicate_is_refused(text, message):
    with pytest.raises(ExpressionError, match=re.escape(message)):
        parse(text)


def test_the_text_of_an_expression_reads_back():
    for text in (
        "((a = 1 AND b != 'x''y') OR c IS NULL)",
        "(a IN (1, 2) AND d NOT IN ('x', 'y'))",
        '("a b" >= 1.5 AND x IS NOT NAN)',
        "b = X'cafe'",
    ):
        assert str(parse(text)) == text


def test_literals_become_internal_values():
    assert literal_of("day = '2024-01-31'")[1] == (dt.date(2024, 1, 31) - dt.date(1970, 1, 1)).days
    assert literal_of(EqualTo("day", dt.date(1969, 12, 31)))[1] == -1
    assert literal_of("at = '10:00:00.000001'")[1] == 36_000_000_001
    assert literal_of("ts = '1970-01-02'")[1] == 86_400_000_000
    assert literal_of("ts = '1970-01-02 00:00:01.5'")[1] == 86_401_500_000
    assert literal_of("tz = '1970-01-01T02:00:00+02:00'")[1] == 0
    assert literal_of("tz = '1970-01-01T00:00Z'")[1] == 0
    zone = dt.timezone(dt.timedelta(hours=1))
    assert literal_of(EqualTo("tz", dt.datetime(1970, 1, 1, 1, tzinfo=zone)))[1] == 0
    assert literal_of("dec = 1.5") == (PredicateOperation.EQ, Decimal("1.50"))
    assert str(literal_of("dec = 1.5")[1]) == "1.50"
    assert literal_of("f = 0.1")[1] == 0.10000000149011612
    assert literal_of("d = 1")[1] == 1.0
    assert literal_of("id = '5'")[1] == 5
    assert literal_of("id = 5.0")[1] == 5
    assert literal_of("u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")[1] == UUID(
        "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    )
    assert literal_of("d < 'Infinity'")[1] == math.inf
    assert literal_of("flag = 'true'")[1] is True
    assert literal_of(EqualTo("day", 5))[1] == 5


def test_a_literal_between_two_values_moves_the_comparison():
    assert literal_of("i > 1.5") == (PredicateOperation.GT, 1)
    assert literal_of("i >= 1.5") == (PredicateOperation.GT, 1)
    assert literal_of("i < 1.5") == (PredicateOperation.LT_EQ, 1)
    assert literal_of("i <= -1.5") == (PredicateOperation.LT_EQ, -2)
    assert literal_of("dec < 1.005") == (PredicateOperation.LT_EQ, Decimal("1.00"))
    noon = dt.datetime(1970, 1, 2, 12)  # noqa: DTZ001 - a date column has no zone
    assert literal_of(GreaterThan("day", noon)) == (PredicateOperation.GT, 1)
    assert bound("i = 1.5") == AlwaysFalse()
    assert isinstance(bound("i != 1.5"), BoundUnaryPredicate)
    assert bound("id != 1.5") == AlwaysTrue()
    assert bound("i in (1.5, 2)") == bound("i = 2")


def test_a_literal_out_of_range_decides_the_comparison():
    assert bound("i > 3000000000") == AlwaysFalse()
    assert bound("i = 3000000000") == AlwaysFalse()
    assert bound("i < -3000000000") == AlwaysFalse()
    assert bound("i < 3000000000") == bound("i is not null")
    assert bound("i >= -3000000000") == bound("i is not null")
    assert bound("id < 1e30") == AlwaysTrue()
    assert bound("dec < 1000") == bound("dec is not null")
    assert bound("dec <= 999.99") != bound("dec is not null")
    assert bound("dec > -1000") == bound("dec is not null")
    assert bound("dec > -1e400") == bound("dec is not null")
    assert bound("i in (1, 3000000000)") == bound("i = 1")
    assert bound("i not in (-3000000000, 3000000000)") == bound("i is not null")


def test_infinity_lies_beyond_every_finite_literal():
    operation, literal = literal_of(LessThan("f", 1e300))
    assert operation is PredicateOperation.LT_EQ
    assert literal == 3.4028234663852886e38
    assert literal_of(GreaterThan("f", 1e300))[0] is PredicateOperation.GT
    assert literal_of(LessThan("d", Decimal("-1e400"))) == (PredicateOperation.LT_EQ, -math.inf)


def test_conditions_that_a_required_column_decides_are_decided():
    assert bound("id is null") == AlwaysFalse()
    assert bound("id is not null") == AlwaysTrue()
    assert bound("isnan(id)") == AlwaysFalse()
    # required inside an optional struct: the struct may be null
    assert isinstance(bound("address.city is null"), BoundUnaryPredicate)


def test_binding_twice_changes_nothing():
    once = bound("id > 5 and s like 'x%' and day in ('2024-01-01', '2024-01-02')")
    assert bind(SCHEMA, once) == once
    assert isinstance(once.operands[2], BoundSetPredicate)
    assert bind(SCHEMA, unbind(once)) == once


def test_nested_columns_are_found_by_dotted_names():
    predicate = bound('address."zip code" = 5')
    assert predicate.term.field_id == 17
    assert predicate.term.nested


def test_names_may_ignore_case():
    assert bind(SCHEMA, EqualTo("PRICE", 1), case_sensitive=False).term.field_id == 20
    with pytest.raises(ExpressionError, match="Did you mean Price"):
        bind(SCHEMA, EqualTo("price", 1))


def test_an_unknown_column_is_answered_with_close_names():
    with pytest.raises(ExpressionError, match=r"Cannot find column 'adress\.city'") as error:
        bound("adress.city = 'x'")
    assert "address.city" in error.value.hint
    with pytest.raises(ExpressionError) as error:
        bound("qqqqqqq = 1")
    assert "Columns are: id, i" in error.value.hint


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (EqualTo("id", "five"), "not a number"),
        (EqualTo("id", True), "not a number"),
        (EqualTo("s", 5), "not text"),
        (EqualTo("day", "31.01.2024"), "ISO 8601"),
        (EqualTo("day", "2024-02-30"), "not a date"),
        (EqualTo("tz", "2024-01-31T00:00:00"), "needs a zone"),
        (EqualTo("tz", dt.datetime(2024, 1, 1)), "needs a zone"),  # noqa: DTZ001
        (EqualTo("tz", dt.date(2024, 1, 1)), "needs a zone"),
        (EqualTo("ts", "2024-01-31T00:00:00+00:00"), "has no zone"),
        (EqualTo("ts", dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)), "has no zone"),
        (EqualTo("at", "25:00"), "time of day"),
        (EqualTo("at", "10:00:00.1234567"), "microseconds"),
        (EqualTo("u", "x"), "not a UUID"),
        (EqualTo("b", "cafe"), "not bytes"),
        (EqualTo("flag", 1), "true or false"),
        (EqualTo("d", "NaN"), "NaN"),
        (StartsWith("id", "1"), "starts with"),
        (StartsWith("s", b"x"), "starts with"),
        (EqualTo("address", 1), "Cannot compare address"),
        (EqualTo("tags", "x"), "Cannot compare tags"),
        (EqualTo("tags.element", "x"), "many values"),
    ],
)
def test_a_literal_that_does_not_fit_the_column_is_refused(expression, message):
    with pytest.raises(ExpressionError, match=message):
        bound(expression)


def test_null_checks_work_on_nested_types():
    assert bound("address is null").term.field_id == 15
    assert bound("tags is not null").term.field_id == 18
