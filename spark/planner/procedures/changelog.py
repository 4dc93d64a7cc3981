"""The procedure that creates a view of the changes between two snapshots.

The view is SQL over the table's versions, so that Spark reads and compares the rows. A commit
inserted and deleted the rows of the files that it added and removed; if it also has delete files,
the rows (by file and position) that only one of its two versions has, in these files and in those
that the deletes apply to. Rows that it only moved to another file are the equal ones of both, or,
if the ids of rows identify them, those of one id and one last update (spec: Row Lineage).
"""

# ruff: noqa: S608 - the SQL is built of quoted names, numbers, and texts escaped by `_literal`

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from icecomb.catalog.configuration.catalog_property import DOWNCAST_NANOSECONDS
from icecomb.catalog.table.table import Table
from icecomb.format.errors import (
    NoSuchSnapshotError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.rows.values.metadata_columns import LINEAGE, ROW_ID, metadata_column
from icecomb.format.scan.snapshot_changes import (
    SnapshotChanges,
    reached_files,
    repeated_files,
    snapshot_changes,
)
from icecomb.format.spec.promotion import can_go_on
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.changes.files import (
    RANGE_OPTIONS,
    START,
    START_TIME,
    changed_snapshots,
    older_than_lineage,
)
from icecomb.spark.planner.files import HadoopLocations
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import procedure
from icecomb.spark.schema import check_has_type, spark_type, sql_type

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=%+@, -]*")
_LINEAGE: Final = tuple(column.name for column in LINEAGE)
_ROW: Final = "_icecomb_t"
"""The name of the table in queries: a column of that name would hide its metadata columns."""
_CHANGE: Final = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


@procedure(
    "table! string, changelog_view string, options map<string,string>, "
    "compute_updates boolean, identifier_columns array<string>, net_changes boolean = false "
    "-> changelog_view string"
)
def create_changelog_view(
    call: Call,
    *,
    table: str,
    changelog_view: str | None,
    options: Mapping[str, str] | None,
    compute_updates: bool | None,
    identifier_columns: tuple[str, ...] | None,
    net_changes: bool,
) -> list[tuple[str]]:
    """Create a temporary view of the rows that were inserted and deleted between two snapshots."""
    found = call.load(table)
    updates = bool(identifier_columns) if compute_updates is None else compute_updates
    if updates and net_changes:
        raise UnsupportedError(
            "net_changes leaves out what compute_updates shows: states in between",
            hint="Give only one of them; identifier_columns ask for updates, too, unless "
            "compute_updates is false.",
        )
    name = changelog_view or quoted_name(f"{found.name()[-1]}_changes")
    parts = parse_name(name)
    if len(parts) != 1:
        raise ValidationError(
            f"{name} is not the name of a temporary view", hint="Give a name without a namespace."
        )
    by_row_id = updates and [each.lower() for each in identifier_columns or ()] == [ROW_ID.name]
    log = _Changelog(call, found, options or {}, by_row_id=by_row_id)
    if updates:
        ids = [ROW_ID.name] if by_row_id else _identifiers(found, identifier_columns)
        sql = log.with_updates(ids)
    else:
        sql = log.net_changes() if net_changes else log.changes()
    call.views[quoted_name(*parts)] = sql
    return [(name,)]


class _Commit(NamedTuple):
    """A commit, and the data files of which it may have changed rows."""

    snapshot: Snapshot
    parent: Snapshot | None
    changes: SnapshotChanges
    files: set[str]

    @property
    def versions(self) -> tuple[Snapshot, ...]:
        """The table after it and, if there was one, before."""
        return (self.snapshot,) if self.parent is None else (self.snapshot, self.parent)


