"""What a join comes to know at run time leaves out files of the larger table, in Spark 4.3 and 3.5."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

NAMESPACE = "runtime_filters"
FRESH = itertools.count()
UTC = dt.timezone.utc
UUIDS = [uuid.UUID(int=n) for n in range(4)]
# name, type, four values of the key, transform; the value at 3 is none
KEYS = [
    ("i", pa.int32(), [1, 2, -3, None], "identity"),
    ("d", pa.decimal128(20, 2), [Decimal("1.10"), Decimal(2), Decimal("-3.00"), None], "identity"),
    ("w", pa.decimal128(38, 0), [Decimal(10**37), Decimal(2), Decimal(-3), None], "identity"),
    ("s", pa.string(), ["a", "", "c'd/e=f", None], "identity"),
    ("b", pa.binary(), [b"\x00", b"", b"\xff\x01", None], "identity"),
    (
        "t",
        pa.timestamp("us", "UTC"),
        [dt.datetime(y, 1, 1, 7, 8, 9, 5, UTC) for y in (1960, 1970, 2026)] + [None],
        "identity",
    ),
    (
        "y",
        pa.date32(),
        [dt.date(1960, 5, 6), dt.date(1970, 1, 1), dt.date(2026, 2, 3), None],
        "month",
    ),
    (
        "h",
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, n, tzinfo=UTC).replace(tzinfo=None) for n in (1, 2, 3)]
        + [None],
        "hour",
    ),
    ("f", pa.float64(), [0.0, float("nan"), -1.5, None], "identity"),
    ("u", pa.uuid(), [u.bytes for u in UUIDS[:3]] + [None], "bucket[50]"),
    ("k", pa.int64(), [1, 2, 3, None], "bucket[50]"),
    ("x", pa.string(), ["apple", "banana", "cherry", None], "truncate[2]"),
]


@contextmanager
def gone(paths):
    """Data files that nobody can read meanwhile."""
    away = [(Path(path), Path(f"{path}.away")) for path in paths]
    for path, hidden in away:
        path.rename(hidden)
    try:
        yield
    finally:
        for path, hidden in away:
            hidden.rename(path)


def local(path):
    return path.removeprefix("file://").removeprefix("file:")


class Star:
    """A table of facts, in a file for each value of its key, and a dimension that names some of them."""

    def __init__(self, catalog, name):
        self.catalog = catalog
        self.name = name
        self.files = {}

    def facts(self, arrow_type, values, transform, rows=200):
        schema = pa.schema([("id", pa.int64()), ("key", arrow_type)])
        table = self.catalog.create_table((NAMESPACE, self.name), schema)
        with table.update_spec() as update:
            update.add_field("key", transform, "part")
        for number, value in enumerate(values):
            known = {task.file.file_path for task in table.scan().plan_files()}
            ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
            table.append(pa.table([ids, pa.array([value] * rows, arrow_type)], schema=schema))
            paths = {task.file.file_path for task in table.scan().plan_files()} - known
            self.files[number] = [local(path) for path in paths]
        return table

    def dimension(self, arrow_type, values):
        schema = pa.schema([("kind", pa.string()), ("key", arrow_type)])
        table = self.catalog.create_table((NAMESPACE, f"{self.name}_dim"), schema)
        kinds = ["zero", "one", "two", "none"]
        table.append(pa.table([pa.array(kinds), pa.array(values, arrow_type)], schema=schema))

    def query(self, where):
        return (
            f"SELECT count(*), min(id), max(id) FROM lake.{NAMESPACE}.{self.name} f "
            f"JOIN lake.{NAMESPACE}.{self.name}_dim d ON f.key = d.key WHERE {where}"
        )

    def others(self, *kept):
        return [
            path for number, paths in self.files.items() if number not in kept for path in paths
        ]


class Stars(dict):
    """A star for each kind of key, made when it is looked at."""

    def __init__(self, catalog):
        self.catalog = catalog

    def __missing__(self, name):
        [(arrow_type, values, transform)] = [each[1:] for each in KEYS if each[0] == name]
        star = self[name] = Star(self.catalog, f"facts_{name}")
        star.facts(arrow_type, values, transform)
        star.dimension(arrow_type, values)
        return star


@pytest.fixture(scope="module")
def stars(catalog):
    catalog.create_namespace(NAMESPACE)
    yield Stars(catalog)
    for identifier in catalog.list_tables(NAMESPACE):
        catalog.drop_table(identifier)
    catalog.drop_namespace(NAMESPACE)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        # by a bucket of its bytes
        ("4.3", "u"),
        *(
            pytest.param(minor, name, marks=pytest.mark.full("one kind of keys is in the gate"))
            for minor, names in (("4.3", "idwsbtyhfkx"), ("3.5", "iut"))
            for name in names
        ),
    ],
    indirect=["sql"],
)
def test_only_files_of_matching_keys_are_opened(stars, sql, name):
    star = stars[name]
    query = star.query("d.kind IN ('one', 'none')")
    [[plan]] = sql(f"EXPLAIN {query}")
    assert "dynamicpruning" in plan
    # Spark itself does not hand on what it knows of floats, which it compares by another form of them
    with gone([] if name == "f" else star.others(1)):
        assert sql(query) == [[200, 200, 399]]
    # all kinds, and their null
    assert sql(star.query("d.kind <> 'x'")) == [[600, 0, 599]]


def test_a_join_with_nothing_reads_nothing(stars, sql):
    star = stars["i"]
    with gone(star.others()):
        assert sql(star.query("d.kind = 'no such kind'")) == [[0, None, None]]
        assert sql(star.query("d.kind = 'none'")) == [[0, None, None]]


def test_a_column_may_be_spelt_otherwise_than_the_table_has_it(stars, sql):
    star = stars["i"]
    with gone(star.others(1)):
        query = star.query("d.kind = 'one'").replace("f.key", "f.KeY")
        assert sql(query) == [[200, 200, 399]]


def test_a_list_that_spark_has_in_another_type_leaves_out_nothing_that_matches(stars, sql):
    text = f"lake.{NAMESPACE}"
    assert stars["i"]
    assert stars["k"]
    query = (
        f"SELECT count(*) FROM {text}.facts_i f JOIN {text}.facts_k_dim d ON f.key = d.key "
        "WHERE d.kind IN ('zero', 'one', 'none')"
    )
    assert sql(query) == [[400]]


def test_files_of_each_spec_are_left_out_by_their_own(catalog, sql, stars):
    """Files from before the table was partitioned go by their bounds, later ones by their partitions."""
    assert stars["k"]
    name = f"evolved_{next(FRESH)}"
    schema = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("old", pa.string())])
    table = catalog.create_table((NAMESPACE, name), schema)
    paths = []

    def append(*keys):
        known = {task.file.file_path for task in table.scan().plan_files()}
        rows = [{"id": i, "key": key, "old": "o"} for i, key in enumerate(keys)]
        table.append(pa.Table.from_pylist(rows * 100, schema))
        new = {task.file.file_path for task in table.scan().plan_files()} - known
        paths.append([local(path) for path in new])

    append(1, 3)
    append(5, 9)
    with table.update_spec() as update:
        update.add_field("key", "truncate[10]", "tens")
    append(11)
    append(1, 2)
    with table.update_spec() as update:
        update.remove_field("tens")
        update.add_field("old", "identity", "old_part")
    append(1)
    append(7, 8)
    with table.update_schema() as update:
        update.rename_column("key", "key.`of` it")
    query = (
        f"SELECT count(*) FROM lake.{NAMESPACE}.{name} f JOIN lake.{NAMESPACE}.facts_k_dim d "
        "ON f.`key.``of`` it` = d.key WHERE d.kind = 'zero'"
    )
    [[plan]] = sql(f"EXPLAIN {query}")
    assert "dynamicpruning" in plan
    with gone([*paths[1], *paths[2], *paths[5]]):
        assert sql(query) == [[300]]


def test_two_scans_of_one_table_with_other_filters_are_not_taken_for_each_other(stars, sql):
    assert stars["i"]
    text = f"lake.{NAMESPACE}.facts_i"
    joined = [
        f"SELECT '{kind}' AS kind, count(*) AS n, min(f.id) AS least FROM {text} f JOIN {text}_dim d "
        f"ON f.key = d.key WHERE d.kind = '{kind}'"
        for kind in ("zero", "one", "two")
    ]
    whole = f"SELECT 'all', count(*), min(f.id) FROM {text} f"
    query = f"SELECT * FROM ({' UNION ALL '.join([*joined, whole])}) ORDER BY least, kind"
    expected = [["all", 800, 0], ["zero", 200, 0], ["one", 200, 200], ["two", 200, 400]]
    assert sql(query) == expected
    # both sides of a join of the table with itself, one filtered, an outer one not at all
    selected = f"SELECT f.* FROM {text} f JOIN {text}_dim d ON f.key = d.key WHERE d.kind = 'one'"
    both = f"SELECT count(*), count(l.id) FROM {text} r LEFT JOIN ({selected}) l ON l.id = r.id"
    assert sql(both) == [[800, 200]]


def test_a_changed_table_keeps_the_rows_of_its_files_that_no_source_row_meets(stars, sql, catalog):
    assert stars["i"]
    name = f"merged_{next(FRESH)}"
    star = Star(catalog, name)
    star.facts(pa.int32(), [1, 2, 3], "bucket[2]", rows=3)
    sql(
        f"MERGE INTO lake.{NAMESPACE}.{name} t USING (SELECT d.key FROM lake.{NAMESPACE}.facts_i_dim d "
        "WHERE d.kind IN ('zero', 'none')) s ON t.key = s.key AND t.id < 1 "
        "WHEN MATCHED THEN UPDATE SET id = -1"
    )
    ids = catalog.load_table((NAMESPACE, name)).scan().to_arrow().column("id").to_pylist()
    assert sorted(ids) == [-1, *range(1, 9)]
