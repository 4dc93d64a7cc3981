"""What of ORC files is left out by their statistics: days, moments and decimals, compared with the rows themselves."""

from __future__ import annotations

import datetime as dt
import operator
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.rings import sampled
from tests.spark.test_read_files import scanned

FILES, IN_EACH = 8, 40
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("part", pa.int32()),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tz", pa.timestamp("us", "UTC")),
        pa.field("m", pa.decimal128(9, 2)),
        pa.field("big", pa.decimal128(38, 10)),
    ]
)
TYPES = {"m": "DECIMAL(20, 2)", "big": "DECIMAL(38, 10)"}
# Where the calendars meet, where time counts from, and the ends
DAYS = [
    dt.date.fromisoformat(day).toordinal() - dt.date(1970, 1, 1).toordinal()
    for day in (
        *("0001-01-03", "0300-03-01", "1500-02-28", "1582-10-03", "1582-10-14", "1582-10-16"),
        *("1899-12-31", "1969-12-31", "1970-01-02", "2011-12-30", "2026-11-23", "9999-12-25"),
    )
]
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of TIMESTAMP_NTZ
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PROPERTIES = {
    "write.format.default": "orc",
    # the planner shall not know: what is left out is left out by what the files say
    "write.metadata.metrics.default": "counts",
    "write.orc.bloom.filter.columns": "day,ts,tz,m,big",
    # a task reads several of the files
    "read.split.open-file-cost": "1",
}


def drawn(choose, column, near, *, python=False):
    """A value near a day, or a decimal of its size."""
    if column == "day":
        return dt.date(1970, 1, 1) + dt.timedelta(days=near + choose.randint(-1, 1))
    if column in ("ts", "tz"):
        micros = choose.choice([0, 1, 999, 500_000, 999_999, choose.randrange(10**10)])
        found = EPOCH + dt.timedelta(days=near + choose.randint(-1, 1), microseconds=micros)
        if python and found < EPOCH:  # PyArrow writes no parts of a second there
            found = found.replace(microsecond=0)
        return found if column == "ts" else found.replace(tzinfo=dt.timezone.utc)
    if column == "m":
        return Decimal(near + choose.randint(-3, 3)) / choose.choice([1, 10, 100])
    return Decimal(near) * 10 ** choose.randint(0, 20) + Decimal(choose.randint(-3, 3)) / 10**10


def rows_of(choose, part, *, python):
    """Rows of one file: its values lie near two of the days, and some are null."""
    near = choose.sample(DAYS, choose.choice([1, 1, 2]))
    rows = []
    for n in range(IN_EACH):
        row = {"id": part * IN_EACH + n, "part": part}
        for column in SCHEMA.names[2:]:
            null = choose.random() < 0.1
            row[column] = (
                None if null else drawn(choose, column, choose.choice(near), python=python)
            )
        row["m"] = row["m"] and row["m"].quantize(Decimal("0.01"))
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def literal(column, value):
    if column == "day":
        return f"DATE '{value.isoformat()}'"
    if column == "ts":
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    if column == "tz":
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return f"CAST('{value:f}' AS {TYPES[column]})"


def condition(choose, values):
    """A condition in SQL, and what it says of a row: True, False or None."""
    column = choose.choice(SCHEMA.names[2:])
    if choose.random() < 0.5:
        compared = choose.choice([v for v in values[column] if v is not None])
    else:
        compared = drawn(choose, column, choose.choice(DAYS))
        if column == "m":
            compared = compared.quantize(Decimal("0.01"))
    kind = choose.random()
    if kind < 0.2:
        more = [compared, *choose.sample([v for v in values[column] if v is not None], 2)]
        text = f"{column} IN ({', '.join(literal(column, v) for v in more)})"
        return text, lambda row: None if row[column] is None else row[column] in more
    if kind < 0.25:
        return f"{column} IS NULL", lambda row: row[column] is None
    if kind < 0.35:
        return f"{column} <=> {literal(column, compared)}", lambda row: row[column] == compared
    sign = choose.choice(list(OPERATORS))
    text = f"{column} {sign} {literal(column, compared)}"
    return text, lambda row: None if row[column] is None else OPERATORS[sign](row[column], compared)


def combined(choose, values):
    """Conditions with NOT, AND and OR over them."""
    text, says = condition(choose, values)
    for _ in range(choose.choice([0, 0, 1, 2])):
        other, also = condition(choose, values)
        join = choose.choice(["AND", "OR"])
        text, says = f"({text} {join} {other})", _joined(join, says, also)
    if choose.random() < 0.3:
        return f"NOT {text}" if text[0] == "(" else f"NOT ({text})", _negated(says)
    return text, says


def _joined(join, left, right):
    decided = join == "OR"

    def says(row):
        found = (left(row), right(row))
        return decided if decided in found else None if None in found else not decided

    return says


def _negated(says):
    return lambda row: None if says(row) is None else not says(row)


@pytest.fixture(
    params=["python", pytest.param("java", marks=pytest.mark.full("Iceberg's runtime writes"))]
)
def writer(request):
    """Who writes the files: PyArrow for us, or ORC's own Java for Iceberg."""
    return request.param


