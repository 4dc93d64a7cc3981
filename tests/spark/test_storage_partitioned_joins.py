"""Joins of tables that are partitioned alike: no rows are moved, and the rows are right."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import uuid
from collections import Counter
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.rings import sampled

NAMESPACE = "storage_partitioned"
FRESH = itertools.count()
MORE = pytest.mark.full(
    "the planner tells groupings plainly, and one join of Spark's is in the gate"
)
BUCKETING = "spark.sql.sources.v2.bucketing"
GROUPING = "spark.sql.iceberg.planning.preserve-data-grouping"
PLAIN = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
GROUPED = {
    **PLAIN,
    GROUPING: "true",
    f"{BUCKETING}.enabled": "true",
    f"{BUCKETING}.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
SUBSETS = (
    f"{BUCKETING}.allowJoinKeysSubsetOfPartitionKeys.enabled",
    f"{BUCKETING}.allowKeysSubsetOfPartitionKeys.enabled",
)
COMPATIBLE = f"{BUCKETING}.allowCompatibleTransforms.enabled"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("u", pa.uuid()),
        ("day", pa.date32()),
    ]
)
VALUES = {
    "k": [1, 2, 3, -4, 5, None],
    "s": ["a", "ab", "b", "", "é", None],
    "ts": [dt.datetime(1969 + n, 12, 31, 23, 59, 59, 1, dt.timezone.utc) for n in range(3)]
    + [None],
    "d": [Decimal("1.10"), Decimal("-3.00"), Decimal(0), None],
    "f": [0.0, -0.0, float("nan"), 1.5, None],
    "u": [*(uuid.UUID(int=n).bytes for n in range(4)), None],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 5, 6), None],
}
TRANSFORMS = {
    "k": ["identity", "bucket[2]", "bucket[4]", "bucket[6]", "truncate[2]"],
    "s": ["identity", "bucket[2]", "bucket[4]", "truncate[1]"],
    "ts": ["identity", "year", "month", "day", "hour", "bucket[4]"],
    "d": ["identity", "bucket[4]", "truncate[50]"],
    "f": ["identity"],
    "u": ["identity", "bucket[4]"],
    "day": ["identity", "year", "month", "day", "bucket[4]"],
}


@contextmanager
def settings(sql, conf):
    for key, value in conf.items():
        sql(f"SET `{key}`={value}")
    try:
        yield
    finally:
        for key in conf:
            sql(f"RESET `{key}`")


def exchanges(sql, query):
    """How often a statement moves rows by their hash."""
    [[plan]] = sql(f"EXPLAIN {query}")
    return plan.count("Exchange hashpartitioning")


def partitioned(catalog, *fields, schema=SCHEMA):
    """A new table, and its name in Spark."""
    identifier = (NAMESPACE, f"t{next(FRESH)}")
    table = catalog.create_table(identifier, schema)
    evolve(table, fields)
    return table, f"lake.{NAMESPACE}.{identifier[1]}"


def evolve(table, fields):
    with table.update_spec() as update:
        for column, transform in fields:
            update.add_field(column, transform, f"p{next(FRESH)}")


def rows(column, *values):
    """Rows numbered from 0, null but in a column."""
    nothing = dict.fromkeys(SCHEMA.names)
    return pa.Table.from_pylist(
        [{**nothing, "id": i, column: value} for i, value in enumerate(values)], SCHEMA
    )


def pairs(sql, left, right, on, how="FULL OUTER"):
    found = sql(f"SELECT l.id, r.id FROM {left} l {how} JOIN {right} r ON {on}")
    return Counter(map(tuple, found))


@pytest.mark.parametrize("transform", sampled(["bucket[4]", "identity"], keep=1))
def test_tables_partitioned_alike_are_joined_where_their_rows_are(
    sql, catalog, namespace, transform
):
    left, left_name = partitioned(catalog, ("k", transform))
    right, right_name = partitioned(catalog, ("k", transform))
    left.append(rows("k", 1, 1, 2, 3, None, 9))
    left.append(rows("k", 1, 7, 7))
    right.append(rows("k", 1, 3, 3, None, 8))
    query = f"SELECT l.id, r.id FROM {left_name} l FULL OUTER JOIN {right_name} r ON l.k = r.k"
    expected = Counter(
        {
            (0, 0): 2,
            (1, 0): 1,
            (3, 1): 1,
            (3, 2): 1,
            (2, None): 2,
            (4, None): 1,
            (5, None): 1,
            (1, None): 1,
            (None, 3): 1,
            (None, 4): 1,
        }
    )
    grouped = f"SELECT k, sum(id) FROM {left_name} GROUP BY k ORDER BY k"
    with settings(sql, PLAIN):
        assert exchanges(sql, query) == 2
        assert Counter(map(tuple, sql(query))) == expected
    with settings(sql, GROUPED):
        assert exchanges(sql, query) == 0
        assert Counter(map(tuple, sql(query))) == expected
        # what is grouped by the partition is where it belongs, too
        assert exchanges(sql, grouped) == 0
        assert sql(grouped) == [[None, 4], [1, 1], [2, 2], [3, 3], [7, 3], [9, 5]]
    # by default Spark is told nothing
    with settings(sql, {**GROUPED, GROUPING: "false"}):
        assert exchanges(sql, query) == 2


@MORE
@pytest.mark.parametrize("sql", ["4.3"], indirect=True)
def test_what_spark_would_take_for_the_same_partitioning_and_is_not_moves_rows(
    sql, catalog, namespace
):
    """Spark knows transforms by their functions: not the widths of truncate, nor what a uuid is."""
    values = [uuid.UUID(int=n) for n in range(6)]
    texts, text_name = partitioned(catalog, ("s", "bucket[4]"))
    texts.append(rows("s", *map(str, values)))
    uuids, uuid_name = partitioned(catalog, ("u", "bucket[4]"))
    uuids.append(rows("u", *(value.bytes for value in values)))
    short, short_name = partitioned(catalog, ("s", "truncate[35]"))
    short.append(rows("s", *map(str, values)))
    more, more_name = partitioned(catalog, ("s", "bucket[6]"))
    more.append(rows("s", *map(str, values)))
    same = Counter({(n, n): 1 for n in range(6)})
    with settings(sql, GROUPED):
        assert pairs(sql, text_name, uuid_name, "l.s = r.u") == same
        assert pairs(sql, uuid_name, uuid_name, "l.u = r.u") == same
        assert pairs(sql, text_name, short_name, "l.s = r.s") == same
        assert pairs(sql, more_name, text_name, "l.s = r.s") == same
        query = f"SELECT * FROM {more_name} l JOIN {text_name} r ON l.s = r.s"
        assert exchanges(sql, query) > 0
        # buckets of both are put together to two
        with settings(sql, {COMPATIBLE: "true"}):
            assert exchanges(sql, query) == 0
            assert pairs(sql, more_name, text_name, "l.s = r.s") == same


@pytest.mark.parametrize("minor", sampled(["4.3", "4.0", "4.1", "4.2"], keep=1))
def test_buckets_are_joined_with_a_multiple_of_them(sql_on, catalog, namespace, minor):
    """The larger number is put together to the smaller, by tasks."""
    sql = sql_on(minor)
    eight, eight_name = partitioned(catalog, ("k", "bucket[8]"))
    four, four_name = partitioned(catalog, ("k", "bucket[4]"))
    ks = [*range(12), None]
    for table in (eight, four):
        table.append(rows("k", *ks))
    # null equals nothing
    same = Counter({**{(n, n): 1 for n in range(12)}, (None, 12): 1, (12, None): 1})
    with settings(sql, {**GROUPED, COMPATIBLE: "true"}):
        for left, right in ((eight_name, four_name), (four_name, eight_name)):
            assert exchanges(sql, f"SELECT * FROM {left} l JOIN {right} r ON l.k = r.k") == 0
            assert pairs(sql, left, right, "l.k = r.k") == same


@MORE
@pytest.mark.parametrize("minor", ["4.3", "4.0", "4.1", "4.2"])
def test_hours_are_joined_with_the_days_that_they_belong_to(sql_on, catalog, namespace, minor):
    """Hours before 1970 too, which are the last ones of their day; and columns without a time zone."""
    sql = sql_on(minor)
    begin = dt.datetime(1969, 12, 30, 22, 30, tzinfo=dt.timezone.utc)
    times = [*(begin + dt.timedelta(hours=5 * n) for n in range(24)), None]
    same = Counter({**{(n, n): 1 for n in range(24)}, (None, 24): 1, (24, None): 1})
    for zone in ("UTC", None):
        schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", zone))])
        values = [each and each.replace(tzinfo=each.tzinfo if zone else None) for each in times]
        names = []
        for transform in ("hour", "day"):
            table, name = partitioned(catalog, ("ts", transform), schema=schema)
            table.append(pa.table({"id": range(25), "ts": values}, schema))
            names.append(name)
        with settings(sql, {**GROUPED, COMPATIBLE: "true"}):
            for left, right in (names, names[::-1]):
                assert exchanges(sql, f"SELECT * FROM {left} l JOIN {right} r ON l.ts = r.ts") == 0
                assert pairs(sql, left, right, "l.ts = r.ts") == same
        with settings(sql, GROUPED):
            assert pairs(sql, *names, "l.ts = r.ts") == same


@MORE
@pytest.mark.parametrize("sql", ["4.3"], indirect=True)
def test_files_of_several_specs_are_told_apart_by_what_these_share(sql, catalog, namespace):
    left, left_name = partitioned(catalog, ("k", "bucket[4]"), ("s", "identity"))
    right, right_name = partitioned(catalog, ("k", "bucket[4]"))
    ks = list(range(12))
    left.append(rows("k", *ks))
    with left.update_spec() as update:
        update.remove_field(left.spec().fields[1].name)
    evolve(left, [("day", "month")])
    left.append(rows("k", *ks))
    right.append(rows("k", *ks))
    query = f"SELECT l.id, r.id FROM {left_name} l JOIN {right_name} r ON l.k = r.k"
    with settings(sql, GROUPED):
        assert exchanges(sql, query) == 0
        assert Counter(map(tuple, sql(query))) == {(n, n): 2 for n in ks}
        # without its column a partition field says nothing
        assert exchanges(sql, f"SELECT count(*) FROM {left_name}") == 0
        with left.update_spec() as update:
            update.remove_field(next(f.name for f in left.spec().fields if "bucket" in str(f)))
        left.append(rows("k", *ks))
        assert exchanges(sql, query) > 0
        assert Counter(map(tuple, sql(query))) == {(n, n): 3 for n in ks}


@MORE
@pytest.mark.parametrize("sql", ["4.3"], indirect=True)
def test_files_left_out_at_run_time_leave_the_partitioning_as_it_was_told(sql, catalog, namespace):
    """Splits of a partition may only become fewer: Spark has paired them with the other side's."""
    facts, fact_name = partitioned(catalog, ("k", "identity"))
    dimension, dimension_name = partitioned(catalog, ("k", "identity"))
    for first in range(0, 400, 100):
        table = rows("k", *(n % 4 for n in range(first, first + 100)))
        facts.append(table.set_column(0, "id", pa.array(range(first, first + 100), pa.int64())))
    dimension.append(rows("k", 0, 1, 2, 3))
    query = (
        f"SELECT count(*), sum(f.id) FROM {fact_name} f JOIN {dimension_name} d ON f.k = d.k "
        "WHERE d.id IN (1, 2)"
    )
    expected = [n for n in range(400) if n % 4 in {1, 2}]
    pruning = {
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
        "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": "100",
        "spark.sql.iceberg.read.split-size": "1",
    }
    for clustered in ("true", "false"):
        partial = {f"{BUCKETING}.partiallyClusteredDistribution.enabled": clustered}
        with settings(sql, {**GROUPED, **pruning, **partial}):
            [[plan]] = sql(f"EXPLAIN {query}")
            assert "dynamicpruning" in plan
            assert "Exchange hashpartitioning" not in plan
            assert sql(query) == [[200, sum(expected)]]


