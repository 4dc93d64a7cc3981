"""The command that points a branch back to one of its earlier snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.value import instant
from icecomb.catalog.cli.maintain import yes
from icecomb.catalog.cli.output.output import exact_moment

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata


@click.command()
@click.argument("table")
@click.option(
    "--to-snapshot", type=int, metavar="ID", help="An ancestor of the branch's current snapshot."
)
@click.option(
    "--to-time",
    callback=instant,
    metavar="TIME|AGE",
    help="The newest ancestor older than this: 2024-05-01T12:00 (UTC), or an age such as 7d.",
)
@click.option("--branch", default="main", show_default=True, help="The branch to roll back.")
@yes
@click.pass_obj
def rollback(
    application: Application,
    table: str,
    *,
    to_snapshot: int | None,
    to_time: int | None,
    branch: str,
    yes: bool,
) -> None:
    """Set a branch back to an earlier state: a dry run unless --yes.

    No file is deleted: the undone snapshots stay until they expire, and icecomb branch replace
    brings them back. Schema, properties and partitioning do not change.
    """
    if (to_snapshot is None) is (to_time is None):
        raise click.UsageError("give either --to-snapshot or --to-time")
    loaded = application.table(table)
    transaction = loaded.transaction()
    before = transaction.metadata
    with transaction.manage_snapshots() as manage:
        if to_snapshot is not None:
            manage.rollback_to_snapshot(to_snapshot, branch)
        elif to_time is not None:
            manage.rollback_to_timestamp(to_time, branch)
    after = transaction.metadata
    if yes:
        transaction.commit_transaction()
    else:
        transaction.abandon()
    application.output.facts(
        {
            "table": table,
            "branch": branch,
            "from": _head(before, branch),
            "to": _head(after, branch),
            "undone": list(_undone(before, after, branch)),
            "rolled back": yes,
        }
    )
    if not yes:
        application.warn("dry run: add --yes to do it")


def _head(metadata: TableMetadata, branch: str) -> int:
    return metadata.refs[branch].snapshot_id


def _undone(before: TableMetadata, after: TableMetadata, branch: str) -> list[str]:
    """Return the commits that the branch no longer contains, the newest first."""
    from icecomb.format.spec.snapshot import ancestors_of

    found = []
    for snapshot in ancestors_of(before, _head(before, branch)):
        if snapshot.snapshot_id == _head(after, branch):
            break
        counts = {
            word: snapshot.summary.get(f"{word}-records", "0") for word in ("added", "deleted")
        }
        rows = ", ".join(f"{count} rows {word}" for word, count in counts.items() if count != "0")
        at = exact_moment(snapshot.timestamp_ms)
        found.append(f"{snapshot.snapshot_id} {at} {snapshot.operation}: {rows or 'no rows'}")
    return found
