"""Maintenance of tables: one implementation for Python, `icecomb maintain` and CALL.

The modules beside this one do the work; `action` declares the commands and procedures. The result
of an action is a value whose fields are the columns that Iceberg's procedure of its name returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.catalog.report.progress import SILENT
from icecomb.format.argument import check_flags, checked_instant, checked_int, checked_members
from icecomb.format.errors import ValidationError
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from icecomb.catalog.health.table_health import TableHealth
    from icecomb.catalog.maintenance.compaction import RewrittenDataFiles
    from icecomb.catalog.maintenance.delete_files import ConvertedDeleteFiles, RewrittenDeleteFiles
    from icecomb.catalog.maintenance.engine import RewriteEngine
    from icecomb.catalog.maintenance.expiry import SnapshotExpiry
    from icecomb.catalog.maintenance.folder_listing import FolderEngine
    from icecomb.catalog.maintenance.orphans import OrphanFiles
    from icecomb.catalog.maintenance.quarantine import EmptiedQuarantine
    from icecomb.catalog.maintenance.table_path import RewrittenTablePath
    from icecomb.catalog.maintenance.table_statistics import (
        ComputedPartitionStats,
        ComputedTableStats,
        SketchEngine,
    )
    from icecomb.catalog.report.progress import Progress
    from icecomb.catalog.table.table import Table
    from icecomb.format.expressions.filter_argument import RowFilter


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """Numbers of replaced and new manifests.

    Attributes:
        rewritten_manifests_count: Replaced manifests.
        added_manifests_count: New manifests.
    """

    rewritten_manifests_count: int
    added_manifests_count: int


@dataclass(frozen=True, slots=True)
class SessionEngines:
    """The engines of a session that calls an action, for files, folders and columns."""

    groups: RewriteEngine | None = None
    folders: FolderEngine | None = None
    sketches: SketchEngine | None = None


class Maintenance:
    """The maintenance of one table, from `Table.maintenance`.

    Args:
        table: The table; it is moved to the version that an action commits.
    """

    _session = SessionEngines()

    def __init__(self, table: Table) -> None:
        self._table = table

    def health(self, *, orphans: bool = False) -> TableHealth:
        """Find what makes the table slow or large, with commands that fix it; nothing is changed.

        The manifests of the current snapshot are read once; the table is examined as loaded.

        >>> for found in table.maintenance.health().findings:  # doctest: +SKIP
        ...     print(found.severity, found.code, found.command)

        Args:
            orphans: Whether to search for files that nothing refers to, which lists its folder.

        Raises:
            CorruptFileError, NoSuchFileError: If metadata cannot be read.
        """
        from icecomb.catalog.health.examination import examine

        check_flags(orphans=orphans)
        return examine(self._table, orphans=orphans)

    def expire_snapshots(self) -> SnapshotExpiry:
        """Prepare an expiration call by call; nothing happens before its `commit()`.

        >>> expire = table.maintenance.expire_snapshots().retain_last(10)  # doctest: +SKIP
        >>> expire.plan()  # doctest: +SKIP
        >>> expire.commit()  # doctest: +SKIP
        """
        from icecomb.catalog.maintenance.expiry import SnapshotExpiry

        return SnapshotExpiry(self._table)

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        progress: Progress | None = None,
    ) -> RewrittenTablePath:
        """Write a copy of the metadata whose paths have another prefix, and list files to copy.

        The table does not change. Copied as the list says, its files are the same table elsewhere.
        The column `row` of some writers' position deletes is not copied.

        >>> table.maintenance.rewrite_table_path("hdfs://a/t", "s3://b/t")  # doctest: +SKIP

        Args:
            source_prefix: The prefix to replace, which all files of the table have.
            target_prefix: The prefix that takes its place.
            start_version: The metadata file up to which files were copied before; by default none.
            end_version: The metadata file up to which to copy; by default the current one.
            staging_location: An empty folder for the copies; by default a new one beside them.
            create_file_list: Whether to write the list.
            progress: Reporter of rewritten manifests and delete files.

        Raises:
            ValidationError: If a prefix or version is invalid, or a file has another prefix.
            NoSuchFileError: If a file that contains paths is missing.
            CorruptFileError: If one is damaged.
            FileAlreadyExistsError: If a file in the staging location has the name of a copy.
        """
        from icecomb.catalog.maintenance.table_path import rewrite_table_path

        return rewrite_table_path(
            self._table,
            source_prefix,
            target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
            progress=progress or SILENT,
        )

    def rewrite_data_files(
        self,
        *,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: RowFilter | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        engine: str = "auto",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewrittenDataFiles:
        """Rewrite data files that are small, large, or have many deleted rows; rows do not change.

        Groups of files of one partition become files of about `write.target-file-size-bytes`, with
        the table's current schema and partition spec, without deleted rows, in a new snapshot.
        Concurrent readers and writers need not wait: rows that others delete from the files are
        deleted from the new ones, too, and a group that others replaced is rewritten again.

        >>> table.maintenance.rewrite_data_files(options={"min-input-files": "2"})  # doctest: +SKIP

        Args:
            strategy: `binpack`, which keeps the order of rows, or `sort`; by default `sort` if
                an order is given.
            sort_order: An order such as `"a, b DESC NULLS LAST"` or `"zorder(a, b)"`; by default
                the table's.
            where: Filter of the files: only those that may hold matching rows.
            branch: The branch to commit to; by default `main`.
            options: Iceberg's options of the procedure, see docs/maintenance.md.
            case_sensitive: Whether names of columns in `where` and `sort_order` are case-sensitive.
            snapshot_properties: More keys of the snapshots' summaries.
            engine: `auto` and `local` run on this machine; `spark` is for CALL.
            dry_run: Whether to change nothing; the result then has the `plan`.
            progress: Reporter of finished files.

        Raises:
            ValidationError: If an option, order, branch or engine is invalid.
            CorruptFileError: If a file is damaged; nothing was committed, unless in parts.
            CommitFailedError: If others changed the files each time; nothing was committed, unless
                only dangling deletes could not be removed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.compaction import RewriteRequest, rewrite_data_files
        from icecomb.catalog.maintenance.engine import Engine

        check_flags(case_sensitive=case_sensitive, dry_run=dry_run)

        request = RewriteRequest(
            strategy,
            sort_order,
            where,
            branch or MAIN_BRANCH,
            options or {},
            case_sensitive=case_sensitive,
            snapshot_properties=snapshot_properties,
            engine=Engine.parse(engine),
            session=self._session.groups,
        )
        return rewrite_data_files(
            self._table, request, dry_run=dry_run, progress=progress or SILENT
        )

    def rewrite_position_delete_files(
        self,
        *,
        where: RowFilter | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        engine: str = "auto",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewrittenDeleteFiles:
        """Rewrite small and large position delete files, without deletes that apply to nothing.

        Groups of files of a partition become files of about `write.delete.target-file-size-bytes`,
        of one data file each or of the partition, as `write.delete.granularity` says. No row
        changes, and no writer has to wait. The column `row` of some writers is not copied.

        In a table of format version 3, all position delete files of the partitions, which version 2
        left, become deletion vectors: options about sizes and numbers of files do not matter.

        >>> table.maintenance.rewrite_position_delete_files()  # doctest: +SKIP

        Args:
            where: Filter of the files: only those of partitions that may hold matching rows.
            branch: The branch to commit to; by default `main`.
            options: Iceberg's options of the procedure, see docs/deletes.md.
            case_sensitive: Whether names of columns in `where` are case-sensitive.
            snapshot_properties: More keys of the snapshots' summaries.
            engine: `auto` or `local`, both this machine; `spark` is refused.
            dry_run: Whether to change nothing; the result then has the `plan`.
            progress: Reporter of finished files.

        Raises:
            ValidationError: If an option or branch is invalid.
            CorruptFileError: If a file is damaged; nothing was committed, unless in parts.
            CommitFailedError: If others changed the files each time; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.compaction import RewriteRequest
        from icecomb.catalog.maintenance.delete_files import rewrite_position_delete_files
        from icecomb.catalog.maintenance.engine import check_local

        check_flags(case_sensitive=case_sensitive, dry_run=dry_run)

        check_local(engine, "Rewriting position deletes", "it reads delete files, and no data")
        request = RewriteRequest(
            where=where,
            branch=branch or MAIN_BRANCH,
            options=options or {},
            case_sensitive=case_sensitive,
            snapshot_properties=snapshot_properties,
        )
        return rewrite_position_delete_files(
            self._table, request, dry_run=dry_run, progress=progress or SILENT
        )

    def convert_equality_deletes(
        self,
        *,
        where: RowFilter | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        engine: str = "auto",
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ConvertedDeleteFiles:
        """Convert equality deletes to position deletes, by finding the deleted rows once.

        The compared columns of each data file to which they apply are read. The equality delete
        files leave the table in the snapshot that adds position delete files, once all data files
        that they apply to were read, also those that others add meanwhile. Rows do not change; the
        snapshot's operation is `delete` nevertheless, so that other writers see the new deletes.

        >>> table.maintenance.convert_equality_deletes(where="day = '2024-05-01'")  # doctest: +SKIP

        Args:
            where: Filter of the files: only those of partitions that may hold matching rows.
            branch: The branch to commit to; by default `main`.
            options: Options, see docs/deletes.md.
            case_sensitive: Whether names of columns in `where` are case-sensitive.
            snapshot_properties: More keys of the snapshots' summaries.
            engine: `auto` or `local`, both this machine; `spark` is refused.
            dry_run: Whether to change nothing; the result then has the `plan`.
            progress: Reporter of finished files.

        Raises:
            ValidationError: If an option or branch is invalid.
            CorruptFileError: If a file is damaged; nothing was committed, unless in parts.
            UnsupportedError: If no schema of the table has a compared column any more.
            CommitFailedError: If others changed the files each time; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.compaction import RewriteRequest
        from icecomb.catalog.maintenance.delete_files import convert_equality_deletes
        from icecomb.catalog.maintenance.engine import check_local

        check_flags(case_sensitive=case_sensitive, dry_run=dry_run)

        check_local(
            engine,
            "Converting equality deletes",
            "it reads only the compared columns, file by file",
        )
        request = RewriteRequest(
            where=where,
            branch=branch or MAIN_BRANCH,
            options=options or {},
            case_sensitive=case_sensitive,
            snapshot_properties=snapshot_properties,
        )
        return convert_equality_deletes(
            self._table, request, dry_run=dry_run, progress=progress or SILENT
        )

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        location: str | None = None,
        dry_run: bool = True,
        quarantine: bool = False,
        any_age: bool = False,
        max_concurrent_deletes: int | None = None,
        files: Iterable[str | tuple[str, datetime | int | None]] | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "ERROR",
        engine: str = "auto",
    ) -> OrphanFiles:
        """Find the files in the table's folder that nothing refers to; delete them on request.

        Files left by failed writers are orphans. Files of other tables, of journals and of active
        writers are not; an unreadable manifest stops the search before anything is deleted.

        >>> found = table.maintenance.remove_orphan_files()  # doctest: +SKIP
        >>> table.maintenance.remove_orphan_files(dry_run=False)  # doctest: +SKIP

        Args:
            older_than: Only files changed before this time (without zone UTC; a number is
                milliseconds since the epoch); by default three days ago. It must precede the
                start of any job that has still to commit its files.
            location: A folder to search instead of the table's.
            dry_run: Whether only to find them.
            quarantine: Whether to move them to `_icecomb_quarantine` in the table's folder instead.
            any_age: Whether `older_than` may be less than a day ago; safe only if nobody writes.
            max_concurrent_deletes: Number of batches deleted at once.
            files: Paths, or paths and the times of their last changes, to check instead of
                listing the folder; without a time the storage is asked. Files outside the folder
                are skipped.
            equal_schemes: Schemes to treat as equal, such as `{"s3n,s3a": "s3"}`, the default.
            equal_authorities: Clusters and buckets to treat as equal, likewise.
            prefix_mismatch_mode: The action for files that metadata names under another scheme or
                authority: `ERROR` raises an error, `IGNORE` keeps them, `DELETE` deletes them.
            engine: The lister: `auto` and `local` are this machine; `spark` is for CALL.

        Raises:
            ValidationError: If the table's files may not be deleted (`gc.enabled`), `older_than` is
                less than a day ago, the folder is also that of another table, or by
                `prefix_mismatch_mode`.
            CorruptFileError, NoSuchFileError: If metadata cannot be read; nothing was deleted.
        """
        from icecomb.catalog.maintenance.engine import Engine
        from icecomb.catalog.maintenance.orphans import (
            OrphanSearch,
            age_limit,
            named_files,
            remove_orphan_files,
        )

        check_flags(dry_run=dry_run, quarantine=quarantine, any_age=any_age)

        return remove_orphan_files(
            self._table,
            OrphanSearch(
                older_than_ms=age_limit(older_than, any_age=any_age),
                location=location,
                dry_run=dry_run,
                quarantine=quarantine,
                max_concurrent_deletes=max_concurrent_deletes,
                files=None if files is None else named_files(files),
                equal_schemes=equal_schemes,
                equal_authorities=equal_authorities,
                prefix_mismatch_mode=prefix_mismatch_mode,
                engine=Engine.parse(engine),
                session=self._session.folders,
            ),
        )

    def empty_quarantine(
        self, *, older_than: datetime | int, dry_run: bool = True
    ) -> EmptiedQuarantine:
        """Delete what `remove_orphan_files` moved to the table's quarantine.

        Args:
            older_than: Only files moved before this time; see `remove_orphan_files`.
            dry_run: Whether only to count them.
        """
        from icecomb.catalog.maintenance.quarantine import empty_quarantine

        check_flags(dry_run=dry_run)
        before_ms = checked_instant("older_than", older_than, 0)
        self._table._check_deletable(self._table.metadata)  # noqa: SLF001 - knows its pointer
        folder = self._table._own_folders()[0]  # noqa: SLF001 - knows its pointer
        return empty_quarantine(self._table.io, folder, before_ms, dry_run=dry_run)

    def rewrite_manifests(
        self,
        *,
        spec_id: int | None = None,
        sort_by: Iterable[str] = (),
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        engine: str = "auto",
    ) -> RewrittenManifests:
        """Rewrite the manifests of a partition spec, fewer and sorted by partition; rows stay.

        >>> table.maintenance.rewrite_manifests(sort_by=["day"])  # doctest: +SKIP

        Args:
            spec_id: The spec; by default that of new files.
            sort_by: Partition fields to sort by; by default all of the spec in its order.
            branch: The branch to commit to; by default `main`.
            snapshot_properties: More keys of the snapshot's summary.
            engine: `auto` or `local`, both this machine; `spark` is refused.

        Raises:
            ValidationError: If there is no such spec, field or branch.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.engine import check_local
        from icecomb.format.operation.rewrite_manifests import RewriteManifests

        check_local(engine, "Rewriting manifests", "it reads and writes manifests, and no data")
        table, name = self._table, ".".join(self._table.name())
        default = table.metadata.default_spec_id
        wanted = default if spec_id is None else checked_int("spec_id", spec_id)
        if wanted not in table.specs():
            raise ValidationError(
                f"Table {name} has no partition spec {wanted}",
                hint=f"It has: {', '.join(map(str, sorted(table.specs())))}.",
            )
        if branch not in {None, MAIN_BRANCH} and branch not in table.refs():
            raise ValidationError(
                f"Table {name} has no branch {branch!r} whose manifests could be rewritten",
                hint="table.refs() lists the existing ones.",
            )
        rewrite = RewriteManifests(table.io, snapshot_properties, branch or MAIN_BRANCH)
        rewrite.rewrite_if(lambda manifest: manifest.partition_spec_id == wanted)
        rewrite.sort_by(checked_members("sort_by", sort_by, str))
        table.commit(rewrite)
        replaced, created = rewrite.replaced_manifest_count(), rewrite.created_manifest_count()
        return RewrittenManifests(replaced, created)

    def compute_table_stats(
        self,
        *,
        columns: Iterable[str] | None = None,
        snapshot: int | None = None,
        engine: str = "auto",
        progress: Progress | None = None,
    ) -> ComputedTableStats:
        """Count the distinct values of columns, about, for query optimizers; rows do not change.

        The counts, with sketches from which others can go on, become the statistics file of a
        snapshot, in the format of Iceberg Java's procedure. The columns are read, without deleted
        rows; only appended rows where an older statistics file has the column, and nothing but
        appends came since. Columns that the snapshot's file has already stay in it.

        >>> table.maintenance.compute_table_stats(columns=["country"])  # doctest: +SKIP

        Args:
            columns: Names of columns of primitive types, `address.city` for a field of a struct;
                by default all columns of such types.
            snapshot: Id of the snapshot; the current one by default.
            engine: `auto` and `local` read on this machine; `spark` is for CALL.
            progress: Reporter of rows that were read.

        Raises:
            MissingDependencyError: If datasketches is not installed.
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If there is no such column.
            UnsupportedError: If a column has no number of distinct values.
            CorruptFileError: If a data or delete file is damaged.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.engine import Engine
        from icecomb.catalog.maintenance.table_statistics import compute_table_stats

        return compute_table_stats(
            self._table,
            columns=columns,
            snapshot=snapshot,
            engine=Engine.parse(engine),
            progress=progress or SILENT,
            session=self._session.sketches,
        )

    def compute_partition_stats(self, *, snapshot: int | None = None) -> ComputedPartitionStats:
        """Count the files and rows of each partition, for queries of `partitions`; rows stay.

        The counts become the partition statistics file of a snapshot, which Iceberg Java reads,
        too. Where an ancestor of it has such a file, only what changed since is read, unless
        deletions demand a full count. A snapshot that has a file keeps it.

        >>> table.maintenance.compute_partition_stats()  # doctest: +SKIP

        Args:
            snapshot: Id of the snapshot; the current one by default.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If the table is not partitioned.
            CorruptFileError, NoSuchFileError: If metadata cannot be read.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
        """
        from icecomb.catalog.maintenance.table_statistics import compute_partition_stats

        return compute_partition_stats(self._table, snapshot=snapshot)