@MORE
@pytest.mark.parametrize("sql", ["4.3", "3.5"], indirect=True)
def test_rows_are_changed_where_they_are(sql, catalog, namespace):
    target, target_name = partitioned(catalog, ("k", "bucket[4]"))
    source, source_name = partitioned(catalog, ("k", "bucket[4]"))
    target.append(rows("k", *range(12), None))
    source.append(rows("k", *range(8, 16), None))
    merge = (
        f"MERGE INTO {target_name} t USING {source_name} s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET id = -t.id WHEN NOT MATCHED THEN INSERT *"
    )
    with settings(sql, GROUPED):
        assert (
            exchanges(sql, f"SELECT * FROM {target_name} t JOIN {source_name} s ON t.k = s.k") == 0
        )
        sql(merge)
    found = sql(f"SELECT k, id FROM {target_name} ORDER BY k NULLS FIRST, id")
    matched = [[k, k if k < 8 else -k] for k in range(12)]
    assert found == [[None, 8], [None, 12], *matched, *([k, k - 8] for k in range(12, 16))]


@MORE
@pytest.mark.parametrize("sql", ["4.3"], indirect=True)
def test_the_statements_of_the_page_run(sql, catalog, namespace):
    page = (Path(__file__).parents[2] / "docs" / "joins.md").read_text()
    statements = re.findall(
        r"[^;]+(?=;)", "".join(re.findall(r"```sql\n(.*?)```", page, re.DOTALL))
    )
    settable = [
        statement.split("=")[0].split()[1] for statement in statements if "SET " in statement
    ]
    assert (len(statements), len(settable)) == (5, 4)
    assert {key.strip("`") for key in settable} <= GROUPED.keys()
    sql(f"CREATE TABLE lake.{NAMESPACE}.sales (shop INT, price INT) PARTITIONED BY (shop)")
    sql(f"CREATE TABLE lake.{NAMESPACE}.shops (id INT, city STRING) PARTITIONED BY (id)")
    sql(f"INSERT INTO lake.{NAMESPACE}.sales VALUES (1, 10), (2, 20), (2, 30)")
    sql(f"INSERT INTO lake.{NAMESPACE}.shops VALUES (1, 'Kiel'), (2, 'Bonn')")
    try:
        for _ in range(2):
            for statement in statements:
                found = sql(statement.replace("lake.shop.", f"lake.{NAMESPACE}."))
                assert "SELECT" not in statement or found == [[50]]
    finally:
        for key in settable:
            sql(f"RESET {key}")


