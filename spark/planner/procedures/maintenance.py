"""Procedures that maintain tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from icecomb.format.argument import checked_int
from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import (
    Flag,
    Instant,
    Int,
    Long,
    Longs,
    Options,
    Text,
    Texts,
    as_row,
    procedure,
)
from icecomb.spark.planner.procedures.snapshots import milliseconds

_ENGINE: Final = "engine"
_AUTO: Final = "auto"
_STREAMED: Final = 20_000
"""The most orphans shown with `stream_results`, as by Iceberg."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Numbers of deleted files by kind."""

    deleted_data_files_count: Long | None
    deleted_position_delete_files_count: Long | None
    deleted_equality_delete_files_count: Long | None
    deleted_manifest_files_count: Long | None
    deleted_manifest_lists_count: Long | None
    deleted_statistics_files_count: Long | None


@dataclass(frozen=True, slots=True)
class RewriteOutput:
    """Numbers of replaced and new manifests."""

    rewritten_manifests_count: Int
    added_manifests_count: Int


@dataclass(frozen=True, slots=True)
class RewrittenData:
    """Numbers of replaced and new data files."""

    rewritten_data_files_count: Int
    added_data_files_count: Int
    rewritten_bytes_count: Long
    failed_data_files_count: Int
    removed_delete_files_count: Int


@dataclass(frozen=True, slots=True)
class RewriteDeletesOutput:
    """Numbers of replaced and new delete files."""

    rewritten_delete_files_count: Int
    added_delete_files_count: Int
    rewritten_bytes_count: Long
    added_bytes_count: Long


@dataclass(frozen=True, slots=True)
class ConvertedDeletes:
    """Numbers of replaced and new delete files, and of the equality deletes replaced."""

    rewritten_delete_files_count: Int
    added_delete_files_count: Int
    rewritten_bytes_count: Long
    added_bytes_count: Long
    rewritten_equality_delete_files_count: Int


@dataclass(frozen=True, slots=True)
class Computed:
    """The location of a statistics file."""

    statistics_file: Text | None


