"""Table states pinned by queries: `reference` objects and the metadata behind them.

A query reads one metadata file from its first request to its last, whatever is committed
meanwhile. Metadata files never change, so the metadata behind a reference is cached by its location
and read again after a restart. Only if a table is dropped and re-created in the same folder are
names of metadata files reused: a reference therefore has the table's uuid.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from icecomb.format.errors import NoSuchTableError, UnsupportedError
from icecomb.format.inspect.inspection import TIME_TRAVELLING, Inspect
from icecomb.format.lru import Lru
from icecomb.format.rows.values.metadata_columns import with_lineage
from icecomb.format.scan.table_scan import TableScan
from icecomb.spark.planner.protocol.tables import TableName, TableReference
from icecomb.spark.planner.table.catalogs import Catalogs, one_level
from icecomb.spark.planner.table.change_columns import CHANGELOGS, changelog_schema
from icecomb.spark.planner.table.selectors import SELECTORS, select

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.inspect.metadata_scan import MetadataScan
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as one query sees it.

    Args:
        travelled_to: The snapshot of a query with VERSION or TIMESTAMP AS OF, else None.
        ref: The branch or tag it was named by, or the branch that the session writes to and reads,
            see `Audit`.
        staged: The id of a table that is still being created, see `StagedTables`; it has no
            metadata file yet.
        branch: The branch in the table's name, which is read and written.
        metadata_table: The name of the metadata table, if it is one.
        changes_after: The snapshot before the first of CHANGES FROM; None if there is none.
        changes_until: The last snapshot of CHANGES FROM; None if the table has none.
        moves_rows: Whether its rows have the columns of row lineage behind the table's, to be
            written to other files by a rewrite.
    """

    catalog: str
    identifier: tuple[str, ...]
    metadata_location: str
    metadata: TableMetadata
    io: FileIO
    travelled_to: int | None = None
    ref: str | None = None
    staged: str | None = None
    branch: str | None = None
    metadata_table: str | None = None
    changes_after: int | None = None
    changes_until: int | None = None
    moves_rows: bool = False

    @property
    def name(self) -> str:
        """The table's name for messages."""
        return ".".join(self.identifier)

    @property
    def time_travel(self) -> bool:
        """Whether the query asked for a past version, which cannot be written to."""
        return self.travelled_to is not None

    @property
    def is_read_only(self) -> bool:
        """Whether this is a past version or a metadata table, which no statement can change.

        Rows with their lineage are written by a rewrite, which is not a statement of SQL.
        """
        return self.time_travel or self.metadata_table is not None or self.moves_rows

    @property
    def is_selected(self) -> bool:
        """Whether the table's name selects one of its states or metadata tables."""
        return self.is_read_only or self.branch is not None

    @property
    def read_ref(self) -> str | None:
        """The branch or tag to read; None for the table's current snapshot."""
        return self.ref if self.branch is None else self.branch

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot to read; None if the table has none yet."""
        snapshot = self.scan().snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def schema(self) -> Schema:
        """Schema of the snapshot in time travel, of the metadata table if any, else the table's."""
        if self.metadata_table is None:
            schema = self.scan().schema()
            return with_lineage(schema) if self.moves_rows else schema
        if self.metadata_table in CHANGELOGS:
            return changelog_schema(self.scan().schema(), self.metadata_table)
        return self.inspected().schema

    @property
    def has_files(self) -> bool:
        """Whether its rows are read from data files."""
        return self.metadata_table in {None, *CHANGELOGS}

    @property
    def downcasts(self) -> bool:
        """Whether its catalog shows nanoseconds as microseconds."""
        from icecomb.catalog.configuration.catalog_property import DOWNCAST_NANOSECONDS

        return DOWNCAST_NANOSECONDS.of(self.io.properties)

    def scan(self) -> TableScan:
        """Return a scan of all rows of this state."""
        ref = self.read_ref
        if self.time_travel or ref is None:
            return TableScan(self.metadata, self.io, snapshot_id=self.travelled_to, ref=ref)
        return TableScan(self.metadata, self.io).use_ref(ref)

    def inspected(
        self,
        row_filter: BooleanExpression | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        scan: TableScan | None = None,
    ) -> MetadataScan:
        """Return a scan of the metadata table, of the snapshot of `scan` or of this state."""
        table = self.metadata_table or ""
        snapshot = (scan or self.scan()).snapshot() if table in TIME_TRAVELLING else None
        return Inspect(self.metadata, self.io, self.metadata_location).scan(
            table, None if snapshot is None else snapshot.snapshot_id, row_filter, selected_fields
        )

    def reference(self) -> TableReference:
        """Return the reference by which the bridge names this state."""
        return TableReference(
            self.catalog,
            self.identifier,
            self.metadata_location,
            _uuid(self.metadata),
            self.travelled_to,
            self.ref,
            self.staged,
            self.branch,
            self.metadata_table,
            self.changes_after,
            self.changes_until,
            self.moves_rows,
        )


