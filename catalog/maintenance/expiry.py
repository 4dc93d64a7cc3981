"""Old snapshots are removed, and the files that only they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import FileIOError
from icecomb.format.spec.table_property import MIN_SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from icecomb.catalog.table import Table
    from icecomb.format.operation.expire import ExpireSnapshots


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """How many files were deleted, by their kind; of a dry run, how many would be.

    Attributes:
        deleted_data_files_count: Data files.
        deleted_position_delete_files_count: Files of position deletes.
        deleted_equality_delete_files_count: Files of equality deletes.
        deleted_manifest_files_count: Manifests.
        deleted_manifest_lists_count: Manifest lists.
        deleted_statistics_files_count: Statistics of snapshots and partitions.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0


def expire_snapshots(
    table: Table,
    *,
    older_than: datetime | int | None,
    retain_last: int | None,
    snapshot_ids: Iterable[int],
    clean_expired_metadata: bool,
    dry_run: bool,
) -> ExpiredFiles:
    """See `Maintenance.expire_snapshots`."""
    with table.expire_snapshots(dry_run=dry_run) as expire:
        if older_than is not None:
            expire.older_than(older_than)
        # ids do not take the place of the table's own limits, as in Iceberg
        least = MIN_SNAPSHOTS.of(table.properties) if retain_last is None else retain_last
        expire.retain_last(least).by_ids(snapshot_ids)
        expire.clean_expired_metadata(clean_expired_metadata)
    return _counted(table, expire)


def _counted(table: Table, expire: ExpireSnapshots) -> ExpiredFiles:
    result = expire.result
    if result is None:
        return ExpiredFiles()
    if result.problem is not None:
        name = ".".join(table.name())
        raise FileIOError(
            f"{len(result.snapshot_ids)} snapshots of {name} were expired: {result.problem}",
            hint="the next expire_snapshots tries again; remove_orphan_files finds what is left",
        )
    files = result.files
    equality = len(files.equality_delete_files)
    return ExpiredFiles(
        len(files.data_files),
        len(files.delete_files) - equality,
        equality,
        len(files.manifests),
        len(files.manifest_lists),
        len(files.statistics_files),
    )
