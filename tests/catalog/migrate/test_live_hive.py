"""Hive 3.1 itself beside a migration: what it is told is done is in the table, or told by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.migrate.journal.writer_in_flight import WritersInFlight
from icecomb.format.errors import MigrationError
from tests.peers.hive import FailedStatementError, Hive
from tests.peers.hive_metastore import HiveMetastore

pytestmark = [pytest.mark.jvm, pytest.mark.full("needs Hive 3.1")]
SLOWLY = "coalesce(reflect('java.lang.Thread', 'sleep', cast(3000 as bigint)), '') <> 'x'"


class Live:
    """Hive without its locks, as it is by default, and our catalog on its metastore."""

    def __init__(self, server: HiveMetastore, folder: Path) -> None:
        self.hive = Hive(server, folder)
        for one in (
            "hive.support.concurrency=false",
            "hive.txn.manager=org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
            "hive.fetch.task.conversion=none",
            # of the entry that it read before; where it fails, Hive says so after all was moved
            "hive.stats.autogather=false",
        ):
            self.hive.run(f"SET {one}")
        self.catalog = load_catalog("live", uri=server.uri, warehouse=str(server.warehouse))
        self.warehouse = server.warehouse

    def rows(self, table: str) -> list[int]:
        """The ids that the Iceberg table has."""
        return sorted(self.catalog.load_table(table).scan().to_arrow().column("id").to_pylist())


@pytest.fixture(scope="module")
def live(hive_server: HiveMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    found = Live(hive_server, tmp_path_factory.mktemp("live-hive"))
    try:
        yield found
    finally:
        found.catalog.close()
        found.hive.close()


class Statement(threading.Thread):
    """One of Hive's that is at work, with a folder of its own."""

    def __init__(self, live: Live, text: str, folder: Path) -> None:
        super().__init__()
        self.live, self.text, self.said = live, text, ""
        self.start()
        until = time.monotonic() + 60
        while not any(folder.rglob(".hive-staging*")):
            assert self.is_alive(), self.said
            assert time.monotonic() < until
            time.sleep(0.01)

    def run(self) -> None:
        try:
            self.live.hive.run(self.text)
            self.said = "ok"
        except FailedStatementError as error:
            self.said = f"failed: {error}"


