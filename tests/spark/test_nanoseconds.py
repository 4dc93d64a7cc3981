"""Nanoseconds that Spark is shown in microseconds: what it reads, finds and deletes, in three formats."""

from __future__ import annotations

import datetime as dt
import itertools
import operator
import random
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.configuration.catalog_property import DOWNCAST_NANOSECONDS
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
)
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

NUMBERS = itertools.count(1)
FORMATS = ("parquet", "orc", "avro")
SPARKS = ("4.3", "3.5", "4.1")
CATALOG = "fine"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "t", TimestampNanoType()),
    NestedField(3, "z", TimestamptzNanoType()),
    NestedField(4, "s", StructType(NestedField(5, "x", TimestampNanoType()))),
    NestedField(6, "l", ListType(7, TimestamptzNanoType())),
    NestedField(8, "m", MapType(9, StringType(), 10, TimestampNanoType())),
)
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone
SECOND = 10**9
RANDOM = random.Random(7)
NANOS = [
    None,
    *(
        base + border * 1000 + more
        for base in (0, -7 * SECOND, 1_700_000_000 * SECOND, -(1 << 63) + 10**6, (1 << 63) - 10**6)
        for border in (0, RANDOM.randrange(9))
        for more in (-1, 0, 1, 999)
    ),
]
"""Times around borders of microseconds, before and after 1970 and at the ends of their range."""


