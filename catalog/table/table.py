"""A table of a catalog: a pinned version of its metadata, scans of it, and commits to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn

from icecomb.catalog.commit.commit import Producer, commit, newest_of
from icecomb.catalog.commit.pinned import Pinned
from icecomb.catalog.commit.pointer import MetadataPointer, MetadataVersion
from icecomb.catalog.identifier import Identifier
from icecomb.catalog.table.metadata_operations import MetadataOperations
from icecomb.catalog.table.row_operations import RowOperations
from icecomb.format.argument import MAX_LONG, check_flags, checked_instant
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from icecomb.catalog import Catalog, Maintenance
    from icecomb.catalog.administration import CatalogAdmin
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.expressions.filter_argument import RowFilter
    from icecomb.format.inspect.inspection import Inspect
    from icecomb.format.operation.append import FastAppend
    from icecomb.format.scan.change_scan import ChangeScan
    from icecomb.format.scan.description import Description
    from icecomb.format.scan.incremental_scan import IncrementalAppendScan
    from icecomb.format.scan.table_scan import TableScan
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.storage.file_io import FileIO

_SCAN: Final = "table.scan().{}()"
_MANAGE: Final = "with table.manage_snapshots() as manage: manage.{}(...)"
_INSTEAD: Final = {
    **{name: _SCAN.format(name) for name in ("to_arrow", "to_pandas", "to_duckdb", "plan_files")},
    **{name: _SCAN.format(name) for name in ("to_arrow_batch_reader", "to_polars", "count")},
    **{name: _MANAGE.format(name) for name in ("create_tag", "create_branch")},
    "append_files": "table.add_files([...])",
    "drop": "catalog.drop_table(table.identifier)",
    "format_version": "table.metadata.format_version",
    "remove_properties": "with table.update_properties() as update: update.remove(key)",
    "rename": "catalog.rename_table(table.identifier, new_name)",
    "rollback": _MANAGE.format("rollback_to_snapshot"),
    "set_properties": "with table.update_properties() as update: update.set(key, value)",
    "update": 'table.merge(rows, on="t.id = s.id").when_matched_update({...}).execute()',
    "update_location": "with table.transaction() as change: change.update_location(...)",
    "upgrade_table_version": 'with table.update_properties() as u: u.set("format-version", "2")',
    "uuid": "table.metadata.table_uuid",
    "vacuum": "with table.expire_snapshots() as expire: expire.older_than(...)",
}


class Table(RowOperations, MetadataOperations, Pinned[MetadataVersion]):
    """A table as of the last load, refresh or commit through this object.

    `icecomb.catalog.commit.pinned` says which version each call is judged on.

    Args:
        identifier: Namespace and name.
        version: The metadata file and its contents.
        io: File system that holds its files.
        pointer: Its pointer in the catalog.
        catalog: The catalog.
    """

    def __init__(
        self,
        identifier: Identifier,
        version: MetadataVersion,
        io: FileIO,
        pointer: MetadataPointer,
        catalog: Catalog,
    ) -> None:
        self.identifier = identifier
        self.io = io
        self.catalog = catalog
        self.write_properties = {}
        self._version = version
        self._pointer: MetadataPointer = pointer

    def __repr__(self) -> str:
        return self._description().text()

    def _repr_html_(self) -> str:
        return self._description().html()

    def _description(self) -> Description:
        from icecomb.format.scan.description import Description, snapshot_facts, table_facts

        facts = [*table_facts(self.metadata), *snapshot_facts(self.current_snapshot())]
        return Description(".".join(self.name()), facts, self.schema())

    def name(self) -> Identifier:
        """Return namespace and name."""
        return self.identifier

    @property
    def metadata(self) -> TableMetadata:
        return self._version.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the file with `metadata`."""
        return self._version.location

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def schema(self) -> Schema:
        """Return the current schema."""
        return self.metadata.schema()

    def schemas(self) -> dict[int, Schema]:
        """Return all schemas by id."""
        return {schema.schema_id: schema for schema in self.metadata.schemas}

    def spec(self) -> PartitionSpec:
        """Return the partition spec of new files."""
        return self.metadata.spec()

    def specs(self) -> Mapping[int, PartitionSpec]:
        """Return all partition specs by id."""
        return self.metadata.specs()

    def sort_order(self) -> SortOrder:
        """Return the sort order of new files."""
        return self.metadata.sort_order()

    def sort_orders(self) -> dict[int, SortOrder]:
        """Return all sort orders by id."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    def name_mapping(self) -> NameMapping | None:
        """Return the mapping from names to columns for files without field ids; None if not set."""
        return self.metadata.name_mapping()

    def location(self) -> str:
        """Return the table's folder."""
        return self.metadata.location

    def current_snapshot(self) -> Snapshot | None:
        """Return the snapshot that scans read; None while the table is empty."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots, oldest first."""
        return list(self.metadata.snapshots)

    def history(self) -> list[SnapshotLogEntry]:
        """Return the log of current snapshots, with the times when they became current."""
        return list(self.metadata.snapshot_log)

    def refs(self) -> dict[str, SnapshotRef]:
        """Return branches and tags."""
        return dict(self.metadata.refs)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot; None if there is none with this id."""
        return self.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """Return the snapshot of a branch or tag; None if there is none of this name."""
        return self.metadata.snapshot_by_name(name)

    def snapshot_as_of_timestamp(
        self,
        timestamp_ms: int | datetime,
        inclusive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
    ) -> Snapshot | None:
        """Return the snapshot current at a time; None if the log has none, or it expired.

        Args:
            timestamp_ms: Milliseconds since 1970-01-01 UTC, or a datetime with a zone.
            inclusive: Whether a snapshot made in exactly that millisecond counts.
        """
        check_flags(inclusive=inclusive)
        instant = checked_instant("timestamp_ms", timestamp_ms, -MAX_LONG)
        with suppress(NoSuchSnapshotError):
            return self.metadata.snapshot_as_of(instant if inclusive else instant - 1)
        return None

    if not TYPE_CHECKING:  # type checkers must know all attributes

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(name)

    def refresh(self) -> Table:
        """Move this object to the table's current metadata, and return it.

        Raises:
            NoSuchTableError: If it was dropped.
        """
        seen = self._version
        self._move(seen, self._pointer.load())
        return self

    def scan(
        self,
        row_filter: RowFilter | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        snapshot_id: int | None = None,
        limit: int | None = None,
        *,
        ref: str | None = None,
    ) -> TableScan:
        """Create a scan of the pinned metadata; see `icecomb.format.scan.table_scan.TableScan`.

        A snapshot may be chosen by its id, or as ``ref``, the name of a branch or tag.

        >>> table.scan("amount > 100", selected_fields=("id",)).to_arrow()  # doctest: +SKIP
        """
        from icecomb.format.scan.table_scan import TableScan

        scan = TableScan(
            self.metadata, self.io, row_filter, selected_fields, case_sensitive, snapshot_id, limit
        )
        return scan if ref is None else scan.use_ref(ref)

    def incremental_append_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        row_filter: BooleanExpression | str | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        limit: int | None = None,
    ) -> IncrementalAppendScan:
        """Create a scan of the rows appended after one snapshot, up to another.

        By default up to the current one; see `icecomb.format.scan.incremental_scan`.

        >>> seen = table.current_snapshot().snapshot_id  # doctest: +SKIP
        >>> new = table.refresh().incremental_append_scan(  # doctest: +SKIP
        ...     from_snapshot_id_exclusive=seen
        ... ).to_arrow()
        """
        from icecomb.format.scan.incremental_scan import IncrementalAppendScan

        return IncrementalAppendScan(
            self.metadata,
            self.io,
            row_filter,
            selected_fields,
            case_sensitive,
            limit=limit,
            from_snapshot_id=from_snapshot_id_exclusive,
            to_snapshot_id=to_snapshot_id_inclusive,
        )

    def changes(
        self,
        from_snapshot_id: int | None = None,
        to_snapshot_id: int | None = None,
        selected_fields: tuple[str, ...] = ("*",),
    ) -> ChangeScan:
        """Create a scan of the rows inserted, updated or deleted between two snapshots.

        By default up to the current one. Rows are told apart by their ids, which tables have from
        format version 3 on; see `icecomb.format.scan.change_scan`.

        >>> table.changes(seen).to_arrow().column("_change_type")  # doctest: +SKIP
        """
        from icecomb.format.scan.change_scan import ChangeScan

        return ChangeScan(self.metadata, self.io, from_snapshot_id, to_snapshot_id, selected_fields)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables of the pinned metadata: files, snapshots, partitions and so on.

        >>> table.inspect.files(row_filter="content = 0").to_pandas()  # doctest: +SKIP
        """
        from icecomb.format.inspect.inspection import Inspect

        return Inspect(self.metadata, self.io, self.metadata_location)

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance of the table: expiry, clean-up, rewriting.

        >>> table.maintenance.expire_snapshots().retain_last(10).commit()  # doctest: +SKIP
        """
        from icecomb.catalog import Maintenance

        return Maintenance(self)

    def new_fast_append(
        self, snapshot_properties: Mapping[str, str] | None = None, branch: str = MAIN_BRANCH
    ) -> FastAppend:
        """Create an append of data files that are written already, for `commit`."""
        from icecomb.format.operation.append import FastAppend

        return FastAppend(self.io, snapshot_properties, branch)

    @contextmanager
    def _widened(self, frame: pa.Schema) -> Iterator[RowOperations]:
        with self.transaction() as transaction, transaction._widened(frame) as widened:  # noqa: SLF001
            yield widened

    def _renew(self, state: TableMetadata) -> bool:
        seen = self._version
        newest = newest_of(self._pointer, seen)
        self._move(seen, newest)
        return seen.metadata is not state or newest.location != seen.location

    def _newest_loader(self, *, moves: bool = False) -> Callable[[], TableMetadata]:
        def load() -> TableMetadata:
            seen = self._version
            newest = self._pointer.load()
            if moves:
                self._move(seen, newest)
            return newest.metadata

        return load

    def _check_deletable(self, metadata: TableMetadata) -> None:
        self._pointer.check_writable(metadata)  # deleting needs the same right
        self._pointer.check_deletable(metadata)

    def _committed(self) -> TableMetadata:
        return self.metadata

    def _own_folders(self) -> Sequence[str]:
        return self._pointer.own_folders()

    def _other_tables(self) -> Iterator[tuple[TableMetadata, str]]:
        from icecomb.catalog.commit.version_line import other_lines

        folder, *_ = self._own_folders()
        yield from tables_in_folder(self.catalog, self.identifier, self.metadata, self.io, folder)
        yield from other_lines(self.io, self.metadata, self.metadata_location)

    def transaction(self) -> Transaction:
        """Begin several changes in one commit: others see all of them or none."""
        from icecomb.catalog.table.transaction import Transaction

        return Transaction(self)

    def commit(self, producer: Producer) -> Table:
        """Commit a change, retried on newer metadata by ``commit.retry.*``; return this table.

        Raises:
            CommitFailedError: If it is proven that nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed; nothing was deleted.
        """
        seen = self._version
        self._move(seen, commit(self._pointer, self.io, seen, producer))
        return self


def tables_in_folder(
    catalog: CatalogAdmin,
    name: Identifier,
    metadata: TableMetadata,
    io: FileIO,
    folder: str,
    *,
    anywhere: bool = False,
) -> Iterator[tuple[TableMetadata, str]]:
    """Yield other tables of the namespace in a table's folder, with their metadata files.

    They may share files with the table: two entries may name one metadata file. So do tables with
    its uuid, wherever they are stored by now.

    Args:
        anywhere: Whether to check tables of other namespaces, too, which may be many.
    """
    own: list[str] = []
    uuid = metadata.table_uuid
    for entry in catalog.entries_below(
        folder, None if anywhere else name[:-1], uuid=None if uuid is None else str(uuid)
    ):
        if entry.identifier == name:
            continue
        if entry.metadata_location is not None:
            yield read_metadata(io, entry.metadata_location), entry.metadata_location
            continue
        own = own or plain_texts([folder.rstrip("/")], io.properties)
        if plain_texts([entry.location.rstrip("/")], io.properties) == own:
            other, table = ".".join(entry.identifier), ".".join(name)
            raise ValidationError(
                f"It is unknown which files only {table} needs: its folder is that of table "
                f"{other} as well: {folder}",
                hint=f"Drop the entry {other}, or give one of the two a folder of its own.",
                table=table,
                path=folder,
            )


def unknown_attribute(name: str) -> AttributeError:
    """Return the error for an attribute that a table does not have."""
    instead = _INSTEAD.get(name)
    hint = f"; write {instead}" if instead else ""
    return AttributeError(f"a table has no attribute {name!r}{hint}", name=name)
