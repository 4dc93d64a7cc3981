"""Commands that keep a table fast and small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any, TextIO

import click

from icecomb.catalog.cli.application import ERROR, OK, Application
from icecomb.catalog.cli.argument.instant import instant, moment_of
from icecomb.catalog.cli.argument.pair import pairs
from icecomb.catalog.maintenance.compaction import PlannedRewrite
from icecomb.catalog.maintenance.delete_files import PlannedDeletes, RewrittenDeleteFiles

older_than = click.option(
    "--older-than",
    callback=instant,
    metavar="TIME|AGE",
    help="Limit to what is older: 2024-05-01T12:00 (UTC), or an age such as 7d.",
)
rewrite_option = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="One of Iceberg's options, such as min-input-files=2; may be repeated.",
)
engine = click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"], case_sensitive=False),
    default="auto",
    help="auto (default) and local run on this machine; spark is refused with an explanation.",
)
yes = click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")


@click.group()
def maintain() -> None:
    """Expire snapshots, rewrite manifests and the like.

    Commands that delete are dry runs without --yes. TABLE is a name, or the folder of a file-system
    table.
    """


def show(application: Application, table: str, result: Any, *, done: bool = True) -> None:
    """Print a result of `Table.maintenance` by its fields; `done` is False for a dry run."""
    facts = {field.name: getattr(result, field.name) for field in fields(result)}
    application.output.facts({"table": table, "dry_run": not done, **facts})
    if not done:
        application.warn("dry run: add --yes to do it")


@maintain.command("expire-snapshots")
@click.argument("table")
@older_than
@click.option(
    "--retain-last", type=click.IntRange(min=1), help="Keep the last N snapshots of each branch."
)
@click.option(
    "--snapshot", "snapshot_ids", type=int, multiple=True, help="Also remove this one; repeatable."
)
@click.option(
    "--clean-metadata", is_flag=True, help="Also remove schemas and specs that nothing needs."
)
@engine
@yes
@click.pass_obj
def expire_snapshots(
    application: Application,
    table: str,
    *,
    older_than: int | None,
    retain_last: int | None,
    snapshot_ids: tuple[int, ...],
    clean_metadata: bool,
    engine: str,
    yes: bool,
) -> None:
    """Remove old snapshots, and the files that only they need.

    By default the table's properties history.expire.* decide.
    """
    from icecomb.catalog.maintenance.expiry import expiry_of_procedure

    expire = expiry_of_procedure(
        application.table(table),
        older_than=older_than,
        retain_last=retain_last,
        snapshot_ids=snapshot_ids,
        clean_expired_metadata=clean_metadata,
        engine=engine,
    )
    show(application, table, expire.commit() if yes else expire.plan(), done=yes)


@maintain.command("rewrite-manifests")
@click.argument("table")
@click.option("--spec-id", type=int, help="The partition spec; by default that of new files.")
@click.option("--sort-by", help="Partition fields separated by commas; by default all of them.")
@click.option("--branch", help="The branch; by default main.")
@engine
@click.pass_obj
def rewrite_manifests(
    application: Application,
    table: str,
    *,
    spec_id: int | None,
    sort_by: str | None,
    branch: str | None,
    engine: str,
) -> None:
    """Rewrite manifests, fewer and sorted by partition, so that scans read fewer of them."""
    result = application.table(table).maintenance.rewrite_manifests(
        spec_id=spec_id,
        sort_by=_names(sort_by or ""),
        branch=branch,
        engine=engine,
    )
    show(application, table, result)


@maintain.command("compute-table-stats")
@click.argument("table")
@click.option("--columns", help="Columns separated by commas; by default all of primitive types.")
@click.option("--snapshot", type=int, help="The snapshot's id; by default the current one.")
@engine
@click.pass_obj
def compute_table_stats(
    application: Application,
    table: str,
    *,
    columns: str | None,
    snapshot: int | None,
    engine: str,
) -> None:
    """Count the distinct values of columns, about, for query optimizers.

    Only appended rows are read where older statistics allow it. Needs the extra
    icecomb[statistics].
    """
    result = application.table(table).maintenance.compute_table_stats(
        columns=None if columns is None else _names(columns),
        snapshot=snapshot,
        engine=engine,
        progress=application.progress,
    )
    show(application, table, result)


@maintain.command("compute-partition-stats")
@click.argument("table")
@click.option("--snapshot", type=int, help="The snapshot's id; by default the current one.")
@click.pass_obj
def compute_partition_stats(application: Application, table: str, *, snapshot: int | None) -> None:
    """Count the files and rows of each partition, for `icecomb partitions` and Iceberg Java.

    Only what changed is read where older statistics allow it.
    """
    result = application.table(table).maintenance.compute_partition_stats(snapshot=snapshot)
    show(application, table, result)


@maintain.command("rewrite-table-path")
@click.argument("table")
@click.argument("source_prefix")
@click.argument("target_prefix")
@click.option("--start-version", help="The metadata file up to which files were copied before.")
@click.option("--end-version", help="The metadata file up to which to copy; by default the last.")
@click.option("--staging-location", help="An empty folder for the copies; by default a new one.")
@click.option(
    "--file-list/--no-file-list", "create_file_list", default=True, help="List the files to copy."
)
@click.pass_obj
def rewrite_table_path(
    application: Application,
    table: str,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None,
    end_version: str | None,
    staging_location: str | None,
    create_file_list: bool,
) -> None:
    """Write a copy of the metadata with another prefix in all paths, and list files to copy.

    The table does not change. icecomb table relocate also copies the files.
    """
    result = application.table(table).maintenance.rewrite_table_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        create_file_list=create_file_list,
        progress=application.progress,
    )
    show(application, table, result)


@maintain.command("rewrite-data-files")
@click.argument("table")
@click.option(
    "--strategy",
    type=click.Choice(["binpack", "sort"], case_sensitive=False),
    help="binpack keeps the order of rows; by default sort if --sort-order is given.",
)
@click.option(
    "--sort-order",
    metavar="ORDER",
    help="Such as 'a, b DESC NULLS LAST' or 'zorder(a, b)'; by default the table's.",
)
@click.option("--where", metavar="PREDICATE", help="Rewrite only files that may hold such rows.")
@click.option("--branch", help="The branch; by default main.")
@rewrite_option
@engine
@click.option("--dry-run", is_flag=True, help="Only list the groups of files.")
@click.pass_obj
def rewrite_data_files(
    application: Application,
    table: str,
    *,
    strategy: str | None,
    sort_order: str | None,
    where: str | None,
    branch: str | None,
    options: tuple[str, ...],
    engine: str,
    dry_run: bool,
) -> int:
    """Rewrite data files that are small, large, or have many deleted rows.

    Rows do not change, and old files stay until their snapshots expire. Others may read and
    write meanwhile. Exit code 1 if some files could not be rewritten.
    """
    result = application.table(table).maintenance.rewrite_data_files(
        strategy=strategy,
        sort_order=sort_order,
        where=where,
        branch=branch,
        options=pairs("--option", options, "NAME=VALUE"),
        engine=engine,
        dry_run=dry_run,
        progress=application.progress,
    )
    return _rewritten(
        application, table, result, PlannedRewrite, result.failed_data_files_count, dry_run=dry_run
    )


def _deleting(command: Callable[..., int]) -> Callable[..., int]:
    """Add the arguments of commands that rewrite delete files."""
    for option in (
        click.pass_obj,
        click.option("--dry-run", is_flag=True, help="Only list the groups of files."),
        engine,
        rewrite_option,
        click.option("--branch", help="The branch; by default main."),
        click.option(
            "--where", metavar="PREDICATE", help="Limit to partitions that may hold such rows."
        ),
        click.argument("table"),
    ):
        command = option(command)
    return command


@maintain.command("rewrite-position-delete-files")
@_deleting
def rewrite_position_delete_files(
    application: Application,
    table: str,
    *,
    where: str | None,
    branch: str | None,
    options: tuple[str, ...],
    engine: str,
    dry_run: bool,
) -> int:
    """Rewrite small and large position delete files, without deletes that apply to nothing.

    Exit code 1 if some files could not be rewritten.
    """
    result = application.table(table).maintenance.rewrite_position_delete_files(
        where=where,
        branch=branch,
        options=pairs("--option", options, "NAME=VALUE"),
        engine=engine,
        dry_run=dry_run,
        progress=application.progress,
    )
    return _rewritten_deletes(application, table, result, dry_run=dry_run)


@maintain.command("convert-equality-deletes")
@_deleting
def convert_equality_deletes(
    application: Application,
    table: str,
    *,
    where: str | None,
    branch: str | None,
    options: tuple[str, ...],
    engine: str,
    dry_run: bool,
) -> int:
    """Convert equality deletes to position deletes, so that reading is faster.

    Exit code 1 if some files could not be converted.
    """
    result = application.table(table).maintenance.convert_equality_deletes(
        where=where,
        branch=branch,
        options=pairs("--option", options, "NAME=VALUE"),
        engine=engine,
        dry_run=dry_run,
        progress=application.progress,
    )
    return _rewritten_deletes(application, table, result, dry_run=dry_run)


def _rewritten_deletes(
    application: Application, table: str, result: RewrittenDeleteFiles, *, dry_run: bool
) -> int:
    failed = result.failed_delete_files_count
    return _rewritten(application, table, result, PlannedDeletes, failed, dry_run=dry_run)


def _rewritten(
    application: Application, table: str, result: Any, planned: Any, failed: int, *, dry_run: bool
) -> int:
    """Print the result or the plan of a rewrite, and return the exit code."""
    if dry_run:
        names = [field.name for field in fields(planned)]
        application.output.table(
            names, [[getattr(group, name) for name in names] for group in result.plan]
        )
        application.warn("dry run: leave --dry-run out to do it")
        return OK
    counts = {name: value for name, value in asdict(result).items() if name != "plan"}
    application.output.facts({"table": table, **counts})
    if failed:
        application.warn(f"{failed} files were not rewritten")
        return ERROR
    return OK


@maintain.command("remove-orphan-files")
@click.argument("table")
@older_than
@click.option("--location", help="A folder to search instead of the table's.")
@click.option(
    "--list",
    "listed",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Check these files instead of listing the folder: lines of path, or of path,time.",
)
@click.option(
    "--equal-schemes", multiple=True, metavar="S3A,S3N=S3", help="Schemes to treat as equal."
)
@click.option(
    "--equal-authorities", multiple=True, metavar="A,B=C", help="Clusters to treat as equal."
)
@click.option(
    "--prefix-mismatch-mode",
    type=click.Choice(["ERROR", "IGNORE", "DELETE"], case_sensitive=False),
    default="ERROR",
    show_default=True,
    help="Files that metadata names under another scheme or cluster: stop, keep or delete them.",
)
@click.option("--quarantine", is_flag=True, help="Move the files to _icecomb_quarantine instead.")
@click.option(
    "--any-age", is_flag=True, help="Allow an age below 24 hours; safe only if nobody writes."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Batches deleted at once.")
@engine
@yes
@click.pass_obj
def remove_orphan_files(
    application: Application,
    table: str,
    *,
    older_than: int | None,
    location: str | None,
    listed: TextIO | None,
    equal_schemes: tuple[str, ...],
    equal_authorities: tuple[str, ...],
    prefix_mismatch_mode: str,
    quarantine: bool,
    any_age: bool,
    jobs: int | None,
    engine: str,
    yes: bool,
) -> int:
    """Find files in the table's folder that nothing refers to; with --yes delete them.

    Only files older than three days, or than --older-than. Files of other tables in the folder
    are skipped and listed. Exit code 1 if a file could not be deleted.
    """
    result = application.table(table).maintenance.remove_orphan_files(
        older_than=older_than,
        location=location,
        dry_run=not yes,
        quarantine=quarantine,
        any_age=any_age,
        max_concurrent_deletes=jobs,
        files=None if listed is None else _listed(listed),
        equal_schemes=_equal("--equal-schemes", equal_schemes),
        equal_authorities=_equal("--equal-authorities", equal_authorities),
        prefix_mismatch_mode=prefix_mismatch_mode.upper(),
        engine=engine,
    )
    show(application, table, result, done=yes)
    return _said(application, result.failed_files)


@maintain.command("empty-quarantine")
@click.argument("table")
@older_than
@yes
@click.pass_obj
def empty_quarantine(
    application: Application, table: str, *, older_than: int | None, yes: bool
) -> int:
    """Delete the files that remove-orphan-files --quarantine set aside before --older-than."""
    if older_than is None:
        raise click.UsageError("--older-than is missing: name the runs, such as --older-than 7d")
    result = application.table(table).maintenance.empty_quarantine(
        older_than=older_than, dry_run=not yes
    )
    show(application, table, result, done=yes)
    return _said(application, result.failed_files)


def _said(application: Application, failed: Sequence[str]) -> int:
    if failed:
        application.warn(f"{len(failed)} files could not be deleted, such as {failed[0]}")
    return ERROR if failed else OK


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _equal(option: str, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        names, equals, target = text.partition("=")
        if not names or not equals or not target:
            raise click.UsageError(f"{option} {text}: write it as A,B=C")
        found[names] = target
    return found


def _listed(lines: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Yield the files of a list: each line is a path, or a path, a comma and a time."""
    for line in lines:
        text = line.rstrip("\r\n")
        path, comma, last = text.rpartition(",")
        changed = moment_of(last) if comma else None
        if text:
            yield (text, None) if changed is None else (path, changed)
