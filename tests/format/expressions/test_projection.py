"""Projections of predicates onto partitions, and what they leave to check on rows."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import TypeAdapter
from pyiceberg import expressions as peer
from pyiceberg.expressions.visitors import (
    expression_evaluator,
    inclusive_projection as peer_inclusive,
)
from pyiceberg.partitioning import PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.typedef import Record

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.comparison import evaluate, typed_column
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotStartsWith,
    StartsWith,
)
from icecomb.format.expressions.projection import (
    ResidualEvaluator,
    project_inclusive,
    project_strict,
)
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DecimalType, NestedField
from tests.format.expressions.peer_form import to_json
from tests.format.expressions.row_filters import expressions, matches

COLUMNS = {
    "i": "int", "l": "long", "dec": "decimal(9, 2)", "day": "date", "ts": "timestamp", "tz": "timestamptz",
    "s": "string", "b": "binary", "u": "uuid", "f": "double", "t": "time",
}  # fmt: skip
FIELDS = [
    {"id": n, "name": name, "required": False, "type": kind}
    for n, (name, kind) in enumerate(COLUMNS.items(), 1)
]
IDS = {name: n for n, name in enumerate(COLUMNS, 1)}
SCHEMA = Schema.from_json({"type": "struct", "schema-id": 0, "fields": FIELDS})
PEER_SCHEMA = PeerSchema.model_validate({"type": "struct", "schema-id": 0, "fields": FIELDS})
HOUR = 3_600_000_000
DAY = 86_400_000_000

TRANSFORMS = {
    "i": ["identity", "bucket[4]", "truncate[10]", "void"],
    "l": ["identity", "bucket[4]", "truncate[3]"],
    "dec": ["identity", "bucket[4]", "truncate[50]"],
    "day": ["identity", "bucket[4]", "year", "month", "day"],
    "ts": ["identity", "bucket[4]", "year", "month", "day", "hour"],
    "tz": ["identity", "year", "month", "day", "hour", "void"],
    "s": ["identity", "bucket[4]", "truncate[2]"],
    "b": ["identity", "bucket[4]", "truncate[2]"],
    "u": ["identity", "bucket[4]"],
    "f": ["identity"],
    "t": ["identity", "bucket[4]"],
}
_INSTANTS = st.one_of(
    st.integers(-40 * DAY, 40 * DAY), st.integers(-3, 3), st.integers(-400, 400).map(lambda n: n * DAY),
    st.integers(-50, 50).map(lambda n: n * DAY // 24 - 1),
)  # fmt: skip
VALUES = {
    "i": st.one_of(
        st.integers(-25, 25), st.sampled_from([-(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 9])
    ),
    "l": st.one_of(
        st.integers(-9, 9), st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2])
    ),
    "dec": st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
    "day": st.integers(-800, 800),
    "ts": _INSTANTS,
    "tz": _INSTANTS,
    "s": st.text(st.sampled_from("abé\U0001f600"), max_size=4),
    "b": st.binary(max_size=3),
    "u": st.sampled_from([UUID(int=n) for n in (0, 1, 2**127, 2**128 - 1)]),
    "f": st.sampled_from([-1.5, -0.0, 0.0, 2.5]),
    "t": st.integers(0, 5),
}


@st.composite
def specs(draw, names):
    fields = []
    for name in names:
        for transform in draw(
            st.lists(st.sampled_from(TRANSFORMS[name]), min_size=1, max_size=2, unique=True)
        ):
            field_id = 1000 + len(fields)
            fields.append(
                PartitionField(IDS[name], field_id, parse_transform(transform), f"p{field_id}")
            )
    return PartitionSpec(0, tuple(fields))


def partition_of(spec, row):
    return tuple(
        f.transform.apply(row[f.source_id], SCHEMA.find_type(f.source_id)) for f in spec.fields
    )


ARROW = {
    "int": pa.int32(), "long": pa.int64(), "date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64(),
    "time": pa.int64(), "string": pa.string(), "binary": pa.binary(), "double": pa.float64(), "uuid": pa.binary(16),
}  # fmt: skip


def columns_of(spec, partitions):
    """Partition fields as the columns of a manifest hold them."""

    def column(reference):
        at = next(n for n, f in enumerate(spec.fields) if f.field_id == reference.field_id)
        values = [p[at].bytes if isinstance(p[at], UUID) else p[at] for p in partitions]
        kind = ARROW.get(str(reference.field_type), pa.decimal128(9, 2))
        return typed_column(pa.array(values, kind), reference.field_type)

    return column


def listed(result, count):
    return [result] * count if isinstance(result, bool) else result.to_pylist()


NAMES = st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=2, unique=True)


@st.composite
def cases(draw):
    names = draw(NAMES)
    row = st.fixed_dictionaries({IDS[n]: st.one_of(st.none(), VALUES[n]) for n in names})
    rows = draw(st.lists(row, min_size=1, max_size=6))
    return (
        names,
        draw(specs(names)),
        rows,
        draw(expressions({n: VALUES[n] for n in names}, ("s", "b"))),
    )


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_inclusive_projections_keep_every_match_and_strict_ones_claim_only_matches(case):
    _, spec, rows, unbound = case
    expression = bind(SCHEMA, unbound)
    column = columns_of(spec, [partition_of(spec, row) for row in rows])
    some = listed(evaluate(project_inclusive(expression, spec), column), len(rows))
    every = listed(evaluate(project_strict(expression, spec), column), len(rows))
    for row, included, claimed in zip(rows, some, every, strict=True):
        matched = matches(expression, row) is True
        assert included or not matched
        assert matched or not claimed


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_a_residual_selects_what_the_filter_selects(case):
    _, spec, rows, unbound = case
    expression = bind(SCHEMA, unbound)
    column = columns_of(spec, [partition_of(spec, row) for row in rows])
    residuals = ResidualEvaluator(expression, spec).residuals(column, len(rows))
    for row, residual in zip(rows, residuals, strict=True):
        assert (matches(residual, row) is True) == (matches(expression, row) is True)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_partitions_are_pruned_at_least_as_well_as_by_pyiceberg(case):
    """But for times before 1970, where Iceberg Java (and we) allow for an old writers' mistake."""
    names, spec, rows, unbound = case
    if "u" in names:
        return  # PyIceberg compares UUIDs with bytes
    rows = [
        {k: None if isinstance(v, int) and v < 0 else v for k, v in row.items()} for row in rows
    ]
    partitions = [partition_of(spec, row) for row in rows]
    peer_spec = PeerSpec.model_validate(
        {"spec-id": 0, "fields": [f.to_json() for f in spec.fields]}
    )
    theirs_unbound = TypeAdapter(peer.BooleanExpression).validate_python(
        to_json(bind(SCHEMA, unbound))
    )
    try:
        projected = peer_inclusive(PEER_SCHEMA, peer_spec)(theirs_unbound)
        partition_schema = PeerSchema(*peer_spec.partition_type(PEER_SCHEMA).fields)
        keeps = expression_evaluator(partition_schema, projected, case_sensitive=True)
        theirs = [keeps(Record(*partition)) for partition in partitions]
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return  # values or transforms that PyIceberg does not take
    expression = bind(SCHEMA, unbound)
    ours = listed(
        evaluate(project_inclusive(expression, spec), columns_of(spec, partitions)), len(rows)
    )
    near_edges = {"i", "l"} & set(names)
    for mine, other in zip(ours, theirs, strict=True):
        assert other or not mine or near_edges or _negative_time(unbound)


