"""Random sequences of statements that change rows leave the rows of a model in memory, in both modes."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

NAMESPACE = "random_change_tests"
COMMANDS = ("delete", "update", "merge")
KINDS = ("a", "b", "c/d", None)


class Changes:
    """A table of `id`, `k` and `v`, changed by random statements, beside the rows it must have.

    Args:
        random: Chooses.
        run: Runs a statement.
        catalog: Where the table is.
        name: Its name in that catalog.
        mode: How its rows are changed; None for another one each time.
    """

    def __init__(self, random, run, catalog, name, mode):
        self.random, self.run, self.catalog, self.name, self.mode = random, run, catalog, name, mode
        self.table_name, self.rows, self.log = f"lake.{name}", [], []
        spec = random.choice(["", "PARTITIONED BY (k)", "PARTITIONED BY (bucket(2, id), k)"])
        self.sql(f"CREATE TABLE {{t}} (id BIGINT, k STRING, v INT) USING iceberg {spec}")
        self.insert()

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
                self.delete,
                self.delete,
                self.update,
                self.merge,
                self.merge,
                self.evolve,
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

    def insert(self):
        rows = [
            (self.random.randrange(30), self.random.choice(KINDS), self.random.randrange(9))
            for _ in range(self.random.randrange(1, 12))
        ]
        self.rows += rows
        columns = {
            name: pa.array([row[at] for row in rows], kind)
            for at, (name, kind) in enumerate(
                (("id", pa.int64()), ("k", pa.string()), ("v", pa.int32()))
            )
        }
        self.table().append(pa.table(columns))
        self.log.append(rows)

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


def ordered(rows):
    return sorted(rows, key=repr)


def played(changes, steps):
    for _ in range(steps):
        changes.step()
    return changes


@pytest.mark.seeds(2)
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_statements_leave_the_rows_of_the_model(
    spark, catalog, iceberg_java, pyiceberg, mode, seed
):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    name = f"{NAMESPACE}.t{seed}_{mode[0]}"
    changes = Changes(Random(seed), spark.sql, catalog, name, mode)
    played(changes, 8)
    rows = [list(row) for row in spark.sql(f"SELECT id, k, v FROM lake.{name}").collect()]
    assert sorted(rows, key=repr) == sorted(map(list, changes.rows), key=repr)
    assert sorted(iceberg_java.sql(f"SELECT id, k, v FROM ice.{name}"), key=repr) == sorted(
        rows, key=repr
    )
    files = catalog.load_table(name).inspect.all_files()
    if "AVRO" not in files["file_format"].to_pylist():
        theirs = pyiceberg.load_table(name).scan(selected_fields=("id", "k", "v")).to_arrow()
        assert ordered(theirs.to_pylist()) == changes.expected()
    spark.sql(f"DROP TABLE lake.{name}")


@pytest.mark.seeds(1)
def test_statements_of_spark_3_5_leave_the_rows_of_the_model(other_spark, catalog, seed):
    run = other_spark("3.5").sql
    run(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    name = f"{NAMESPACE}.old{seed}"
    changes = played(Changes(Random(seed + 1000), run, catalog, name, "merge-on-read"), 10)
    rows = run(f"SELECT id, k, v FROM lake.{name}")
    assert sorted(rows, key=repr) == sorted(map(list, changes.rows), key=repr)
    run(f"DROP TABLE lake.{name}")
