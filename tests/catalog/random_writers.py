"""Random changes of a table, each with what it makes of a list of rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from icecomb.format.operation.overwrite import DeleteFiles, OverwriteFiles, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.types import StringType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

Row = tuple[int, str, int]
"""A key, a text, and a number that no other row has."""

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("u", pa.int64())])
KEYS = 8
LATER_MS = 1 << 52


class NotThenError(Exception):
    """The change is refused on such rows."""


@dataclass(frozen=True)
class Change:
    """A change.

    Attributes:
        text: What it is, for people.
        do: Does it to a table or a transaction.
        of: The rows after it.
    """

    text: str
    do: Callable[[Any], object]
    of: Callable[[list[Row]], list[Row]]


def frame(rows: list[Row]) -> pa.Table:
    arrays = [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(SCHEMA)]
    return pa.table(arrays, SCHEMA)


class RandomChanges:
    """Makes changes.

    Args:
        random: Decides everything.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self._made = 0

    def any(self, known: list[Row], *names: str) -> Change:
        """A change of one of these kinds; of any kind by default.

        Args:
            known: The rows that its writer sees.
            names: The methods that make it.
        """
        kinds = names or (
            *("append", "delete", "overwrite", "upsert", "merge", "delete_by_value"),
            *("whole_files", "compaction", "manifests", "column", "spec", "several", "expiration"),
            *("fewer_deletes", "conversion"),
        )
        made: Change = getattr(self, self.random.choice(kinds))(known)
        return made

    def rows(self, count: int, *, alone: bool = False) -> list[Row]:
        """New rows; with ``alone`` each has its own key."""
        keys = range(KEYS)
        chosen = self.random.sample(keys, count) if alone else self.random.choices(keys, k=count)
        return [(key, self.random.choice("ab"), self._number()) for key in chosen]

    def append(self, _: list[Row]) -> Change:
        new = self.rows(self.random.randint(1, 4))
        return Change(f"append {new}", lambda t: t.append(frame(new)), lambda rows: rows + new)

    def delete(self, _: list[Row]) -> Change:
        text, says = self._predicate()
        return Change(f"delete {text}", lambda t: t.delete(text), _without(says))

    def overwrite(self, _: list[Row]) -> Change:
        (text, says), new = self._predicate(), self.rows(2)
        return Change(
            f"overwrite {text} {new}",
            lambda t: t.overwrite(frame(new), text),
            lambda rows: _without(says)(rows) + new,
        )

    def upsert(self, known: list[Row]) -> Change:
        there = {row[0]: row for row in known}
        new = [
            there[row[0]] if row[0] in there and self.random.random() < 0.4 else row
            for row in self.rows(self.random.randint(1, 3), alone=True)
        ]
        given = {row[0] for row in new}

        def of(rows: list[Row]) -> list[Row]:
            keys = [row[0] for row in rows]
            if any(keys.count(key) > 1 for key in given):
                raise NotThenError
            return [row for row in rows if row[0] not in given] + new

        return Change(f"upsert {new}", lambda t: t.upsert(frame(new), ["k"]), of)

    def merge(self, _: list[Row]) -> Change:
        new = self.rows(self.random.randint(1, 3), alone=True)
        by_key = {row[0]: row for row in new}
        by_source = self.random.random() < 0.5

        def do(table: Any) -> None:
            merge = table.merge(frame(new), on=["k"])
            if by_source:
                merge.when_not_matched_by_source_delete("t.s = 'b'")
            else:
                merge.when_matched_delete("t.s = 'a'")
            merge.when_not_matched_insert_all().execute()

        def of(rows: list[Row]) -> list[Row]:
            gone = "b" if by_source else "a"
            kept = [r for r in rows if r[1] != gone or (r[0] in by_key) is by_source]
            keys = {row[0] for row in rows}
            return kept + [row for row in new if row[0] not in keys]

        return Change(f"merge {by_source=} {new}", do, of)

    def delete_by_value(self, _: list[Row]) -> Change:
        names = self.random.choice((["k"], ["s"], ["k", "s"]))
        values = {"k": self.random.randrange(KEYS), "s": self.random.choice("ab")}

        def do(table: Any) -> None:
            # the first spec has no fields: its deletes are about all partitions
            deletes = EqualityDeleteWriter(
                table.io, table.metadata, uuid.uuid4().hex, names, spec_id=0
            )
            deletes.write(pa.record_batch({name: [values[name]] for name in names}))
            change = RowDelta(table.io)
            for file in deletes.close():
                change.add_deletes(file)
            table.commit(change)

        return Change(
            f"delete by value {[values[name] for name in names]}",
            do,
            _without(lambda r: all(r[SCHEMA.get_field_index(n)] == values[n] for n in names)),
        )

    def whole_files(self, _: list[Row]) -> Change:
        """Where every row of a file matches, or none."""
        (text, says), new = self._predicate(), self.rows(1)
        adds = self.random.random() < 0.5

        def do(table: Any) -> None:
            if not adds:
                table.commit(DeleteFiles(table.io).delete_by_predicate(text))
                return
            change = OverwriteFiles(table.io).overwrite_by_row_filter(text)
            change.validate_from_snapshot(table.metadata.current_snapshot_id)
            for file in write_data(table.io, table.metadata, frame(new)):
                change.append_data_file(file)
            table.commit(change.validate_no_conflicting_data().validate_no_conflicting_deletes())

        return Change(
            f"whole files {text} {new if adds else ''}",
            do,
            lambda rows: _without(says)(rows) + (new if adds else []),
        )

    def compaction(self, _: list[Row]) -> Change:
        pinned = self.random.random() < 0.5

        def do(table: Any) -> None:
            snapshot = table.current_snapshot()
            files = [task.file for task in table.scan().plan_files()]
            if not files:
                return
            added = write_data(table.io, table.metadata, table.scan().to_arrow())
            change = RewriteFiles(table.io).validate_from_snapshot(snapshot.snapshot_id)
            number = snapshot.sequence_number if pinned else None
            table.commit(change.rewrite_files(files, added, sequence_number=number))

        return Change(f"compaction {pinned=}", do, list)

    def fewer_deletes(self, _: list[Row]) -> Change:
        def do(table: Any) -> None:
            table.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"})

        return Change("rewrite position deletes", do, list)

    def conversion(self, _: list[Row]) -> Change:
        def do(table: Any) -> None:
            table.maintenance.convert_equality_deletes()

        return Change("convert equality deletes", do, list)

    def manifests(self, _: list[Row]) -> Change:
        return Change("rewrite manifests", lambda t: t.rewrite_manifests(), list)

    def column(self, _: list[Row]) -> Change:
        name = f"c{self._number()}"

        def do(table: Any) -> None:
            with table.update_schema() as update:
                update.add_column(name, StringType())

        return Change(f"column {name}", do, list)

    def spec(self, _: list[Row]) -> Change:
        column, transform = self.random.choice((("s", "identity"), ("k", "truncate[4]")))
        name = f"p{self._number()}"

        def do(table: Any) -> None:
            fields = table.metadata.spec().fields
            with table.update_spec() as update:
                if fields:
                    update.remove_field(fields[0].name)
                else:
                    update.add_field(column, transform, name)

        return Change(f"spec {transform} of {column}", do, list)

    def several(self, known: list[Row]) -> Change:
        """A transaction."""
        changes = []
        for _ in range(self.random.randint(2, 3)):
            kinds = "append", "delete", "upsert", "overwrite", "merge", "column", "manifests"
            changes.append(self.any(known, *kinds))
            try:
                known = changes[-1].of(known)
            except NotThenError:
                break

        def do(table: Any) -> None:
            with table.transaction() as transaction:
                for change in changes:
                    change.do(transaction)

        def of(rows: list[Row]) -> list[Row]:
            for change in changes:
                rows = change.of(rows)
            return rows

        return Change("; ".join(change.text for change in changes), do, of)

    def upgrade(self, _: list[Row]) -> Change:
        """To format version 3, unless it has that already."""

        def do(table: Any) -> None:
            with table.update_properties() as update:
                update.set("format-version", "3")

        return Change("upgrade", do, list)

    def expiration(self, _: list[Row]) -> Change:
        return Change(
            "expire",
            lambda t: t.expire_snapshots().older_than(LATER_MS).retain_last(1).commit(),
            list,
        )

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _predicate(self) -> tuple[str, Callable[[Row], bool]]:
        key, text = self.random.randrange(KEYS), self.random.choice("ab")
        return self.random.choice(
            (
                (f"k = {key}", lambda row: row[0] == key),
                (f"k < {key}", lambda row: row[0] < key),
                (f"s = '{text}'", lambda row: row[1] == text),
                (f"k >= {key} and s = '{text}'", lambda row: row[0] >= key and row[1] == text),
            )
        )


def _without(says: Callable[[Row], bool]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if not says(row)]
