"""Several changes of a table in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from icecomb.catalog.commit.commit import check_new_files
from icecomb.catalog.table.metadata_operations import MetadataOperations
from icecomb.catalog.table.row_operations import RowOperations
from icecomb.format.argument import check_flags, checked_int, property_texts
from icecomb.format.errors import CommitFailedError, IcecombError, ValidationError
from icecomb.format.evolution.pending_update import PendingUpdate
from icecomb.format.evolution.property_update import UpdateLocation
from icecomb.format.row_changes.write_target import NoChange, WriteTarget
from icecomb.format.spec.change.requirement import AssertRefSnapshotId
from icecomb.format.spec.change.update import Changes, update_table_metadata
from icecomb.format.spec.snapshot import MAIN_BRANCH, ancestors_of

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icecomb.catalog.commit.commit import Producer
    from icecomb.catalog.commit.pointer import WriteGuard
    from icecomb.catalog.table.table import Table
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.row_changes.write_target import WrittenChange
    from icecomb.format.spec.change.requirement import TableRequirement
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


class Transaction(RowOperations, MetadataOperations):
    """Several changes; each sees those before it, others see all of them or none.

    If others commit first, the changes are repeated on the new metadata in the same order.

    >>> with table.transaction() as transaction:  # doctest: +SKIP
    ...     with transaction.update_schema() as update:
    ...         update.add_column("city", StringType())
    ...     transaction.append(rows)

    Args:
        table: The table; after the commit it has the new metadata.
    """

    starting_point: None = None
    writes_files: ClassVar[bool] = False
    """It asks for each of its changes."""

    def __init__(self, table: Table) -> None:
        self._begin(table.io, table._pointer, table.metadata)  # noqa: SLF001 - a part of its table
        self._table = table
        self.write_properties = table.write_properties

    def _begin(self, io: FileIO, guard: WriteGuard, metadata: TableMetadata) -> None:
        self.io = io
        self.write_properties = {}
        self._pointer = guard
        self._base = metadata
        self._metadata = metadata
        self._staged: list[tuple[Producer, TableMetadata]] = []
        self._changes = Changes()
        self._ended = False

    def _check_deletable(self, metadata: TableMetadata) -> None:
        self._pointer.check_deletable(metadata)

    def _committed(self) -> TableMetadata:
        return self._base

    def _check_files(self, metadata: TableMetadata) -> None:  # noqa: ARG002 - has its own changes
        self.check_new_files()

    def _own_folders(self) -> Sequence[str]:
        return self._pointer.own_folders()

    def _other_tables(self) -> Iterator[tuple[TableMetadata, str]]:
        table: Table | None = getattr(self, "_table", None)  # a creating transaction has none
        return iter(()) if table is None else table._other_tables()  # noqa: SLF001

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata with the changes made so far."""
        return self._metadata

    @property
    def table_metadata(self) -> TableMetadata:
        """Same as `metadata`."""
        return self._metadata

    def commit(self, producer: Producer) -> Self:
        """Add a change to the transaction; nothing is visible to others yet.

        Raises:
            ValidationError: If the change does not fit, or the transaction is over.
        """
        if self._ended:
            raise ValidationError(
                "The transaction is over; begin a new one",
                hint="Call transaction() of the table again.",
            )
        if producer.writes_files:
            self.check_new_files()
        try:
            changes = producer.apply(self._metadata)
            metadata = _changed(self._metadata, changes)
        except IcecombError:
            with suppress(IcecombError, OSError):
                producer.clean_up(None)
            raise
        self._staged.append((producer, self._metadata))
        self._metadata = metadata
        self._changes = _joined(self._changes, changes)
        return self

    def set_properties(self, properties: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Set properties, given as a mapping or by name."""
        with self.update_properties() as update:
            for key, value in {**property_texts("property", properties), **more}.items():
                update.set(key, value)
        return self

    def remove_properties(self, *removals: str) -> Self:
        """Remove properties; missing ones are ignored."""
        with self.update_properties() as update:
            for key in removals:
                update.remove(key)
        return self

    def upgrade_table_version(self, format_version: int) -> Self:
        """Raise the format version."""
        return self.set_properties({"format-version": checked_int("version", format_version)})

    def update_location(self, location: str) -> Self:
        """Change the base location for new files; existing ones are not moved."""
        return self.commit(UpdateLocation(location))

    def append_data_files(
        self,
        files: Sequence[DataFile],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
    ) -> Self:
        """Append data files that were written for this transaction.

        They are deleted when the transaction ends without a commit.

        Args:
            files: New files, with the ids and of a partition spec of `metadata`.
            snapshot_properties: More keys of the snapshot's summary.
            branch: The branch to commit to; one that does not exist begins at ``main``.
            stage_only: Whether the branch does not change, see `publish_changes`.

        Raises:
            ValidationError: If a file does not fit, or the transaction is over.
        """
        from icecomb.format.row_changes.table_append import append_files

        check_flags(stage_only=stage_only)
        target = WriteTarget(self.io, self.metadata, branch, snapshot_properties or {})
        self._commit_change(append_files(target, files, stage_only=stage_only))
        return self

    def abandon(self) -> None:
        """End the transaction without a commit; the files it wrote are deleted.

        A transaction that is over is unchanged.
        """
        if not self._ended:
            self._ended = True
            self._give_up()

    def commit_transaction(self) -> Table:
        """Commit all changes at once; a context manager does so at its end.

        Returns:
            The table, refreshed to the new metadata.

        Raises:
            ValidationError: If a change does not fit what others committed meanwhile.
            CommitFailedError: If other writers were first; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the changes were committed.
        """
        if self._ended:
            raise ValidationError(
                "The transaction is over; begin a new one",
                hint="Call transaction() of the table again.",
            )
        self._ended = True
        if self._staged:
            self._table.commit(self)
        return self._table

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ended:
            return
        if kind is None:
            self.commit_transaction()
        else:
            self.abandon()

    def _give_up(self) -> None:
        self.clean_up(None)

    def apply(self, base: TableMetadata) -> Changes:
        """Return all changes on this base, as one; see `Producer.apply`."""
        if base is self._base:
            return self._changes
        metadata, joined = base, Changes()
        for producer, seen in self._staged:
            if producer.writes_files:
                check_new_files(self._pointer, self.io, base)
            if not isinstance(producer, (PendingUpdate, NoChange)):
                self._check_start(producer, base, seen, metadata)
                self._check_layout(seen, metadata)
            changes = producer.apply(metadata)
            metadata = _changed(metadata, changes)
            joined = _joined(joined, changes)
        return joined

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete unneeded files once the outcome is proven; see `Producer.clean_up`."""
        # an expiration reads earlier staged files, and deletes those that are not needed
        for producer, _ in reversed(self._staged):
            producer.clean_up(committed)

    @contextmanager
    def _widened(self, frame: pa.Schema) -> Iterator[RowOperations]:
        saved = len(self._staged), self._metadata, self._changes
        with self.update_schema() as update:
            update.union_by_name(frame)
        try:
            yield self
        except BaseException:
            count, self._metadata, self._changes = saved
            del self._staged[count:]
            raise

    def _commit_change(self, change: WrittenChange | NoChange | None) -> bool:
        if self._ended and change is not None:
            change.clean_up(None)
        if isinstance(change, NoChange):
            self._commit_check(change)
            return True
        return super()._commit_change(change)

    def _commit_check(self, found: NoChange) -> None:
        """Let the commit refuse what others have added to the rows of which there were none."""
        if not (found.serializable or self._ended):
            return
        head = _head(self._metadata, found.target.branch)
        begin = None if head is None else _stands_on(self._metadata, head, self._base)
        new = takewhile(
            lambda each: not self._base.has_snapshot(each.snapshot_id),
            reversed(self._metadata.snapshots),
        )
        self.commit(replace(found, start=begin, own=frozenset(s.snapshot_id for s in new)))

    def _check_layout(self, seen: TableMetadata, metadata: TableMetadata) -> None:
        """Refuse files written with ids that this transaction assigned and that changed since."""
        schema, now = seen.schema(), metadata.schema()
        moved = any(
            not now.contains(i)
            or now.find_field(i) != schema.find_field(i)
            or now.find_column_name(i) != schema.find_column_name(i)
            for i in schema.field_ids
            if i > self._base.last_column_id
        )
        spec, order = seen.spec(), seen.sort_order()
        if seen.default_spec_id not in self._base.specs():
            moved = moved or metadata.specs().get(spec.spec_id) != spec
        if order not in self._base.sort_orders:
            moved = moved or order not in metadata.sort_orders
        if moved:
            raise CommitFailedError(
                "The schema or the partitioning was changed while the transaction changed it, too, "
                "and wrote files",
                hint="Begin the transaction again on the refreshed table.",
            )

    def _check_start(
        self,
        producer: Producer,
        base: TableMetadata,
        seen: TableMetadata,
        metadata: TableMetadata,
    ) -> None:
        """Refuse to repeat a change that relies on a snapshot of this transaction.

        Conflicts are checked after that snapshot, so earlier commits of others would be missed: on
        the branch, or on `main` if the transaction created the branch there.

        Args:
            base: What others have committed.
            seen: The metadata with the changes before this one when it was made.
            metadata: The same now.
        """
        if producer.starting_point is None:
            return
        branch, start = producer.starting_point
        if self._base.has_snapshot(start):
            return
        before, now = self._base.refs.get(branch), base.refs.get(branch)
        made_on = _stands_on(seen, start, self._base)
        if before != now or made_on != _stands_on(metadata, start, base):
            raise CommitFailedError(
                f"Branch {branch!r} was changed while the transaction changed its rows twice",
                hint="Begin the transaction again on the refreshed table.",
            )
        # what moves rows has written the ids and numbers that they had before the repetition
        if (
            self._metadata.format_version >= 3
            and base.last_sequence_number != self._base.last_sequence_number
        ):
            raise CommitFailedError(
                "The table was changed beside the transaction, which may have written the ids of "
                "rows that it added and moved: other rows have them now",
                hint="Begin the transaction again on the refreshed table.",
            )


def _head(metadata: TableMetadata, branch: str) -> int | None:
    head = metadata.snapshot_by_name(branch if branch in metadata.refs else MAIN_BRANCH)
    return None if head is None else head.snapshot_id


def _stands_on(metadata: TableMetadata, snapshot_id: int, base: TableMetadata) -> int | None:
    """Return the snapshot on which those that a base does not have begin, up to this one."""
    own = takewhile(
        lambda each: not base.has_snapshot(each.snapshot_id), ancestors_of(metadata, snapshot_id)
    )
    found: int | None = snapshot_id
    for snapshot in own:
        found = snapshot.parent_snapshot_id
    return found


def _changed(metadata: TableMetadata, changes: Changes) -> TableMetadata:
    for requirement in changes.requirements:
        requirement.check(metadata)
    return update_table_metadata(metadata, changes.updates)


def _joined(first: Changes, second: Changes) -> Changes:
    """Join both; of requirements on one subject, only the first is about the base."""
    known = {_subject(requirement) for requirement in first.requirements}
    new = tuple(r for r in second.requirements if _subject(r) not in known)
    return Changes((*first.requirements, *new), (*first.updates, *second.updates))


def _subject(requirement: TableRequirement) -> tuple[type, str | None]:
    ref = requirement.ref if isinstance(requirement, AssertRefSnapshotId) else None
    return type(requirement), ref