class TableStates:
    """A registry that finds the state of a reference, and pins the current one of a table."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._kept = KeptMetadata()
        catalogs.when_let_go(self._kept.discard)

    def load(self, catalog: str, table: TableName) -> TableState:
        """Load the current state of a table, or the one selected by its name."""
        meant = named(table)
        found = self.current(catalog, meant.identifier)
        if meant.selector is None:
            return found
        selected = select(found, meant.selector)
        if selected is None:
            raise NoSuchTableError(
                f"Table {found.name} has nothing called {meant.selector}",
                hint=f"Below a table's name there are {SELECTORS}.",
            )
        return selected

    def current(self, catalog: str, identifier: tuple[str, ...]) -> TableState:
        """Load the current state of a table, regardless of selectors in its name."""
        there = self._catalogs.load_table(catalog, identifier)
        return replace(self.pin(catalog, there), identifier=identifier)

    def now(self, reference: TableReference) -> TableState:
        """Load the current state of a reference's table, with the reference's selection."""
        return _selected(self.current(reference.catalog, reference.identifier), reference)

    def pin(self, catalog: str, table: Table) -> TableState:
        """Return the state of a table that was just loaded or created."""
        self._kept.keep(catalog, table.metadata_location, table.metadata, table.io)
        return TableState(
            catalog, tuple(table.identifier), table.metadata_location, table.metadata, table.io
        )

    def find(self, reference: TableReference) -> TableState:
        """Find the state of a reference.

        `NoSuchTableError` if another table was created in the same folder since.
        """
        location = reference.metadata_location
        # a catalog belongs to one user: nobody reads files with the rights of somebody else
        known = self._kept.find(reference.catalog, location)
        if known is None or _uuid(known[0]) != reference.uuid:
            known = self._read(reference.catalog, location)
            if _uuid(known[0]) != reference.uuid:
                name = ".".join(reference.identifier)
                raise NoSuchTableError(
                    f"Table {name} was dropped and re-created after the query was planned",
                    hint="Run the statement again; create a new DataFrame of the table.",
                    table=name,
                )
            self._kept.keep(reference.catalog, location, *known)
        found = TableState(reference.catalog, reference.identifier, location, *known)
        return _selected(found, reference)

    def _read(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO]:
        from icecomb.format.spec.metadata_file import read_metadata
        from icecomb.format.storage.file_io import FileIO

        io = FileIO(dict(self._catalogs[catalog].properties))
        return read_metadata(io, location), io


def _selected(state: TableState, reference: TableReference) -> TableState:
    """Return the state with what a reference selects of its table."""
    return replace(
        state,
        travelled_to=reference.travelled_to,
        ref=reference.ref,
        branch=reference.branch,
        metadata_table=reference.metadata_table,
        changes_after=reference.changes_after,
        changes_until=reference.changes_until,
        moves_rows=reference.moves_rows,
    )


def _uuid(metadata: TableMetadata) -> str | None:
    return None if metadata.table_uuid is None else str(metadata.table_uuid)


KEPT_BYTES: Final = 64 << 20

_BYTES: Final = 16 << 10
_SNAPSHOT_BYTES: Final = 2 << 10
_LOG_BYTES: Final = 256
_FIELD_BYTES: Final = 512


class KeptMetadata:
    """A thread-safe cache of table metadata by catalog and metadata location.

    Every commit makes a version. Above the limit, older versions of tables are dropped before the
    only version of another table, least recently used first.

    Args:
        limit: The most bytes of metadata to keep, besides the last added.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._newest: dict[tuple[str, str], tuple[int, tuple[str, str]]] = {}
        self._spared: set[tuple[str, str]] = set()
        self._kept = Lru[tuple[str, str], "tuple[TableMetadata, FileIO]"](
            limit,
            lambda one: estimated_bytes(one[0]),
            keeps_last=True,
            spares=self._spared.__contains__,
        )
        self._lock = threading.Lock()

    def find(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO] | None:
        """Return the cached metadata of a file with the table's file system; None if missing."""
        return self._kept.find((catalog, location))

    def keep(self, catalog: str, location: str, metadata: TableMetadata, io: FileIO) -> None:
        """Add the metadata of a file."""
        key, table = (catalog, location), (catalog, metadata.location)
        with self._lock:
            newest, there = self._newest.get(table, (metadata.last_updated_ms, key))
            if newest <= metadata.last_updated_ms:
                self._spared.discard(there)
                self._spared.add(key)
                self._newest[table] = metadata.last_updated_ms, key
            self._kept.keep(key, (metadata, io))

    def discard(self, catalog: str) -> None:
        """Drop the metadata of a catalog's tables."""
        with self._lock:
            for table in [table for table in self._newest if table[0] == catalog]:
                self._spared.discard(self._newest.pop(table)[1])
            self._kept.discard(lambda key: key[0] == catalog)


