"""A MERGE joins the rows of the table whose keys its source may have: where that is right, and nowhere else."""

from __future__ import annotations

import datetime as dt
import itertools
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from icecomb.format.operation.append import FastAppend
from icecomb.format.rows.write.data_writer import write_data
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "merge_key_filter_tests"
SPARKS = ("4.3", "3.5")
MODES = ("merge-on-read", "copy-on-write")
SETTING = "spark.sql.icecomb.mergeKeyFilter"
KEPT = "spark.sql.icecomb.keepSourceRows"
GROUPS = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
NUMBERS = itertools.count(1)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("k", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("w", pa.decimal128(38, 3)),
        ("ts", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("b", pa.binary()),
        ("f", pa.float64()),
        ("yes", pa.bool_()),
        ("pair", pa.struct([("a", pa.int64())])),
        ("v", pa.string()),
    ]
)
COLUMNS = ", ".join(SCHEMA.names)
UPDATE = "WHEN MATCHED THEN UPDATE SET v = 'new'"
INSERT = (
    f"WHEN NOT MATCHED THEN INSERT ({COLUMNS}) VALUES ({', '.join(f's.{c}' for c in SCHEMA.names)})"
)


@pytest.fixture(params=sampled(SPARKS, keep=1))
def every_sql(request, sql_on):
    return sql_on(request.param)


def row(key):
    """A row that other keys share no value with, but of `yes`; all null but `v` for no key."""
    if key is None:
        return dict.fromkeys(SCHEMA.names) | {"v": "old"}
    before = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.timezone.utc)
    time = before + dt.timedelta(seconds=key, microseconds=key)
    return {
        "id": key,
        "n": key,
        "k": f"k{key}" if key else "",
        "d": Decimal(key) / 100,
        "w": Decimal(key) * 10**30 + Decimal("0.001"),
        "ts": time,
        "local": time.replace(tzinfo=None),
        "day": dt.date(1970, 1, 1) + dt.timedelta(days=key),
        "b": str(key).encode(),
        "f": -0.0 if key == 0 else key / 2,
        "yes": key % 2 == 0,
        "pair": {"a": key},
        "v": "old",
    }


def table_of(catalog, keys, partition=None, **properties):
    table = catalog.create_table(
        f"{NAMESPACE}.t{next(NUMBERS)}", SCHEMA, properties={"format-version": "2", **properties}
    )
    half = len(keys) // 2
    with table.transaction() as change:
        if partition:
            with change.update_spec() as update:
                update.add_field(partition, "identity")
        for part in (keys[:half], keys[half:]):
            change.append(pa.Table.from_pylist([row(key) for key in part], SCHEMA))
    return table


def name_of(table):
    return f"lake.{'.'.join(table.identifier)}"


@pytest.fixture
def make(catalog):
    made = []

    def of(*given, **more):
        made.append(table_of(catalog, *given, **more))
        return made[-1]

    yield of
    for each in made:
        catalog.drop_table(each.identifier)


@contextmanager
def set_to(sql, **settings):
    """Settings of a session, by what they are called here."""
    names = {"filtering": SETTING, "keeping": KEPT, "groups": GROUPS}
    for key, value in settings.items():
        sql(f"SET {names[key]}={value}")
    try:
        yield
    finally:
        for key in settings:
            sql(f"RESET {names[key]}")


def filters(sql, text, **settings):
    """What rows of the table are asked before they are joined, as the plan says it."""
    with set_to(sql, **settings):
        return planned(sql, text)


def planned(sql, text):
    plan = "\n".join(found[0] for found in sql(f"EXPLAIN {text}"))
    assert "== Physical Plan ==" in plan, plan
    return plan.count("might_contain(")


MERGED = {"write.merge.mode": "merge-on-read"}
CHANGED = {f"write.{c}.mode": "merge-on-read" for c in ("merge", "update", "delete")}
ON_KEYS = [
    "t.id = s.id",
    "s.id = t.id",
    "t.id = s.id AND t.k = s.k",
    "t.id = s.id AND t.n <=> s.n",
    "t.id = s.id AND (t.n > s.n OR t.n IS NULL)",
    "t.n = s.id",
    "t.id = s.n",
    "t.id = s.id + 1",
    "t.k = upper(s.k)",
    "t.d = s.d",
    "t.w = s.w",
    "t.ts = s.ts",
    "t.local = s.local",
    "t.day = s.day",
    "t.b = s.b",
]
ON_NO_KEYS = [
    "t.id <=> s.id",
    "t.f = s.f",
    "t.id = s.f",
    "t.pair = s.pair",
    "t.id = s.id OR t.n = s.n",
    "t.id > s.id",
    "t.id + 1 = s.id",
    "upper(t.k) = s.k",
    "CAST(t.k AS BIGINT) = s.id",
    "t.id = 5 AND s.id = 6",
]


