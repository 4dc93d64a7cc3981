"""Metrics evaluation on columns, against rows, against a row-by-row oracle and against PyIceberg."""

import functools
import math
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from pyiceberg import expressions as peer
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, _StrictMetricsEvaluator
from pyiceberg.manifest import (
    DataFile as PeerDataFile,
    DataFileContent as PeerContent,
    FileFormat as PeerFormat,
)
from pyiceberg.schema import Schema as PeerSchema

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
)
from icecomb.format.expressions.comparison import (
    bounds_column,
    evaluate as evaluate_columns,
    typed_column,
)
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    And,
    EqualTo,
    In,
    IsNaN,
    IsNull,
    LessThan,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotStartsWith,
    Or,
    PredicateOperation,
    StartsWith,
    literal_predicate,
)
from icecomb.format.expressions.metrics_evaluator import might_match, must_match
from icecomb.format.spec.schema import Schema
from tests.format.expressions.peer_form import to_json
from tests.format.expressions.row_filters import expressions, predicates

TYPES = {
    "int": 1, "long": 2, "float": 3, "double": 4, "string": 5, "date": 6, "timestamptz": 7,
    "decimal(9, 2)": 8, "boolean": 9, "uuid": 10, "binary": 11, "fixed[2]": 12, "time": 13, "decimal(38, 10)": 14,
}  # fmt: skip
FIELDS = [{"id": n, "name": f"c{n}", "required": False, "type": kind} for kind, n in TYPES.items()]
SCHEMA = Schema.from_json({"type": "struct", "schema-id": 0, "fields": FIELDS})
PEER_SCHEMA = PeerSchema.model_validate({"type": "struct", "schema-id": 0, "fields": FIELDS})
FLOATS = ("float", "double")
TEXTS = ("string", "binary")


def _float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


VALUES = {
    "int": st.integers(-5, 5),
    "long": st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
    "float": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.5, _float32(0.1), 3.0, math.inf]),
    "double": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.1, 3.0, 1e300, math.inf]),
    "string": st.text(st.sampled_from("abé\U0001f600"), max_size=4),
    "date": st.integers(-3, 3),
    "timestamptz": st.integers(-3, 3),
    "time": st.integers(0, 3),
    "decimal(9, 2)": st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(38, 10)": st.one_of(
        st.integers(-3, 3), st.sampled_from([10**38 - 1, 1 - 10**38, 2**64, -(2**63)])
    ).map(
        lambda n: (
            Decimal(n).scaleb(-10)
            if abs(n) < 10**20
            else Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -10))
        )
    ),
    "boolean": st.booleans(),
    "uuid": st.sampled_from([UUID(int=0), UUID(int=1), UUID(int=2**127), UUID(int=2**128 - 1)]),
    "binary": st.binary(max_size=3),
    "fixed[2]": st.sampled_from([b"\x00\x00", b"\x00\xff", b"\x7f\x00", b"\xff\xff"]),
}


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def serialize(kind, value):
    return to_bytes(PEER_SCHEMA.find_type(f"c{TYPES[kind]}"), value)


@dataclass
class File:
    """A file of rows (column id to values) and the metrics its writer stated."""

    rows: dict
    count: int
    value_counts: dict = field(default_factory=dict)
    null_counts: dict = field(default_factory=dict)
    nan_counts: dict = field(default_factory=dict)
    lower: dict = field(default_factory=dict)
    upper: dict = field(default_factory=dict)


@st.composite
def files(draw, kinds):
    count = draw(st.integers(0, 4))
    file = File({}, count)
    for kind in kinds:
        column = TYPES[kind]
        value = st.one_of(st.none(), VALUES[kind])
        if kind in FLOATS:
            value = st.one_of(value, st.just(math.nan))
        rows = draw(st.lists(value, min_size=count, max_size=count))
        file.rows[column] = rows
        real = [v for v in rows if v is not None and not is_nan(v)]
        if draw(st.booleans()):
            file.value_counts[column] = count
        if draw(st.booleans()):
            file.null_counts[column] = rows.count(None)
        if kind in FLOATS and draw(st.booleans()):
            file.nan_counts[column] = sum(map(is_nan, rows))
        if real and draw(st.integers(0, 3)):
            low, high = min(real), max(real)
            if kind in TEXTS and draw(st.booleans()):
                low, high = low[:1], _incremented(high)
            if low is not None:
                file.lower[column] = serialize(kind, low)
            if high is not None and draw(st.integers(0, 3)):
                file.upper[column] = serialize(kind, high)
    return file


