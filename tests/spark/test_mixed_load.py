"""Everybody changes one table for minutes, beside its maintenance; a ledger says what rows there must be."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
import uuid
from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.peers.iceberg_java import IcebergJava

NAMESPACE = "mixed_load_tests"
TABLE = f"{NAMESPACE}.ledger"
SPAN = 1_000_000
KEPT = dt.timedelta(seconds=30)
"""Snapshots of this age are expired, as no statement takes so long."""
PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "20",
    "commit.manifest.min-count-to-merge": "5",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}
COMPACTION = {
    "rewrite-all": "true",
    "remove-dangling-deletes": "true",
    "partial-progress.enabled": "true",
    "max-file-group-size-bytes": "10000",
}
"""Groups are of some ten files: 1.11 of Iceberg Java knows no number of them."""
UNKNOWN = ("CommitStateUnknown", "unknown whether", "is unknown")


class Writer(threading.Thread):
    """Changes rows of its own, one statement after the other, and keeps the ledger of them.

    Args:
        name: Of the engine.
        number: Its ids begin with it.
        until: When it ends, by the monotonic clock.
        seed: Of its choices.

    Attributes:
        rows: The value by id of what must be in the table.
        unsure: The values that an id may have whose statement was not answered for; None for no row.
        outcomes: How many statements were done, and how others failed.
    """

    def __init__(self, name, number, until, seed):
        super().__init__(name=name, daemon=True)
        self.until, self.random = until, Random(f"{seed} {name}")
        self.rows, self.unsure, self.outcomes = {}, {}, Counter()
        self.errors = []
        self._next = number * SPAN

    def run(self):
        while time.monotonic() < self.until:
            change = self.random.choice(
                [self.append, self.append, self.delete, self.update, self.merge]
            )
            after = change()
            try:
                self.execute()
            except Exception as error:  # noqa: BLE001 - it is told below
                self._failed(str(error), after)
            else:
                self.outcomes["done"] += 1
                for number, value in after.items():
                    self._set(number, value)

    def _failed(self, said, after):
        unknown = any(text in said for text in UNKNOWN)
        self.outcomes["unknown" if unknown else "refused"] += 1
        self.errors.append(said[:1000])
        if unknown:
            for number, value in after.items():
                self.unsure[number] = (self.rows.pop(number, None), value)

    def _set(self, number, value):
        if value is None:
            del self.rows[number]
        else:
            self.rows[number] = value

    def some(self):
        """Ids of rows that are there."""
        known = sorted(self.rows)
        return self.random.sample(known, min(len(known), self.random.randrange(1, 6)))

    def new(self):
        """Rows with ids that no one had."""
        count = self.random.randrange(1, 6)
        self._next += count
        return {self._next - n: self.random.randrange(1000) for n in range(count)}

    def append(self):
        after = self.new()
        self.execute = lambda: self.do_append(after)
        return after

    def delete(self):
        some = self.some()
        if not some:
            return self.append()
        self.execute = lambda: self.do_delete(some)
        return dict.fromkeys(some)

    def update(self):
        some = self.some()
        if not some:
            return self.append()
        self.execute = lambda: self.do_update(some)
        return {number: self.rows[number] + 1 for number in some}

    def merge(self):
        after = {number: self.random.randrange(1000) for number in self.some()} | self.new()
        self.execute = lambda: self.do_merge(after)
        return after


class SqlWriter(Writer):
    """One that says it in SQL."""

    def __init__(self, name, number, until, seed, sql, table):
        super().__init__(name, number, until, seed)
        self._sql, self._table = sql, table

    def do_append(self, rows):
        self._sql(f"INSERT INTO {self._table} VALUES {values(rows)}")

    def do_delete(self, some):
        self._sql(f"DELETE FROM {self._table} WHERE id IN ({listed(some)})")

    def do_update(self, some):
        self._sql(f"UPDATE {self._table} SET v = v + 1 WHERE id IN ({listed(some)})")

    def do_merge(self, rows):
        self._sql(
            f"MERGE INTO {self._table} t USING (SELECT * FROM VALUES {values(rows)} AS r(id, v)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
        )


class PythonWriter(Writer):
    """One on a catalog of its own."""

    def __init__(self, name, number, until, seed, place):
        super().__init__(name, number, until, seed)
        self._catalog = load_catalog(name, **place)

    def run(self):
        try:
            super().run()
        finally:
            self._catalog.close()

    def _table(self):
        return self._catalog.load_table(TABLE)

    def do_append(self, rows):
        self._table().append(arrow(rows))

    def do_delete(self, some):
        self._table().delete(f"id in ({listed(some)})")

    def do_update(self, some):
        after = {number: self.rows[number] + 1 for number in some}
        self._table().overwrite(arrow(after), f"id in ({listed(some)})")

    def do_merge(self, rows):
        self._table().upsert(arrow(rows), ["id"])


class Upserter(PythonWriter):
    """One that deletes by the value of `id`, in the commit that adds the new row, as Flink does."""

    def do_delete(self, some):
        self._change([], some)

    def do_update(self, some):
        self._change({number: self.rows[number] + 1 for number in some}, some)

    def do_merge(self, rows):
        self._change(rows, rows)

    def _change(self, rows, gone):
        table = self._table()
        change = RowDelta(table.io)
        deletes = EqualityDeleteWriter(table.io, table.metadata, str(uuid.uuid4()), ["id"])
        deletes.write(pa.record_batch({"id": pa.array(list(gone), pa.int64())}))
        for file in deletes.close():
            change.add_deletes(file)
        if rows:
            for file in write_data(table.io, table.metadata, arrow(rows)):
                change.add_rows(file)
        table.commit(change)


class Appender(Writer):
    """PyIceberg, which only appends: where there are equality deletes it refuses to read."""

    def __init__(self, name, number, until, seed, catalog):
        super().__init__(name, number, until, seed)
        self._catalog = catalog
        self.delete = self.update = self.merge = self.append

    def do_append(self, rows):
        try:
            self._catalog.load_table(TABLE).append(arrow(rows))
        except CommitFailedException:
            raise
        except Exception as error:
            raise RuntimeError(f"unknown whether: {error}") from error


class Maintenance(threading.Thread):
    """Expires snapshots, rewrites manifests and data files all along.

    Args:
        until: When it ends, by the monotonic clock.
        place: Of the catalog.
        java: Rewrites data files instead, if any.
    """

    def __init__(self, until, place, java=None):
        super().__init__(name="maintenance", daemon=True)
        self._until, self._place, self._java = until, place, java
        self.outcomes, self.errors = Counter(), []

    def run(self):
        with load_catalog("maintenance", **self._place) as catalog:
            while time.monotonic() < self._until:
                self._do(self._expire, catalog)
                self._do(self._rewrite, catalog)
                self._do(self._compact, catalog)
                time.sleep(1)

    def _do(self, work, catalog):
        try:
            work(catalog.load_table(TABLE))
        except (IcecombError, AssertionError) as error:  # a peer raises the latter
            self.outcomes[f"{work.__name__} refused"] += 1
            self.errors.append(str(error)[:1000])
        else:
            self.outcomes[work.__name__] += 1

    @staticmethod
    def _expire(table):
        with table.expire_snapshots() as expire:
            expire.older_than(dt.datetime.now(dt.timezone.utc) - KEPT)

    @staticmethod
    def _rewrite(table):
        table.rewrite_manifests()

    def _compact(self, table):
        order = (None, None, "v DESC", "zorder(id, v)")[self.outcomes["_compact"] % 4]
        if self._java is None:
            done = table.maintenance.rewrite_data_files(sort_order=order, options=COMPACTION)
            replaced, failed = done.rewritten_data_files_count, done.failed_data_files_count
        else:
            options = ", ".join(f"'{key}', '{value}'" for key, value in COMPACTION.items())
            sort = "" if order is None else f", strategy => 'sort', sort_order => '{order}'"
            [[replaced, _, _, failed, _]] = self._java.sql(
                f"CALL ice.system.rewrite_data_files(table => '{TABLE}', "
                f"options => map({options}){sort})"
            )
        self.outcomes["files replaced"] += replaced
        self.outcomes["files not replaced"] += failed


def values(rows):
    return ", ".join(f"({number}, {value})" for number, value in rows.items())


def listed(some):
    return ", ".join(map(str, some))


def arrow(rows):
    return pa.table(
        {"id": pa.array(list(rows), pa.int64()), "v": pa.array(list(rows.values()), pa.int64())}
    )


def differences(found, writers):
    """What is not as the ledgers say."""
    expected = {number: value for one in writers for number, value in one.rows.items()}
    unsure = {number: either for one in writers for number, either in one.unsure.items()}
    counts = Counter(number for number, _ in found)
    problems = [f"{number} is there {n} times" for number, n in counts.items() if n > 1]
    values_found = dict(found)
    for number in values_found.keys() | expected.keys() | unsure.keys():
        allowed = unsure.get(number, (expected.get(number),))
        if values_found.get(number) not in allowed:
            problems.append(f"{number}: {values_found.get(number)}, not {allowed}")
    return problems


@pytest.fixture
def compacting(request, metastore, tmp_path):
    """Iceberg Java once more, if it is to rewrite data files: statements of one wait for each other."""
    if request.config.getoption("--mixed-load-compaction") == "icecomb":
        yield None
        return
    peer = IcebergJava(metastore, tmp_path / "log")
    yield peer
    peer.close()


@pytest.mark.full("all engines write for a minute")
@pytest.mark.timeout(7200)
def test_everybody_changes_one_table_and_no_row_is_lost_or_there_twice(
    spark, other_spark, iceberg_java, pyiceberg, metastore, catalog, compacting, request, capsys
):
    seconds = float(request.config.getoption("--mixed-load"))
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    properties = ", ".join(f"'{key}'='{value}'" for key, value in PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE lake.{TABLE} (id BIGINT, v BIGINT) USING iceberg TBLPROPERTIES ({properties})"
    )
    sqls = {
        "Spark 4.3": (lambda text: spark.sql(text).collect(), f"lake.{TABLE}"),
        "Spark 4.1": (other_spark("4.1").sql, f"lake.{TABLE}"),
        "Iceberg Java": (iceberg_java.sql, f"ice.{TABLE}"),
    }
    until, seed = time.monotonic() + seconds, 7
    writers = [
        SqlWriter(name, at, until, seed, *said) for at, (name, said) in enumerate(sqls.items(), 1)
    ]
    writers += [
        PythonWriter(name, at, until, seed, place)
        for at, name in enumerate(("python", "other"), 11)
    ]
    writers.append(Upserter("upserter", 13, until, seed, place))
    writers.append(Appender("PyIceberg", 14, until, seed, pyiceberg))
    maintenance = Maintenance(until, place, compacting)
    threads = [*writers, maintenance]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    told = {one.name: dict(one.outcomes) for one in threads}
    with capsys.disabled():
        print(f"\n{seconds:.0f} s: {json.dumps(told)}")
    errors = {one.name: one.errors[-1:] for one in threads}
    table = catalog.load_table(TABLE).scan(selected_fields=("id", "v")).to_arrow()
    found = list(zip(*table.to_pydict().values(), strict=True))
    assert differences(found, writers) == [], errors
    theirs = [tuple(row) for row in iceberg_java.sql(f"SELECT id, v FROM ice.{TABLE}")]
    assert sorted(theirs) == sorted(found)
    # PyIceberg reads no equality deletes
    catalog.load_table(TABLE).maintenance.rewrite_data_files(
        options={"rewrite-all": "true", "remove-dangling-deletes": "true"}
    )
    read = pyiceberg.load_table(TABLE).scan(selected_fields=("id", "v")).to_arrow().to_pydict()
    assert sorted(zip(*read.values(), strict=True)) == sorted(found)
    # PyIceberg's locks and retries may wait until the end
    others = [one for one in writers if not isinstance(one, Appender)]
    assert all(one.outcomes["done"] for one in others), errors
    assert maintenance.outcomes["_expire"], errors
    assert maintenance.outcomes["_rewrite"], errors
    replaced, not_replaced = (maintenance.outcomes[f"files {n}replaced"] for n in ("", "not "))
    assert maintenance.outcomes["_compact"], errors
    assert replaced >= 9 * not_replaced, errors
    spark.sql(f"DROP TABLE lake.{TABLE} PURGE")
    spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}")
