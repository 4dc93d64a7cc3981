"""Transactions that create or replace a table: it appears together with its changes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.catalog.table.transaction import Transaction
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConflictError,
    IcecombError,
    ValidationError,
)
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import Changes, update_table_metadata
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.catalog.table.definition import Draft
    from icecomb.catalog.table.table import Table
    from icecomb.format.evolution.replacement import TableReplacement
    from icecomb.format.spec.metadata import TableMetadata


class CreateTableTransaction(Transaction):
    """A transaction that creates a table with its changes; not retried if the name is taken.

    >>> with catalog.create_table_transaction("db.t", schema) as new:  # doctest: +SKIP
    ...     new.append(rows)

    Args:
        draft: The table, of which nothing is written yet.
    """

    def __init__(self, draft: Draft) -> None:
        self._begin(draft.io, draft, draft.metadata)
        self._draft = draft

    def commit_transaction(self) -> Table:
        """Create the table, with all changes; a context manager does so at its end.

        Raises:
            TableAlreadyExistsError: If the name was taken meanwhile; what was written is removed.
            CommitStateUnknownError: If it is unknown whether the table was created.
        """
        if self._ended:
            raise ValidationError(
                "The transaction is over; begin a new one",
                hint="Call create_table_transaction again.",
            )
        self._ended = True
        try:
            # one pass over all updates: the history must not show what was never visible
            metadata = update_table_metadata(self._base, self._changes.updates)
            table = self._draft.catalog.publish(self._draft, metadata)
        except CommitStateUnknownError:
            raise
        except IcecombError:
            # this transaction may have taken the name itself: then the written files are needed
            with suppress(IcecombError, OSError):
                table = self._draft.catalog.load_table(self._draft.identifier)
                if table.metadata.table_uuid == self._base.table_uuid:
                    return table
            self._give_up()
            raise
        with suppress(IcecombError, OSError):
            self.clean_up(table.metadata)
        return table

    def _give_up(self) -> None:
        with suppress(IcecombError, OSError):
            self.clean_up(None)
        with suppress(IcecombError, OSError):
            self._draft.catalog.discard(self._draft)


class ReplaceTableTransaction(Transaction):
    """A transaction that replaces a table, together with changes of it; the history stays.

    If others commit first, their version of the old table is replaced; rows derived from the old
    table must `rely_on` the snapshot from which they were read.

    >>> old = catalog.load_table("db.t")  # doctest: +SKIP
    >>> with catalog.replace_table_transaction("db.t", schema) as new:  # doctest: +SKIP
    ...     new.rely_on(old.current_snapshot().snapshot_id)
    ...     new.append(old.scan().to_arrow())

    Args:
        table: The table to replace.
        replacement: The change that replaces it.
    """

    def __init__(self, table: Table, replacement: TableReplacement) -> None:
        super().__init__(table)
        self._relied_on: dict[str, int | None] = {}
        self._pointer.check_writable(table.metadata)
        self.commit(replacement)

    def rely_on(self, snapshot_id: int | None, branch: str = MAIN_BRANCH) -> Self:
        """Refuse the commit if the old table has moved to another snapshot.

        For new rows derived from those of the old table: rows that others add meanwhile would
        be lost.

        Args:
            snapshot_id: The snapshot that was read; None for a branch without a snapshot.
            branch: The branch whose head it is.
        """
        self._relied_on[branch] = snapshot_id
        return self

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `Producer.apply`: only the uuid of the old table must not have changed.

        Raises:
            ConflictError: If others have changed a branch that the new rows rely on.
        """
        for branch, snapshot_id in self._relied_on.items():
            self._check_unchanged(base, branch, snapshot_id)
        changes = super().apply(base)
        return Changes((AssertTableUUID(base.table_uuid),), changes.updates)

    def _check_unchanged(self, base: TableMetadata, branch: str, read: int | None) -> None:
        ref = base.refs.get(branch)
        now = None if ref is None else ref.snapshot_id
        if now == read:
            return
        name = ".".join(self._table.identifier)
        snapshot = None if now is None else base.snapshot_by_id(now)
        made = "no snapshot" if snapshot is None else f"snapshot {now} ({snapshot.operation})"
        raise ConflictError(
            f"Table {name} cannot be replaced by rows of its own: its branch {branch!r} has {made} "
            f"now, and its rows were read from {'none' if read is None else f'snapshot {read}'}",
            hint="Run the statement again: it reads what others have changed, too.",
            snapshot_ids=() if now is None else (now,),
            table=name,
        )

    def _check_layout(self, seen: TableMetadata, metadata: TableMetadata) -> None:
        """Refuse files written with ids that the newer table uses for other fields."""
        same = (
            seen.schema().fields == metadata.schema().fields
            and seen.spec() == metadata.spec()
            and seen.sort_order() == metadata.sort_order()
        )
        if not same:
            raise CommitFailedError(
                "The schema or the partitioning of the table was changed while its replacement was "
                "written with ids that now mean other fields",
                hint="Begin the transaction again.",
            )
