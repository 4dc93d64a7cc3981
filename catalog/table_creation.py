"""Transactions that make a table, or make it another one: it appears together with its changes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.catalog.transaction import Transaction
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConflictError,
    IcecombError,
    ValidationError,
)
from icecomb.format.spec.requirement import AssertTableUUID
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.update import Changes, update_table_metadata

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.catalog.definition import Draft
    from icecomb.catalog.table import Table
    from icecomb.format.evolution.replacement import TableReplacement
    from icecomb.format.spec.metadata import TableMetadata


class CreateTableTransaction(Transaction):
    """Makes a table together with changes of it; it is not tried again when the name is taken.

    >>> with catalog.create_table_transaction("db.t", schema) as new:  # doctest: +SKIP
    ...     new.append(rows)

    Args:
        draft: The table, of which nothing is written yet.
    """

    def __init__(self, draft: Draft) -> None:
        self._begin(draft.io, draft, draft.metadata)
        self._draft = draft

    def commit_transaction(self) -> Table:
        """Make the table, with all changes; a context manager does so at its end.

        Raises:
            TableAlreadyExistsError: If the name was taken meanwhile; what was written is removed.
            CommitStateUnknownError: If it cannot be told whether the table was made.
        """
        if self._ended:
            raise ValidationError(
                "The transaction is over; begin a new one",
                hint="call create_table_transaction again",
            )
        self._ended = True
        try:
            # one fold over all updates: the history is not to show what was never visible
            metadata = update_table_metadata(self._base, self._changes.updates)
            table = self._draft.catalog.publish(self._draft, metadata)
        except CommitStateUnknownError:
            raise
        except IcecombError:
            # the name may be taken by ourselves: then what was written is needed
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
            self._draft.catalog.forget(self._draft)


class ReplaceTableTransaction(Transaction):
    """Makes a table another one together with changes of it; the history stays.

    When others commit first, it is the old table of theirs that is replaced; rows that come from
    the old table must `rely_on` the snapshot they were read of.

    >>> old = catalog.load_table("db.t")  # doctest: +SKIP
    >>> with catalog.replace_table_transaction("db.t", schema) as new:  # doctest: +SKIP
    ...     new.rely_on(old.current_snapshot().snapshot_id)
    ...     new.append(old.scan().to_arrow())

    Args:
        table: The table as it is.
        replacement: What it becomes.
    """

    def __init__(self, table: Table, replacement: TableReplacement) -> None:
        super().__init__(table)
        self._relied_on: dict[str, int | None] = {}
        self._pointer.check_writable(table.metadata)
        self.commit(replacement)

    def rely_on(self, snapshot_id: int | None, branch: str = MAIN_BRANCH) -> Self:
        """Refuse the commit when the old table is at another snapshot by then.

        For new rows that were made of those of the old table: what others have added meanwhile
        would be gone.

        Args:
            snapshot_id: What was read; None is a branch without a snapshot.
            branch: The branch it is the head of.
        """
        self._relied_on[branch] = snapshot_id
        return self

    def apply(self, base: TableMetadata) -> Changes:
        """See `Producer.apply`: nothing of the old table but its identity must be as it was.

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
            f"now, and its rows were read of {'none' if read is None else f'snapshot {read}'}",
            hint="Run the statement again: it reads what others have changed, too.",
            snapshot_ids=() if now is None else (now,),
            table=name,
        )

    def _check_layout(self, seen: TableMetadata, metadata: TableMetadata) -> None:
        """Refuse files written with ids that the newer table uses for something else."""
        same = (
            seen.schema().fields == metadata.schema().fields
            and seen.spec() == metadata.spec()
            and seen.sort_order() == metadata.sort_order()
        )
        if not same:
            raise CommitFailedError(
                "The schema or the partitioning of the table was changed while its replacement was "
                "written with ids that mean something else now",
                hint="Begin the transaction again.",
            )