@dataclass(frozen=True, slots=True)
class ComputedPartitions:
    """The location of a partition statistics file."""

    partition_statistics_file: Text | None


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that nothing refers to."""

    orphan_file_location: Text


@procedure
def expire_snapshots(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    older_than: Instant | None = None,
    retain_last: Int | None = None,
    max_concurrent_deletes: Int | None = None,
    stream_results: Flag | None = None,  # noqa: ARG001 - file names never reach the driver
    snapshot_ids: Longs | None = None,
    clean_expired_metadata: Flag | None = None,
    engine: Text | None = None,
) -> list[Expired]:
    """Remove old snapshots, and the files that only they need."""
    from icecomb.catalog.maintenance.expiry import expiry_of_procedure

    if max_concurrent_deletes is not None:
        # files are deleted in bulk, for which Iceberg ignores it, too
        checked_int("max_concurrent_deletes", max_concurrent_deletes, 1)
    found = call.load(table)
    expire = expiry_of_procedure(
        found,
        older_than=None if older_than is None else milliseconds(older_than),
        retain_last=retain_last,
        snapshot_ids=snapshot_ids or (),
        clean_expired_metadata=bool(clean_expired_metadata),
        engine=engine or _AUTO,
    )
    result = expire.commit()
    call.changed(found)
    return [as_row(Expired, result)]


@procedure
def remove_orphan_files(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    older_than: Instant | None = None,
    location: Text | None = None,
    dry_run: Flag = False,  # noqa: FBT002
    max_concurrent_deletes: Int | None = None,
    file_list_view: Text | None = None,
    equal_schemes: Options | None = None,
    equal_authorities: Options | None = None,
    prefix_mismatch_mode: Text | None = None,
    prefix_listing: Flag = False,  # noqa: ARG001, FBT002 - both listings find the same
    stream_results: Flag = False,  # noqa: FBT002
    engine: Text | None = None,
) -> list[Orphan]:
    """Delete files in the folder of a table that nothing refers to."""
    from icecomb.catalog.maintenance.engine import Engine
    from icecomb.catalog.maintenance.orphans import OrphanSearch, age_limit
    from icecomb.catalog.maintenance.orphans import remove_orphan_files as remove

    limit = None if older_than is None else milliseconds(older_than)
    search = OrphanSearch(
        older_than_ms=age_limit(limit, any_age=None),
        location=location,
        dry_run=dry_run,
        max_concurrent_deletes=max_concurrent_deletes,
        files=None if file_list_view is None else _listed(call, file_list_view),
        equal_schemes=equal_schemes,
        equal_authorities=equal_authorities,
        prefix_mismatch_mode=(prefix_mismatch_mode or "ERROR").upper(),
        engine=Engine.parse(engine or _AUTO),
        session=call.listing,
    )
    result = remove(call.load(table), search)
    if result.failed_files:
        raise FileIOError(
            f"{result.deleted_files_count} orphan files of {table} were deleted, "
            f"{len(result.failed_files)} could not be, as {result.failed_files[0]}",
            hint="Check the permissions of its folder, and call it again.",
            path=result.failed_files[0],
        )
    shown = _STREAMED if stream_results else None
    return [Orphan(location) for location in result.orphan_file_location[:shown]]


def _listed(call: Call, view: str) -> Iterator[tuple[str, int]]:
    """Yield the files of a view with their modification times, in ms since 1970."""
    columns = "file_path, unix_millis(last_modified) AS changed"
    # a file without a time is younger than any limit, as in Iceberg
    known = "file_path IS NOT NULL AND last_modified IS NOT NULL"
    name = quoted_name(*parse_name(view))
    statement = f"SELECT {columns} FROM {name} WHERE {known}"  # noqa: S608 - quoted
    for row in call.query(statement):
        yield row["file_path"], row["changed"]


@procedure
def rewrite_data_files(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    strategy: Text | None = None,
    sort_order: Text | None = None,
    options: Options | None = None,
    where: Text | None = None,
    branch: Text | None = None,
) -> list[RewrittenData]:
    """Rewrite data files that are small, large or have many deletes."""
    from icecomb.catalog.maintenance.compaction import RewriteRequest
    from icecomb.catalog.maintenance.compaction import rewrite_data_files as rewrite
    from icecomb.catalog.maintenance.engine import Engine

    found = call.load_to_rewrite(table)
    given = dict(options or {})
    request = RewriteRequest(
        strategy,
        sort_order,
        None if where is None else parse(where, of_spark=True),
        branch or "main",
        case_sensitive=call.case_sensitive,
        snapshot_properties=call.summary,
        engine=Engine.parse(given.pop(_ENGINE, _AUTO)),
        session=call.session,
        options=given,
    )
    result = rewrite(found, request, dry_run=False)
    call.changed(found)
    return [as_row(RewrittenData, result)]


@procedure
def rewrite_position_delete_files(
    call: Call, table: Text, options: Options | None = None, where: Text | None = None
) -> list[RewriteDeletesOutput]:
    """Rewrite small and large position delete files."""
    found = call.load_to_rewrite(table)
    given = dict(options or {})
    result = found.maintenance.rewrite_position_delete_files(
        where=None if where is None else parse(where, of_spark=True),
        engine=given.pop(_ENGINE, _AUTO),
        options=given,
        case_sensitive=call.case_sensitive,
        snapshot_properties=call.summary,
    )
    call.changed(found)
    return [as_row(RewriteDeletesOutput, result)]


@procedure
def convert_equality_deletes(
    call: Call, table: Text, where: Text | None = None, options: Options | None = None
) -> list[ConvertedDeletes]:
    """Convert equality deletes to position deletes."""
    found = call.load_to_rewrite(table)
    given = dict(options or {})
    result = found.maintenance.convert_equality_deletes(
        where=None if where is None else parse(where, of_spark=True),
        engine=given.pop(_ENGINE, _AUTO),
        options=given,
        case_sensitive=call.case_sensitive,
        snapshot_properties=call.summary,
    )
    call.changed(found)
    return [as_row(ConvertedDeletes, result)]


@procedure
def rewrite_manifests(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    use_caching: Flag = False,  # noqa: ARG001, FBT002 - entries are always read once
    spec_id: Int | None = None,
    sort_by: Texts | None = None,
    engine: Text | None = None,
) -> list[RewriteOutput]:
    """Rewrite the manifests of a partition spec, fewer and sorted by partition."""
    if sort_by is not None and not sort_by:
        raise ValidationError(
            "sort_by must not be empty when provided",
            hint="Leave it out to sort by all partition fields.",
        )
    found = call.load(table)
    result = found.maintenance.rewrite_manifests(
        spec_id=spec_id,
        sort_by=sort_by or (),
        snapshot_properties=call.summary,
        engine=engine or _AUTO,
    )
    call.changed(found)
    return [as_row(RewriteOutput, result)]


@procedure
def compute_table_stats(
    call: Call,
    table: Text,
    snapshot_id: Long | None = None,
    columns: Texts | None = None,
    engine: Text | None = None,
) -> list[Computed]:
    """Count the distinct values of columns, for query optimizers."""
    from icecomb.catalog.maintenance.engine import Engine
    from icecomb.catalog.maintenance.table_statistics import compute_table_stats as compute
    from icecomb.catalog.report.progress import SILENT

    found = call.load(table)
    result = compute(
        found,
        columns=columns,
        snapshot=snapshot_id,
        engine=Engine.parse(engine or _AUTO),
        progress=SILENT,
        session=call.sketching,
    )
    call.changed(found)
    return [] if result.statistics_file is None else [as_row(Computed, result)]


@procedure
def compute_partition_stats(
    call: Call, table: Text, snapshot_id: Long | None = None
) -> list[ComputedPartitions]:
    """Count the files and rows of each partition."""
    found = call.load(table)
    result = found.maintenance.compute_partition_stats(snapshot=snapshot_id)
    call.changed(found)
    if result.partition_statistics_file is None:
        return []
    return [as_row(ComputedPartitions, result)]