def _incremented(value):
    """An upper bound cut to one unit, as writers do; None where it cannot be incremented."""
    if len(value) <= 1:
        return value
    if isinstance(value, str):
        return chr(ord(value[0]) + 1)
    return bytes([value[0] + 1]) if value[0] < 255 else None


def filtering(drawn, kinds):
    """Return a strategy of filters of columns of these types."""
    values = {f"c{TYPES[kind]}": VALUES[kind] for kind in kinds}
    return drawn(values, [f"c{TYPES[kind]}" for kind in TEXTS])


class Columns:
    """The metrics of some files as Arrow columns."""

    def __init__(self, files):
        self._files = files
        self.record_count = pa.array([f.count for f in files], pa.int64())

    def value_count(self, column):
        return pa.array([f.value_counts.get(column) for f in self._files], pa.int64())

    def null_count(self, column):
        return pa.array([f.null_counts.get(column) for f in self._files], pa.int64())

    def nan_count(self, column):
        return pa.array([f.nan_counts.get(column) for f in self._files], pa.int64())

    def lower_bound(self, reference):
        bounds = [f.lower.get(reference.field_id) for f in self._files]
        return bounds_column(pa.array(bounds, pa.large_binary()), reference.field_type)

    def upper_bound(self, reference):
        bounds = [f.upper.get(reference.field_id) for f in self._files]
        return bounds_column(pa.array(bounds, pa.large_binary()), reference.field_type)


def row_matches(expression, row):
    """True, False or None (unknown) for one row: the definition."""
    if isinstance(expression, And):
        parts = [row_matches(e, row) for e in expression.operands]
        return False if False in parts else (None if None in parts else True)
    if isinstance(expression, Or):
        parts = [row_matches(e, row) for e in expression.operands]
        return True if True in parts else (None if None in parts else False)
    if not isinstance(expression, BoundPredicate):
        return isinstance(expression, AlwaysTrue)
    value, operation = row[expression.term.field_id], expression.operation
    nan = is_nan(value)
    if operation in (PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL):
        return (value is None) is (operation is PredicateOperation.IS_NULL)
    if operation in (PredicateOperation.IS_NAN, PredicateOperation.NOT_NAN):
        return nan is (operation is PredicateOperation.IS_NAN)
    if value is None:
        return None
    if isinstance(expression, BoundSetPredicate):
        return (value in expression.literals) is (operation is PredicateOperation.IN)
    return _compare(operation, value, expression.literal)


def _compare(operation, value, literal):
    if operation in (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH):
        return value.startswith(literal) is (operation is PredicateOperation.STARTS_WITH)
    return {
        PredicateOperation.LT: value < literal, PredicateOperation.LT_EQ: value <= literal, PredicateOperation.GT: value > literal,
        PredicateOperation.GT_EQ: value >= literal, PredicateOperation.EQ: value == literal, PredicateOperation.NOT_EQ: value != literal,
    }[operation]  # fmt: skip


def matching_rows(expression, file):
    rows = [{column: values[n] for column, values in file.rows.items()} for n in range(file.count)]
    return [row_matches(expression, row) is True for row in rows]


KIND_SETS = st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=2, unique=True)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_matching_row_is_pruned_and_no_other_row_is_claimed(data):
    kinds = data.draw(KIND_SETS)
    table = data.draw(st.lists(files(kinds), min_size=1, max_size=5))
    expression = bind(SCHEMA, data.draw(filtering(expressions, kinds)))
    might = might_match(expression, Columns(table)).to_pylist()
    must = must_match(expression, Columns(table)).to_pylist()
    for file, some, every in zip(table, might, must, strict=True):
        matches = matching_rows(expression, file)
        assert some or not any(matches)
        assert all(matches) or not every


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_columns_give_the_answers_of_the_row_by_row_oracle(data):
    # bounds of UUIDs are used only as far as two orders agree, which has a test of its own
    kinds = data.draw(KIND_SETS.filter(lambda kinds: "uuid" not in kinds))
    table = data.draw(st.lists(files(kinds), min_size=1, max_size=6))
    expression = bind(SCHEMA, data.draw(filtering(expressions, kinds)))
    assert might_match(expression, Columns(table)).to_pylist() == [
        naive_might(expression, f) for f in table
    ]
    assert must_match(expression, Columns(table)).to_pylist() == [
        naive_must(expression, f) for f in table
    ]


def naive_might(expression, file):
    return file.count != 0 and _fold(expression, lambda p: _naive_might(p, _Facts(p, file)))


def naive_must(expression, file):
    return file.count == 0 or _fold(expression, lambda p: _naive_must(p, _Facts(p, file)))