def _negative_time(expression):
    """Whether a value before 1970 may matter: `day < 0` asks for such days, too."""
    return any(
        n == 0 or str(n).startswith("-") for e in getattr(expression, "operands", (expression,))
        for n in (getattr(e, "literal", 1), *getattr(e, "literals", ()))
    ) or any(_negative_time(e) for e in getattr(expression, "operands", ()))  # fmt: skip


def projected(text_or_expression, *fields):
    expression = (
        parse(text_or_expression) if isinstance(text_or_expression, str) else text_or_expression
    )
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(IDS[c], 1000 + n, parse_transform(t), f"p{n}")
            for n, (c, t) in enumerate(fields)
        ),
    )
    bound = bind(SCHEMA, expression)
    return str(project_inclusive(bound, spec)), str(project_strict(bound, spec))


@pytest.mark.parametrize(
    ("predicate", "field", "inclusive", "strict"),
    [
        (EqualTo("i", 5), ("i", "identity"), "p0 = 5", "p0 = 5"),
        (LessThan("i", 100), ("i", "truncate[10]"), None, None),
        (LessThan("l", 100), ("l", "bucket[16]"), "true", "false"),
        (EqualTo("l", 34), ("l", "bucket[16]"), "p0 = 3", "false"),  # hash of 34 in the spec: 2017239379
        (NotEqualTo("l", 34), ("l", "bucket[16]"), "true", "p0 != 3"),
        (IsNull("l"), ("l", "bucket[16]"), "p0 IS NULL", "p0 IS NULL"),
        (In("s", ["iceberg", "x"]), ("s", "bucket[1]"), "p0 = 0", "false"),
        (NotIn("s", ["iceberg", "x"]), ("s", "bucket[1]"), "true", "p0 != 0"),
        (LessThan("day", "2017-12-01"), ("day", "month"), "p0 <= 574", "p0 < 575"),
        (LessThanOrEqual("day", "2017-11-30"), ("day", "month"), "p0 <= 574", "p0 < 575"),
        (GreaterThan("day", "2017-12-01"), ("day", "month"), "p0 >= 575", "p0 > 575"),
        (GreaterThanOrEqual("day", "2017-12-01"), ("day", "month"), "p0 >= 575", "p0 > 574"),
        (EqualTo("day", "2017-12-01"), ("day", "year"), "p0 = 47", "false"),
        (NotEqualTo("day", "2017-12-01"), ("day", "day"), "true", "p0 != 17501"),
        (EqualTo("ts", "1969-12-31T23:00:00"), ("ts", "hour"), "p0 IN (-1, 0)", "false"),
        (LessThan("ts", "1969-12-31T23:00:00"), ("ts", "hour"), "(p0 <= -1 OR p0 >= 1732919507)", "(p0 < -1 AND p0 > -1732919508)"),
        (GreaterThan("ts", "1969-12-31T22:30:00"), ("ts", "hour"), "(p0 >= -2 OR p0 <= -1732919508)", "(p0 > -1 AND p0 < 1732919507)"),
        (StartsWith("s", "ab"), ("s", "truncate[3]"), "p0 STARTS WITH 'ab'", "p0 STARTS WITH 'ab'"),
        (StartsWith("s", "abcd"), ("s", "truncate[3]"), "p0 = 'abc'", "false"),
        (NotStartsWith("s", "abcd"), ("s", "truncate[3]"), "true", "p0 != 'abc'"),
        (LessThan("s", "abcd"), ("s", "truncate[3]"), "p0 <= 'abc'", "p0 < 'abc'"),
        (EqualTo("dec", Decimal("1.23")), ("dec", "truncate[50]"), "p0 = 1.00", "false"),
        (LessThan("dec", Decimal("1.00")), ("dec", "truncate[50]"), "p0 <= 0.50", "p0 < 1.00"),
        (EqualTo("i", 5), ("i", "void"), "true", "false"),
        (EqualTo("i", 5), ("l", "identity"), "true", "false"),
        (EqualTo("i", 5), ("i", "zorder[4]"), "true", "false"),
    ],
)  # fmt: skip
def test_predicates_are_projected_as_the_specification_says(predicate, field, inclusive, strict):
    found = projected(predicate, field)
    if inclusive is not None:
        assert found == (inclusive, strict)
    else:
        # the least integers wrap around to the greatest labels
        assert found == ("(p0 <= 90 OR p0 > 2147483637)", "p0 < 100")


