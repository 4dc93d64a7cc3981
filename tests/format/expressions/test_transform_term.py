"""Predicates on partition transforms of columns, against transforming and comparing row by row."""

import datetime as dt
import operator
from decimal import Decimal
from uuid import UUID

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from icecomb.catalog import load_catalog
from icecomb.format.errors import ExpressionError, UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.comparison import bounds_column, evaluate, typed_column
from icecomb.format.expressions.expression import (
    LITERAL_OPERATIONS,
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    NotNull,
    PredicateOperation,
    StartsWith,
    literal_predicate,
    set_predicate,
)
from icecomb.format.expressions.metrics_evaluator import might_match, must_match
from icecomb.format.expressions.projection import project_inclusive, project_strict
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.expressions.term import (
    Reference,
    UnboundTransform,
    bucket,
    day,
    days,
    hour,
    hours,
    month,
    months,
    truncate,
    year,
    years,
)
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.transform import VoidTransform, parse_transform
from icecomb.format.spec.types import NestedField, parse_type
from tests.format.expressions.unbound import unbind

HOUR = 3_600_000_000
DAY = 24 * HOUR
KINDS = [
    "int", "long", "decimal(4, 2)", "string", "binary", "date", "timestamp", "timestamptz", "uuid",
]  # fmt: skip
IDS = {kind: n for n, kind in enumerate(KINDS, 1)}
SCHEMA = Schema.from_json(
    {
        "type": "struct",
        "fields": [
            {"id": n, "name": f"c{n}", "required": False, "type": kind} for kind, n in IDS.items()
        ],
    }
)
INT, LONG = 1 << 31, 1 << 63
EDGE_DAYS = [-719_528, -366, -365, -32, -31, -1, 0, 1, 30, 31, 364, 365, 730, 19_753, 2_932_896]
MICROS = st.one_of(
    st.builds(
        lambda days, hours, rest: days * DAY + hours * HOUR + rest,
        st.sampled_from(EDGE_DAYS),
        st.integers(0, 23),
        st.sampled_from([0, 1, HOUR - 1]),
    ),
    st.integers(-3 * DAY, 3 * DAY),
)
VALUES = {
    "int": st.one_of(st.integers(-25, 25), st.integers(-INT, 3 - INT), st.integers(INT - 4, INT - 1)),
    "long": st.one_of(st.integers(-25, 25), st.sampled_from([-LONG, 1 - LONG, LONG - 1])),
    "decimal(4, 2)": st.one_of(st.integers(-60, 60), st.sampled_from([-9999, 9999])).map(
        lambda n: Decimal(n).scaleb(-2)
    ),
    "string": st.text(st.sampled_from("abé\U0001f600"), max_size=4),
    "binary": st.binary(max_size=4),
    "date": st.one_of(st.sampled_from(EDGE_DAYS), st.integers(-40, 40)),
    "timestamp": MICROS,
    "timestamptz": MICROS,
    "uuid": st.integers(0, 40).map(lambda n: UUID(int=n)),
}  # fmt: skip
TRUNCATED = {"int", "long", "decimal(4, 2)", "string", "binary"}
TIMES = {"date", "timestamp", "timestamptz"}
SYMBOLS = {
    PredicateOperation.LT: operator.lt,
    PredicateOperation.LT_EQ: operator.le,
    PredicateOperation.GT: operator.gt,
    PredicateOperation.GT_EQ: operator.ge,
    PredicateOperation.EQ: operator.eq,
    PredicateOperation.NOT_EQ: operator.ne,
    PredicateOperation.STARTS_WITH: lambda value, prefix: value.startswith(prefix),
    PredicateOperation.NOT_STARTS_WITH: lambda value, prefix: not value.startswith(prefix),
}
PREFIXES = (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH)


