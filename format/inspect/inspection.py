"""The sixteen metadata tables of a table, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.inspect.metadata_scan import MetadataScan

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.expressions.filter_argument import RowFilter
    from icecomb.format.inspect.metadata_table import MetadataTable
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO

TIME_TRAVELLING: Final = (
    "entries",
    "files",
    "data_files",
    "delete_files",
    "manifests",
    "partitions",
    "position_deletes",
)
"""The metadata tables of one snapshot."""
NAMES: Final = (
    *TIME_TRAVELLING,
    "history",
    "metadata_log_entries",
    "snapshots",
    "refs",
    "all_data_files",
    "all_delete_files",
    "all_files",
    "all_manifests",
    "all_entries",
)
"""All metadata tables."""


class Inspect:
    """The metadata tables of one state of a table.

    Every method takes the same options, as keywords: `row_filter`, an expression or SQL text on
    the metadata table's own columns; `selected_fields`, the names of its columns or of fields
    inside them; `case_sensitive`. What they rule out is not read: a filter on `partition` or
    `content` leaves manifests out, and statistics are decoded only for columns made of them.

    >>> table.inspect.files(selected_fields=("file_path",))  # doctest: +SKIP

    Args:
        metadata: The table.
        io: Where its files lie.
        metadata_location: The file of `metadata`, the last row of `metadata_log_entries`.
    """

    def __init__(
        self, metadata: TableMetadata, io: FileIO, metadata_location: str | None = None
    ) -> None:
        self._metadata = metadata
        self._io = io
        self._location = metadata_location

    def scan(
        self,
        name: str,
        snapshot_id: int | None = None,
        row_filter: RowFilter | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        *,
        case_sensitive: bool = True,
    ) -> MetadataScan:
        """A question to a metadata table, to be answered as a table or in batches.

        Args:
            name: One of `NAMES`.
            snapshot_id: Of `TIME_TRAVELLING` tables: which snapshot; by default the current one.
            row_filter: Which rows.
            selected_fields: Which columns.
            case_sensitive: Whether names of columns are.

        Raises:
            ValidationError: There is no such metadata table, or it is not of one snapshot.
            NoSuchSnapshotError: The table has no such snapshot.
        """
        table = self._table(name, snapshot_id)
        return MetadataScan(table, row_filter, selected_fields, case_sensitive)

    def entries(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """All entries of the snapshot's manifests, of deleted files too."""
        return self.scan("entries", snapshot_id, **options).to_arrow()

    def files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """The data and delete files of the snapshot."""
        return self.scan("files", snapshot_id, **options).to_arrow()

    def data_files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """The data files of the snapshot."""
        return self.scan("data_files", snapshot_id, **options).to_arrow()

    def delete_files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """The delete files of the snapshot."""
        return self.scan("delete_files", snapshot_id, **options).to_arrow()

    def manifests(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """The manifests of the snapshot."""
        return self.scan("manifests", snapshot_id, **options).to_arrow()

    def partitions(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """What lies in each partition of the snapshot."""
        return self.scan("partitions", snapshot_id, **options).to_arrow()

    def position_deletes(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """The rows of the snapshot's position delete files."""
        return self.scan("position_deletes", snapshot_id, **options).to_arrow()

    def history(self, **options: Any) -> pa.Table:
        """When which snapshot became current."""
        return self.scan("history", **options).to_arrow()

    def metadata_log_entries(self, **options: Any) -> pa.Table:
        """The metadata files that are still known, the current one last."""
        return self.scan("metadata_log_entries", **options).to_arrow()

    def snapshots(self, **options: Any) -> pa.Table:
        """All snapshots."""
        return self.scan("snapshots", **options).to_arrow()

    def refs(self, **options: Any) -> pa.Table:
        """Branches and tags."""
        return self.scan("refs", **options).to_arrow()

    def all_data_files(self, **options: Any) -> pa.Table:
        """The data files of all snapshots; one that several manifests hold comes several times."""
        return self.scan("all_data_files", **options).to_arrow()

    def all_delete_files(self, **options: Any) -> pa.Table:
        """The delete files of all snapshots; see `all_data_files`."""
        return self.scan("all_delete_files", **options).to_arrow()

    def all_files(self, **options: Any) -> pa.Table:
        """The data and delete files of all snapshots; see `all_data_files`."""
        return self.scan("all_files", **options).to_arrow()

    def all_manifests(self, **options: Any) -> pa.Table:
        """The manifests of all snapshots, each with the snapshot that has it."""
        return self.scan("all_manifests", **options).to_arrow()

    def all_entries(self, **options: Any) -> pa.Table:
        """The entries of the manifests of all snapshots."""
        return self.scan("all_entries", **options).to_arrow()

    def _table(self, name: str, snapshot_id: int | None) -> MetadataTable:
        if name not in NAMES:
            raise ValidationError(
                f"There is no metadata table {name!r}", hint=f"There are: {', '.join(NAMES)}"
            )
        if name in TIME_TRAVELLING:
            return self._snapshot_table(name, snapshot_id)
        if snapshot_id is not None:
            raise ValidationError(
                f"The metadata table {name!r} is not of one snapshot",
                hint=f"These are: {', '.join(TIME_TRAVELLING)}",
            )
        return self._whole_table(name)

    def _snapshot_table(self, name: str, snapshot_id: int | None) -> MetadataTable:
        metadata, io = self._metadata, self._io
        snapshot = (
            metadata.current_snapshot()
            if snapshot_id is None
            else metadata.snapshot_by_id(snapshot_id)
        )
        if snapshot is None and snapshot_id is not None:
            raise NoSuchSnapshotError(
                f"There is no snapshot {snapshot_id}",
                hint="It may have expired; list the table's snapshots.",
                snapshot_id=snapshot_id,
            )
        snapshots = () if snapshot is None else (snapshot,)
        if name == "manifests":
            from icecomb.format.inspect.manifest_table import ManifestTable

            return ManifestTable(metadata, io, snapshots, is_all=False)
        if name == "partitions":
            from icecomb.format.inspect.partitions_table import PartitionsTable

            return PartitionsTable(metadata, io, snapshots)
        if name == "position_deletes":
            from icecomb.format.inspect.position_deletes_table import PositionDeletesTable

            return PositionDeletesTable(metadata, io, snapshots)
        return self._entry_table(name, snapshots)

    def _whole_table(self, name: str) -> MetadataTable:
        from icecomb.format.inspect import log_tables, metadata_schema

        metadata = self._metadata
        logs: dict[str, tuple[Schema, Callable[[TableMetadata], Iterator[log_tables.Row]]]] = {
            "history": (metadata_schema.HISTORY, log_tables.history_rows),
            "snapshots": (metadata_schema.SNAPSHOTS, log_tables.snapshot_rows),
            "refs": (metadata_schema.REFS, log_tables.ref_rows),
            "metadata_log_entries": (
                metadata_schema.METADATA_LOG_ENTRIES,
                partial(log_tables.metadata_log_rows, location=self._location),
            ),
        }
        if name in logs:
            schema, rows = logs[name]
            return log_tables.LogTable(schema, partial(rows, metadata))
        if name == "all_manifests":
            from icecomb.format.inspect.manifest_table import ManifestTable

            return ManifestTable(metadata, self._io, metadata.snapshots, is_all=True)
        return self._entry_table(name, metadata.snapshots)

    def _entry_table(self, name: str, snapshots: Any) -> MetadataTable:
        from icecomb.format.inspect.file_tables import EntryTable
        from icecomb.format.manifests.manifest import ManifestContent

        contents = frozenset(ManifestContent)
        if name.endswith("data_files"):
            contents = frozenset((ManifestContent.DATA,))
        elif name.endswith("delete_files"):
            contents = frozenset((ManifestContent.DELETES,))
        is_files = name.endswith("files")
        return EntryTable(self._metadata, self._io, snapshots, contents, is_files)
