"""Tables that a statement is creating, invisible to others before their one commit."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING

from icecomb.format.errors import CommitFailedError
from icecomb.spark.planner.table.states import TableState

if TYPE_CHECKING:
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.spark.planner.protocol.tables import Reference


class StagedTables:
    """The transactions of statements that create or replace a table.

    They are lost with the planner process: their statements then fail, with nothing committed.
    """

    def __init__(self) -> None:
        self._transactions: dict[str, Transaction] = {}
        self._lock = threading.Lock()

    def add(
        self, catalog: str, identifier: tuple[str, ...], transaction: Transaction
    ) -> TableState:
        """Add a table that is being created in the catalog of a handle; return its state."""
        staged = str(uuid.uuid4())
        with self._lock:
            self._transactions[staged] = transaction
        return _state(catalog, identifier, staged, transaction)

    def find(self, reference: Reference) -> TableState:
        """Find the state of a reference to a staged table; `CommitFailedError` if it was lost."""
        staged = reference.staged or ""
        with self._lock:
            transaction = self._transactions.get(staged)
        if transaction is None:
            raise lost(reference)
        return _state(reference.catalog, reference.identifier, staged, transaction)

    def take(self, reference: Reference) -> Transaction | None:
        """Remove and return the transaction; None if it was lost."""
        with self._lock:
            return self._transactions.pop(reference.staged or "", None)


def _state(
    catalog: str, identifier: tuple[str, ...], staged: str, transaction: Transaction
) -> TableState:
    no_file = ""
    return TableState(
        catalog, identifier, no_file, transaction.metadata, transaction.io, staged=staged
    )


def lost(reference: Reference) -> CommitFailedError:
    """Return the error of a statement whose transaction was lost."""
    name = ".".join(reference.identifier)
    return CommitFailedError(
        f"Table {name} was not created: the icecomb planner was restarted in the meantime",
        hint="run the statement again",
        table=name,
    )