def test_the_keys_of_a_merge_filter_its_table(every_sql, make):
    target, source = make([1, 2, 3], **MERGED), make([1, 5])
    head = f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON"
    with set_to(every_sql, filtering="always"):
        for condition in ON_KEYS:
            text = f"{head} {condition} {UPDATE} {INSERT}"
            assert planned(every_sql, text) == 1, text
        for condition in ON_NO_KEYS:
            text = f"{head} {condition} {UPDATE} {INSERT}"
            assert planned(every_sql, text) == 0, text
    text = f"{head} t.id = s.id {UPDATE}"
    assert filters(every_sql, text, filtering="always") == 1
    assert filters(every_sql, text, filtering="never") == 0
    assert filters(every_sql, text) == 0, "the table is small"


@pytest.mark.parametrize("minor", SPARKS[:1])
def test_texts_of_a_collation_filter_nothing(sql_on, make, minor):
    sql = sql_on(minor)
    target, source = make([1, 2, 3], **MERGED), make([1, 5])
    head = f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON"
    for condition in ("t.k = s.k COLLATE UTF8_LCASE", "t.k COLLATE UTF8_LCASE = s.k"):
        assert filters(sql, f"{head} {condition} {UPDATE}", filtering="always") == 0


def test_rows_that_match_nothing_are_kept_where_a_clause_is_about_them(every_sql, make):
    target, source = make([1, 2, 3], **MERGED), make([1, 5])
    head = f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON t.id = s.id"
    for clauses in (
        f"{UPDATE} WHEN NOT MATCHED BY SOURCE THEN DELETE",
        f"{UPDATE} {INSERT} WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'x'",
        INSERT,
    ):
        assert filters(every_sql, f"{head} {clauses}", filtering="always") == 0


@pytest.mark.full("its rows are in the gate")
def test_copy_on_write_filters_what_finds_files_and_not_what_writes_them_anew(every_sql, make):
    target, source = make([1, 2, 3]), make([1, 5])
    text = f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON t.id = s.id"
    for clauses in (UPDATE, f"{UPDATE} {INSERT}"):
        assert filters(every_sql, f"{text} {clauses}", filtering="always") == 1
        assert filters(every_sql, f"{text} {clauses}", filtering="always", groups="false") == 0


def test_subqueries_of_update_and_delete_filter_their_table(every_sql, make):
    target, source = make([1, 2, 3], **CHANGED), make([1, 5])
    t, s = name_of(target), name_of(source)
    for statement, expected in {
        f"DELETE FROM {t} WHERE id IN (SELECT id FROM {s})": 1,
        f"DELETE FROM {t} t WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)": 1,
        f"UPDATE {t} SET v = 'new' WHERE id IN (SELECT id FROM {s})": 1,
        f"DELETE FROM {t} WHERE id NOT IN (SELECT id FROM {s} WHERE id > 0)": 0,
        f"DELETE FROM {t} t WHERE NOT EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)": 0,
        f"DELETE FROM {t} WHERE v = 'x' OR id IN (SELECT id FROM {s})": 0,
        f"UPDATE {t} SET v = 'new' WHERE id = 5": 0,
    }.items():
        assert filters(every_sql, statement, filtering="always") == expected, statement