def table_of(rng, catalog, fields):
    """A table of some random appends; its spec may change in between."""
    table, name = partitioned(catalog, *fields)
    number = itertools.count()
    for _ in range(rng.randint(1, 3)):
        count = rng.choice([0, 1, 5, 30])
        appended = [
            {"id": next(number), **{c: rng.choice(values) for c, values in VALUES.items()}}
            for _ in range(count)
        ]
        table.append(pa.Table.from_pylist(appended, SCHEMA))
        if rng.random() < 0.2 and table.spec().fields:
            with table.update_spec() as update:
                update.remove_field(table.spec().fields[0].name)
        elif rng.random() < 0.2:
            evolve(table, [rng.choice([("id", "bucket[3]"), ("s", "truncate[2]")])])
    return name


@MORE
@pytest.mark.seeds(2)
@pytest.mark.parametrize("sql", ["4.3"], indirect=True)
def test_random_tables_are_joined_to_the_same_rows_with_and_without_their_partitions(
    sql, catalog, namespace, seed
):
    rng = random.Random(seed)
    columns = rng.sample(sorted(TRANSFORMS), rng.choice([1, 1, 2]))
    fields = [(column, rng.choice(TRANSFORMS[column])) for column in columns]
    left = table_of(rng, catalog, fields)
    if rng.random() < 0.4:
        fields = [(column, rng.choice(TRANSFORMS[column])) for column in columns]
    right = table_of(rng, catalog, fields)
    for how in rng.sample(["INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER"], 2):
        on = " AND ".join(
            f"l.{c} {rng.choice(['=', '=', '<=>'])} r.{c}"
            for c in rng.sample(columns, rng.randint(1, len(columns)))
        )
        conf = {
            **GROUPED,
            f"{BUCKETING}.pushPartValues.enabled": rng.choice(["true", "true", "false"]),
            f"{BUCKETING}.partiallyClusteredDistribution.enabled": rng.choice(["true", "false"]),
            f"{BUCKETING}.shuffle.enabled": rng.choice(["true", "false"]),
            COMPATIBLE: rng.choice(["true", "false"]),
            "spark.sql.adaptive.enabled": rng.choice(["true", "false"]),
            "spark.sql.iceberg.read.split-size": rng.choice(["1", "100000000"]),
            **dict.fromkeys(SUBSETS, rng.choice(["true", "false"])),
        }
        with settings(sql, PLAIN):
            expected = pairs(sql, left, right, on, how)
        with settings(sql, conf):
            assert pairs(sql, left, right, on, how) == expected, (how, on, conf)