@st.composite
def questions(draw):
    """A column's type, a transform of it, a predicate on that, its oracle, and some values."""
    kind = draw(st.sampled_from(KINDS))
    width = draw(st.sampled_from([1, 2, 3, 4, 10, 16]))
    names = [f"bucket[{width}]"]
    if kind in TRUNCATED:
        names += [f"truncate[{width}]"] * 3
    if kind in TIMES:
        names += ["year", "month", "day"] + ([] if kind == "date" else ["hour"])
    transform = parse_transform(draw(st.sampled_from(names)))
    source = parse_type(kind)
    term = UnboundTransform(transform, Reference(f"c{IDS[kind]}"))
    # what rows transform to, what is between, and what is beside
    labels = VALUES[kind].map(lambda value: transform.apply(value, source))
    if not isinstance(transform.result_type(source), type(source)) or kind in ("int", "long"):
        labels = st.one_of(labels, st.integers(-5, 20))
    if kind in TRUNCATED and str(transform).startswith("truncate"):
        labels = st.one_of(labels, VALUES[kind])
    text = kind in ("string", "binary") and str(transform).startswith("truncate")
    operation = draw(
        st.sampled_from(
            [o for o in PredicateOperation if o in SYMBOLS and (text or o not in PREFIXES)]
        )
    )
    if draw(st.booleans()) and operation in (PredicateOperation.EQ, PredicateOperation.NOT_EQ):
        wanted = draw(st.lists(labels, min_size=2, max_size=4))
        is_in = operation is PredicateOperation.EQ
        predicate = set_predicate(
            PredicateOperation.IN if is_in else PredicateOperation.NOT_IN, term, wanted
        )
        holds = lambda result: (result in wanted) is is_in  # noqa: E731
    else:
        literal = draw(labels)
        predicate = literal_predicate(operation, term, literal)
        holds = lambda result: SYMBOLS[operation](result, literal)  # noqa: E731
    if draw(st.booleans()):
        predicate, positive = ~predicate, holds
        holds = lambda result: not positive(result)  # noqa: E731
    rows = draw(st.lists(st.one_of(st.none(), VALUES[kind]), min_size=1, max_size=8))
    expected = [v is not None and holds(transform.apply(v, source)) for v in rows]
    return kind, transform, predicate, rows, expected


def arrow(kind, values):
    found = type_to_pyarrow(parse_type(kind))
    if kind in TIMES:
        width = pa.int32() if kind == "date" else pa.int64()
        return pa.array(values, width).view(found)
    if kind == "uuid":
        return pa.array([v if v is None else v.bytes for v in values], pa.binary(16)).cast(found)
    return pa.array(values, found)


def selected(expression, kind, rows):
    array = arrow(kind, rows)
    return row_mask(bind(SCHEMA, expression), {IDS[kind]: array}, len(rows)).to_pylist()


@given(questions())
def test_rows_are_selected_as_by_transforming_and_comparing_each(question):
    kind, _, predicate, rows, expected = question
    assert selected(predicate, kind, rows) == expected
    bound = bind(SCHEMA, predicate)
    assert bind(SCHEMA, unbind(bound)) == bound


@given(
    questions(), st.sampled_from(["same", "identity", "truncate[3]", "bucket[4]", "day", "void"])
)
def test_partitions_are_left_out_or_taken_whole_only_where_that_is_right(question, other):
    kind, transform, predicate, rows, expected = question
    source = parse_type(kind)
    by = transform if other == "same" else parse_transform(other)
    if not by.can_transform(source):
        return
    spec = PartitionSpec(0, (PartitionField(IDS[kind], 1000, by, "p"),))
    labels = [None if isinstance(by, VoidTransform) else by.apply(v, source) for v in rows]
    bound = bind(SCHEMA, predicate)
    groups = {}
    for label, match in zip(labels, expected, strict=True):
        # truncating the least value may leave its type: a table refuses such a row
        if not (isinstance(label, Decimal) and abs(label) >= 100):
            groups.setdefault(label, []).append(match)
    result = by.result_type(source)
    column = typed_column(arrow(str(result), list(groups)), result)

    def evaluated(expression):
        mask = evaluate(expression, lambda _: column)
        return [mask] * len(groups) if isinstance(mask, bool) else mask.to_pylist()

    might = evaluated(project_inclusive(bound, spec))
    must = evaluated(project_strict(bound, spec))
    for matches, some, every in zip(groups.values(), might, must, strict=True):
        assert some or not any(matches)
        assert not every or all(matches)
        if other == "same" and str(transform).startswith("bucket"):
            assert (some, every) == (any(matches), all(matches))