def test_a_source_that_may_vary_filters_only_if_its_rows_are_kept(every_sql, make, tmp_path):
    target = make([1, 2, 3], **MERGED)
    folder = tmp_path / "files"
    every_sql(f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet SELECT 1L AS id")
    for source in (f"parquet.`{folder}`", "(SELECT id FROM range(9) LIMIT 2)"):
        text = f"MERGE INTO {name_of(target)} t USING {source} s ON t.id = s.id {UPDATE}"
        assert filters(every_sql, text, filtering="always") == 1
        assert filters(every_sql, text, filtering="always", keeping="never") == 0
        assert filters(every_sql, text, filtering="always", groups="false") == 0
    text = (
        f"MERGE INTO {name_of(target)} t USING (SELECT id FROM range(2)) s ON t.id = s.id {UPDATE}"
    )
    assert filters(every_sql, text, filtering="always", keeping="never") == 1


@pytest.fixture(scope="module")
def names(catalog):
    """The names of tables by their sizes, as their metadata tells them to plans; nothing is read.

    The larger ones have more bytes than Spark broadcasts.
    """
    found = {}
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    rows = pa.table({"id": range(1_000), "v": [f"{n:072x}" for n in range(1_000)]}, schema)
    for size, count in {"large": 1_000_000, "medium": 600_000, "small": 1_000}.items():
        table = catalog.create_table(
            f"{NAMESPACE}.{size}", schema, properties={"write.merge.mode": "merge-on-read"}
        )
        (file,) = write_data(table.io, table.metadata, rows)
        told = replace(file, record_count=count, file_size_in_bytes=40 * count)
        table.commit(FastAppend(table.io).append_data_file(told))
        found[size] = name_of(table)
    yield found
    for size in found:
        catalog.drop_table(f"{NAMESPACE}.{size}", purge_requested=True)


def test_by_itself_only_a_large_table_is_filtered_by_a_small_source(every_sql, names):
    update = "WHEN MATCHED THEN UPDATE SET v = 'new'"
    insert = "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"

    def filtered(target, source, clauses):
        text = f"MERGE INTO {names[target]} t USING {source} s ON t.id = s.id {clauses}"
        return filters(every_sql, text)

    assert filtered("large", names["small"], update + insert) == 1
    assert filtered("large", names["medium"], update + insert) == 0
    assert filtered("medium", names["small"], update + insert) == 0
    likely = f"(SELECT * FROM {names['medium']} WHERE hash(v) % 100 = 7)"
    assert filtered("large", likely, update + insert) == 1
    # rows that are kept of a source whose size nobody knows
    unknown = f"(SELECT id FROM {names['small']} LIMIT 10)"
    assert filtered("large", unknown, update + insert) == 1
    # Spark looks the rows of the table up in those of the source
    assert filtered("large", names["small"], update) == 0
    every_sql("SET spark.sql.autoBroadcastJoinThreshold=-1")
    try:
        assert filtered("large", names["small"], update) == 1
    finally:
        every_sql("RESET spark.sql.autoBroadcastJoinThreshold")


def test_another_value_of_the_setting_is_refused(every_sql, make):
    target = make([1, 2, 3], **MERGED)
    text = (
        f"MERGE INTO {name_of(target)} t USING (SELECT id FROM range(2)) s ON t.id = s.id {UPDATE}"
    )
    with (
        set_to(every_sql, filtering="sometimes"),
        pytest.raises(Exception, match="Set it to auto, always or never"),
    ):
        every_sql(text)
    assert rows(target) == rows_of([1, 2, 3])


def rows(table):
    return sorted(str(each) for each in table.refresh().scan().to_arrow().to_pylist())


def rows_of(keys, new=()):
    """What :func:`rows` finds in a table of these, and of those that are new."""
    found = [row(key) | {"v": v} for v, part in (("old", keys), ("new", new)) for key in part]
    return sorted(str(each) for each in pa.Table.from_pylist(found, SCHEMA).to_pylist())


CASES = [
    ("t.id = s.id AND t.k = s.k", "n"),
    ("t.id = s.id", None),
    ("t.n = s.id", "id"),
    ("t.k = s.k", "k"),
    ("t.id = s.n AND t.yes = s.yes", "yes"),
    ("t.d = s.d", "d"),
    ("t.w = s.w", None),
    ("t.ts = s.ts", "ts"),
    ("t.local = s.local AND t.id <=> s.id", None),
    ("t.day = s.day", "day"),
    ("t.b = s.b", None),
    ("t.f = s.f AND t.id = s.id", None),
]


@pytest.mark.seeds(2, gate=1)
@pytest.mark.parametrize(
    ("mode", "condition", "partition"),
    sampled([(mode, *case) for case in CASES for mode in MODES], keep=1),
)
def test_filtered_tables_come_to_have_the_rows_that_they_must(
    seed, mode, condition, partition, every_sql, make
):
    """Keys are null here and there; sources are few or many; each condition means the same rows."""
    random = Random(f"{seed} {condition} {mode}")
    size = random.choice([5, 60, 400])
    keys = random.sample(range(1000), size)
    present = keys + [None] * random.randrange(3)
    span = 1000 if size == 400 else 2 * size + 20
    given = random.sample(range(span), random.choice([0, 1, span // 4, span]))
    source = make(given + [None] * random.randrange(3))
    target = make(present, partition=partition if size == 5 else None, **{"write.merge.mode": mode})
    inserts = random.random() < 0.7
    deletes = random.random() < 0.3
    clause = "WHEN MATCHED THEN DELETE" if deletes else UPDATE
    text = f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON {condition} {clause}" + (
        INSERT.replace("WHEN NOT MATCHED", " WHEN NOT MATCHED AND s.id IS NOT NULL")
        if inserts
        else ""
    )
    with set_to(every_sql, filtering="always"):
        every_sql(text)
    met = set(keys) & set(given)
    left = [key for key in present if key not in met]
    added = sorted(set(given) - set(keys)) if inserts else []
    expected = rows_of(left + added, () if deletes else met)
    assert rows(target) == expected, (text, keys, given)


def summary(table):
    found = table.refresh().current_snapshot().summary
    return {key: value for key, value in found.items() if "ows" in key or "records" in key}


@pytest.mark.full("one of many filters")
@pytest.mark.parametrize("mode", sampled(MODES, keep=1))
def test_a_row_that_two_rows_of_the_source_match_is_still_refused(every_sql, make, mode):
    target, source = make([1, 2, 3], **{"write.merge.mode": mode}), make([2, 7, 7, 2])
    for value in ("always", "never"):
        with (
            set_to(every_sql, filtering=value),
            pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"),
        ):
            every_sql(
                f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON t.id = s.id"
                f" {UPDATE} {INSERT}"
            )
        assert rows(target) == rows_of([1, 2, 3])


@pytest.mark.full("its rows are in the gate")
@pytest.mark.parametrize("mode", sampled(MODES[::-1], keep=1))
def test_the_counts_of_a_merge_are_those_without_the_filter(every_sql, make, mode):
    found = []
    for value in ("always", "never"):
        target = make(list(range(50)), **{"write.merge.mode": mode})
        source = make([3, 7, 70, 80])
        with set_to(every_sql, filtering=value):
            every_sql(
                f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON t.id = s.id"
                f" WHEN MATCHED AND s.id = 7 THEN DELETE {UPDATE} {INSERT}"
            )
        found.append((summary(target), rows(target)))
    assert found[0] == found[1]
    assert found[0][0]["added-records"]


@pytest.mark.full("random sources of few and many keys are in the gate")
def test_many_keys_that_the_filter_has_no_room_for_are_all_found(every_sql, make):
    """A filter of a thousand keys for nine thousand lets nearly everything through."""
    target, source = make([*range(0, 4_000, 2)], **MERGED), make([*range(0, 9_000, 3)])
    with set_to(every_sql, filtering="always"):
        every_sql(
            f"MERGE INTO {name_of(target)} t USING {name_of(source)} s ON t.id = s.id {UPDATE}"
        )
    assert rows(target) == rows_of(
        [key for key in range(0, 4_000, 2) if key % 6], range(0, 4_000, 6)
    )


@pytest.mark.full("other sources are in the gate")
def test_a_table_may_be_its_own_source(every_sql, make):
    target = make([*range(20)], **MERGED)
    with set_to(every_sql, filtering="always"):
        every_sql(
            f"MERGE INTO {name_of(target)} t USING (SELECT * FROM {name_of(target)} WHERE id < 5) s"
            f" ON t.id = s.id {UPDATE}"
        )
    assert rows(target) == rows_of(range(5, 20), range(5))


@pytest.mark.full("combinations of statements; each is shown by another test")
def test_subqueries_that_filter_change_the_rows_that_they_name(every_sql, make):
    source = make([3, None, 50, 3])
    for statement, left, new in (
        ("DELETE FROM {t} WHERE id IN (SELECT id FROM {s})", {*range(9)} - {3}, ()),
        ("UPDATE {t} t SET v = 'new' WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.k = t.k)",
         {*range(9)} - {3}, [3]),
    ):  # fmt: skip
        target = make([*range(9), None], **CHANGED)
        with set_to(every_sql, filtering="always"):
            every_sql(statement.format(t=name_of(target), s=name_of(source)))
        assert rows(target) == rows_of([*left, None], new)
