"""Hive 3.1 at work while tables are migrated, verified and given back: what it was told is done is found or named."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.migrate.reverting.present_state import examine_migration
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError
from icecomb.format.errors import IcecombError
from tests.peers.hive import FailedStatementError, Hive
from tests.peers.hive_metastore import HiveMetastore

pytestmark = [pytest.mark.jvm, pytest.mark.full("needs Hive 3.1")]
TABLES = 30
PHASES = ("apply", "apply", "verify", "revert")
SETTINGS = (
    "hive.support.concurrency=false",
    "hive.txn.manager=org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
    "hive.stats.autogather=false",
    "hive.exec.dynamic.partition.mode=nonstrict",
    "hive.fetch.task.conversion=none",
)


@dataclass
class Kept:
    """A Hive table, and the rows that Hive was told are in it.

    Attributes:
        name: With its database.
        folder: Where its files are.
        is_partitioned: Whether by `k`.
        rows: The partition of each id; 0 where there are none.
    """

    name: str
    folder: Path
    is_partitioned: bool
    rows: dict[int, int] = field(default_factory=dict)


class Ledger:
    """Statements of Hive, and what they were told."""

    def __init__(self, server: HiveMetastore, folder: Path) -> None:
        self.hive = Hive(server, folder / "hive")
        for one in SETTINGS:
            self.hive.run(f"SET {one}")
        self.catalog = load_catalog("ledger", uri=server.uri, warehouse=str(server.warehouse))
        self.aside = folder / "aside"
        self.aside.mkdir()
        self.numbers = itertools.count(1)
        self.hive.run("CREATE TABLE default.one (x INT) STORED AS PARQUET")
        self.hive.run("INSERT INTO default.one VALUES (1)")
        self.tables = [self._table(number) for number in range(TABLES)]

    def _table(self, number: int) -> Kept:
        name, is_partitioned = f"default.ledger{number}", number % 3 != 0
        by = " PARTITIONED BY (k INT)" if is_partitioned else ""
        kind = "EXTERNAL TABLE" if number % 2 else "TABLE"
        self.hive.run(f"CREATE {kind} {name} (id BIGINT){by} STORED AS PARQUET")
        entry = self.catalog.client.table(*name.split("."))
        table = Kept(name, Path(entry.storage.location.partition(":")[2]), is_partitioned)
        for k in (1, 2) if is_partitioned else (0,):
            place = table.folder / f"k={k}" if k else table.folder
            table.rows[self.file(place)] = k
        if is_partitioned:
            self.hive.run(f"MSCK REPAIR TABLE {name}")
        return table

    def file(self, folder: Path) -> int:
        """Put a file of one row into a folder, and return its id."""
        number = next(self.numbers)
        folder.mkdir(parents=True, exist_ok=True)
        out = io.BytesIO()
        rows = pa.table({"id": pa.array([number], pa.int64())})
        pq.write_table(rows, out, compression="none")
        (folder / f"made-{number}.parquet").write_bytes(out.getvalue())
        return number

    def statement(self, table: Kept, chance: random.Random) -> tuple[str, dict[int, int]]:
        """Return a statement, and the rows of the table after it."""
        kinds = ["insert", "overwrite", "load", "load overwrite"]
        if table.is_partitioned:
            kinds += ["new partition", "add", "drop", "repair"]
        kind, rows, fresh = chance.choice(kinds), dict(table.rows), next(self.numbers) + 100
        k = chance.choice(sorted({*rows.values()}) or [1]) if table.is_partitioned else 0
        there = f" PARTITION (k={k})" if k else ""
        if "overwrite" in kind or kind == "drop":
            rows = {one: at for one, at in rows.items() if at != k}
        if kind in {"insert", "overwrite", "new partition"}:
            number = next(self.numbers)
            into = "OVERWRITE" if kind == "overwrite" else "INTO"
            if kind == "new partition":
                there, k = " PARTITION (k)", fresh
            values = f"{number}, {k}" if kind == "new partition" else f"{number}"
            text = f"INSERT {into} TABLE {table.name}{there} SELECT {values} FROM default.one"
        elif kind.startswith("load"):
            place = self.aside / f"load{fresh}"
            number = self.file(place)
            into = "OVERWRITE INTO" if "overwrite" in kind else "INTO"
            text = f"LOAD DATA LOCAL INPATH '{place}' {into} TABLE {table.name}{there}"
        elif kind == "drop":
            return f"ALTER TABLE {table.name} DROP IF EXISTS PARTITION (k={k})", rows
        else:
            k = fresh
            place = self.aside / f"k={k}" if kind == "add" else table.folder / f"k={k}"
            number = self.file(place)
            text = f"MSCK REPAIR TABLE {table.name}"
            if kind == "add":
                text = f"ALTER TABLE {table.name} ADD PARTITION (k={k}) LOCATION '{place}'"
        return text, {**rows, number: k}

    def hive_rows(self, table: Kept) -> dict[int, int]:
        """What Hive reads."""
        columns = "id, k" if table.is_partitioned else "id, 0"
        found = self.hive.run(f"SELECT {columns} FROM {table.name}")
        assert len(found) == len({one for one, _ in found}), found
        return {int(one): int(k) for one, k in found}

    def close(self) -> None:
        self.catalog.close()
        self.hive.close()
        shutil.rmtree(self.aside)


class Round:
    """A migration of a table and its way back, with a statement that begins shortly before one of its phases."""

    def __init__(self, ledger: Ledger, table: Kept, chance: random.Random) -> None:
        self.ledger, self.table = ledger, table
        self.text, self.after = ledger.statement(table, chance)
        self.phase, self.ahead_s = chance.choice(PHASES), 3 * chance.random()
        self.said = ""
        self.told: list[str] = []
        self.hive = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.ledger.hive.run(self.text)
            self.said = "ok"
        except FailedStatementError as error:
            self.said = str(error)

    def play(self) -> str:
        """Return what was neither found nor named, or nothing."""
        catalog, name = self.ledger.catalog, self.table.name
        with self._in("apply"):
            self._ask(lambda: migrate.apply(catalog, name, wait=60))
        with self._in("verify"):
            self._ask(lambda: migrate.verify(catalog, name))
        problem = "" if self.phase == "revert" else self._unsaid()
        with self._in("revert"):
            self._go_back()
        # one that is under way when the table goes back may be refused in the middle, and what looks for
        # partitions of an Iceberg table has nothing to do
        found = self.ledger.hive_rows(self.table)
        is_open = self.said != "ok" or (self._repairs() and self.phase != "apply")
        right = [self.table.rows, self.after] if is_open else [self.after]
        if any("would lose 1 snapshots" in one for one in self.told):
            right.append(self.table.rows)
        if found not in right and not problem:
            problem = f"after the way back Hive reads {found}"
        shown = f"{name}, {self.phase} - {self.ahead_s:.2f} s: {self.text}: {self.said[:200]}"
        before, self.table.rows = self.table.rows, found
        # a folder that no statement has registered would be found by a later one
        for place in self.table.folder.glob("k=*"):
            if int(place.name[2:]) not in found.values():
                shutil.rmtree(place)
        return f"{shown}: before {before}: {problem}; told {self.told}" if problem else ""

    def _in(self, phase: str) -> Any:
        return self._at_work() if phase == self.phase else contextlib.nullcontext()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        self.hive.start()
        time.sleep(self.ahead_s)  # how far the statement comes is what chance decides
        try:
            yield
        finally:
            self.hive.join(300)
            assert not self.hive.is_alive()

    def _ask(self, ask: Any) -> None:
        try:
            self.told.append(str(ask()))
        except IcecombError as error:
            self.told.append(f"{error.message} {error.hint}")

    def _go_back(self, *, allowed: bool = False, again: int = 5) -> None:
        """Revert; Hive may commit between two looks, by Iceberg's own runtime."""
        try:
            migrate.revert(
                self.ledger.catalog, self.table.name, dry_run=False, allow_data_loss=allowed
            )
        except IcecombError as error:
            if not again:
                raise
            self.told.append(f"{error.message} {error.hint}")
            allowed = allowed or isinstance(error, RevertBlockedError)
            self._go_back(allowed=allowed, again=again - 1)

    def _unsaid(self) -> str:
        catalog, name = self.ledger.catalog, self.table.name
        self._ask(lambda: migrate.verify(catalog, name))
        self._ask(lambda: migrate.status(catalog, name))
        entry = catalog.client.table(*name.split("."))
        self._ask(lambda: [str(one) for one in examine_migration(catalog, entry)])
        said = " ".join(self.told)
        if not catalog.table_exists(name):
            return ""  # it is Hive's still, and Hive reads it at the end of the round
        try:
            found = set(catalog.load_table(name).scan().to_arrow().column("id").to_pylist())
        except IcecombError as error:
            missing = str(error.context.get("path", "")).rpartition("/")[2]
            return "" if missing and missing in said else f"{error.message}"
        if self.said != "ok" or self._is_commit() or (self._repairs() and self.phase != "apply"):
            return ""
        strange = found.symmetric_difference(self.after)
        unsaid = [one for one in strange if not self._is_named(one, said)]
        return f"the table has {sorted(found)} without a word of {unsaid}" if unsaid else ""

    def _repairs(self) -> bool:
        return self.text.startswith("MSCK")

    def _is_commit(self) -> bool:
        """Whether Hive wrote by Iceberg's own runtime, which overwrites nothing, and nothing of the Hive table."""
        table = self.ledger.catalog.load_table(self.table.name)
        return len(table.metadata.snapshots) > 1

    def _is_named(self, number: int, said: str) -> bool:
        """Whether the file of a row, or its folder, is named; files that are gone have no other."""
        places = {
            f"/k={k}"
            for rows in (self.table.rows, self.after)
            for one, k in rows.items()
            if one == number and k
        }
        for file in [*self.table.folder.rglob("*"), *self.ledger.aside.rglob("*.parquet")]:
            if (
                file.is_file()
                and not file.name.startswith((".", "_"))
                and "metadata" not in file.parts
            ):
                try:
                    held = pq.ParquetFile(file).read(["id"]).column("id").to_pylist()
                except (OSError, pa.ArrowException):
                    continue
                if number in held:
                    places.add(file.name)
        return any(place in said for place in places) or f"made-{number}.parquet" in said


@pytest.fixture
def ledger(hive_server: HiveMetastore, tmp_path: Path) -> Iterator[Ledger]:
    found = Ledger(hive_server, tmp_path)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.timeout(7200)
def test_what_hive_was_told_is_done_is_found_or_named(
    ledger: Ledger, request: pytest.FixtureRequest, first_seed: int, capsys: Any
) -> None:
    rounds = int(request.config.getoption("--hive-rounds"))
    chance = random.Random(first_seed)
    problems, said = [], {"ok": 0, "refused": 0}
    for number in range(rounds):
        one = Round(ledger, ledger.tables[number % TABLES], chance)
        problem = one.play()
        said["ok" if one.said == "ok" else "refused"] += 1
        if problem:
            problems.append(problem)
            with capsys.disabled():
                print(problem)
    with capsys.disabled():
        print(f"\n{rounds} statements of Hive beside migrations: {said}")
    assert problems == []
    assert said["ok"] > rounds / 4
