"""Two writers at one table: whether the second is refused is what Iceberg's rules of validation say.

Each case is one interleaving: a statement is planned, another writer commits, the statement commits.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pytest

from icecomb.format.operation.overwrite import RewriteFiles
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import IdentityTransform
from tests.format.operation.test_conflict import SAID
from tests.peers.prepared_statement import prepare, run
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "isolation_tests"
NUMBERS = itertools.count(1)
MODES = ("copy-on-write", "merge-on-read")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
SPEC = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "k"),))
BEFORE = [(1, "a", 0), (2, "a", 0), (3, "a", 0), (11, "b", 0), (12, "b", 0)]


def column(change, mode):
    """The column of the matrix of `test_conflict.py`."""
    if change == "append":
        return change
    if change in {"overwrite", "replace partitions"}:
        return "overwrite"
    if mode == "copy-on-write":
        return "on_write"
    return "delete" if change == "delete" else "update"


def is_refused(change, mode, other, level):
    said = SAID[other, column(change, mode)]
    return said == "x" or (said == "s" and level == "serializable")


def frame(*rows):
    columns = zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
    return pa.table([pa.array(values, of) for values, of in columns], SCHEMA)


def replaced(rows):
    return [*(row for row in rows if row[1] != "a"), (5, "a", 5)]


def updated(rows):
    return [(*row[:2], 7) if row[0] == 1 else row for row in rows]


# a change of row 1, in Spark's words, and what it makes of the rows that others leave; Spark cannot hand
# `id % 100` to us, so that these are no deletes by metadata
WHERE = "k = 'a' AND id % 100 = 1"
SOURCE = "(SELECT CAST(id AS BIGINT) AS id FROM VALUES (1), (5) AS r(id))"
STATEMENTS = {
    "append": ("INSERT INTO {t} VALUES (5, 'a', 5)", lambda rows: [*rows, (5, "a", 5)]),
    "overwrite": ("INSERT INTO {t} REPLACE WHERE k = 'a' SELECT 5, 'a', 5", replaced),
    "replace partitions": ("INSERT OVERWRITE {t} SELECT 5, 'a', 5", replaced),
    "delete": (f"DELETE FROM {{t}} WHERE {WHERE}", lambda rows: [r for r in rows if r[0] != 1]),
    "update": (f"UPDATE {{t}} SET v = 7 WHERE {WHERE}", updated),
    "merge": (
        f"""MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id AND t.k = 'a'
        WHEN MATCHED THEN UPDATE SET v = 7
        WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, 'a', 7)""",
        lambda rows: [*updated(rows), (5, "a", 7)],
    ),
}


def set_mode(table, mode):
    with table.update_properties() as update:
        for command in ("delete", "update", "merge"):
            update.set(f"write.{command}.mode", mode)


def delete_a_row(mode):
    def delete(table):
        set_mode(table, mode)
        table.refresh().delete("id = 2")

    return delete


def compact(table):
    tasks = list(table.scan("k = 'a'").plan_files())
    added = write_data(table.io, table.metadata, table.scan("k = 'a'").to_arrow())
    change = RewriteFiles(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
    table.commit(change.rewrite_files([task.file for task in tasks], added))


def add_a_column(table):
    with table.update_schema() as update:
        update.add_column("more", "string")


def without(*ids):
    return lambda rows: [row for row in rows if row[0] not in ids]


# how our Python, and Iceberg Java or our Spark do it, and what rows are left then
OTHERS = {
    "add rows": (
        # other rows, in a file whose bounds are around those that are changed
        lambda t: t.append(frame((0, "a", 0), (9, "a", 0))),
        ["INSERT INTO {t} VALUES (0, 'a', 0), (9, 'a', 0)"],
        lambda rows: [*rows, (0, "a", 0), (9, "a", 0)],
    ),
    "add rows elsewhere": (
        lambda t: t.append(frame((14, "b", 0))),
        ["INSERT INTO {t} VALUES (14, 'b', 0)"],
        lambda rows: [*rows, (14, "b", 0)],
    ),
    "replace the partition": (
        lambda t: t.overwrite(frame((6, "a", 6)), "k = 'a'"),
        ["INSERT INTO {t} REPLACE WHERE k = 'a' SELECT 6, 'a', 6"],
        lambda rows: [*(row for row in rows if row[1] != "a"), (6, "a", 6)],
    ),
    "write the file anew": (
        delete_a_row("copy-on-write"),
        [
            "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')",
            "DELETE FROM {t} WHERE id % 100 = 2",
        ],
        without(2),
    ),
    "delete a row by position": (
        delete_a_row("merge-on-read"),
        [
            "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
            "DELETE FROM {t} WHERE id % 100 = 2",
        ],
        without(2),
    ),
    "remove the file": (
        lambda t: t.delete("k = 'a'"),
        ["DELETE FROM {t} WHERE k = 'a'"],
        without(1, 2, 3),
    ),
    "compact the file": (
        compact,
        [
            """CALL {c}.system.rewrite_data_files(table => '{n}', where => 'k = "a"',
            options => map('rewrite-all', 'true'))"""
        ],
        list,
    ),
    "add a column": (add_a_column, ["ALTER TABLE {t} ADD COLUMN more STRING"], list),
}


@contextmanager
def dynamic(sql, change):
    """INSERT OVERWRITE replaces partitions."""
    if change != "replace partitions":
        yield
        return
    setting = "spark.sql.sources.partitionOverwriteMode"
    sql(f"SET {setting}=dynamic")
    try:
        yield
    finally:
        sql(f"RESET {setting}")


@contextmanager
def new_table(catalog, level, mode):
    """Three rows in a file of partition ``a``, two in one of ``b``."""
    properties = {"format-version": "2", "commit.manifest-merge.enabled": "false"}
    for command in ("delete", "update", "merge"):
        properties[f"write.{command}.mode"] = mode
        properties[f"write.{command}.isolation-level"] = level
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    table = catalog.create_table(name, SCHEMA, partition_spec=SPEC, properties=properties)
    table.append(frame(*BEFORE))
    try:
        yield table
    finally:
        catalog.drop_table(name)


def rows_of(table):
    rows = table.refresh().scan(selected_fields=("id", "k", "v")).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def name_of(table, catalog="lake"):
    return f"{catalog}.{'.'.join(table.identifier)}"


def do_in_sql(sql, table, other, catalog):
    names = {"t": name_of(table, catalog), "c": catalog, "n": ".".join(table.identifier)}
    for text in OTHERS[other][1]:
        sql(text.format(**names))


def check(table, commit, change, mode, other, level, *, says="snapshot {} ", makes=None):
    """The change commits, or is refused, as the matrix says; no row is lost or there twice."""
    winner = table.refresh().current_snapshot()
    left = OTHERS[other][2](BEFORE)
    if is_refused(change, mode, other, level):
        with pytest.raises(Exception, match=says.format(winner.snapshot_id)):
            commit()
        assert rows_of(table) == sorted(left)
        assert table.current_snapshot() == winner
    else:
        commit()
        assert rows_of(table) == sorted((makes or STATEMENTS[change][1])(left))


BOTH = tuple((c, m) for c in ("delete", "update", "merge") for m in MODES)
OVERWRITES = (("overwrite", MODES[0]), ("replace partitions", MODES[0]))
CASES = [("append", MODES[0], other) for other in ("add rows", "replace the partition")]
CASES += [(*change, other) for change in (*OVERWRITES, *BOTH) for other in OTHERS]
# the other pairs have the same outcome in both levels: each is tried in one
LEVELS = {other: (("serializable", "snapshot")[i % 2],) for i, other in enumerate(OTHERS)}
LEVELS["add rows"] = LEVELS["delete a row by position"] = ("serializable", "snapshot")


# each change and each of the others once, with every outcome
IN_GATE = {
    ("append", MODES[0], "replace the partition"),
    ("overwrite", MODES[0], "add rows"),
    ("delete", MODES[1], "delete a row by position"),
    ("update", MODES[1], "compact the file"),
    ("merge", MODES[1], "remove the file"),
}
assert set(CASES) > IN_GATE
ONLY_FULL = pytest.mark.full("five of these pairs are in the gate")


@pytest.mark.parametrize(
    ("change", "mode", "other"),
    [case if case in IN_GATE else pytest.param(*case, marks=ONLY_FULL) for case in CASES],
)
def test_a_statement_of_spark_beside_a_writer_in_python(spark, catalog, change, mode, other):
    for level in LEVELS[other]:
        with new_table(catalog, level, mode) as table:
            with dynamic(spark.sql, change):
                statement = prepare(spark, STATEMENTS[change][0].format(t=name_of(table)))
            OTHERS[other][0](catalog.load_table(table.identifier))
            check(table, partial(run, statement), change, mode, other, level)


FEW = ("add rows", "delete a row by position", "compact the file")
SOME = (OVERWRITES[0], ("delete", MODES[0]), ("delete", MODES[1]), ("merge", MODES[1]))


@pytest.mark.parametrize(("change", "mode"), SOME)
def test_a_statement_of_spark_beside_iceberg_java(spark, catalog, iceberg_java, change, mode):
    for other in FEW:
        with new_table(catalog, "serializable", mode) as table:
            statement = prepare(spark, STATEMENTS[change][0].format(t=name_of(table)))
            do_in_sql(iceberg_java.sql, table, other, "ice")
            check(table, partial(run, statement), change, mode, other, "serializable")


@pytest.mark.parametrize(("change", "mode"), SOME[1:])
def test_a_statement_of_iceberg_java_beside_us(catalog, iceberg_java, change, mode):
    for other in FEW:
        with new_table(catalog, "serializable", mode) as table:
            text = STATEMENTS[change][0].format(t=name_of(table, "ice"))
            statement = iceberg_java.prepare(text)
            OTHERS[other][0](catalog.load_table(table.identifier))
            commit = partial(iceberg_java.run, statement)
            check(table, commit, change, mode, other, "serializable", says="(?i)found|missing")


def test_a_statement_of_the_oldest_spark_beside_a_writer_in_python(catalog, other_spark):
    spark = other_spark("3.5")
    for (change, mode), other in itertools.product(SOME, FEW):
        with new_table(catalog, "snapshot", mode) as table:
            statement = spark.prepare(STATEMENTS[change][0].format(t=name_of(table)))
            OTHERS[other][0](catalog.load_table(table.identifier))
            check(table, partial(spark.run, statement), change, mode, other, "snapshot")


ONE_AND_FIVE = pa.table({"id": [1, 5], "k": ["a", "a"], "v": [7, 7]})
# of an overwrite the rows go that it saw: those that others add under snapshot isolation stay
MAKES = {"overwrite": lambda rows: [*without(1, 2, 3)(rows), (5, "a", 5)]}
IN_PYTHON = {
    "append": lambda t: t.append(frame((5, "a", 5))),
    "overwrite": lambda t: t.overwrite(frame((5, "a", 5)), "k = 'a'"),
    "replace partitions": lambda t: t.dynamic_partition_overwrite(frame((5, "a", 5))),
    "delete": lambda t: t.delete("k = 'a' AND id = 1"),
    "merge": lambda t: (
        t.merge(ONE_AND_FIVE, on=["id", "k"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
}


@pytest.mark.parametrize("change", sampled(sorted(IN_PYTHON, reverse=True), keep=1))
def test_a_change_in_python_beside_a_statement_of_spark(spark, catalog, change):
    modes = MODES if change in {"delete", "merge"} else MODES[:1]
    for mode, other in itertools.product(modes, FEW[:2]):
        for level in ("serializable", "snapshot"):
            with new_table(catalog, level, mode) as table:
                stale = catalog.load_table(table.identifier)
                do_in_sql(spark.sql, table, other, "lake")
                commit = partial(IN_PYTHON[change], stale)
                check(table, commit, change, mode, other, level, makes=MAKES.get(change))
