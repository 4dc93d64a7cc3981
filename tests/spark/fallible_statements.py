"""Statements that write, with the rows they leave, and what must be true whatever failed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.catalog.needed_files import needed_files, path

Rows = Counter
"""How often each row is there, a row being `id` and `x`."""


@dataclass(frozen=True)
class Statement:
    """One that changes rows of the table that `Tables.make` makes.

    Attributes:
        text: Of the table, of a number from 0 to 29 that makes it another one, and of a function
            that gives back the numbers it is given.
        effect: What it makes of the table's rows.
        mode: As in ``write.<command>.mode``; None where there is no choice.
    """

    command: str
    text: str
    effect: Callable[[Rows, int], Rows]
    mode: str | None = None

    def __str__(self) -> str:
        return self.command if self.mode is None else f"{self.command}, {self.mode}"

    def of(self, table: str, number: int, function: str = "") -> str:
        return self.text.format(t=table, k=number, f=function)


def _matched(rows: Rows, number: int) -> Rows:
    return Counter({row: n for row, n in rows.items() if row[0] in {number, number + 30}})


def _raised(rows: Rows, number: int) -> Rows:
    found = _matched(rows, number)
    return rows - found + Counter({(i, x + 1): n for (i, x), n in found.items()})


_TEXTS = {
    "INSERT": "INSERT INTO {t} SELECT {f}(id), 0 FROM range({k} + 100, {k} + 300, 100, 2)",
    "DELETE": "DELETE FROM {t} WHERE id IN ({k}, {k} + 30) AND {f}(x) = x",
    "UPDATE": "UPDATE {t} SET x = {f}(x) + 1 WHERE id IN ({k}, {k} + 30)",
    "MERGE": "MERGE INTO {t} t USING (SELECT {f}(id) AS id FROM VALUES ({k}), ({k} + 30), ({k} + 200) AS v(id)) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 0)",
}
INSERT = Statement(
    "INSERT", _TEXTS["INSERT"], lambda rows, k: rows + Counter([(k + 100, 0), (k + 200, 0)])
)
_CHANGES = {
    "DELETE": lambda rows, k: rows - _matched(rows, k),
    "UPDATE": _raised,
    "MERGE": lambda rows, k: _raised(rows, k) + Counter([(k + 200, 0)]),
}
STATEMENTS = [
    INSERT,
    *(
        Statement(command, _TEXTS[command], effect, mode)
        for mode in ("copy-on-write", "merge-on-read")
        for command, effect in _CHANGES.items()
    ),
]
_PROPERTIES = {
    "commit.status-check.min-wait-ms": "5",
    "commit.status-check.num-retries": "2",
    "commit.retry.min-wait-ms": "5",
}


def make(spark, catalog, name: str, mode: str | None = None, within: str = "lake"):
    """A table of sixty rows in two files.

    Args:
        spark: Makes it as ``<within>.<name>``.
        catalog: Loads it.
        name: Of the table, with its namespace.
        mode: Of statements that change rows.
        within: The catalog's name in Spark.
    """
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge") if mode}
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in (_PROPERTIES | modes).items())
    spark.sql(f"CREATE TABLE {within}.{name} (id BIGINT, x BIGINT) TBLPROPERTIES ({properties})")
    for first in (0, 30):
        spark.sql(
            f"INSERT INTO {within}.{name} SELECT id, 0 FROM range({first}, {first + 30}, 1, 1)"
        )
    return catalog.load_table(name)


def rows(table) -> Rows:
    found = table.refresh().scan().to_arrow()
    return Counter(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True))


def rows_of_spark(spark, table) -> Rows:
    return Counter(
        tuple(row) for row in spark.table(f"lake.{'.'.join(table.identifier)}").collect()
    )


def files(table) -> set[Path]:
    """All files in the table's folder."""
    return {p for p in path(table.location()).rglob("*") if p.is_file() and p.suffix != ".crc"}


def surplus(table) -> set[Path]:
    """The files in its folder that nothing refers to; all that it refers to is there."""
    needed = {path(each) for each in needed_files(table.refresh())}
    there = files(table)
    assert needed <= there
    return there - needed


def judge(table, statement: Statement, number: int, before: Rows, error: str | None) -> bool:
    """Whether a statement happened, which fits what it said.

    Args:
        table: As it is now.
        statement: Which was run once.
        number: Of it.
        before: The rows there were.
        error: What it failed with; None if it did not.
    """
    now, after = rows(table), statement.effect(before, number)
    assert before != after
    if error is None:
        assert now == after, f"{statement} is not there once"
    elif is_unknown(error):
        assert now in (before, after)
    else:
        assert now == before, f"{statement} is there, and failed: {error}"
    return now == after


def is_unknown(error: str) -> bool:
    """Whether it says that the statement may have happened."""
    return "it is unknown whether the commit happened" in error or "planner was lost" in error