@pytest.fixture
def namespace(spark, catalog):
    name = "orc_conditions"
    spark.sql(f"CREATE NAMESPACE lake.{name}")
    yield name
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    spark.sql(f"DROP NAMESPACE lake.{name}")


@pytest.fixture
def written(writer, request, catalog, namespace):
    """Makes a table of files of one kind; the types of two columns change between them."""

    def write(parts):
        table = catalog.create_table(f"{namespace}.t", SCHEMA, properties=PROPERTIES)
        java = request.getfixturevalue("iceberg_java") if writer == "java" else None
        if java is not None:
            source = catalog.create_table(f"{namespace}.source", SCHEMA)
            source.append(pa.concat_tables(parts))
        for number, part in enumerate(parts):
            if java is None:
                table.append(part)
            else:
                java.sql(
                    f"INSERT INTO ice.{namespace}.t SELECT /*+ COALESCE(1) */ * FROM ice.{namespace}.source "
                    f"WHERE part = {part['part'][0]}"
                )
                table.refresh()
            if number == len(parts) // 2:
                with table.update_schema() as update:
                    update.update_column("m", "decimal(20, 2)").update_column("part", "long")
        return f"lake.{namespace}.t"

    return write


ASKED = 60


# a task carries the plans of all parts of its union: few parts at once are asked much faster
@pytest.mark.full("many conditions on many tables")
@pytest.mark.parametrize("minor", ["4.3", "3.5"])
@pytest.mark.parametrize("asked", sampled([range(20), range(20, ASKED)], keep=1))
@pytest.mark.seeds(2, gate=1)
def test_no_row_that_matches_is_left_out(seed, spark, written, writer, sql_on, asked, minor):
    choose = random.Random(seed)
    table = written([rows_of(choose, part, python=writer == "python") for part in range(FILES)])
    # What a file says: ORC reads what is less than a second before 1970 as a second later.
    rows = [row.asDict() for row in spark.table(table).collect()]
    for row in rows:
        row["tz"] = row["tz"] and row["tz"].astimezone(dt.timezone.utc)
    assert len(rows) == FILES * IN_EACH
    values = {name: [row[name] for row in rows] for name in SCHEMA.names}
    conditions = [combined(choose, values) for _ in range(ASKED)]
    expected = sorted(
        [number, row["id"]] for number in asked for row in rows if conditions[number][1](row)
    )
    unions = [
        " UNION ALL ".join(
            f"SELECT {number}, id FROM {table} WHERE {conditions[number][0]}"
            for number in asked[first : first + 5]
        )
        for first in range(0, len(asked), 5)
    ]
    found = sorted(row for union in unions for row in sql_on(minor)(union))
    wrong = {number for number, _ in {*map(tuple, found)} ^ {*map(tuple, expected)}}
    assert not wrong, [conditions[number][0] for number in wrong]
    assert found == expected


def _of(file, day, moment, number):
    row = [file, file, day, moment, moment.replace(tzinfo=dt.timezone.utc), number, number]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True))], schema=SCHEMA)


def test_files_are_left_out_by_days_moments_and_decimals(spark, written, writer):
    """But not by what ORC's statistics may have otherwise than its rows."""
    part = dt.timedelta(microseconds=0 if writer == "python" else 999_000)
    texts = ("1500-03-01 12:00:00", "1900-01-01 00:00:01", "1969-12-31 23:59:59", "2026-11-23")
    moments = [dt.datetime.fromisoformat(text) for text in texts]
    moments[2] += part
    table = written(
        [
            _of(n, moment.date(), moment, Decimal(n) + Decimal("0.25"))
            for n, moment in enumerate(moments)
        ]
    )

    def read(where):
        found, count = scanned(spark.sql(f"SELECT id FROM {table} WHERE {where}"))
        return sorted(row[0] for row in found), count

    assert read("day = DATE '1900-01-01'") == ([1], 1)
    assert read("day > DATE '1969-12-31'") == ([3], 1)
    assert read("day IN (DATE '1900-01-01', DATE '1969-12-31')") == ([1, 2], 2)
    assert read("ts = TIMESTAMP_NTZ '1900-01-01 00:00:01'") == ([1], 1)
    assert read("tz > TIMESTAMP '2000-01-01 00:00:00Z'") == ([3], 1)
    assert read("m = 2.25BD AND m IS NOT NULL") == ([2], 1)
    assert read("m = CAST(2.25 AS DECIMAL(20, 2))") == ([2], 1)
    assert read("big <= CAST(1.25 AS DECIMAL(38, 10))") == ([0, 1], 2)
    # Days of the Julian calendar are not asked for.
    assert read("day = DATE '1500-03-01'") == ([0], 4)
    assert read("ts < TIMESTAMP_NTZ '1500-03-01 12:00:01'") == ([0], 4)
    if part:
        # ORC reads the last second before 1970 as the first one after it.
        assert read("ts > TIMESTAMP_NTZ '1970-01-01' AND day < DATE '2000-01-01'") == ([2], 3)
        assert read("tz = TIMESTAMP '1970-01-01 00:00:00.999Z'") == ([2], 4)