def estimated_bytes(metadata: TableMetadata) -> int:
    """Estimate the memory that metadata takes: mostly its snapshots, 2 KiB each."""
    logged = len(metadata.snapshot_log) + len(metadata.metadata_log) + len(metadata.refs)
    fields = sum(len(schema.fields) for schema in metadata.schemas)
    return (
        _BYTES
        + len(metadata.snapshots) * _SNAPSHOT_BYTES
        + logged * _LOG_BYTES
        + fields * _FIELD_BYTES
    )


class Named(NamedTuple):
    """A parsed table name.

    Args:
        identifier: Namespace and name of a table, or only its location, which contains a slash.
        selector: The selected state or metadata table, see `selectors`; None for the table itself.
    """

    identifier: tuple[str, ...]
    selector: str | None = None


def named(table: TableName) -> Named:
    """Parse a name: ``db.t``, ``db.t.files``, ``/folder/t`` or ``/folder/t#files``."""
    if not table.namespace and "/" in table.name:
        place, _, selector = table.name.partition("#")
        return Named((place,), selector or None)
    if len(table.namespace) == len(("db", "t")):
        return Named(table.namespace, table.name)
    return Named((*one_level(table.namespace), table.name))


def below(table: tuple[str, ...], selector: str) -> tuple[str, ...]:
    """Return the name of what a selector names below a table."""
    return (f"{table[0]}#{selector}",) if is_location(table) else (*table, selector)


def identifier(table: TableName) -> tuple[str, ...]:
    """Return the catalog name of a table or view that a statement creates, changes or drops."""
    name = name_or_location(table)
    if is_location(name):
        raise UnsupportedError(
            f"{table.name} is a folder: a table there cannot be renamed, and no view can be there",
            hint="Name a table or view of the catalog.",
        )
    return name


def name_or_location(table: TableName) -> tuple[str, ...]:
    """Return the name or location of a table that a statement creates, changes or drops."""
    meant = named(table)
    if meant.selector is not None:
        raise UnsupportedError(
            f"The name {'.'.join((*table.namespace, table.name))} stands for something of table "
            f"{'.'.join(meant.identifier)}: it cannot be created, altered or dropped",
            hint="Name the table itself; branches and tags are created and dropped with "
            "ALTER TABLE … CREATE BRANCH, DROP BRANCH, CREATE TAG, DROP TAG.",
        )
    return meant.identifier


def is_location(name: tuple[str, ...]) -> bool:
    """Return whether a table is named by its location."""
    return len(name) == 1