class _Changelog:
    """The SQL query for the changes of a table between two snapshots."""

    def __init__(
        self, call: Call, table: Table, options: Mapping[str, str], *, by_row_id: bool
    ) -> None:
        self._table = table
        self._by_row_id = by_row_id
        self._name = quoted_name(call.catalog.name, *table.name())
        self._now = table.schema()
        for field in self._now.fields:
            check_has_type(field, downcast=DOWNCAST_NANOSECONDS.of(table.io.properties))
        self._columns = [
            (f.field_id, f.name, sql_type(spark_type(f.field_type))) for f in self._now.fields
        ]
        if unknown := sorted(options.keys() - set(RANGE_OPTIONS)):
            raise ValidationError(
                f"create_changelog_view has no option {unknown[0]}",
                hint=f"Its options: {', '.join(RANGE_OPTIONS)}.",
            )
        self._snapshots = changed_snapshots(table.metadata, options)
        if by_row_id:
            self._check_row_ids()
        self._locations = HadoopLocations(table.io)

    @property
    def columns(self) -> str:
        """The names of the table's columns, and of the rows' ids if these identify them."""
        names = [name for _, name, _ in self._columns]
        return ", ".join(map(quoted_name, [*names, ROW_ID.name] if self._by_row_id else names))

    def changes(self, *, rewritten: bool = False) -> str:
        """Return the query for the changed rows of each commit.

        Args:
            rewritten: Whether unchanged rows in rewritten files count as deleted and inserted.
        """
        empty = ", ".join(
            f"CAST(NULL AS {kind}) AS {quoted_name(n)}" for _, n, kind in self._columns
        )
        if self._by_row_id:
            empty += "".join(f", 0L AS {quoted_name(name)}" for name in _LINEAGE)
        none = "'' AS _change_type, 0 AS _change_ordinal, 0L AS _commit_snapshot_id"
        parts = [f"SELECT {empty}, {none} WHERE false"]
        commits = [self._commit(snapshot) for snapshot in self._snapshots]
        repeated = self._repeated(commits)
        for ordinal, commit in enumerate(commits):
            parts += self._of_commit(commit, ordinal, repeated, rewritten=rewritten)
        return "\nUNION ALL ".join(parts)

    def net_changes(self) -> str:
        """Return the query for the rows that only one end of the range has.

        An insertion and a deletion of equal rows cancel each other, as in Iceberg's iterator over
        them in commit order.
        """
        self._check_comparable()
        rows = f"PARTITION BY {self.columns}"
        running = f"({rows} ORDER BY _change_ordinal, _change_type ROWS UNBOUNDED PRECEDING)"
        sign = "IF(_change_type = 'INSERT', 1, -1)"
        return (
            f"SELECT {self.columns}, {', '.join(_CHANGE)} FROM ("
            "SELECT *, explode(sequence(1, abs(_icecomb_net))) FROM ("
            "SELECT *, coalesce(max(IF(_icecomb_sum = 0, _icecomb_row, NULL)) "
            f"OVER ({rows}), 0) + 1 AS _icecomb_first FROM ("
            f"SELECT *, sum({sign}) OVER {running} AS _icecomb_sum, row_number() OVER "
            f"{running.replace(' ROWS UNBOUNDED PRECEDING', '')} AS _icecomb_row, "
            f"sum({sign}) OVER ({rows}) AS _icecomb_net FROM ({self.changes(rewritten=True)}))) "
            "WHERE _icecomb_net <> 0 AND _icecomb_row = _icecomb_first)"
        )

    def with_updates(self, identifiers: Sequence[str]) -> str:
        """Return the query for changes, with a deletion and insertion of one key as an update."""
        ids = ", ".join(map(quoted_name, identifiers))
        window = f"OVER (PARTITION BY {ids}, _change_ordinal)"
        several = _literal(
            "Cannot compute updates because there are multiple rows with the same identifier "
            f"fields([{', '.join(identifiers)}]). Please make sure the rows are unique."
        )
        return (
            f"SELECT {self.columns}, CASE WHEN _icecomb_deletes = 0 OR _icecomb_inserts = 0 "
            "THEN _change_type WHEN _icecomb_deletes > 1 OR _icecomb_inserts > 1 "
            f"THEN CAST(raise_error({several}) AS STRING) "
            "WHEN _change_type = 'DELETE' THEN 'UPDATE_BEFORE' ELSE 'UPDATE_AFTER' END "
            "AS _change_type, _change_ordinal, _commit_snapshot_id FROM ("
            f"SELECT *, count_if(_change_type = 'DELETE') {window} AS _icecomb_deletes, "
            f"count_if(_change_type = 'INSERT') {window} AS _icecomb_inserts "
            f"FROM ({self.changes()}))"
        )

    def _commit(self, snapshot: Snapshot) -> _Commit:
        io, metadata = self._table.io, self._table.metadata
        parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id or -1)
        changes = snapshot_changes(io, metadata, snapshot)
        if parent is None and (changes.removed or snapshot.parent_snapshot_id is not None):
            raise NoSuchSnapshotError(
                f"What snapshot {snapshot.snapshot_id} changed is not known any more: the one "
                "before it has expired",
                hint=f"Begin later: give {START}, or {START_TIME}.",
            )
        files = {*changes.added, *changes.removed}
        if changes.deletes and parent is not None:
            for version in (snapshot, parent):
                tasks = reached_files(io, metadata, version, frozenset(changes.deletes))
                files.update(task.file_path for task in tasks)
        return _Commit(snapshot, parent, changes, files)

    def _repeated(self, commits: Sequence[_Commit]) -> dict[int, set[str]]:
        """Return the changed files that versions of the table have more than once."""
        versions = {v.snapshot_id: v for one in commits for v in one.versions}
        files = {file for one in commits for file in one.files}
        return repeated_files(self._table.io, self._table.metadata, versions.values(), files)

    def _of_commit(
        self,
        commit: _Commit,
        ordinal: int,
        repeated: Mapping[int, set[str]],
        *,
        rewritten: bool,
    ) -> list[str]:
        snapshot = commit.snapshot
        inserted, deleted = self._rows(commit, repeated)
        tail = f"{ordinal} AS _change_ordinal, {snapshot.snapshot_id}L AS _commit_snapshot_id"
        if inserted and deleted and self._by_row_id:
            names = map(quoted_name, _LINEAGE)
            same = " AND ".join(f"a.{name} = b.{name}" for name in names)
            inserted, deleted = (
                f"SELECT a.* FROM {one} AS a LEFT ANTI JOIN {other} AS b ON {same}"
                for one, other in ((inserted, deleted), (deleted, inserted))
            )
        elif inserted and deleted and not rewritten:
            self._check_comparable()
            inserted, deleted = (
                f"{inserted} EXCEPT ALL {deleted}",
                f"{deleted} EXCEPT ALL {inserted}",
            )
        return [
            f"SELECT *, '{kind}' AS _change_type, {tail} FROM ({rows})"
            for kind, rows in (("DELETE", deleted), ("INSERT", inserted))
            if rows
        ]

    def _rows(self, commit: _Commit, repeated_in: Mapping[int, set[str]]) -> tuple[str, str]:
        """Return the queries for the rows that a commit added and removed; empty if none."""
        snapshot, parent, changes = commit.snapshot, commit.parent, commit.changes
        # rows of several entries of one file are not told apart by file and position: all rows of
        # both versions are compared
        repeated = {
            file
            for version in commit.versions
            for file in repeated_in[version.snapshot_id] & commit.files
        }
        if not changes.deletes or parent is None:
            inserted, deleted = {*changes.added, *repeated}, {*changes.removed, *repeated}
            return (
                self._select(snapshot, self._in_files(inserted)) if inserted else "",
                self._select(parent, self._in_files(deleted)) if deleted and parent else "",
            )
        parts: list[tuple[str, str]] = []
        if once := commit.files - repeated:
            where = self._in_files(once)
            parts.append(
                (
                    f"{self._not_in(parent, where)} {where}",
                    f"{self._not_in(snapshot, where)} {where}",
                )
            )
        if repeated:
            parts.append((self._in_files(repeated),) * 2)
        # its delete files may have applied to nothing
        return (
            _joined(self._select(snapshot, part) for part, _ in parts),
            _joined(self._select(parent, part) for _, part in parts),
        )

    def _select(self, snapshot: Snapshot, where: str) -> str:
        """Return the query for rows of a version, with the table's current columns."""
        schema = self._table.scan(snapshot_id=snapshot.snapshot_id).schema()
        shown = ", ".join(
            f"CAST({_column(schema, self._now, number, kind)} AS {kind}) AS {quoted_name(name)}"
            for number, name, kind in self._columns
        )
        if self._by_row_id:
            shown += "".join(f", {_ROW}.{quoted_name(name)}" for name in _LINEAGE)
        return f"(SELECT {shown} FROM {self._version(snapshot)} AS {_ROW} {where})"

    def _in_files(self, paths: Collection[str]) -> str:
        # `_file` has the locations given to Spark
        told = map(self._locations.of, sorted(paths))
        return f"WHERE {_ROW}._file IN ({', '.join(map(_literal, told))})"

    def _not_in(self, other: Snapshot, where: str) -> str:
        rows = f"SELECT _file AS f, _pos AS p FROM {self._version(other)} AS {_ROW} {where}"
        return f"LEFT ANTI JOIN ({rows}) AS o ON {_ROW}._file = o.f AND {_ROW}._pos = o.p"

    def _version(self, snapshot: Snapshot) -> str:
        return f"{self._name} VERSION AS OF {snapshot.snapshot_id}"

    def _check_row_ids(self) -> None:
        """Refuse ranges in which not all rows have ids."""
        metadata = self._table.metadata
        metadata_column(ROW_ID.name, metadata)
        for snapshot in self._snapshots:
            older = older_than_lineage(metadata, snapshot)
            if older is not None:
                raise UnsupportedError(
                    f"Rows of snapshot {older.snapshot_id} of table "
                    f"{'.'.join(self._table.name())} have no ids: it is older than the "
                    "table's upgrade to format version 3",
                    hint=f"Begin later: give {START} or {START_TIME}, or other identifier_columns.",
                )

    def _check_comparable(self) -> None:
        """Refuse columns that Spark cannot compare."""
        for _, name, kind in self._columns:
            if "MAP<" in kind:
                raise UnsupportedError(
                    f"Rows with a map cannot be compared by Spark: column {name}, {kind}",
                    hint="Choose snapshots that only append, or compare versions of the table.",
                )


