"""Tables in the state a query holds on to: `reference` objects and the metadata behind them.

A query reads one metadata file from its first question to its last, whatever is committed
meanwhile. Metadata files never change, so the metadata behind a reference is cached by its location
and read again after a restart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError
from icecomb.format.scan.table_scan import TableScan
from icecomb.spark.planner.catalogs import Catalogs, one_level
from icecomb.spark.planner.protocol import Reference, TableName

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO

_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as one query sees it.

    Args:
        catalog: The catalog's handle.
        identifier: Namespace and name.
        metadata_location: The metadata file.
        metadata: What is in it.
        io: Reads the table's files.
        travelled_to: The snapshot of a query with VERSION or TIMESTAMP AS OF, else None.
        ref: The branch or tag it was named by, or the branch that the session writes to and reads,
            see `Audit`.
        staged: The name of a table that is still being made, see `StagedTables`; it has no metadata
            file yet.
    """

    catalog: str
    identifier: tuple[str, ...]
    metadata_location: str
    metadata: TableMetadata
    io: FileIO
    travelled_to: int | None = None
    ref: str | None = None
    staged: str | None = None

    @property
    def name(self) -> str:
        """The table's name for messages."""
        return ".".join(self.identifier)

    @property
    def time_travel(self) -> bool:
        """Whether the query asked for a version, which cannot be written to."""
        return self.travelled_to is not None

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot to read; None when the table has none yet."""
        snapshot = self.scan().snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def schema(self) -> Schema:
        """The snapshot's schema in time travel, else the table's."""
        return self.scan().schema()

    def scan(self) -> TableScan:
        """All rows of this state."""
        if self.time_travel or self.ref is None:
            return TableScan(self.metadata, self.io, snapshot_id=self.travelled_to, ref=self.ref)
        return TableScan(self.metadata, self.io).use_ref(self.ref)

    def reference(self) -> Reference:
        """What the bridge hands back to name this state."""
        return Reference(
            self.catalog,
            self.identifier,
            self.metadata_location,
            self.travelled_to,
            self.ref,
            self.staged,
        )


class TableStates:
    """Finds the state behind a reference, and pins the current state of a table."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._recent: OrderedDict[str, tuple[TableMetadata, FileIO]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, catalog: str, table: TableName) -> TableState:
        """The table as it is now.

        Raises:
            NoSuchTableError: There is none.
        """
        found = self._catalogs[catalog].load_table(identifier(table))
        return self.pin(catalog, found)

    def pin(self, catalog: str, table: Table) -> TableState:
        """The state of a table that was just loaded or created."""
        self._keep(table.metadata_location, (table.metadata, table.io))
        return TableState(
            catalog, tuple(table.identifier), table.metadata_location, table.metadata, table.io
        )

    def find(self, reference: Reference) -> TableState:
        """The state behind a reference."""
        location = reference.metadata_location
        with self._lock:
            known = self._recent.get(location)
        if known is None:
            known = self._read(reference.catalog, location)
            self._keep(location, known)
        return TableState(
            reference.catalog,
            reference.identifier,
            location,
            *known,
            reference.travelled_to,
            reference.ref,
        )

    def _read(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO]:
        from icecomb.format.spec.metadata_file import read_metadata
        from icecomb.format.storage.file_io import FileIO

        io = FileIO(dict(self._catalogs[catalog].properties))
        return read_metadata(io, location), io

    def _keep(self, location: str, known: tuple[TableMetadata, FileIO]) -> None:
        with self._lock:
            self._recent[location] = known
            self._recent.move_to_end(location)
            while len(self._recent) > _KEPT:
                self._recent.popitem(last=False)


def identifier(table: TableName) -> tuple[str, ...]:
    """The table's name as catalogs take it.

    Raises:
        NoSuchNamespaceError: Its namespace has none or several levels.
    """
    return (*one_level(table.namespace), table.name)


def at_version(state: TableState, version: str) -> TableState:
    """The state at a snapshot id, a branch or a tag; digits are an id first.

    Raises:
        NoSuchSnapshotError: The table has none of these.
    """
    if version.isdecimal() and state.metadata.snapshot_by_id(int(version)) is not None:
        return replace(state, travelled_to=int(version))
    try:
        return _travelled(state, state.scan().use_ref(version))
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(
            f"Table {state.name} has no snapshot, branch or tag {version!r}",
            hint=error.hint,
            table=state.name,
        ) from None


def at_time(state: TableState, timestamp_us: int) -> TableState:
    """The state as of a time, by the log of what was current then.

    Raises:
        NoSuchSnapshotError: The table had no snapshot yet.
    """
    try:
        return _travelled(state, state.scan().as_of(timestamp_us // 1000))
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(
            f"Table {state.name}: {error.message}", hint=error.hint, table=state.name
        ) from None


def _travelled(state: TableState, scan: TableScan) -> TableState:
    snapshot = scan.snapshot()
    # the branch main of a table without snapshots is the table itself
    return replace(state, travelled_to=snapshot.snapshot_id if snapshot else None, ref=scan.ref)