FAR = (1 << 63) - 1, -(1 << 63), 8_000_000_000_000_000_000, -8_000_000_000_000_000_000
NEAR = (1 << 31) * HOUR - 1, -(1 << 31) * HOUR, 0, -1, 20_000 * DAY, 7_000_000_000_000_000_000


@pytest.mark.parametrize("name", ["ts", "tz"])
@pytest.mark.parametrize("literal", [*FAR, *NEAR])
@pytest.mark.parametrize(
    "operation",
    [EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, In, NotIn],
)
def test_hours_that_wrapped_around_are_found_and_not_taken_for_near_ones(name, literal, operation):
    """As Iceberg Java writes them (DateTimeUtil.microsToHours): modulo 2^32."""
    spec = PartitionSpec(PartitionField(IDS[name], 1000, parse_transform("hour"), "h"))
    compared = {literal, 5} if operation in {In, NotIn} else literal
    expression = bind(SCHEMA, operation(name, compared))
    rows = [{IDS[name]: value} for value in (*FAR, *NEAR)]
    wrapped = [((r[IDS[name]] // HOUR + (1 << 31)) % (1 << 32) - (1 << 31),) for r in rows]
    inclusive, strict = project_inclusive(expression, spec), project_strict(expression, spec)
    column = columns_of(spec, wrapped)
    might, must = (_listed(evaluate(p, column), len(rows)) for p in (inclusive, strict))
    for row, some, every in zip(rows, might, must, strict=True):
        assert some or not matches(expression, row)
        assert matches(expression, row) or not every


def _listed(mask, count):
    return [mask] * count if isinstance(mask, bool) else mask.to_pylist()


def test_several_fields_of_one_column_work_together():
    inclusive, strict = projected(
        EqualTo("ts", "2024-01-31T10:00:00"), ("ts", "day"), ("ts", "bucket[1]")
    )
    assert inclusive == "(p0 = 19753 AND p1 = 0)"
    assert strict == "false"


def test_residuals_of_a_day_are_true_inside_and_the_predicate_at_the_ends():
    spec = PartitionSpec(0, (PartitionField(IDS["ts"], 1000, parse_transform("day"), "ts_day"),))
    expression = bind(SCHEMA, parse("ts >= '1970-01-02T12:00:00' and ts < '1970-01-05'"))
    column = columns_of(spec, [(0,), (1,), (2,), (4,), (None,)])
    residuals = ResidualEvaluator(expression, spec).residuals(column, 5)
    assert [str(r) for r in residuals] == [
        "false",
        str(expression.operands[0]),
        "true",
        "false",
        "false",
    ]
    assert residuals[2] == AlwaysTrue()
    assert residuals[3] == AlwaysFalse()


def test_without_partition_fields_the_whole_filter_is_left():
    expression = bind(SCHEMA, GreaterThan("i", 5))
    assert (
        ResidualEvaluator(expression, PartitionSpec()).residuals(columns_of(PartitionSpec(), []), 2)
        == [expression] * 2
    )


def test_dates_and_timestamps_project_to_the_same_days():
    day = (dt.date(2024, 1, 31) - dt.date(1970, 1, 1)).days
    assert projected(EqualTo("ts", "2024-01-31T23:59:59.999999"), ("ts", "day"))[0] == f"p0 = {day}"
    assert projected(EqualTo("tz", "2024-02-01T00:30:00+01:00"), ("tz", "day"))[0] == f"p0 = {day}"


@pytest.mark.parametrize("operation", ["<", "<=", ">", ">="])
def test_decimals_of_38_digits_are_projected_with_all_their_digits(operation):
    scale, width = 2, 10
    numbers = [12345678901234567890123456789012345616 + step for step in (-11, -1, 0, 1, 11)]
    literal, *values = (Decimal(f"{n}e-{scale}") for n in (numbers[2], *numbers))
    schema = Schema(NestedField(1, "d", DecimalType(38, scale), required=False))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform(f"truncate[{width}]"), "p0"),))
    bound = bind(schema, parse(f"d {operation} {literal}"))
    # Section "Partition Transforms, Truncate": v - (v % W) of the unscaled value.
    labels = pa.array([Decimal(f"{n - n % width}e-{scale}") for n in numbers], pa.decimal128(38, 2))
    column = typed_column(labels, DecimalType(38, scale))
    may = evaluate(project_inclusive(bound, spec), lambda _: column)
    must = evaluate(project_strict(bound, spec), lambda _: column)
    for value, selected, surely in zip(values, may.to_pylist(), must.to_pylist(), strict=True):
        matches = {"<": value < literal, "<=": value <= literal, ">": value > literal}.get(
            operation, value >= literal
        )
        assert selected or not matches
        assert matches or not surely
