"""Random calls of a table, each with what it makes of rows in memory, and the search for an order.

Calls that were told done must have an order in which each, made to rows in memory, answers what it
answered; a call that ended before another began comes first. Calls that were refused do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = tuple[int, str, int]
"""A key, a text by which tables are partitioned, and a value."""
State: TypeAlias = dict[str, tuple[Row, ...]]
"""The rows of each branch, sorted."""

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("u", pa.int64())])
BRANCHES = ("main", "side")
MATCHED, ADDED, GONE = "update", "insert", "delete"


class NotThenError(Exception):
    """The call is refused on such rows."""


@dataclass(frozen=True)
class Call:
    """A call.

    Attributes:
        text: What it is, for people.
        do: Does it to a table or a transaction, and returns its answer.
        of: The rows after it, and the answer, from the rows before it.
    """

    text: str
    do: Callable[[Any], object]
    of: Callable[[State], tuple[State, object]]


@dataclass(frozen=True)
class Done:
    """A call that was told done, between two ticks of one clock."""

    call: Call
    answer: object
    begun: int
    ended: int


def frame(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def rows_of(table: Any, branch: str = "main") -> tuple[Row, ...]:
    scan = table.scan(selected_fields=("k", "s", "u"), ref=branch)
    return tuple(sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist()))


def has_order(before: State, done: Iterable[Done]) -> bool:
    """Whether there is an order of all calls, no call before one that had ended when it began."""
    dead: set[tuple[frozenset[int], tuple[Any, ...]]] = set()
    calls = list(done)

    def search(left: frozenset[int], state: State) -> bool:
        if not left:
            return True
        key = (left, tuple(state.items()))
        if key in dead:
            return False
        first_end = min(calls[i].ended for i in left)
        for i in sorted(left, key=lambda i: calls[i].ended):
            if calls[i].begun > first_end:
                continue
            try:
                after, answer = calls[i].call.of(state)
            except NotThenError:
                continue
            if answer == calls[i].answer and search(left - {i}, after):
                return True
        dead.add(key)
        return False

    return search(frozenset(range(len(calls))), before)


class RandomCalls:
    """Makes calls.

    Args:
        random: Decides everything.
        keys: The number of different keys.
    """

    def __init__(self, random: Random, keys: int = 4) -> None:
        self.random = random
        self._keys = keys
        self._values = count()

    def any(self) -> Call:
        """A call of any kind."""
        kinds = [self.append, self.delete, self.overwrite, self.dynamic, self.upsert, self.merge]
        weights = [3, 4, 2, 1, 4, 3]
        if self.random.random() < 0.25:
            return self.upkeep()
        (kind,) = self.random.choices(kinds, weights)
        return kind()

    def rows(self, most: int, *, alone: bool = False, least: int = 0) -> list[Row]:
        number = self.random.randint(least, most)
        keys = range(self._keys)
        chosen = self.random.sample(keys, number) if alone else self.random.choices(keys, k=number)
        # few values, so that rows are often those that are there
        return [(key, self.random.choice("ab"), self.random.randrange(2)) for key in chosen]

    def append(self) -> Call:
        new = [(k, s, 100 + next(self._values)) for k, s, _ in self.rows(2, least=1)]
        return self._call(
            f"append {new}",
            lambda t, branch: t.append(frame(new), branch=branch),
            lambda rows: ([*rows, *new], None),
        )

    def delete(self) -> Call:
        text, says = self._predicate()
        return self._call(
            f"delete {text}",
            lambda t, branch: t.delete(text, branch=branch),
            lambda rows: ([row for row in rows if not says(row)], None),
        )

    def overwrite(self) -> Call:
        (text, says), new = self._predicate(), self.rows(1)
        return self._call(
            f"overwrite {text} {new}",
            lambda t, branch: t.overwrite(frame(new), text, branch=branch),
            lambda rows: ([*(row for row in rows if not says(row)), *new], None),
        )

    def dynamic(self) -> Call:
        new = self.rows(1)
        gone = {row[1] for row in new}
        return self._call(
            f"dynamic {new}",
            lambda t, branch: t.dynamic_partition_overwrite(frame(new), branch=branch),
            lambda rows: ([*(row for row in rows if row[1] not in gone), *new], None),
        )

    def upsert(self) -> Call:
        new = self.rows(2, alone=True, least=1)
        update, insert = self.random.choice([(True, True), (True, False), (False, True)])
        by_key = {row[0]: row for row in new}

        def do(table: Any, branch: str) -> object:
            found = table.upsert(
                frame(new),
                ["k"],
                when_matched_update_all=update,
                when_not_matched_insert_all=insert,
                branch=branch,
            )
            return found.rows_updated, found.rows_inserted

        def of(rows: tuple[Row, ...]) -> tuple[list[Row], object]:
            keys = [row[0] for row in rows]
            if update and any(keys.count(key) > 1 for key in by_key):
                raise NotThenError
            changed = sum(row[0] in by_key and row != by_key[row[0]] for row in rows)
            kept = [by_key.get(row[0], row) if update else row for row in rows]
            added = [row for row in new if row[0] not in keys] if insert else []
            return [*kept, *added], (changed if update else 0, len(added))

        return self._call(f"upsert {update=} {insert=} {new}", do, of)

    def merge(self) -> Call:
        new = self.rows(2, alone=True, least=1)
        by_key = {row[0]: row for row in new}
        clauses = self.random.choice(
            [("delete",), ("update",), ("insert",), ("delete", "insert"), ("rest",)]
        )

        def do(table: Any, branch: str) -> object:
            merge = table.merge(frame(new), on=["k"], branch=branch)
            for clause in clauses:
                {
                    "delete": merge.when_matched_delete,
                    "update": merge.when_matched_update_all,
                    "insert": merge.when_not_matched_insert_all,
                    "rest": merge.when_not_matched_by_source_delete,
                }[clause]()
            found = merge.execute()
            return found.rows_inserted, found.rows_updated, found.rows_deleted

        def of(rows: tuple[Row, ...]) -> tuple[list[Row], object]:
            matched = sum(row[0] in by_key for row in rows)
            added = []
            kept = list(rows)
            deleted = updated = 0
            if "insert" in clauses:
                keys = {row[0] for row in rows}
                added = [row for row in new if row[0] not in keys]
            if "delete" in clauses:
                kept, deleted = [row for row in rows if row[0] not in by_key], matched
            if "update" in clauses:
                kept, updated = [by_key.get(row[0], row) for row in rows], matched
            if "rest" in clauses:
                kept = [row for row in rows if row[0] in by_key]
                deleted = len(rows) - matched
            return [*kept, *added], (len(added), updated, deleted)

        return self._call(f"merge {clauses} {new}", do, of)

    def upkeep(self) -> Call:
        """A call that leaves all rows as they are."""
        number = next(self._values)
        text, do = self.random.choice(
            [
                (
                    "compact",
                    lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
                ),
                ("rewrite manifests", lambda t: t.maintenance.rewrite_manifests()),
                ("rewrite deletes", lambda t: t.maintenance.rewrite_position_delete_files()),
                (
                    "expire",
                    lambda t: t.expire_snapshots().older_than(1 << 52).retain_last(1).commit(),
                ),
                (
                    "property",
                    lambda t: t.update_properties().set("made", f"{number % 3}").commit(),
                ),
                ("tag", lambda t: _tag(t, f"t{number}")),
                ("refresh", lambda t: t.refresh()),
            ]
        )

        def quiet(table: Any) -> None:
            do(table)

        return Call(text, quiet, lambda state: (state, None))

    def several(self) -> list[Call]:
        """The changes of a transaction."""
        kinds = (self.append, self.delete, self.delete, self.upsert, self.overwrite, self.merge)
        return [self.random.choice(kinds)() for _ in range(self.random.randint(1, 3))]

    def _call(
        self,
        text: str,
        do: Callable[[Any, str], object],
        of: Callable[[tuple[Row, ...]], tuple[list[Row], object]],
    ) -> Call:
        branch = self.random.choices(BRANCHES, [4, 1])[0]

        def on_branch(state: State) -> tuple[State, object]:
            rows, answer = of(state[branch])
            return {**state, branch: tuple(sorted(rows))}, answer

        return Call(f"{branch}: {text}", lambda t: do(t, branch), on_branch)

    def _predicate(self) -> tuple[str, Callable[[Row], bool]]:
        key, text = self.random.randrange(self._keys), self.random.choice("ab")
        return self.random.choice(
            [
                (f"k = {key}", lambda row: row[0] == key),
                (f"k = {key}", lambda row: row[0] == key),
                (f"s = '{text}'", lambda row: row[1] == text),
                (f"k <= {key} and s = '{text}'", lambda row: row[0] <= key and row[1] == text),
            ]
        )


def look() -> Call:
    """A look at the newest rows."""

    def do(table: Any) -> object:
        table.refresh()
        return rows_of(table)

    return Call("look", do, lambda state: (state, state["main"]))


def joined(calls: list[Call]) -> Call:
    """The calls of a transaction, as one; what each answers counts."""

    def of(state: State) -> tuple[State, object]:
        answers = []
        for call in calls:
            state, answer = call.of(state)
            answers.append(answer)
        return state, tuple(answers)

    return Call("; ".join(call.text for call in calls), lambda _: None, of)


def _tag(table: Any, name: str) -> None:
    """Tags a snapshot that the catalog's table has, which the object may not know."""
    newest = table.catalog.load_table(table.identifier).current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_tag(newest, name)