class Metrics:
    """The metrics of one file with one column."""

    def __init__(self, kind, rows, *, counted):
        there = [v for v in rows if v is not None]
        self.record_count = pa.array([len(rows)])
        self._counts = (len(rows), rows.count(None)) if counted else (None, None)
        field_type = parse_type(kind)
        low, high = (min(there), max(there)) if there else (None, None)
        self._bounds = [
            bounds_column(
                pa.array([None if v is None else to_bytes(field_type, v)], pa.binary()), field_type
            )
            for v in (low, high)
        ]

    def value_count(self, _):
        return pa.array([self._counts[0]], pa.int64())

    def null_count(self, _):
        return pa.array([self._counts[1]], pa.int64())

    def nan_count(self, _):
        return pa.array([None], pa.int64())

    def lower_bound(self, _):
        return self._bounds[0]

    def upper_bound(self, _):
        return self._bounds[1]


@given(questions(), st.booleans())
def test_files_are_left_out_or_taken_whole_only_where_that_is_right(question, counted):
    kind, _, predicate, rows, expected = question
    metrics = Metrics(kind, rows, counted=counted)
    bound = bind(SCHEMA, predicate)
    assert might_match(bound, metrics)[0].as_py() or not any(expected)
    assert not must_match(bound, metrics)[0].as_py() or all(expected)


C = {kind: f"c{n}" for kind, n in IDS.items()}
TS, DATE, NAME, ID, DEC = C["timestamp"], C["date"], C["string"], C["long"], C["decimal(4, 2)"]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (f"bucket(16, {ID}) = 3", EqualTo(bucket(ID, 16), 3)),
        (f"3 = BUCKET({ID}, 16)", EqualTo(bucket(ID, 16), 3)),
        (f"truncate(4, {NAME}) = 'abcd'", EqualTo(truncate(NAME, 4), "abcd")),
        (f"truncate(4, {NAME}) like 'ab%'", StartsWith(truncate(NAME, 4), "ab")),
        (f"year({TS}) = 2024", EqualTo(year(TS), 2024)),
        (f"years({TS}) in (53, 54)", In(years(TS), [53, 54])),
        (f"month({TS}) < '2024-02'", LessThan(month(TS), "2024-02")),
        (f"months({TS}) < 649", LessThan(months(TS), 649)),
        (f"day({TS}) >= '2024-01-01'", GreaterThanOrEqual(day(TS), "2024-01-01")),
        (f"days({TS}) >= date '2024-01-01'", GreaterThanOrEqual(days(TS), "2024-01-01")),
        (f"hour({TS}) = '2024-01-31-12'", EqualTo(hour(TS), "2024-01-31-12")),
        (f"hours({TS}) = 474060", EqualTo(hours(TS), 474060)),
        (f"bucket(16, {ID}) is null", IsNull(bucket(ID, 16))),
        (f"not year({TS}) is null", NotNull(year(TS))),
    ],
)
def test_sql_text_may_ask_for_transforms(text, same):
    assert parse(text) == same
    if not isinstance(same, StartsWith):
        assert parse(str(same)) == same


