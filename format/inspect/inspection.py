"""The sixteen metadata tables of a table, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.inspect.entry_rows import EntryRows, statistics_for
from icecomb.format.inspect.manifest_choice import choose_manifests, each_manifest, spec_of
from icecomb.format.inspect.metadata_scan import MetadataScan
from icecomb.format.inspect.metadata_schema import entries_schema, files_schema
from icecomb.format.inspect.metadata_table import Part, TableRequest, TableRows
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile
from icecomb.format.manifests.reader import Fetched, fetch_batches, read_batch
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.spec.metadata import TableMetadata, existing_snapshot
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.expressions.filter_argument import RowFilter
    from icecomb.format.inspect.metadata_table import MetadataTable


class Inspect:
    """The metadata tables of one state of a table.

    Every method takes the same options, as keywords: `row_filter`, an expression or SQL text on
    the metadata table's own columns; `selected_fields`, the names of its columns or of fields
    inside them; `case_sensitive`. Data that they exclude is not read: a filter on `partition` or
    `content` skips manifests, and statistics are decoded only for columns made of them.

    >>> table.inspect.files(selected_fields=("file_path",))  # doctest: +SKIP

    Args:
        metadata: The table metadata.
        io: File system that holds the table.
        metadata_location: The location of the metadata file, for the last row of
            `metadata_log_entries`; None leaves it out.
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
        """Return a scan of a metadata table, which reads it as a table or in batches.

        Args:
            name: The metadata table, one of `NAMES`.
            snapshot_id: The snapshot, only for `TIME_TRAVELLING` tables; by default the current.
            row_filter: A filter on the rows; all by default.
            selected_fields: The columns to return; all by default.
            case_sensitive: Whether column names are case-sensitive.

        Raises:
            ValidationError: If there is no such metadata table, or it is not of one snapshot.
            NoSuchSnapshotError: If the table has no such snapshot.
        """
        state = _State(self._metadata, self._io, self._location)
        table = _table(state, name, snapshot_id)
        return MetadataScan(table, row_filter, selected_fields, case_sensitive)

    def entries(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return all entries of the snapshot's manifests, including those of deleted files."""
        return self.scan("entries", snapshot_id, **options).to_arrow()

    def files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the data and delete files of the snapshot."""
        return self.scan("files", snapshot_id, **options).to_arrow()

    def data_files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the data files of the snapshot."""
        return self.scan("data_files", snapshot_id, **options).to_arrow()

    def delete_files(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the delete files of the snapshot."""
        return self.scan("delete_files", snapshot_id, **options).to_arrow()

    def manifests(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the manifests of the snapshot."""
        return self.scan("manifests", snapshot_id, **options).to_arrow()

    def partitions(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the partitions of the snapshot, with the counts of their files and rows."""
        return self.scan("partitions", snapshot_id, **options).to_arrow()

    def position_deletes(self, snapshot_id: int | None = None, **options: Any) -> pa.Table:
        """Return the rows of the snapshot's position delete files."""
        return self.scan("position_deletes", snapshot_id, **options).to_arrow()

    def history(self, **options: Any) -> pa.Table:
        """Return the history of current snapshots, with the time at which each became current."""
        return self.scan("history", **options).to_arrow()

    def metadata_log_entries(self, **options: Any) -> pa.Table:
        """Return the known metadata files, the current one last."""
        return self.scan("metadata_log_entries", **options).to_arrow()

    def snapshots(self, **options: Any) -> pa.Table:
        """Return all snapshots."""
        return self.scan("snapshots", **options).to_arrow()

    def refs(self, **options: Any) -> pa.Table:
        """Return the branches and tags."""
        return self.scan("refs", **options).to_arrow()

    def all_data_files(self, **options: Any) -> pa.Table:
        """Return the data files of all snapshots, one row for each manifest that has a file."""
        return self.scan("all_data_files", **options).to_arrow()

    def all_delete_files(self, **options: Any) -> pa.Table:
        """Return the delete files of all snapshots; see `all_data_files`."""
        return self.scan("all_delete_files", **options).to_arrow()

    def all_files(self, **options: Any) -> pa.Table:
        """Return the data and delete files of all snapshots; see `all_data_files`."""
        return self.scan("all_files", **options).to_arrow()

    def all_manifests(self, **options: Any) -> pa.Table:
        """Return the manifests of all snapshots, each with the snapshot that has it."""
        return self.scan("all_manifests", **options).to_arrow()

    def all_entries(self, **options: Any) -> pa.Table:
        """Return the entries of the manifests of all snapshots."""
        return self.scan("all_entries", **options).to_arrow()


@dataclass(frozen=True)
class _State:
    """The state of a table that metadata tables are made from."""

    metadata: TableMetadata
    io: FileIO
    location: str | None


def _table(state: _State, name: str, snapshot_id: int | None) -> MetadataTable:
    if name not in NAMES:
        raise ValidationError(
            f"There is no metadata table {name!r}", hint=f"There are: {', '.join(NAMES)}."
        )
    if name in _OF_ALL:
        if snapshot_id is not None:
            raise ValidationError(
                f"The metadata table {name!r} is not of one snapshot",
                hint=f"These are: {', '.join(TIME_TRAVELLING)}.",
            )
        return _OF_ALL[name](state, state.metadata.snapshots)
    if snapshot_id is None:
        snapshot = state.metadata.current_snapshot()
    else:
        snapshot = existing_snapshot(state.metadata, snapshot_id)
    return _OF_ONE_SNAPSHOT[name](state, () if snapshot is None else (snapshot,))


def _entries(
    state: _State,
    snapshots: Sequence[Snapshot],
    contents: Collection[ManifestContent] = tuple(ManifestContent),
    *,
    files: bool = False,
) -> MetadataTable:
    return EntryTable(state.metadata, state.io, snapshots, frozenset(contents), files)


def _manifests(state: _State, snapshots: Sequence[Snapshot], *, is_all: bool) -> MetadataTable:
    from icecomb.format.inspect.manifest_table import ManifestTable

    return ManifestTable(state.metadata, state.io, snapshots, is_all=is_all)


def _partitions(state: _State, snapshots: Sequence[Snapshot]) -> MetadataTable:
    from icecomb.format.inspect.partitions_table import PartitionsTable

    return PartitionsTable(state.metadata, state.io, snapshots)


def _position_deletes(state: _State, snapshots: Sequence[Snapshot]) -> MetadataTable:
    from icecomb.format.inspect.position_deletes_table import PositionDeletesTable

    return PositionDeletesTable(state.metadata, state.io, snapshots)


def _log(name: str, state: _State, _: Sequence[Snapshot]) -> MetadataTable:
    from icecomb.format.inspect import log_tables, metadata_schema

    metadata = state.metadata
    schema, rows = {
        "history": (metadata_schema.HISTORY, partial(log_tables.history_rows, metadata)),
        "snapshots": (metadata_schema.SNAPSHOTS, partial(log_tables.snapshot_rows, metadata)),
        "refs": (metadata_schema.REFS, partial(log_tables.ref_rows, metadata)),
        "metadata_log_entries": (
            metadata_schema.METADATA_LOG_ENTRIES,
            partial(log_tables.metadata_log_rows, metadata, state.location),
        ),
    }[name]
    return log_tables.LogTable(schema, rows)


_Maker: TypeAlias = Callable[["_State", Sequence["Snapshot"]], "MetadataTable"]
_FILES: Final = partial(_entries, files=True)
_DATA_FILES: Final = partial(_FILES, contents=(ManifestContent.DATA,))
_DELETE_FILES: Final = partial(_FILES, contents=(ManifestContent.DELETES,))
_OF_ONE_SNAPSHOT: Final[dict[str, _Maker]] = {
    "entries": _entries,
    "files": _FILES,
    "data_files": _DATA_FILES,
    "delete_files": _DELETE_FILES,
    "manifests": partial(_manifests, is_all=False),
    "partitions": _partitions,
    "position_deletes": _position_deletes,
}
_OF_ALL: Final[dict[str, _Maker]] = {
    "history": partial(_log, "history"),
    "metadata_log_entries": partial(_log, "metadata_log_entries"),
    "snapshots": partial(_log, "snapshots"),
    "refs": partial(_log, "refs"),
    "all_data_files": _DATA_FILES,
    "all_delete_files": _DELETE_FILES,
    "all_files": _FILES,
    "all_manifests": partial(_manifests, is_all=True),
    "all_entries": _entries,
}

TIME_TRAVELLING: Final = tuple(_OF_ONE_SNAPSHOT)
"""The metadata tables of one snapshot."""
NAMES: Final = (*TIME_TRAVELLING, *_OF_ALL)
"""All metadata tables."""


@dataclass(frozen=True)
class EntryTable:
    """The entries of the manifests of some snapshots, each manifest once.

    Args:
        is_files: Whether a row is a file of the snapshot, instead of an entry of any status.
        manifests: The manifests to read instead of those of the snapshots.
    """

    metadata: TableMetadata
    io: FileIO
    snapshots: Iterable[Snapshot]
    contents: frozenset[ManifestContent]
    is_files: bool
    manifests: Sequence[ManifestFile] | None = None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return (files_schema if self.is_files else entries_schema)(self.metadata)

    def parts(self, request: TableRequest) -> Iterator[Part]:
        """Yield a part for each manifest that can hold a selected entry."""
        statistics = statistics_for(request.fields)
        ids = {field.field_id: field.field_id for field in partition_union(self.metadata).fields}
        given = None if self.manifests is None else iter((self.manifests,))
        for manifests in given or each_manifest(self.io, iter(self.snapshots)):
            possible = [manifest for manifest in manifests if self._possible(manifest)]
            chosen = choose_manifests(possible, request.row_filter, self.metadata, ids)
            batches = fetch_batches(self.io, chosen, lambda _: statistics)
            for fetched in chain.from_iterable(batches):
                yield partial(self._rows, fetched, statistics)

    def _possible(self, manifest: ManifestFile) -> bool:
        live = not self.is_files or manifest.has_live_files()
        return live and manifest.content in self.contents

    def _rows(self, fetched: Fetched, statistics: frozenset[str]) -> Iterator[TableRows]:
        manifest, _ = fetched
        spec = spec_of(manifest, self.metadata)
        known = self.metadata.spec_by_id
        [columns] = read_batch(self.io, (fetched,), known, lambda _: statistics)
        schema = self.metadata.schema()
        doubted = ColumnDoubts(self.metadata, schema).of(columns)
        rows: TableRows = EntryRows(columns, spec, schema, doubted=doubted)
        if self.is_files and columns.live.true_count < len(columns):
            rows = rows.filter(columns.live)
        yield rows
