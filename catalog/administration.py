"""Questions to a catalog that are not about its tables' contents."""

from __future__ import annotations

from collections.abc import Iterator

from icecomb.catalog.identifier import AbandonedLock, Entry, Identifier, Name


class CatalogAdmin:
    """Entries, locks and late requests, as diagnosis and maintenance ask for them."""

    def entries_below(
        self,
        folder: str,  # noqa: ARG002
        namespace: Identifier | None = None,  # noqa: ARG002
        *,
        uuid: str | None = None,  # noqa: ARG002
    ) -> Iterator[Entry]:
        """Return the catalog's entries of tables of any format stored in or below a folder.

        Iceberg tables whose entries name other folders of theirs are stored there, too.

        A catalog in which tables are folders returns none: listing the folder tells more.

        Args:
            folder: The folder.
            namespace: Check the tables of this namespace only; default all.
            uuid: Return Iceberg tables with this uuid, too, wherever their folders are: one that
                was registered twice shares its files, even after it was given another location.
        """
        return iter(())

    def abandoned_locks(self, identifier: Name | None = None) -> list[AbandonedLock]:  # noqa: ARG002
        """Return locks on tables whose holders must be dead; a catalog without locks has none.

        Args:
            identifier: Only locks on this table.

        Raises:
            MetastoreError: If the catalog cannot list its locks.
        """
        return []

    def rejects_stale_swap(self, identifier: Name, *, expectation_sent: bool) -> bool:  # noqa: ARG002
        """Return whether the holder of the pointer rejects a commit that arrives late.

        The file system does: no file replaces another one.

        Args:
            identifier: The table or view.
            expectation_sent: Whether the commit's request says which pointer it expects, as
                icecomb's do.
        """
        return True