def _fold(expression, leaf):
    if isinstance(expression, And):
        return all(_fold(e, leaf) for e in expression.operands)
    if isinstance(expression, Or):
        return any(_fold(e, leaf) for e in expression.operands)
    return (
        leaf(expression)
        if isinstance(expression, BoundPredicate)
        else isinstance(expression, AlwaysTrue)
    )


def read(kind, data):
    value = from_bytes(kind, data)
    return UUID(bytes=value) if str(kind) == "uuid" else value


class _Facts:
    """What one file's metrics prove about one column."""

    def __init__(self, predicate, file):
        column = predicate.term.field_id
        kind = PEER_SCHEMA.find_type(column)
        self.values, self.nulls = file.value_counts.get(column), file.null_counts.get(column)
        self.nans = file.nan_counts.get(column) if predicate.term.may_be_nan else 0
        self.low, self.high = (
            None if column not in bounds else read(kind, bounds[column])
            for bounds in (file.lower, file.upper)
        )
        self.all_null = None not in (self.values, self.nulls) and self.values == self.nulls
        self.all_nan = (
            predicate.term.may_be_nan
            and None not in (self.values, self.nans)
            and self.values == self.nans
        )
        literals = getattr(predicate, "literals", None)
        self.literals = literals or (
            {predicate.literal} if isinstance(predicate, BoundLiteralPredicate) else set()
        )

    def may_hold(self, literal):
        return (self.low is None or self.low <= literal) and (
            self.high is None or literal <= self.high
        )

    @property
    def constant(self):
        return (
            self.low is not None
            and self.low == self.high
            and self.low in self.literals
            and self.nans == 0
        )

    def outside_prefix(self, prefix):
        if self.high is not None and self.high < prefix:
            return True
        return self.low is not None and self.low > prefix and not self.low.startswith(prefix)

    def inside_prefix(self, prefix):
        return (
            None not in (self.low, self.high)
            and self.low.startswith(prefix)
            and self.high.startswith(prefix)
        )


def _naive_might(predicate, facts):
    operation = predicate.operation
    if operation is PredicateOperation.IS_NULL:
        return facts.nulls != 0
    if operation is PredicateOperation.NOT_NULL:
        return not facts.all_null
    if operation is PredicateOperation.NOT_NAN:
        return not facts.all_nan
    if facts.all_null:
        return False
    if operation is PredicateOperation.IS_NAN:
        return facts.nans != 0
    if operation in (PredicateOperation.NOT_EQ, PredicateOperation.NOT_IN):
        return not facts.constant
    if operation is PredicateOperation.STARTS_WITH:
        return not facts.outside_prefix(predicate.literal)
    if operation is PredicateOperation.NOT_STARTS_WITH:
        return not facts.inside_prefix(predicate.literal)
    if facts.all_nan:
        return False
    if operation in (PredicateOperation.EQ, PredicateOperation.IN):
        return any(map(facts.may_hold, facts.literals))
    bound = (
        facts.low if operation in (PredicateOperation.LT, PredicateOperation.LT_EQ) else facts.high
    )
    return bound is None or _compare(operation, bound, predicate.literal)


def _naive_must(predicate, facts):
    operation = predicate.operation
    if operation is PredicateOperation.IS_NULL:
        return facts.all_null
    if operation is PredicateOperation.NOT_NULL:
        return facts.nulls == 0
    if operation is PredicateOperation.IS_NAN:
        return facts.all_nan
    if operation is PredicateOperation.NOT_NAN:
        return facts.nans == 0 or facts.all_null
    if facts.nulls != 0:
        return False
    if operation in (PredicateOperation.NOT_EQ, PredicateOperation.NOT_IN):
        return facts.all_nan or not any(map(facts.may_hold, facts.literals))
    if operation in (PredicateOperation.EQ, PredicateOperation.IN):
        return facts.constant
    if operation is PredicateOperation.STARTS_WITH:
        return facts.inside_prefix(predicate.literal)
    if operation is PredicateOperation.NOT_STARTS_WITH:
        return facts.outside_prefix(predicate.literal)
    bound = (
        facts.high if operation in (PredicateOperation.LT, PredicateOperation.LT_EQ) else facts.low
    )
    return facts.nans == 0 and bound is not None and _compare(operation, bound, predicate.literal)


def peer_expression(expression):
    """The same expression as an object of PyIceberg, through the JSON form both read."""
    from pydantic import TypeAdapter

    return TypeAdapter(peer.BooleanExpression).validate_python(to_json(expression))


