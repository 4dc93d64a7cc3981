"""The operations of a table on its metadata: schema, partitioning, properties, snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from icecomb.format.argument import check_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from icecomb.catalog.commit.commit import Producer
    from icecomb.catalog.commit.pointer import WriteGuard
    from icecomb.format.evolution.property_update import UpdateProperties
    from icecomb.format.evolution.schema_update import UpdateSchema
    from icecomb.format.evolution.sort_update import UpdateSortOrder
    from icecomb.format.evolution.spec_update import UpdateSpec
    from icecomb.format.manifests.manifest import DataFile, ManifestFile
    from icecomb.format.operation.expiry.expire import ExpireSnapshots
    from icecomb.format.operation.snapshot_management import ManageSnapshots
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.statistics.statistics_update import UpdateStatistics
    from icecomb.format.storage.file_io import FileIO


class MetadataOperations(ABC):
    """Changes of a `Table` and a `Transaction` that do not touch rows.

    Each operation is a context manager: calls are checked when they are made, and committed
    together at the end of the block, or by ``commit()``.
    """

    io: FileIO
    _pointer: WriteGuard

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The metadata that this object works on."""

    @abstractmethod
    def commit(self, producer: Producer) -> Any:
        """Commit a change."""

    def _newest_loader(
        self,
        *,
        moves: bool = False,  # noqa: ARG002 - here nothing is loaded
    ) -> Callable[[], TableMetadata] | None:
        """Return the loader of the newest metadata, or None for the pinned metadata only.

        Args:
            moves: Whether this object is pinned to what is loaded.
        """
        return None

    @abstractmethod
    def _check_deletable(self, metadata: TableMetadata) -> None:
        """Refuse to delete files of a table whose files may be those of another table."""

    def _check_list(self, metadata: TableMetadata) -> None:
        from icecomb.catalog.commit.commit import check_new_lists

        check_new_lists(self._pointer, self.io, metadata)

    def _check_files(self, metadata: TableMetadata) -> None:
        from icecomb.catalog.commit.commit import check_new_files

        check_new_files(self._pointer, self.io, metadata)

    @abstractmethod
    def _own_folders(self) -> Sequence[str]:
        """Return the folders of the table that its catalog vouches for, its location first."""

    def _other_tables(self) -> Iterator[tuple[TableMetadata, str]]:
        """Yield other tables that may need files of this one."""
        return iter(())

    def update_schema(
        self,
        allow_incompatible_changes: bool = False,  # noqa: FBT001, FBT002 - PyIceberg's signature
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
    ) -> UpdateSchema:
        """Add, change, drop and move columns.

        >>> with table.update_schema() as update:  # doctest: +SKIP
        ...     update.add_column("city", StringType())
        ...     update.rename_column("address.zip", "postcode")

        Args:
            allow_incompatible_changes: Whether to allow changes that existing rows may contradict.
            case_sensitive: Whether the given names are case-sensitive.
        """
        from icecomb.format.evolution.schema_update import UpdateSchema

        check_flags(
            allow_incompatible_changes=allow_incompatible_changes, case_sensitive=case_sensitive
        )
        return UpdateSchema(
            self.metadata,
            self.commit,
            allow_incompatible_changes=allow_incompatible_changes,
            case_sensitive=case_sensitive,
        )

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Change the partitioning of new files; existing ones do not change.

        >>> with table.update_spec() as update:  # doctest: +SKIP
        ...     update.add_field("ts", "day").remove_field("city")
        """
        from icecomb.format.evolution.spec_update import UpdateSpec

        check_flags(case_sensitive=case_sensitive)
        return UpdateSpec(self.metadata, self.commit, case_sensitive=case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Replace the sort order of new files.

        >>> with table.update_sort_order() as update:  # doctest: +SKIP
        ...     update.asc("city").desc("ts")
        """
        from icecomb.format.evolution.sort_update import UpdateSortOrder

        check_flags(case_sensitive=case_sensitive)
        return UpdateSortOrder(self.metadata, self.commit, case_sensitive=case_sensitive)

    def update_properties(self) -> UpdateProperties:
        """Set and remove properties; ``format-version`` upgrades the table.

        >>> with table.update_properties() as update:  # doctest: +SKIP
        ...     update.set("format-version", "2").remove("comment")
        """
        from icecomb.format.evolution.property_update import UpdateProperties

        return UpdateProperties(self.commit)

    def update_statistics(self) -> UpdateStatistics:
        """Set and remove the statistics files of snapshots, which others computed.

        `maintenance.compute_table_stats` computes them, too.

        >>> with table.update_statistics() as update:  # doctest: +SKIP
        ...     update.set_statistics(statistics_file).remove_statistics(snapshot_id)
        """
        from icecomb.format.statistics.statistics_update import UpdateStatistics

        return UpdateStatistics(self.commit)

    def manage_snapshots(self) -> ManageSnapshots:
        """Create, move and remove branches and tags; roll back, or pick a staged snapshot.

        >>> with table.manage_snapshots() as manage:  # doctest: +SKIP
        ...     manage.create_tag(snapshot_id, "before-import").rollback_to_snapshot(snapshot_id)
        """
        from icecomb.format.operation.snapshot_management import ManageSnapshots

        return ManageSnapshots(
            self.metadata,
            self.io,
            self.commit,
            self._newest_loader(),
            check_files=self._check_files,
        )

    def expire_snapshots(self, *, dry_run: bool = False) -> ExpireSnapshots:
        """Remove old snapshots and, once that is committed, the files that only they need.

        >>> with table.expire_snapshots(dry_run=True) as expire:  # doctest: +SKIP
        ...     expire.older_than(datetime(2024, 1, 1)).retain_last(10)
        >>> expire.result.files.data_files  # doctest: +SKIP

        Args:
            dry_run: Whether only to find out what would be removed.
        """
        from icecomb.format.operation.expiry.expire import ExpireSnapshots

        check_flags(dry_run=dry_run)
        return ExpireSnapshots(
            self.metadata,
            self.io,
            self.commit,
            dry_run=dry_run,
            folders=self._own_folders,
            # versions of this table are told from those of others by the newest
            newest=self._newest_loader(moves=True),
            others=self._other_tables,
            check_deletable=self._check_deletable,
            check_list=self._check_list,
        )

    def rewrite_manifests(
        self,
        rewrite_if: Callable[[ManifestFile], bool] | None = None,
        cluster_by: Callable[[DataFile], Hashable] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the manifests of ``main`` by fewer ones, sorted by partition; rows stay.

        >>> table.rewrite_manifests(lambda m: m.manifest_length < 1_000_000)  # doctest: +SKIP

        Args:
            rewrite_if: Returns whether to rewrite a manifest; by default all.
            cluster_by: Returns a key whose files get manifests of their own, instead of sorting.
            snapshot_properties: More keys of the snapshot's summary.

        Raises:
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.format.operation.rewrite_manifests import RewriteManifests

        rewrite = RewriteManifests(self.io, snapshot_properties)
        if rewrite_if is not None:
            rewrite.rewrite_if(rewrite_if)
        if cluster_by is not None:
            rewrite.cluster_by(cluster_by)
        self.commit(rewrite)

    def publish_changes(self, wap_id: str) -> None:
        """Publish a change to ``main`` that was staged under a ``wap.id``.

        A change is staged, to be checked first, if the table property ``write.wap.enabled`` is
        true and the snapshot properties of an operation have a ``wap.id``:

        >>> table.append(df, {"wap.id": "load-7"})  # doctest: +SKIP
        >>> table.publish_changes("load-7")  # doctest: +SKIP

        Raises:
            NoSuchSnapshotError: If nothing was staged under this id.
            ValidationError: If it was published already, several snapshots have the id, or the
                table changed in a way that the staged change does not fit.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        with self.manage_snapshots() as manage:
            manage._cherry_pick_staged(wap_id)  # noqa: SLF001 - what this method is for
