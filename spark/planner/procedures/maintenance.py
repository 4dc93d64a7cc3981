"""Procedures that tidy up what a table does not need any more."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.format.argument import checked_int
from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.spec.table_property import MIN_SNAPSHOTS
from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.signature import (
    Flag,
    Instant,
    Int,
    Long,
    Longs,
    Text,
    Texts,
    procedure,
)
from icecomb.spark.planner.procedures.snapshots import milliseconds


@dataclass(frozen=True, slots=True)
class Expired:
    """How many files were deleted, by their kind."""

    deleted_data_files_count: Long | None
    deleted_position_delete_files_count: Long | None
    deleted_equality_delete_files_count: Long | None
    deleted_manifest_files_count: Long | None
    deleted_manifest_lists_count: Long | None
    deleted_statistics_files_count: Long | None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """How many manifests took the place of how many."""

    rewritten_manifests_count: Int
    added_manifests_count: Int


@procedure
def expire_snapshots(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    older_than: Instant | None = None,
    retain_last: Int | None = None,
    max_concurrent_deletes: Int | None = None,
    stream_results: Flag | None = None,  # noqa: ARG001 - names of files never get to the driver
    snapshot_ids: Longs | None = None,
    clean_expired_metadata: Flag | None = None,
) -> list[Expired]:
    """Remove old snapshots, and the files that only they need."""
    if max_concurrent_deletes is not None:
        # files are deleted in bulk, where Iceberg's own bulk deletes pass over it, too
        checked_int("max_concurrent_deletes", max_concurrent_deletes, 1)
    found = call.load(table)
    with found.expire_snapshots() as expire:
        if older_than is not None:
            expire.older_than(milliseconds(older_than))
        # ids do not take the place of the table's own limits, as in Iceberg
        least = MIN_SNAPSHOTS.of(found.properties) if retain_last is None else retain_last
        expire.retain_last(least).by_ids(snapshot_ids or ())
        expire.clean_expired_metadata(bool(clean_expired_metadata))
    call.changed(found)
    result = expire.result
    if result is None:
        return [Expired(0, 0, 0, 0, 0, 0)]
    if result.problem is not None:
        raise FileIOError(
            f"{len(result.snapshot_ids)} snapshots of {table} were expired: {result.problem}",
            hint="remove_orphan_files removes what is left over",
        )
    files = result.files
    equality = len(files.equality_delete_files)
    return [
        Expired(
            len(files.data_files),
            len(files.delete_files) - equality,
            equality,
            len(files.manifests),
            len(files.manifest_lists),
            len(files.statistics_files),
        )
    ]


@procedure
def rewrite_manifests(
    call: Call,
    table: Text,
    use_caching: Flag = False,  # noqa: ARG001, FBT002 - entries are read once in any case
    spec_id: Int | None = None,
    sort_by: Texts | None = None,
) -> list[Rewritten]:
    """Write the manifests of a partition spec anew, fewer and sorted by partition."""
    found = call.load(table)
    wanted = found.metadata.default_spec_id if spec_id is None else spec_id
    if wanted not in found.specs():
        raise ValidationError(
            f"Table {table} has no partition spec {wanted}",
            hint=f"it has: {', '.join(map(str, sorted(found.specs())))}",
        )
    rewrite = RewriteManifests(found.io, call.summary)
    rewrite.rewrite_if(lambda manifest: manifest.partition_spec_id == wanted)
    rewrite.sort_by(sort_by or ())
    found.commit(rewrite)
    call.changed(found)
    return [Rewritten(rewrite.replaced_manifest_count(), rewrite.created_manifest_count())]