def peer_file(file):
    return PeerDataFile.from_args(
        content=PeerContent.DATA, file_path="/f", file_format=PeerFormat.PARQUET, partition={}, record_count=file.count,
        file_size_in_bytes=1, value_counts=file.value_counts, null_value_counts=file.null_counts,
        nan_value_counts=file.nan_counts, lower_bounds=file.lower, upper_bounds=file.upper,
    )  # fmt: skip


COMMON = ("int", "long", "double", "string", "date", "timestamptz", "decimal(9, 2)")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_pruning_is_never_weaker_than_pyiceberg_and_claims_never_stronger(data):
    """PyIceberg prunes on the same proofs; it lets nulls match `!=` and trusts missing counts."""
    kind = data.draw(st.sampled_from(COMMON))
    file = data.draw(files([kind]))
    predicate = data.draw(filtering(predicates, [kind]))
    expression = bind(SCHEMA, predicate)
    theirs = peer_expression(predicate)
    try:
        inclusive = _InclusiveMetricsEvaluator(PEER_SCHEMA, theirs).eval(peer_file(file))
        strict = _StrictMetricsEvaluator(PEER_SCHEMA, theirs).eval(peer_file(file))
    except (TypeError, ValueError):
        return  # a literal that PyIceberg cannot convert
    ours = might_match(expression, Columns([file])).to_pylist()[0]
    stricter = (NotEqualTo, NotIn, NotStartsWith, StartsWith, NotNaN, IsNaN)
    stated = TYPES[kind] in file.value_counts and TYPES[kind] in file.null_counts and file.count
    if stated and not isinstance(predicate, stricter):
        assert ours == inclusive
    else:
        assert inclusive or not ours
    must = must_match(expression, Columns([file])).to_pylist()[0]
    if stated and not isinstance(predicate, (*stricter, EqualTo, In)) and kind not in FLOATS:
        assert must == strict


@pytest.mark.parametrize("kind", list(TYPES))
def test_bounds_of_every_type_are_compared_in_the_order_of_values(kind):
    examples = []

    @settings(max_examples=30, deadline=None, database=None)
    @given(st.lists(VALUES[kind], min_size=1, max_size=20), VALUES[kind])
    def check(values, literal):
        examples.append(literal)
        column = bounds_column(
            pa.array([serialize(kind, v) for v in values], pa.binary()),
            SCHEMA.find_type(TYPES[kind]),
        )
        for operation in (
            PredicateOperation.LT,
            PredicateOperation.LT_EQ,
            PredicateOperation.GT,
            PredicateOperation.GT_EQ,
            PredicateOperation.EQ,
            PredicateOperation.NOT_EQ,
        ):
            assert column.compare(operation, literal).to_pylist() == [
                _compare(operation, v, literal) for v in values
            ]
        assert column.is_in(frozenset((literal, values[0]))).to_pylist() == [
            v in (literal, values[0]) for v in values
        ]

    check()
    assert examples


def test_bounds_written_before_a_promotion_are_understood():
    reference = bind(SCHEMA, LessThan("c2", 0)).term
    mixed = pa.array([struct.pack("<i", -5), None, struct.pack("<q", 7), b"xyz"], pa.binary())
    assert bounds_column(mixed, reference.field_type).values.to_pylist() == [-5, None, 7, None]
    doubles = pa.array([struct.pack("<f", 0.5), struct.pack("<d", 0.1)], pa.binary())
    assert bounds_column(doubles, SCHEMA.find_type("c4")).values.to_pylist() == [0.5, 0.1]


def test_a_bound_that_is_nan_proves_nothing_about_equality():
    nan = struct.pack("<d", math.nan)
    file = File(
        {},
        5,
        lower={4: nan},
        upper={4: struct.pack("<d", 1.0)},
        value_counts={4: 5},
        null_counts={4: 0},
    )
    columns = Columns([file])
    assert might_match(bind(SCHEMA, EqualTo("c4", 3.0)), columns).to_pylist() == [True]
    assert might_match(bind(SCHEMA, In("c4", [3.0, 4.0])), columns).to_pylist() == [True]
    assert must_match(bind(SCHEMA, NotEqualTo("c4", 3.0)), columns).to_pylist() == [False]


def test_long_lists_are_compared_by_their_ends():
    file = File({}, 5, lower={1: struct.pack("<i", 100)}, upper={1: struct.pack("<i", 101)})
    inside, outside = range(1000), range(200, 1000)
    assert might_match(bind(SCHEMA, In("c1", inside)), Columns([file])).to_pylist() == [True]
    assert might_match(bind(SCHEMA, In("c1", outside)), Columns([file])).to_pylist() == [False]


