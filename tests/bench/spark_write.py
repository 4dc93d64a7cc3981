"""Writing in Spark 4.1: icecomb beside plain Parquet, and beside Iceberg's runtime 1.12.

    python -m tests.bench.spark_write --work build/bench/spark_write

Three Sparks run at once, one for each peer, and take turns statement by statement. Plain Parquet is
compressed as the tables are. After each statement the peers' tables must have the same rows.
`commit_s` is what a statement takes after its last data file was written.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from tests.bench.measure import Figures, expect, in_turn, parser, print_runs
from tests.bench.rows import COLUMNS, arrow_rows
from tests.bench.spark_read import Contestant, Sparks

_PEERS: Final = ("native", "icecomb", "iceberg")
_AGAINST: Final = (("icecomb", "native"), ("icecomb", "iceberg"))
_BLOCK: Final = 1_000_000
_PARTITIONS: Final = 16
_TYPES: Final = {"timestamptz": "timestamp"}
_FIELDS: Final = ", ".join(f"{name} {_TYPES.get(kind, kind)}" for _, name, kind in COLUMNS)
_NAMES: Final = ", ".join(name for _, name, _ in COLUMNS)
_SUMS: Final = "SELECT count(*), sum(id), sum(l % 1000003), sum(i) FROM {}"
_HUNDREDTH: Final = "pmod(hash(id), 100) = {}"
"""One row of a hundred, another one each turn, in all files."""


class Writers:
    """The Sparks of all peers, and the rows that they write.

    Attributes:
        rows: How many.
        files: How many are committed at once.
        version: The format version of the tables that are changed.
    """

    def __init__(self, work: Path, given: argparse.Namespace, stack: ExitStack) -> None:
        self.rows: int = given.rows
        self.files: int = given.files
        self.version: int = given.format_version
        self._work = work
        self._sparks = Sparks(work, _PEERS, stack)
        self.sql("icecomb", "CREATE NAMESPACE IF NOT EXISTS lake.db")
        self.sql("native", "SET spark.sql.parquet.compression.codec=zstd")
        self.source = f"parquet.`{_source(work, self.rows)}`"

    def sql(self, peer: str, text: str) -> list[list[Any]]:
        """The rows of a statement."""
        return self._sparks.sql(peer, text)

    def created(self, peer: str, name: str, more: str = "", partition: str = "") -> str:
        """A new table of a peer, by the name that its Spark knows."""
        fields = f"{_FIELDS}, p int" if partition == "p" else _FIELDS
        clause = f"PARTITIONED BY ({partition})" if partition else ""
        if peer == "native":
            place = self._work / "native" / name
            shutil.rmtree(place, ignore_errors=True)
            self.sql(peer, f"DROP TABLE IF EXISTS {name}")
            self.sql(
                peer,
                f"CREATE TABLE {name} ({fields}) USING parquet {clause} LOCATION '{place}'",
            )
            return name
        table = f"lake.db.{name}_{peer}"
        self.sql(peer, f"DROP TABLE IF EXISTS {table} PURGE")
        self.sql(peer, f"CREATE TABLE {table} ({fields}) USING iceberg {clause} {more}")
        return table

    def timed(self, peer: str, table: str, text: str) -> Figures:
        """What a statement took, and its commit."""
        _, figures = self._sparks.timed(Contestant(peer, text))
        ended = time.time()
        if peer != "native":
            data = self._work / "warehouse" / "db" / table.rpartition(".")[2] / "data"
            figures["commit_s"] = ended - max(f.stat().st_mtime for f in data.rglob("*.parquet"))
        return figures


def _source(work: Path, rows: int) -> Path:
    """The rows, in one file of Parquet, made once."""
    path = work / f"rows-{rows}.parquet"
    if not path.exists():
        hidden = path.with_suffix(".part")
        with pq.ParquetWriter(hidden, arrow_rows(1).schema) as writer:
            for start in range(0, rows, _BLOCK):
                writer.write_table(arrow_rows(min(_BLOCK, rows - start), start))
        hidden.rename(path)
    return path


def _compare(
    case: str,
    peers: Sequence[str],
    turns: int,
    run: Callable[[str, int], tuple[Figures, list[list[Any]]]],
) -> None:
    """Run a statement by all in turn, the first time unmeasured, and print the line.

    Args:
        case: What is measured.
        peers: Who runs it.
        turns: How often it is measured.
        run: Runs it, given who and the number of the turn; its figures, and what says whether it
            was right.
    """
    found: dict[int, list[list[Any]]] = {}

    def checked(peer: str, turn: int) -> Figures:
        figures, rows = run(peer, turn)
        expect(rows, found.setdefault(turn, rows), f"{case}, {peer}")
        return figures

    print_runs("spark_write", in_turn(peers, checked, turns, warm=1), _AGAINST, case=case)


def measure_append(writers: Writers, turns: int) -> None:
    """All rows into a new table."""

    def run(peer: str, _: int) -> tuple[Figures, list[list[Any]]]:
        table = writers.created(peer, "appended")
        text = f"INSERT INTO {table} SELECT {_NAMES} FROM {writers.source}"
        return writers.timed(peer, table, text), writers.sql(peer, _SUMS.format(table))

    _compare("append", _PEERS, turns, run)


def measure_partitioned(writers: Writers, turns: int) -> None:
    """All rows into a new table of 16 partitions, each written by one task."""

    def run(peer: str, _: int) -> tuple[Figures, list[list[Any]]]:
        table = writers.created(peer, "partitioned", partition="p")
        shared = "DISTRIBUTE BY p" if peer == "native" else ""
        text = (
            f"INSERT INTO {table} SELECT * FROM (SELECT {_NAMES}, "
            f"CAST(pmod(hash(id), {_PARTITIONS}) AS int) AS p FROM {writers.source}) {shared}"
        )
        return writers.timed(peer, table, text), writers.sql(peer, _SUMS.format(table))

    _compare("append to 16 partitions", _PEERS, turns, run)


def _changed(writers: Writers, case: str, mode: str, turns: int, statement: str) -> None:
    """Statements that change one row of a hundred of a table, one after the other."""
    name = f"{case}_{mode}".replace("-", "_").replace(" ", "_")
    kind = case.lower()
    tables = {}
    for peer in _PEERS[1:]:
        properties = f"'format-version'='{writers.version}', 'write.{kind}.mode'='{mode}'"
        tables[peer] = writers.created(peer, name, f"TBLPROPERTIES ({properties})")
        writers.sql(peer, f"INSERT INTO {tables[peer]} SELECT {_NAMES} FROM {writers.source}")

    def run(peer: str, turn: int) -> tuple[Figures, list[list[Any]]]:
        table = tables[peer]
        text = statement.format(
            table=table,
            source=writers.source,
            these=_HUNDREDTH.format(turn),
            rows=writers.rows,
        )
        return writers.timed(peer, table, text), writers.sql(peer, _SUMS.format(table))

    _compare(f"{case}, {mode}", _PEERS[1:], turns, run)


_MERGE: Final = (
    "MERGE INTO {table} t USING ("
    "SELECT IF(id % 10 = 0, id + {rows}, id) AS id, ts, i, l + 1 AS l, d, f, s, u "
    "FROM {source} WHERE {these}) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def measure_merge(writers: Writers, turns: int) -> None:
    """Upserts of one row of a hundred, of which a tenth is new."""
    for mode in ("copy-on-write", "merge-on-read"):
        _changed(writers, "MERGE", mode, turns, _MERGE)


def measure_changes(writers: Writers, turns: int) -> None:
    """UPDATE and DELETE of one row of a hundred."""
    mode = "merge-on-read"
    _changed(writers, "UPDATE", mode, turns, "UPDATE {table} SET l = l + 1 WHERE {these}")
    _changed(writers, "DELETE", mode, turns, "DELETE FROM {table} WHERE {these}")


def measure_commit(writers: Writers, turns: int) -> None:
    """An append of many files of one row: look at `commit_s`.

    One after the other: both engines keep all files of a task open by default, and run out of heap.
    The turn that does not count writes fewer.
    """

    def run(peer: str, turn: int) -> tuple[Figures, list[list[Any]]]:
        files = writers.files if turn else writers.files // 20
        more = "TBLPROPERTIES ('write.spark.fanout.enabled'='false')"
        table = writers.created(peer, "files", more, partition="id")
        text = f"INSERT INTO {table} SELECT {_NAMES} FROM {writers.source} WHERE id < {files}"
        return writers.timed(peer, table, text), writers.sql(peer, _SUMS.format(table))

    _compare(f"append of {writers.files} files", _PEERS[1:], turns, run)


_CASES: Final[Mapping[str, Callable[[Writers, int], None]]] = {
    "append": measure_append,
    "partitioned": measure_partitioned,
    "merge": measure_merge,
    "changes": measure_changes,
    "commit": measure_commit,
}


def main() -> None:
    """Print the lines."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for the tables")
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--files", type=int, default=10_000, help="of the case `commit`")
    arguments.add_argument("--format-version", type=int, default=2, help="of `merge`, `changes`")
    arguments.add_argument("--cases", default=",".join(_CASES))
    given = arguments.parse_args()
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        writers = Writers(given.work, given, stack)
        for case in given.cases.split(","):
            _CASES[case](writers, given.repeat)


if __name__ == "__main__":
    main()