@pytest.mark.parametrize(
    ("term", "column"),
    [
        (EqualTo(year(TS), 2024), f"{TS} >= '2024-01-01' and {TS} < '2025-01-01'"),
        (EqualTo(years(TS), 54), f"{TS} >= '2024-01-01' and {TS} < '2025-01-01'"),
        (EqualTo(year(DATE), "2024"), f"{DATE} >= '2024-01-01' and {DATE} < '2025-01-01'"),
        (EqualTo(month(TS), "2023-12"), f"{TS} >= '2023-12-01' and {TS} < '2024-01-01'"),
        (EqualTo(months(DATE), -1), f"{DATE} >= '1969-12-01' and {DATE} < '1970-01-01'"),
        (GreaterThanOrEqual(day(TS), "2024-01-01"), f"{TS} >= '2024-01-01'"),
        (GreaterThanOrEqual(days(TS), dt.date(2024, 1, 1)), f"{TS} >= '2024-01-01'"),
        (LessThan(hour(TS), "2024-01-31-12"), f"{TS} < '2024-01-31T12:00:00'"),
        (EqualTo(truncate(NAME, 4), "abcd"), f"{NAME} like 'abcd%'"),
        (EqualTo(truncate(NAME, 4), "abc"), f"{NAME} = 'abc'"),
        (EqualTo(truncate(ID, 10), 20), f"{ID} >= 20 and {ID} < 30"),
        (EqualTo(truncate(DEC, 50), Decimal("1.50")), f"{DEC} >= 1.50 and {DEC} < 2.00"),
        (EqualTo(truncate(ID, 10), 25), "false"),
        (IsNull(bucket(ID, 16)), f"{ID} is null"),
        (~EqualTo(truncate(ID, 10), 25), f"{ID} is not null"),
    ],
)
def test_transforms_that_keep_the_order_become_ranges_of_the_column(term, column):
    assert bind(SCHEMA, term) == bind(SCHEMA, parse(column))


def test_buckets_stay_and_their_projection_is_exact():
    bound = bind(SCHEMA, And(In(bucket(ID, 16), [3, 5]), NotNull(NAME)))
    assert str(bound) == f"(bucket(16, {ID}) IN (3, 5) AND {NAME} IS NOT NULL)"
    assert set(bound_references(bound)) == {IDS["long"], IDS["string"]}
    fields = [
        PartitionField(IDS["long"], 1000, parse_transform("bucket[16]"), "b16"),
        PartitionField(IDS["long"], 1001, parse_transform("bucket[8]"), "b8"),
    ]
    spec = PartitionSpec(0, tuple(fields))
    in_bucket = bind(SCHEMA, In(bucket(ID, 16), [3, 5]))
    assert str(project_inclusive(in_bucket, spec)) == "b16 IN (3, 5)"
    assert str(project_strict(in_bucket, spec)) == "b16 IN (3, 5)"


def test_the_specifications_hash_decides_the_bucket():
    # Appendix B: 34 hashes to 2017239379
    assert selected(EqualTo(bucket(ID, 16), 2017239379 % 16), "long", [34, None]) == [True, False]


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        (f"month({TS}) = 5", "is not a month like '2024-01'"),
        (f"day({TS}) = 15", "is not a day like '2024-01-31'"),
        (f"hour({TS}) = '12'", "is not a hour like '2024-01-31-12'"),
        (f"month({TS}) = '2024-13'", "no such month"),
        (f"year({TS}) = 'x'", "is not a year like '2024'"),
        (f"year({NAME}) = 2024", "Cannot apply the transform year"),
        (f"hours({DATE}) = 1", "Cannot apply the transform hour"),
        (f"truncate(4, {C['uuid']}) = 'x'", r"Cannot apply the transform truncate\[4\]"),
        (f"bucket(16, {ID}) = 'x'", "is not a number"),
        (f"bucket(0, {ID}) = 1", "Number of buckets is 0, must be 1 to 2147483647"),
        ("bucket(16) = 1", "Not a predicate on columns"),
        (f"bucket({ID}) = 1", "Not a predicate on columns"),
        (f"bucket(16, {ID})", "Not a predicate on columns"),
        (f"year({TS}, 3) = 1", "Not a predicate on columns"),
        (f"bucket(16, bucket(4, {ID})) = 1", "Not a predicate on columns"),
        ("bucket(16, nowhere) = 1", "Cannot find column 'nowhere'"),
    ],
)
def test_what_cannot_be_asked_is_said(expression, named):
    with pytest.raises(Exception, match=named) as caught:
        bind(SCHEMA, parse(expression))
    assert caught.type.__module__ == "icecomb.format.errors"


