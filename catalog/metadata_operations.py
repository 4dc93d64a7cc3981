"""The operations of a table on its metadata: schema, partitioning, properties, snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icecomb.catalog.commit import Producer
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata
    from icecomb.format.operation.expire import ExpireSnapshots
    from icecomb.format.property_update import UpdateProperties
    from icecomb.format.schema_update import UpdateSchema
    from icecomb.format.snapshot_management import ManageSnapshots
    from icecomb.format.sort_update import UpdateSortOrder
    from icecomb.format.spec_update import UpdateSpec


class MetadataOperations(ABC):
    """What a `Table` and a `Transaction` change without touching rows.

    Each operation is a context manager: calls are checked when they are made, and committed
    together at the end of the block, or by ``commit()``.
    """

    io: FileIO

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The metadata this object works on."""

    @abstractmethod
    def commit(self, producer: Producer) -> Any:
        """Commits a change."""

    def update_schema(
        self,
        allow_incompatible_changes: bool = False,  # noqa: FBT001, FBT002 - PyIceberg's signature
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
    ) -> UpdateSchema:
        """Adds, changes, drops and moves columns.

        >>> with table.update_schema() as update:  # doctest: +SKIP
        ...     update.add_column("city", StringType())
        ...     update.rename_column("address.zip", "postcode")

        Args:
            allow_incompatible_changes: Allow what existing rows may contradict.
            case_sensitive: Whether the names given are.
        """
        from icecomb.format.schema_update import UpdateSchema

        return UpdateSchema(
            self.metadata,
            self.commit,
            allow_incompatible_changes=allow_incompatible_changes,
            case_sensitive=case_sensitive,
        )

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Changes how new files are put into partitions; existing ones stay as they are.

        >>> with table.update_spec() as update:  # doctest: +SKIP
        ...     update.add_field("ts", "day").remove_field("city")
        """
        from icecomb.format.spec_update import UpdateSpec

        return UpdateSpec(self.metadata, self.commit, case_sensitive=case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Replaces the order in which new files are sorted.

        >>> with table.update_sort_order() as update:  # doctest: +SKIP
        ...     update.asc("city").desc("ts")
        """
        from icecomb.format.sort_update import UpdateSortOrder

        return UpdateSortOrder(self.metadata, self.commit, case_sensitive=case_sensitive)

    def update_properties(self) -> UpdateProperties:
        """Sets and removes properties; ``format-version`` upgrades the table.

        >>> with table.update_properties() as update:  # doctest: +SKIP
        ...     update.set("format-version", "2").remove("comment")
        """
        from icecomb.format.property_update import UpdateProperties

        return UpdateProperties(self.commit)

    def manage_snapshots(self) -> ManageSnapshots:
        """Makes, moves and removes branches and tags; rolls back, or picks a staged snapshot.

        >>> with table.manage_snapshots() as manage:  # doctest: +SKIP
        ...     manage.create_tag(snapshot_id, "before-import").rollback_to_snapshot(snapshot_id)
        """
        from icecomb.format.snapshot_management import ManageSnapshots

        return ManageSnapshots(self.metadata, self.io, self.commit)

    def expire_snapshots(self, *, dry_run: bool = False) -> ExpireSnapshots:
        """Removes old snapshots and, once that is committed, the files that only they need.

        >>> with table.expire_snapshots(dry_run=True) as expire:  # doctest: +SKIP
        ...     expire.older_than(datetime(2024, 1, 1)).retain_last(10)
        >>> expire.result.files.data_files  # doctest: +SKIP

        Args:
            dry_run: Only find out what would be removed.
        """
        from icecomb.format.operation.expire import ExpireSnapshots

        return ExpireSnapshots(self.metadata, self.io, self.commit, dry_run=dry_run)