def _joined(queries: Iterable[str]) -> str:
    """Return the query for the rows of all these queries; empty if there are none."""
    parts = list(queries)
    return parts[0] if len(parts) == 1 else f"({' UNION ALL '.join(parts)})" if parts else ""


def _column(schema: Schema, now: Schema, field_id: int, kind: str) -> str:
    """Return the column of a version, or NULL if it did not exist yet."""
    old = next((field for field in schema.fields if field.field_id == field_id), None)
    if old is None:
        return "NULL"
    before, field = sql_type(spark_type(old.field_type)), now.find_field(field_id)
    if ("<" in kind and before != kind) or not can_go_on(old.field_type, field.field_type):
        raise SchemaError(
            f"Column {field.name} was {before} and is {kind}: "
            "its rows cannot be shown as one column",
            hint=f"Begin after the change of the schema: give {START}.",
        )
    return f"{_ROW}.{quoted_name(old.name)}"


def _literal(text: str) -> str:
    """Return a string in SQL, safe whatever Spark's settings for escapes and variables are."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _identifiers(table: Table, given: Sequence[str] | None) -> list[str]:
    """Return the columns that identify rows; there must be some."""
    schema = table.schema()
    names = given or sorted(schema.identifier_field_names())
    if not names:
        raise ValidationError(
            f"Updates of table {'.'.join(table.name())} need identifier columns",
            hint="Give identifier_columns (in format version 3 also array('_row_id')), or "
            "ALTER TABLE ... SET IDENTIFIER FIELDS.",
        )
    return [schema.find_field(name, case_sensitive=False).name for name in names]
