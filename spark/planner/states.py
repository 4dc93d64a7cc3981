"""Tables in the state a query holds on to: `reference` objects and the metadata behind them.

A query reads one metadata file from its first question to its last, whatever is committed
meanwhile. Metadata files never change, so the metadata behind a reference is cached by its
location and read again after a restart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import NoSuchSnapshotError
from icecomb.spark.planner.catalogs import Catalogs, one_level

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata
    from icecomb.format.schema import Schema

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
        snapshot_id: The snapshot to read; None for a table that has none.
        schema_id: The schema to read with: the snapshot's in time travel, else the table's.
        time_travel: Whether the query asked for a version, which cannot be written to.
    """

    catalog: str
    identifier: tuple[str, ...]
    metadata_location: str
    metadata: TableMetadata
    io: FileIO
    snapshot_id: int | None
    schema_id: int
    time_travel: bool = False

    @property
    def name(self) -> str:
        """The table's name for messages."""
        return ".".join(self.identifier)

    @property
    def schema(self) -> Schema:
        """The schema of the query."""
        return self.metadata.schema_by_id(self.schema_id)

    def reference(self) -> dict[str, Any]:
        """What the bridge hands back to name this state."""
        return {
            "catalog": self.catalog,
            "identifier": list(self.identifier),
            "metadata_location": self.metadata_location,
            "snapshot_id": self.snapshot_id,
            "schema_id": self.schema_id,
            "time_travel": self.time_travel,
        }


class TableStates:
    """Finds the state behind a reference, and pins the current state of a table."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._recent: OrderedDict[str, tuple[TableMetadata, FileIO]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, catalog: str, namespace: list[str], name: str) -> tuple[Table, TableState]:
        """The table as it is now.

        Raises:
            NoSuchTableError: There is none.
        """
        table = self._catalogs[catalog].load_table((*one_level(namespace), name))
        return table, self.pin(catalog, table)

    def pin(self, catalog: str, table: Table) -> TableState:
        """The state of a table that was just loaded or created."""
        self._keep(table.metadata_location, (table.metadata, table.io))
        return TableState(
            catalog=catalog,
            identifier=tuple(table.identifier),
            metadata_location=table.metadata_location,
            metadata=table.metadata,
            io=table.io,
            snapshot_id=table.metadata.current_snapshot_id,
            schema_id=table.metadata.current_schema_id,
        )

    def find(self, reference: Mapping[str, Any]) -> TableState:
        """The state behind a reference."""
        location = reference["metadata_location"]
        with self._lock:
            known = self._recent.get(location)
        if known is None:
            known = self._read(reference["catalog"], location)
            self._keep(location, known)
        metadata, io = known
        return TableState(
            catalog=reference["catalog"],
            identifier=tuple(reference["identifier"]),
            metadata_location=location,
            metadata=metadata,
            io=io,
            snapshot_id=reference["snapshot_id"],
            schema_id=reference["schema_id"],
            time_travel=reference["time_travel"],
        )

    def _read(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO]:
        from icecomb.format.file_io import FileIO
        from icecomb.format.metadata import read_metadata

        io = FileIO(dict(self._catalogs[catalog].properties))
        return read_metadata(io, location), io

    def _keep(self, location: str, known: tuple[TableMetadata, FileIO]) -> None:
        with self._lock:
            self._recent[location] = known
            self._recent.move_to_end(location)
            while len(self._recent) > _KEPT:
                self._recent.popitem(last=False)


def travelled(state: TableState, version: str | None, timestamp_us: int | None) -> TableState:
    """The state at a version (snapshot id, branch or tag) or as of a time.

    Raises:
        NoSuchSnapshotError: The table has no such snapshot, or none yet at that time.
    """
    if version is None and timestamp_us is None:
        return state
    metadata = state.metadata
    snapshot_id, branch = (
        _by_version(state, version)
        if version is not None
        else (_as_of(state, timestamp_us or 0), False)
    )
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise _no_snapshot(state, str(snapshot_id))
    keeps_schema = not branch and snapshot.schema_id is not None
    return TableState(
        catalog=state.catalog,
        identifier=state.identifier,
        metadata_location=state.metadata_location,
        metadata=metadata,
        io=state.io,
        snapshot_id=snapshot_id,
        schema_id=snapshot.schema_id if keeps_schema else metadata.current_schema_id,  # type: ignore[arg-type]
        time_travel=True,
    )


def _by_version(state: TableState, version: str) -> tuple[int, bool]:
    """The snapshot id of a version, and whether it was named by a branch."""
    metadata = state.metadata
    if version.lstrip("-").isdecimal() and metadata.snapshot_by_id(int(version)) is not None:
        return int(version), False
    ref = metadata.refs.get(version)
    if ref is None:
        raise _no_snapshot(state, version)
    return ref.snapshot_id, str(
        getattr(ref.snapshot_ref_type, "value", ref.snapshot_ref_type)
    ) == "branch"


def _as_of(state: TableState, timestamp_us: int) -> int:
    """By the log of what was current: a snapshot that was only staged never was the table."""
    found = None
    for entry in state.metadata.snapshot_log:
        if entry.timestamp_ms * 1000 <= timestamp_us:
            found = entry.snapshot_id
    if found is None:
        raise NoSuchSnapshotError(
            f"table {state.name} had no snapshot at that time",
            hint=f"its history begins at {_beginning(state)}",
            table=state.name,
        )
    return found


def _beginning(state: TableState) -> str:
    from datetime import datetime, timezone

    times = [entry.timestamp_ms for entry in state.metadata.snapshot_log]
    if not times:
        return "its first INSERT: it has no snapshot yet"
    return datetime.fromtimestamp(min(times) / 1000, timezone.utc).isoformat()


def _no_snapshot(state: TableState, version: str) -> NoSuchSnapshotError:
    ids = [str(snapshot.snapshot_id) for snapshot in state.metadata.snapshots][-5:]
    refs = sorted(state.metadata.refs)
    return NoSuchSnapshotError(
        f"table {state.name} has no snapshot, branch or tag {version!r}",
        hint=f"latest snapshots: {', '.join(ids)}; branches and tags: {', '.join(refs)}",
        table=state.name,
    )