def test_a_file_of_unknown_size_might_match_and_an_empty_one_cannot():
    expression = bind(SCHEMA, EqualTo("c1", 5))
    table = [File({}, -1, lower={1: struct.pack("<i", 9)}), File({}, 0), File({}, 1)]
    assert might_match(expression, Columns(table)).to_pylist() == [True, False, True]
    assert must_match(expression, Columns(table)).to_pylist() == [False, True, False]


def test_fields_inside_structs_are_never_claimed():
    schema = Schema.from_json(
        {"type": "struct", "fields": [{"id": 1, "name": "s", "required": False, "type": {"type": "struct", "fields": [
            {"id": 2, "name": "x", "required": False, "type": "int"}]}}]}
    )  # fmt: skip
    five = struct.pack("<i", 5)
    file = File({}, 3, {2: 3}, {2: 0}, lower={2: five}, upper={2: five})
    expression = bind(schema, EqualTo("s.x", 5))
    assert must_match(expression, Columns([file])).to_pylist() == [False]
    assert might_match(bind(schema, EqualTo("s.x", 6)), Columns([file])).to_pylist() == [False]
    # Iceberg Java counts no null in an ORC file where the struct around it is null
    assert might_match(bind(schema, IsNull("s.x")), Columns([file])).to_pylist() == [True]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_values_are_evaluated_as_the_definition_says(data):
    kinds = data.draw(KIND_SETS)
    file = data.draw(files(kinds))
    expression = bind(SCHEMA, data.draw(filtering(expressions, kinds)))
    arrays = {TYPES[kind]: _array(kind, file.rows[TYPES[kind]]) for kind in kinds}
    result = evaluate_columns(
        expression, lambda term: typed_column(arrays[term.field_id], term.field_type)
    )
    got = [result] * file.count if isinstance(result, bool) else result.to_pylist()
    assert got == matching_rows(expression, file)


@functools.cache
def _arrow(kind):
    return {
        "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
        "date": pa.date32(), "timestamptz": pa.timestamp("us", "UTC"), "time": pa.time64("us"), "boolean": pa.bool_(),
        "decimal(9, 2)": pa.decimal128(9, 2), "decimal(38, 10)": pa.decimal128(38, 10), "uuid": pa.binary(16),
        "binary": pa.binary(), "fixed[2]": pa.binary(2),
    }[kind]  # fmt: skip


def _array(kind, values):
    if kind == "uuid":
        values = [None if v is None else v.bytes for v in values]
    return pa.array(values, _arrow(kind), from_pandas=False)


SIGNED = [UUID(int=2**127), UUID(int=2**127 + 5), UUID(int=0), UUID(int=7), UUID(int=2**63 + 1)]
"""In the order of Iceberg Java, which takes a UUID for two signed numbers."""


def signed_key(value):
    return struct.unpack(">qq", value.bytes)


@settings(max_examples=200)
@given(
    values=st.lists(st.one_of(st.sampled_from(SIGNED), st.uuids()), min_size=1, max_size=4),
    literal=st.one_of(st.sampled_from(SIGNED), st.uuids()),
    operation=st.sampled_from(
        [
            PredicateOperation.LT,
            PredicateOperation.LT_EQ,
            PredicateOperation.GT,
            PredicateOperation.GT_EQ,
            PredicateOperation.EQ,
            PredicateOperation.NOT_EQ,
        ]
    ),
    key=st.sampled_from([signed_key, lambda value: value.bytes]),
)
def test_bounds_of_uuids_hold_in_the_order_of_either_writer(values, literal, operation, key):
    ordered = sorted(values, key=key)
    low, high = {10: ordered[0].bytes}, {10: ordered[-1].bytes}
    counts = {10: len(values)}
    file = File({10: values}, len(values), counts, {10: 0}, lower=low, upper=high)
    predicate = bind(SCHEMA, literal_predicate(operation, "c10", literal))
    holds = {
        PredicateOperation.LT: lambda v: v.bytes < literal.bytes,
        PredicateOperation.LT_EQ: lambda v: v.bytes <= literal.bytes,
        PredicateOperation.GT: lambda v: v.bytes > literal.bytes,
        PredicateOperation.GT_EQ: lambda v: v.bytes >= literal.bytes,
        PredicateOperation.EQ: lambda v: v == literal,
        PredicateOperation.NOT_EQ: lambda v: v != literal,
    }[operation]
    matching = [holds(value) for value in values]
    assert might_match(predicate, Columns([file])).to_pylist()[0] or not any(matching)
    assert not must_match(predicate, Columns([file])).to_pylist()[0] or all(matching)
