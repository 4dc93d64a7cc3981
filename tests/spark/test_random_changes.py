"""Random sequences of changes by Spark and Python leave the rows of a model in memory, in both modes."""

from __future__ import annotations

import itertools
from random import Random

import pyarrow as pa
import pytest

NAMESPACE = "random_change_tests"
COMMANDS = ("delete", "update", "merge")
KINDS = ("a", "b", "c/d", None)
ORIGINS = ("made", "sorted", "migrated")
NUMBERS = itertools.count(1)


class Changes:
    """A table of `id`, `k` and `v`, changed by random statements, beside the rows it must have.

    Args:
        random: Chooses.
        run: Runs a statement.
        catalog: Where the table is.
        name: Its name in that catalog.
        mode: How its rows are changed; None for another one each time.
        origin: Whether it was made here, is written in an order, or was a Hive table.
    """

    def __init__(self, random, run, catalog, name, mode, origin="made"):
        self.random, self.run, self.catalog, self.name, self.mode = random, run, catalog, name, mode
        self.table_name, self.rows, self.log = f"lake.{name}", [], []
        if origin == "migrated":
            self.migrate()
        else:
            spec = random.choice(["", "PARTITIONED BY (k)", "PARTITIONED BY (bucket(2, id), k)"])
            self.sql(f"CREATE TABLE {{t}} (id BIGINT, k STRING, v INT) USING iceberg {spec}")
        if origin == "sorted":
            self.sql(f"ALTER TABLE {{t}} WRITE ORDERED BY {random.choice(['id', 'v DESC, k'])}")
        self.append()

    def table(self):
        return self.catalog.load_table(self.name)

    def sql(self, text):
        self.log.append(text)
        self.run(text.format(t=self.table_name))

    def set(self, **properties):
        self.log.append(properties)
        with self.table().update_properties() as update:
            for key, value in properties.items():
                update.set(key, value)

    def step(self):
        modes = {
            c: self.mode or self.random.choice(["copy-on-write", "merge-on-read"]) for c in COMMANDS
        }
        self.set(**{f"write.{c}.mode": mode for c, mode in modes.items()})
        self.set(
            **{
                "write.delete.granularity": self.random.choice(["file", "partition"]),
                "write.spark.fanout.enabled": self.random.choice(["true", "false"]),
                "write.format.default": self.file_format(),
                "write.delete.format.default": self.file_format(),
                **{
                    f"write.{c}.distribution-mode": self.random.choice(["none", "hash", "range"])
                    for c in COMMANDS
                },
            }
        )
        self.random.choice(
            [
                self.insert,
                self.append,
                self.delete,
                self.delete,
                self.update,
                self.merge,
                self.merge,
                self.evolve,
                self.evolve_schema,
                self.overwrite,
                self.delete_in_python,
                self.overwrite_in_python,
                self.upsert,
            ]
        )()
        assert self.found() == self.expected(), self.log

    def file_format(self):
        """Of new files, in every second step another one than Parquet."""
        return self.random.choice(["parquet", "parquet", "orc", "avro"])

    def found(self):
        columns = ("id", "k", "v")
        return ordered(self.table().scan(selected_fields=columns).to_arrow().to_pylist())

    def expected(self):
        return ordered([dict(zip(("id", "k", "v"), row, strict=True)) for row in self.rows])

    def migrate(self):
        """A Hive table with some rows, taken over where it is."""
        hive, rows = f"spark_catalog.{self.name}", self.new_rows()
        key = self.random.choice(["v INT, k STRING", "v INT) PARTITIONED BY (k STRING"])
        self.sql(f"CREATE TABLE {hive} (id BIGINT, {key}) STORED AS PARQUET")
        rows = [row for row in rows if row[1] is not None]
        if rows:
            values = ", ".join(f"({i}, {v}, '{k}')" for i, k, v in rows)
            self.sql(f"INSERT INTO {hive} SELECT * FROM VALUES {values}")
        self.rows += rows
        self.sql(f"CALL lake.system.migrate('{self.name}')")

    def new_rows(self):
        return [
            (self.random.randrange(30), self.random.choice(KINDS), self.random.randrange(9))
            for _ in range(self.random.randrange(1, 12))
        ]

    def arrow(self, rows):
        kinds = (("id", pa.int64()), ("k", pa.string()), ("v", pa.int32()))
        return pa.table(
            {n: pa.array([row[at] for row in rows], t) for at, (n, t) in enumerate(kinds)}
        )

    def values(self, rows):
        texts = ("NULL" if k is None else f"'{k}'" for _, k, _ in rows)
        return ", ".join(f"({i}, {k}, {v})" for (i, _, v), k in zip(rows, texts, strict=True))

    def append(self):
        rows = self.new_rows()
        self.rows += rows
        self.log.append(("append", rows))
        self.table().append(self.arrow(rows))

    def insert(self):
        rows = self.new_rows()
        self.rows += rows
        self.sql(f"INSERT INTO {{t}} (id, k, v) VALUES {self.values(rows)}")

    def overwrite(self):
        """All rows are replaced; in half of the cases by some of themselves."""
        rows = self.new_rows()
        if self.random.random() < 0.5:
            self.rows = [row for row in self.rows if row[0] % 3 != 1]
            self.sql("INSERT OVERWRITE {t} (id, k, v) SELECT id, k, v FROM {t} WHERE id % 3 != 1")
        else:
            self.rows = rows
            self.sql(f"INSERT OVERWRITE {{t}} (id, k, v) VALUES {self.values(rows)}")

    def filter(self):
        """A condition of Python's row filters, and as a function of a row."""
        n, kind = self.random.randrange(30), self.random.choice(KINDS[:3])
        return self.random.choice(
            [
                (f"id < {n}", lambda row: row[0] < n),
                (f"k = '{kind}'", lambda row: row[1] == kind),
                (f"k is null or v = {n % 9}", lambda row: row[1] is None or row[2] == n % 9),
            ]
        )

    def delete_in_python(self):
        text, matches = self.filter()
        self.rows = [row for row in self.rows if not matches(row)]
        self.log.append(("delete", text))
        self.table().delete(text)

    def overwrite_in_python(self):
        text, matches = self.filter()
        rows = self.new_rows()
        self.rows = [row for row in self.rows if not matches(row)] + rows
        self.log.append(("overwrite", text, rows))
        self.table().overwrite(self.arrow(rows), text)

    def upsert(self):
        """Of rows whose ids are in the table once at most."""
        there = [row[0] for row in self.rows]
        new = {row[0]: row for row in self.new_rows() if there.count(row[0]) < 2}
        if new:
            self.rows = [row for row in self.rows if row[0] not in new] + list(new.values())
            self.log.append(("upsert", new))
            self.table().upsert(self.arrow(list(new.values())), ["id"])

    def condition(self):
        """A condition as SQL, and as a function of a row."""
        n, kind = self.random.randrange(30), self.random.choice(KINDS[:3])
        return self.random.choice(
            [
                (f"t.id % 5 = {n % 5}", lambda row: row[0] % 5 == n % 5),
                (f"t.id < {n}", lambda row: row[0] < n),
                (f"t.k = '{kind}'", lambda row: row[1] == kind),
                (f"t.k IS NULL OR t.v = {n % 9}", lambda row: row[1] is None or row[2] == n % 9),
                (f"upper(t.k) = '{kind.upper()}' AND t.id > {n // 2}",
                 lambda row: row[1] == kind and row[0] > n // 2),
            ]
        )  # fmt: skip

    def delete(self):
        text, matches = self.condition()
        if self.random.random() < 0.4:
            some = {row[0] for row in self.rows if row[2] == 3}
            text = f"({text}) AND t.id IN (SELECT id FROM {{t}} WHERE v = 3)"
            self.rows = [r for r in self.rows if not (matches(r) and r[0] in some)]
        else:
            self.rows = [r for r in self.rows if not matches(r)]
        self.sql(f"DELETE FROM {{t}} t WHERE {text}")

    def update(self):
        text, matches = self.condition()
        kind = self.random.choice(KINDS[:3])
        moves = self.random.random() < 0.5
        self.rows = [
            (r[0], kind if moves else r[1], r[2] + 1) if matches(r) else r for r in self.rows
        ]
        moved = f", k = '{kind}'" if moves else ""
        self.sql(f"UPDATE {{t}} t SET v = v + 1{moved} WHERE {text}")

    def merge(self):
        source = {
            i: self.random.randrange(9)
            for i in self.random.sample(range(40), self.random.randrange(1, 9))
        }
        rows, by_source = [], self.random.random() < 0.5
        known = {row[0] for row in self.rows}
        for row in self.rows:
            if row[0] not in source:
                if by_source and row[2] == 5:
                    continue
                rows.append((row[0], row[1], 0) if by_source and row[2] > 6 else row)
            elif source[row[0]] == 0:
                continue
            elif source[row[0]] < 6:
                rows.append((row[0], row[1], source[row[0]]))
            else:
                rows.append(row)
        rows += [(i, "b", v) for i, v in source.items() if i not in known and v > 2]
        self.rows = rows
        values = ", ".join(f"({i}, {v})" for i, v in source.items())
        last = """
            WHEN NOT MATCHED BY SOURCE AND t.v = 5 THEN DELETE
            WHEN NOT MATCHED BY SOURCE AND t.v > 6 THEN UPDATE SET t.v = 0"""
        self.sql(
            f"""MERGE INTO {{t}} t USING (SELECT col1 AS id, col2 AS v FROM VALUES {values}) s
            ON t.id = s.id
            WHEN MATCHED AND s.v = 0 THEN DELETE
            WHEN MATCHED AND s.v < 6 THEN UPDATE SET t.v = s.v
            WHEN NOT MATCHED AND s.v > 2 THEN INSERT (id, k, v) VALUES (s.id, 'b', s.v)"""
            + (last if by_source else "")
        )

    def evolve(self):
        """Another partitioning, or another order."""
        table = self.table()
        with table.update_spec() as spec:
            names = [field.name for field in table.spec().fields]
            if "id_bucket_3" in names:
                spec.remove_field("id_bucket_3")
            else:
                spec.add_field("id", "bucket[3]", "id_bucket_3")
        self.log.append("evolve")

    def evolve_schema(self):
        """A wider column, or another one that comes and goes."""
        self.log.append("evolve schema")
        if self.random.random() < 0.5:
            with self.table().update_schema() as update:
                update.update_column("v", "long")
            return
        with self.table().update_schema() as update:
            update.add_column("extra", "int")
        rows = self.new_rows()
        self.rows += rows
        self.table().append(self.arrow(rows))
        with self.table().update_schema() as update:
            update.delete_column("extra")


class ChangesWithLineage(Changes):
    """The same of a table of version 3, whose rows keep their ids."""

    def __init__(self, random, run, catalog, name, mode, origin="made"):
        super().__init__(random, run, catalog, name, mode, origin)
        self.set(**{"format-version": "3"})
        self.append()

    def lineage(self):
        """Rows by their ids, with the number of the commit that last changed them."""
        columns = ("id", "k", "v", "_row_id", "_last_updated_sequence_number")
        found = self.table().scan(selected_fields=columns).to_arrow().to_pylist()
        rows = {row_id: (tuple(row), at) for *row, row_id, at in (r.values() for r in found)}
        assert len(rows) == len(found), self.log
        return rows

    def step(self):
        metadata, before = self.table().metadata, self.lineage()
        done = len(self.log)
        super().step()
        said = " ".join(map(str, self.log[done:]))
        known = {row[0] for row, _ in before.values()}
        for row_id, (row, at) in self.lineage().items():
            if row_id in before:
                was, then = before[row_id]
                kept = (row, at) == (was, then)
                changed = row[0] == was[0] and at > metadata.last_sequence_number
                assert kept or changed, (row, was, self.log)
            else:
                assert "UPDATE {t}" not in said, self.log
                assert "DELETE FROM" not in said, self.log
                assert row_id >= metadata.next_row_id, self.log
                assert at > metadata.last_sequence_number, self.log
                assert "MERGE" not in said or row[0] not in known, self.log


def ordered(rows):
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def played(changes, steps):
    for _ in range(steps):
        changes.step()
    return changes


MODES = ("merge-on-read", "copy-on-write")
SPARKS = ("4.3", "4.1", "3.5")


@pytest.mark.full("random statements on a random table")
@pytest.mark.seeds(1)
def test_changes_by_the_newest_spark_leave_the_rows_of_the_model(spark, sql_on, catalog, seed):
    """What the next test does nine times, with Iceberg Java and PyIceberg to read it."""
    run = sql_on("4.3")
    run(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    changes = played(Changes(Random(f"{seed} alone"), run, catalog, name, None), 8)
    found = sorted(run(f"SELECT id, k, v FROM lake.{name}"), key=repr)
    assert found == sorted(map(list, changes.rows), key=repr), changes.log
    run(f"DROP TABLE lake.{name}")


@pytest.mark.seeds(1)
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("minor", SPARKS)
def test_changes_leave_the_rows_of_the_model(
    sql_on, catalog, iceberg_java, pyiceberg, minor, origin, seed
):
    """One sequence of eight changes; 34 rounds on fresh seeds are 102 sequences by each Spark.

    Each Spark and each origin meets both modes, and the next seed has the other halves.
    """
    mode = MODES[(seed + SPARKS.index(minor) + ORIGINS.index(origin)) % 2]
    run = sql_on(minor)
    run(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    random = Random(f"{seed} {minor} {origin} {mode}")
    changes = played(Changes(random, run, catalog, name, mode, origin), 8)
    expected = sorted(map(list, changes.rows), key=repr)
    assert sorted(run(f"SELECT id, k, v FROM lake.{name}"), key=repr) == expected, changes.log
    theirs = iceberg_java.sql(f"SELECT id, k, v FROM ice.{name}")
    assert sorted(theirs, key=repr) == expected, changes.log
    files = catalog.load_table(name).inspect.all_files()
    if "AVRO" not in files["file_format"].to_pylist():
        read = pyiceberg.load_table(name).scan(selected_fields=("id", "k", "v")).to_arrow()
        assert ordered(read.to_pylist()) == changes.expected(), changes.log
    run(f"DROP TABLE lake.{name}")


@pytest.mark.full("many statements each; the rules of lineage are in tests/spark/test_version_3.py")
@pytest.mark.seeds(2)
@pytest.mark.parametrize("origin", ["made", "sorted"])
@pytest.mark.parametrize("minor", SPARKS)
def test_rows_of_the_model_keep_their_ids(sql_on, catalog, minor, origin, seed):
    run = sql_on(minor)
    run(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    random = Random(f"{seed} {minor} {origin} lineage")
    changes = played(ChangesWithLineage(random, run, catalog, name, None, origin), 12)
    columns = "_row_id, id, k, v, _last_updated_sequence_number"
    found = {i: (tuple(row), at) for i, *row, at in run(f"SELECT {columns} FROM lake.{name}")}
    assert found == changes.lineage(), changes.log
    run(f"DROP TABLE lake.{name}")