@pytest.mark.parametrize("into", ["INTO TABLE {} PARTITION (k=1)", "INTO TABLE {} PARTITION (k)"])
def test_an_insert_that_is_under_way_at_the_turn_is_in_the_table(
    live: Live, into: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"default.ins{len(into)}"
    live.hive.run("SET hive.exec.dynamic.partition.mode=nonstrict")
    live.hive.run(f"CREATE TABLE {table} (id BIGINT) PARTITIONED BY (k INT) STORED AS PARQUET")
    for k in (1, 2):
        live.hive.run(f"INSERT INTO {table} PARTITION (k={k}) VALUES ({k})")
    folder = Path(live.catalog.client.table(*table.split(".")).storage.location.partition(":")[2])
    key = "" if "=" in into else ", 1"
    text = f"INSERT {into.format(table)} SELECT 7{key} FROM {table} WHERE id = 2 AND {SLOWLY}"
    begun: list[Statement] = []

    def begin(*_: Any) -> None:
        if not begun:
            begun.append(Statement(live, text, folder))

    monkeypatch.setattr(WritersInFlight, "in_table_folder", begin)
    migrate.apply(live.catalog, table)
    begun[0].join(60)
    assert begun[0].said == "ok"
    assert live.rows(table) == [1, 2, 7]
    assert migrate.verify(live.catalog, table).difference_count == 0
    migrate.revert(live.catalog, table, dry_run=False)
    assert sorted(live.hive.run(f"SELECT id FROM {table}")) == [["1"], ["2"], ["7"]]


@pytest.mark.parametrize("into", ["INTO", "OVERWRITE"])
def test_what_hive_does_to_a_table_without_partitions_is_told_and_there_is_a_way_back(
    live: Live, into: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"default.plain_{into.lower()}"
    live.hive.run(f"CREATE TABLE {table} (id BIGINT) STORED AS PARQUET")
    live.hive.run(f"INSERT INTO {table} VALUES (1)")
    folder = Path(live.catalog.client.table(*table.split(".")).storage.location.partition(":")[2])
    text = f"INSERT {into} TABLE {table} SELECT 7 FROM {table} WHERE {SLOWLY}"
    begun: list[Statement] = []

    def begin(*_: Any) -> None:
        if not begun:
            begun.append(Statement(live, text, folder))

    monkeypatch.setattr(WritersInFlight, "in_table_folder", begin)
    told = ""
    try:
        migrate.apply(live.catalog, table)
    except MigrationError as error:
        told = f"{error.message} {error.hint}"
    begun[0].join(60)
    if not told:
        assert live.rows(table) == ([1, 7] if begun[0].said == "ok" else live.rows(table))
        assert migrate.verify(live.catalog, table).difference_count == 0
        return
    assert f"icecomb migrate revert {table}" in told
    assert "verified" not in migrate.status(live.catalog, table)["state"]
    migrate.revert(live.catalog, table, dry_run=False, allow_data_loss=True)
    wanted = [["1"], ["7"]] if into == "INTO" else [["7"]]
    found = sorted(live.hive.run(f"SELECT id FROM {table}"))
    assert found == (wanted if begun[0].said == "ok" else found)


@pytest.mark.parametrize("key", ["", "k"])
def test_hive_counts_what_it_added_while_the_table_was_an_iceberg_table(
    live: Live, key: str
) -> None:
    table = f"default.counted{key}"
    by, into = (" PARTITIONED BY (k INT)", " PARTITION (k=1)") if key else ("", "")
    live.hive.run(f"CREATE TABLE {table} (id BIGINT){by} STORED AS PARQUET")
    live.hive.run(f"INSERT INTO {table}{into} VALUES (1)")
    live.hive.run(f"ANALYZE TABLE {table}{into} COMPUTE STATISTICS")
    assert live.hive.run(f"SELECT count(*) FROM {table}") == [["1"]]
    migrate.apply(live.catalog, table)
    folder = Path(live.catalog.client.table(*table.split(".")).storage.location.partition(":")[2])
    late = pa.table({"id": pa.array([7], pa.int64())})
    pq.write_table(late, folder / ("k=1" if key else "") / "000000_1", compression="none")
    migrate.apply(live.catalog, table)
    assert live.rows(table) == [1, 7]
    migrate.revert(live.catalog, table, dry_run=False)
    assert sorted(live.hive.run(f"SELECT id FROM {table}")) == [["1"], ["7"]]
    assert live.hive.run(f"SELECT count(*) FROM {table}") == [["2"]]


def test_the_statements_of_a_plan_take_constraints_off_and_put_them_on_again(live: Live) -> None:
    table, whole = "default.constrained", "default.referred"
    live.hive.run(f"CREATE TABLE {whole} (id BIGINT) STORED AS PARQUET")
    live.hive.run(
        f"ALTER TABLE {whole} ADD CONSTRAINT pk_whole PRIMARY KEY (id) DISABLE NOVALIDATE"
    )
    live.hive.run(
        f"CREATE TABLE {table} (id BIGINT CONSTRAINT ck CHECK (id > 0) ENABLE, price STRING CONSTRAINT df DEFAULT 'a b', "
        "s STRING CONSTRAINT nn NOT NULL ENABLE NOVALIDATE RELY, `order` INT, "
        "CONSTRAINT pk PRIMARY KEY (s, id) DISABLE NOVALIDATE RELY, "
        "CONSTRAINT u UNIQUE (`order`, price) DISABLE NOVALIDATE, "
        f"CONSTRAINT fk FOREIGN KEY (id) REFERENCES {whole} (id) DISABLE NOVALIDATE) "
        "PARTITIONED BY (k INT) STORED AS PARQUET"
    )
    before = live.catalog.client.constraints.of(*table.split("."))
    assert [one.kind for one in before] == sorted(
        ("PRIMARY KEY", "FOREIGN KEY", "UNIQUE", "NOT NULL", "DEFAULT", "CHECK")
    )
    [found] = migrate.plan(live.catalog, table).blockers
    off, on = (found.remedy or "").split("; after a revert add them again: ")
    statements = [
        [f"ALTER TABLE {one.removesuffix('; ')}" for one in text.split("ALTER TABLE ")[1:]]
        for text in (off, on)
    ]
    for statement in statements[0]:
        live.hive.run(statement)
    assert live.catalog.client.constraints.of(*table.split(".")) == []
    live.hive.run(f"INSERT INTO {table} PARTITION (k=1) VALUES (1, '2', 'a', 3)")
    migrate.apply(live.catalog, table)
    assert live.rows(table) == [1]
    migrate.revert(live.catalog, table, dry_run=False)
    for statement in statements[1]:
        live.hive.run(statement)
    assert live.catalog.client.constraints.of(*table.split(".")) == before
