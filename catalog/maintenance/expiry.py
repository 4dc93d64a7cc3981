"""Removal of old snapshots, and of the files that only they need."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icecomb.catalog.maintenance.engine import check_local
from icecomb.format.errors import FileIOError
from icecomb.format.printable_text import printable
from icecomb.format.property.table_property import MIN_SNAPSHOTS
from icecomb.format.spec.own_folders import folder_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from typing_extensions import Self

    from icecomb.catalog.table.table import Table
    from icecomb.format.operation.expiry.expire import Expiration, ExpireSnapshots


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """Numbers of deleted files by kind; of a dry run, those that would be deleted.

    Attributes:
        deleted_data_files_count: Data files.
        deleted_position_delete_files_count: Files of position deletes.
        deleted_equality_delete_files_count: Files of equality deletes.
        deleted_manifest_files_count: Manifests.
        deleted_manifest_lists_count: Manifest lists.
        deleted_statistics_files_count: Statistics of snapshots and partitions.
        left_outside: Folders outside of the table's own, each with the number of files there
            that nothing needs any more, but that are left.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    left_outside: Mapping[str, int] = field(default_factory=dict)


class SnapshotExpiry:
    """An expiration of snapshots and of files that only they need; it begins with `commit`.

    Without any call, snapshots too old by the table's `history.expire.*` properties are removed;
    with ids only, just these. Heads of branches and snapshots of tags always stay. As a context
    manager it commits at its end.

    >>> table.maintenance.expire_snapshots().by_id(snapshot_id).commit()  # doctest: +SKIP

    Args:
        table: The table; it is moved to the committed version.

    Attributes:
        result: The deleted files; None before the commit.
    """

    _is_open = False
    """Whether something was requested that was neither committed nor planned."""

    def __init__(self, table: Table) -> None:
        self._name = ".".join(table.name())
        self._expire = table.expire_snapshots()
        self._is_tried = False
        self._is_open = True
        self.result: ExpiredFiles | None = None

    def by_id(self, snapshot_id: int) -> Self:
        """Remove this snapshot.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If a branch or tag points to it.
        """
        return self._asked(lambda expire: expire.by_id(snapshot_id))

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Remove these snapshots; see `by_id`."""
        return self._asked(lambda expire: expire.by_ids(snapshot_ids))

    def older_than(self, dt: datetime | int) -> Self:
        """Remove older snapshots, instead of by `history.expire.max-snapshot-age-ms`.

        Args:
            dt: A time (one without zone is UTC), or milliseconds since the epoch.

        Raises:
            ValidationError: If it is neither.
        """
        return self._asked(lambda expire: expire.older_than(dt))

    def retain_last(self, num_snapshots: int) -> Self:
        """Keep at least the last N snapshots of each branch, whatever their age.

        Raises:
            ValidationError: If it is less than 1.
        """
        return self._asked(lambda expire: expire.retain_last(num_snapshots))

    def clean_expired_files(self, clean: bool) -> Self:  # noqa: FBT001 - as in Iceberg Java
        """Choose whether files are deleted; they are by default."""
        return self._asked(lambda expire: expire.clean_expired_files(clean))

    def clean_expired_metadata(self, clean: bool) -> Self:  # noqa: FBT001 - as in Iceberg Java
        """Choose whether schemas and partition specs that nothing needs are removed, too."""
        return self._asked(lambda expire: expire.clean_expired_metadata(clean))

    def delete_outside(self, folders: Iterable[str]) -> Self:
        """Delete unneeded files in these folders, too, which are not the table's: its alone.

        Args:
            folders: Absolute locations, such as those that `ExpiredFiles.left_outside` names.

        Raises:
            ValidationError: If one is relative, the root of a storage, or holds the warehouse.
        """
        return self._asked(lambda expire: expire.delete_outside(folders))

    def plan(self) -> ExpiredFiles:
        """Count what would be deleted if this were committed now; nothing is changed.

        Raises:
            ValidationError: If the table's files may not be deleted (`gc.enabled`).
            FileIOError: If it is unknown which files are needed.
        """
        self._is_open = False
        return self._counted(self._expire.plan(), "would be")

    def commit(self) -> ExpiredFiles:
        """Remove the snapshots, and then their files.

        Raises:
            ValidationError: If the table's files may not be deleted (`gc.enabled`), or this was
                committed already.
            CommitFailedError: If other writers were first; nothing was committed.
            CommitStateUnknownError: If it is unknown whether it was committed.
            FileIOError: If the snapshots were removed, but not all of their files.
        """
        self._is_open, self._is_tried = False, True
        self._expire.commit()
        self.result = self._counted(self._expire.result, "were")
        return self.result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_open = False
        if kind is None and not self._is_tried:
            self.commit()

    def __repr__(self) -> str:
        what = f"an expiration of {printable(self._name)}"
        if self._is_tried:
            return f"<{what}: {self.result or 'it failed'}>"
        return f"<{what}: nothing has happened yet, commit() does it>"

    def __del__(self) -> None:
        if self._is_open:
            warnings.warn(
                f"An expiration of {printable(self._name)} was never committed: nothing was "
                "removed; end it with .commit()",
                RuntimeWarning,
                stacklevel=2,
            )

    def _asked(self, call: Callable[[ExpireSnapshots], object]) -> Self:
        self._is_open = False  # a refused call raises its own error
        call(self._expire)
        self._is_open = True
        return self

    def _counted(self, result: Expiration | None, tense: str) -> ExpiredFiles:
        if result is None:
            return ExpiredFiles()
        if result.problem is not None:
            raise FileIOError(
                f"{len(result.snapshot_ids)} snapshots of {self._name} {tense} expired: "
                f"{result.problem}",
                hint="The next expire_snapshots tries again; "
                "remove_orphan_files finds what is left.",
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
            folder_counts(result.outside),
        )


def expire_at_once(
    table: Table,
    *,
    older_than: datetime | int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Iterable[int] = (),
    clean_expired_metadata: bool = False,
    outside: Sequence[str] = (),
    engine: str = "auto",
    dry_run: bool = True,
) -> ExpiredFiles:
    """Expire snapshots as CALL and the shell do: ids add to the table's own limits."""
    check_local(engine, "Expiring snapshots", "it reads manifests, and no data")
    expire = SnapshotExpiry(table)
    if older_than is not None:
        expire.older_than(older_than)
    least = MIN_SNAPSHOTS.of(table.properties) if retain_last is None else retain_last
    expire.retain_last(least).by_ids(snapshot_ids).clean_expired_metadata(clean_expired_metadata)
    if outside:
        expire.delete_outside(outside)
    return expire.plan() if dry_run else expire.commit()