@pytest.fixture
def lake(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


@pytest.fixture
def ask_of(sql_on, minor):
    """Answers statements on a folder's tables in a catalog that shows microseconds."""
    sql, names = sql_on(minor), []
    python = sql("SET spark.sql.catalog.lake.python")[0][1]

    def ask(warehouse, table="db.t"):
        names.append(name := f"{CATALOG}{next(NUMBERS)}")
        settings = {
            "": "org.icecomb.spark.IcecombCatalog", ".type": "hadoop", ".warehouse": warehouse,
            ".python": python, f".{DOWNCAST_NANOSECONDS.key}": "true",
        }  # fmt: skip
        for key, value in settings.items():
            sql(f"SET `spark.sql.catalog.{name}{key}`=`{value}`")

        def answer(text):
            return sql(text.format(t=answer.table, c=name))

        answer.table = f"{name}.{table}"
        return answer

    yield ask
    for name in names:
        for key in ("", ".type", ".warehouse", ".python", f".{DOWNCAST_NANOSECONDS.key}"):
            sql(f"RESET `spark.sql.catalog.{name}{key}`")


@pytest.fixture
def ask(ask_of, tmp_path):
    return ask_of(tmp_path)


def made(lake, file_format, *partitions, **properties):
    properties = {"format-version": "3", "write.format.default": file_format} | {
        key.replace("_", "."): value for key, value in properties.items()
    }
    table = lake.create_table("db.t", SCHEMA, properties=properties)
    with table.update_spec() as update:
        for column, transform in partitions:
            update.add_field(column, transform)
    return table


def rows(nanos, first=0):
    """Rows with these times in all columns, and ids from a number on."""
    plain, zoned = pa.array(nanos, pa.timestamp("ns")), pa.array(nanos, pa.timestamp("ns", "UTC"))
    each = pa.array(range(len(nanos) + 1), pa.int32())
    names = pa.array(["k"] * len(nanos))
    entries = pa.MapArray.from_arrays(each, names, plain)
    return pa.table(
        {
            "id": pa.array(range(first, first + len(nanos)), pa.int64()),
            "t": plain,
            "z": zoned,
            "s": pa.StructArray.from_arrays([plain], ["x"]),
            "l": pa.ListArray.from_arrays(each, zoned),
            "m": entries,
        }
    )


READ_COLUMNS = (
    "id", "string(t)", "unix_micros(z)", "string(s.x)", "unix_micros(l[0])", "string(m['k'])",
    "unix_micros(try_element_at(l, 1))",
)  # fmt: skip
READ = f"SELECT {', '.join(READ_COLUMNS)} FROM {{t}}"


def shown(nanos):
    """A time as Spark prints it, and its microseconds."""
    if nanos is None:
        return None, None
    micros = nanos // 1000
    text = (EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ", "microseconds")
    return text.rstrip("0").rstrip(".") if micros % 10**6 else text[:19], micros


def nano_text(nanos):
    """A time with nine digits, as Iceberg Java takes it."""
    seconds, fraction = divmod(nanos, SECOND)
    return f"{EPOCH + dt.timedelta(seconds=seconds)}.{fraction:09}"


def expected(nanos, first=0, among=None):
    found = []
    for number, each in enumerate(nanos, first):
        text, micros = shown(each)
        if among is None or number in among:
            found.append([number, text, micros, text, micros, text, micros])
    return found


def ids(ask, where):
    return sorted(row[0] for row in ask(f"SELECT id FROM {{t}} WHERE {where}"))


def literal(micros, kind="TIMESTAMP_NTZ"):
    return f"{kind}'{(EPOCH + dt.timedelta(microseconds=micros)).isoformat(' ')}{'' if kind.endswith('Z') else ' UTC'}'"


def times_of(file_format):
    """Those that a format has: ORC has no fractions of seconds before 1970."""
    return [n for n in NANOS if file_format != "orc" or n is None or n >= 0 or n % SECOND == 0]


@pytest.mark.sparks(*SPARKS)
@pytest.mark.parametrize("file_format", sampled(FORMATS, keep=1))
def test_spark_reads_and_deletes_the_microseconds_of_nanoseconds(lake, ask, file_format):
    table = made(lake, file_format, write_delete_mode="merge-on-read")
    times = times_of(file_format)
    table.append(rows(times))
    table.append(rows(times[:4], 100))
    both = expected(times) + expected(times[:4], 100)
    assert ask(f"{READ} ORDER BY id") == both
    known = {row[0]: row[2] for row in both}
    gone = RANDOM.sample(sorted({each for each in known.values() if each is not None}), 2)
    ask(f"DELETE FROM {{t}} WHERE t IN ({', '.join(map(literal, gone))}) AND id % 2 = 0")
    left = [n for n, micros in known.items() if micros not in gone or n % 2]
    assert ask(f"{READ} ORDER BY id") == [row for row in both if row[0] in left]
    kept = table.refresh().scan().to_arrow().sort_by("id")
    assert kept["id"].to_pylist() == left
    assert kept["t"].cast(pa.int64()).to_pylist() == [times[n % 100] for n in left]


@pytest.mark.full("files of Iceberg Java's, which reads what Spark leaves of them")
@pytest.mark.sparks(*SPARKS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_of_iceberg_java_are_shown_so_and_are_as_they_were_for_it(
    ask_of, iceberg_library, metastore, file_format
):
    name = f"fine.t{next(NUMBERS)}"
    properties = {"format-version": "3", "write.format.default": file_format}
    properties |= {"write.delete.mode": "merge-on-read"}
    columns = Schema(*SCHEMA.fields[:3])
    iceberg_library.create(f"hadoop:{name}", columns, [("hour", "t", "h")], properties)
    times = [n for n in times_of(file_format) if n is None or abs(n) < 2_000_000_000 * SECOND]
    texts = [n if n is None else f"{nano_text(n)}" for n in times]
    given = [[number, text, text] for number, text in enumerate(texts)]
    iceberg_library.append(f"hadoop:{name}", given)
    ask = ask_of(f"{metastore.warehouse.as_uri()}/hadoop", name)
    assert ask("SELECT id, string(t), unix_micros(z) FROM {t} ORDER BY id") == [
        row[:3] for row in expected(times)
    ]
    gone = shown(times[-1])[1]
    ask(f"DELETE FROM {{t}} WHERE z = {literal(gone, 'TIMESTAMP')}")
    left = [row for row, n in zip(given, times, strict=True) if shown(n)[1] != gone]
    assert len(left) < len(given)
    assert sorted(iceberg_library.scan(f"hadoop:{name}")) == left


SIGNS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
}


@pytest.mark.full("many filters: the rule is tested as a value")
@pytest.mark.sparks(*SPARKS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_filters_find_the_rows_that_are_shown_so(lake, ask, file_format):
    table = made(lake, file_format)
    times = times_of(file_format)
    for first in range(0, len(times), 9):
        table.append(rows(times[first : first + 9], first))
    before = table.current_snapshot().snapshot_id
    known = {number: None if n is None else n // 1000 for number, n in enumerate(times)}
    values = sorted({each for each in known.values() if each is not None})
    for micros, (sign, holds) in itertools.product(RANDOM.sample(values, 3), SIGNS.items()):
        wanted = [n for n, m in known.items() if m is not None and holds(m, micros)]
        for column, kind in (("t", "TIMESTAMP_NTZ"), ("z", "TIMESTAMP"), ("s.x", "TIMESTAMP_NTZ")):
            where = f"{column} {sign} {literal(micros, kind)}"
            assert ids(ask, where) == wanted, where
            negated = [n for n, m in known.items() if m is not None and n not in wanted]
            assert ids(ask, f"NOT ({where})") == negated, where
    least, most = shown(min(times[1:]))[0], shown(max(times[1:]))[0]
    found = ask("SELECT string(min(t)), string(max(t)), count(t), count(*) FROM {t}")
    assert found == [[least, most, len(times) - 1, len(times)]]
    assert ask("SELECT string(t) FROM {t} ORDER BY t DESC LIMIT 1") == [[most]]
    table.delete("true")
    assert len(ask(READ.replace("{t}", f"{{t}} VERSION AS OF {before}"))) == len(times)


@pytest.mark.full("other ways to a row: the story above is in the gate")
@pytest.mark.sparks(*SPARKS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_partitions_defaults_and_older_files_are_shown_so_and_deletes_by_value_are_exact(
    lake, ask, file_format
):
    table = made(lake, file_format, ("t", "identity"), ("z", "bucket[4]"))
    # ORC has no fractions of seconds before 1970
    day = 86_400 * SECOND
    base = day if file_format == "orc" else 0
    nanos = [None, *(base + more for more in (1500, 1999, -1, -1000, day))]
    table.append(rows(nanos))

    def at(micros, kind="TIMESTAMP_NTZ"):
        return literal(base // 1000 + micros, kind)

    assert ask(f"{READ} ORDER BY id") == expected(nanos)
    assert ids(ask, f"t = {at(1)}") == [1, 2]
    assert ids(ask, f"NOT t IN ({at(1)}, {at(-1)})") == [5]
    assert ids(ask, f"z <= {at(-1, 'TIMESTAMP')}") == [3, 4]
    assert ids(ask, f"{{c}}.system.days(t) = DATE'1970-01-02' + {base // day}") == [5]
    alike = [[None, 1], [shown(nanos[1])[0], 2], [shown(nanos[3])[0], 2], [shown(nanos[5])[0], 1]]
    assert by_text(ask("SELECT string(t), count(*) FROM {t} GROUP BY t")) == by_text(alike)
    assert ask("SELECT count(*) FROM {t} a JOIN {t} b ON a.t = b.t") == [[9]]
    partitions = ask("SELECT DISTINCT string(_partition.t) FROM {t} WHERE id IN (1, 2)")
    assert partitions == [[shown(nanos[1])[0]]]
    found = ask("SELECT string(partition.t), record_count FROM {t}.partitions")
    assert by_text(found) == by_text([shown(n)[0], 1] for n in nanos)
    bounds = ask("SELECT string(readable_metrics.t.upper_bound) FROM {t}.files")
    assert by_text(bounds) == by_text([shown(n)[0]] for n in nanos)

    # others delete one of two rows that are shown alike, by its nanoseconds
    with table.update_spec() as update:
        update.remove_field("t")
        update.remove_field("z_bucket_4")
    for column, kind, number in (
        ("z", pa.timestamp("ns", "UTC"), 2),
        ("t", pa.timestamp("ns"), 4),
    ):
        writer = EqualityDeleteWriter(table.io, table.refresh().metadata, str(uuid4()), [column])
        writer.write(pa.record_batch({column: pa.array([nanos[number]], kind)}))
        table.commit(RowDelta(table.io).add_deletes(*writer.close()))
    left = [0, 1, 3, 5]
    assert table.refresh().scan().to_arrow().sort_by("id")["id"].to_pylist() == left
    assert ask(f"{READ} ORDER BY id") == expected(nanos, among=left)
    assert ask("SELECT id FROM {t} ORDER BY id") == [[number] for number in left]

    with table.update_schema() as update:
        update.add_column("d", "timestamp_ns", default_value="1969-12-31T23:59:59.999999001")
        update.add_column("s.y", "timestamptz_ns", default_value="1969-12-31T23:59:59.999999001Z")
    assert ask("SELECT DISTINCT string(d), unix_micros(s.y) FROM {t} WHERE s.x IS NOT NULL") == [
        [shown(-999)[0], -1]
    ]
    assert (
        ids(ask, f"d = {literal(-1)} AND s.y >= {literal(-1, 'TIMESTAMP')} AND t <=> s.x") == left
    )


def by_text(found):
    return sorted(found, key=str)


@pytest.mark.full("statements: the story above is in the gate")
@pytest.mark.sparks(*SPARKS)
def test_statements_that_would_cut_nanoseconds_are_refused_and_changes_are_shown(lake, ask):
    table = made(lake, "parquet")
    with table.update_schema() as update:
        update.delete_column("m")
    table.append(rows(NANOS[:6]).drop_columns("m"))
    first = table.current_snapshot().snapshot_id
    source = f"{{t}} VERSION AS OF {first}"
    for statement in (
        f"INSERT INTO {{t}} SELECT * FROM {source}",
        f"INSERT OVERWRITE {{t}} SELECT * FROM {source}",
        "UPDATE {t} SET id = 7 WHERE id = 1",
        "DELETE FROM {t} WHERE id % 2 = 0",
        "MERGE INTO {t} USING (SELECT 1 AS n) ON id = n WHEN MATCHED THEN UPDATE SET id = 9",
    ):
        with pytest.raises(
            Exception, match="Column t cannot be written by Spark: Spark has no type"
        ):
            ask(statement)
    ask(f"DELETE FROM {{t}} WHERE t >= {literal(-9 * 10**15)} AND t IS NOT NULL")
    table.append(rows([5, 1005], 50).drop_columns("m"))
    found = ask("SELECT id, string(t) FROM {t} ORDER BY id")
    assert found == [[0, None], [50, shown(5)[0]], [51, shown(1005)[0]]]
    comments = {row[0]: row[2] for row in ask("DESCRIBE TABLE {t}")}
    assert comments["t"] == "timestamp_ns in microseconds"
    ask(
        "CALL {c}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
    )
    assert table.refresh().scan().to_arrow().sort_by("id")["t"].cast(pa.int64()).to_pylist() == [
        None, 5, 1005,
    ]  # fmt: skip
    ask(
        "CALL {c}.system.create_changelog_view(table => 'db.t', changelog_view => 'changed', "
        f"options => map('start-snapshot-id', '{first}'))"
    )
    kinds = ask("SELECT id, string(t), _change_type FROM changed ORDER BY id")
    assert [row for row in kinds if row[0] >= 50] == [
        [50, shown(5)[0], "INSERT"], [51, shown(1005)[0], "INSERT"],
    ]  # fmt: skip
    assert [row[0] for row in kinds if row[2] == "DELETE"] == [1, 2, 3, 4, 5]
    ask("CREATE OR REPLACE TABLE {c}.db.copy AS SELECT * FROM {t}")
    copied = lake.load_table("db.copy")
    assert str(copied.schema().find_type("t")) == "timestamp"
    assert copied.scan().to_arrow().sort_by("id")["t"].cast(pa.int64()).to_pylist() == [None, 0, 1]


@pytest.mark.full("files of others: the story above is in the gate")
@pytest.mark.sparks(*SPARKS)
@pytest.mark.parametrize("kind", ["us", "INT96"])
def test_parquet_files_of_coarser_or_older_units_are_shown_rounded_down(lake, ask, kind):
    table = lake.create_table(
        "db.t", Schema(*SCHEMA.fields[:3]), properties={"format-version": "3"}
    )
    nanos = [None, 1999, -1, -1000, -7 * SECOND - 1]
    table.append(rows(nanos).select(["id", "t", "z"]))
    [file] = table.scan().plan_files()
    written = pq.read_table(file.file_path.removeprefix("file:"))
    path = file.file_path.removeprefix("file:")
    unit = {"use_deprecated_int96_timestamps": True}
    if kind == "us":
        unit = {"coerce_timestamps": "us", "allow_truncated_timestamps": True}
        nanos = [n if n is None else n // 1000 * 1000 for n in nanos]
        floored = rows(nanos).select(["t", "z"])
        for at, name in enumerate(("t", "z"), 1):
            written = written.set_column(at, written.field(at), floored[name])
    pq.write_table(written, path, **unit)
    assert ask("SELECT id, string(t), unix_micros(z) FROM {t} ORDER BY id") == [
        [n, *shown(each)] for n, each in enumerate(nanos)
    ]
    assert ids(ask, f"t = {literal(-1)}") == [2, 3]
    writer = EqualityDeleteWriter(table.io, table.metadata, str(uuid4()), ["z"])
    writer.write(pa.record_batch({"z": pa.array([-1000], pa.timestamp("ns", "UTC"))}))
    table.commit(RowDelta(table.io).add_deletes(*writer.close()))
    with pytest.raises(Exception, match="equality deletes compare nanoseconds, and the file has"):
        ask("SELECT id FROM {t}")


@pytest.mark.full("a stream reads its files as a query does")
@pytest.mark.sparks("4.3")
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_stream_of_the_table_shows_them_so(lake, ask, spark, tmp_path, file_format):
    table = made(lake, file_format)
    times, found = times_of(file_format), []

    def keep(frame, _):
        found.extend(list(row) for row in frame.selectExpr(*READ_COLUMNS).collect())

    for number in range(2):
        table.append(rows(times, 100 * number))
        writer = spark.readStream.table(ask.table).writeStream.foreachBatch(keep)
        query = writer.option("checkpointLocation", str(tmp_path / "at"))
        query = query.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert sorted(found) == expected(times) + (expected(times, 100) if number else [])
    writer = spark.readStream.table(ask.table).writeStream
    query = writer.option("checkpointLocation", str(tmp_path / "to")).toTable(ask.table)
    with pytest.raises(Exception, match="Column t cannot be written"):
        query.processAllAvailable()
    assert table.refresh().scan().count() == 2 * len(times)