@pytest.mark.parametrize(
    "text",
    ["a = 'x'::variant", "a = cast('POINT(1 2)' as geometry(4326))", "a > unknown '1'"],
)
def test_types_without_comparable_values_are_refused_in_sql_text(text):
    with pytest.raises(UnsupportedError, match="compared with a value of type"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["timestamp_ns '2024-01-01'", "cast('2024-01-01' as TIMESTAMP_NS)"]
)
def test_nanoseconds_in_sql_text_are_text_as_all_times(text):
    assert parse(f"a > {text}") == GreaterThan("a", "2024-01-01")


def test_other_transforms_are_no_terms():
    with pytest.raises(ExpressionError, match="Cannot use the transform void"):
        UnboundTransform(VoidTransform(), Reference("a"))


def test_predicates_show_how_they_are_made():
    for made in (EqualTo(bucket("id", 16), 3), In(years("ts"), [1, 2]), IsNull(truncate("s", 4))):
        assert eval(repr(made)) == made  # noqa: S307 - its own text


assert set(LITERAL_OPERATIONS) == set(SYMBOLS)


def test_tables_are_scanned_and_deleted_from_by_transforms(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    schema = Schema(
        (NestedField(1, "id", parse_type("long")), NestedField(2, "ts", parse_type("timestamp")))
    )
    by_bucket = PartitionField(1, 1000, parse_transform("bucket[4]"), "b")
    by_month = PartitionField(2, 1001, parse_transform("month"), "m")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", schema, partition_spec=PartitionSpec(0, (by_bucket, by_month))
    )
    start = dt.datetime(2023, 12, 30)  # noqa: DTZ001 - without a zone, as the column
    rows = [{"id": n, "ts": start + dt.timedelta(hours=5 * n)} for n in range(40)]
    table.append(pa.Table.from_pylist(rows))
    buckets = {n: by_bucket.transform.apply(n, parse_type("long")) for n in range(40)}

    scan = table.scan("bucket(4, id) = 1")
    assert {task.file.partition[0] for task in scan.plan_files()} == {1}
    assert all(str(task.residual) == "true" for task in scan.plan_files())
    found = sorted(scan.to_arrow()["id"].to_pylist())
    assert found == [n for n, b in buckets.items() if b == 1]

    wanted = [r["id"] for r in rows if r["ts"].year == 2024 and buckets[r["id"]] == 2]
    scan = table.scan("year(ts) = 2024 and bucket(4, id) = 2")
    assert {task.file.partition for task in scan.plan_files()} == {(2, 648)}
    assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted

    other_width = table.scan("bucket(3, id) = 0 and day(ts) = '2024-01-01'").to_arrow()
    by_three = parse_transform("bucket[3]")
    assert sorted(other_width["id"].to_pylist()) == [
        r["id"]
        for r in rows
        if by_three.apply(r["id"], parse_type("long")) == 0
        and r["ts"].date() == dt.date(2024, 1, 1)
    ]

    before = {task.file.file_path for task in table.scan().plan_files()}
    table.delete("bucket(4, id) = 1")
    after = {task.file.file_path for task in table.scan().plan_files()}
    assert after < before  # whole files went, none was written
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [
        n for n, b in buckets.items() if b != 1
    ]


def test_metadata_tables_are_filtered_by_transforms(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    with table.update_spec() as update:
        update.add_identity("s")
    for text in ("a", "ab", "b"):
        table.append(pa.table({"id": [1], "s": [text]}))
    four = parse_transform("bucket[4]")
    wanted = four.apply("a", parse_type("string"))
    found = table.inspect.files(row_filter=f"bucket(4, partition.s) = {wanted}")
    expected = {t for t in ("a", "ab", "b") if four.apply(t, parse_type("string")) == wanted}
    assert {p["s"] for p in found["partition"].to_pylist()} == expected
    by_prefix = table.inspect.files(row_filter="truncate(1, partition.s) = 'a'")
    assert {p["s"] for p in by_prefix["partition"].to_pylist()} == {"a", "ab"}
