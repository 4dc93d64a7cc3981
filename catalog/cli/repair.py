"""Commands that repair: a commit of unknown outcome, a lost pointer target, a lost catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icecomb.catalog.cli.application import BLOCKED, OK, UNKNOWN_COMMIT, Application
from icecomb.catalog.cli.output.output import exact_moment
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.catalog.lost_commits import LostCommit


@click.group()
def commit() -> None:
    """Settle a commit whose outcome is unknown."""


@commit.command()
@click.argument("table")
@click.argument("metadata_file")
@click.option(
    "--checked",
    is_flag=True,
    help="The request named the pointer it expects; icecomb's errors say whether it did.",
)
@click.option("--yes", is_flag=True, help="Remove the leftovers of a commit that did not happen.")
@click.pass_obj
def settle(
    application: Application, table: str, metadata_file: str, *, checked: bool, yes: bool
) -> int:
    """Show the outcome of a commit: committed, superseded, not committed, pending or unknown.

    TABLE (or a view) and METADATA_FILE are those that the error named. Superseded means committed,
    and followed by other commits. A pending commit has not happened, but a delayed request could
    still make it happen. With --checked, --yes first makes that impossible, by moving the pointer
    with a commit that changes nothing; without, wait until the file is an hour old. Data files are
    never removed, and files outside of the table's folders are only counted for each folder.

    Exit code 0 if the outcome is final, 4 if not.
    """
    from icecomb.catalog.commit.commit_status import CommitState
    from icecomb.catalog.unknown_commit import commit_status, fence, remove_leftovers

    catalog = application.catalog()
    found = commit_status(catalog, table, metadata_file, expectation_sent=checked)
    if (
        yes
        and found.state is CommitState.PENDING
        and catalog.rejects_stale_swap(table, expectation_sent=checked)
    ):
        fence(catalog, table)
        found = commit_status(catalog, table, metadata_file, expectation_sent=checked)
    removed = yes and found.state is CommitState.NOT_COMMITTED
    if removed:
        remove_leftovers(catalog, found)
    application.output.facts(
        {
            "name": table,
            "metadata file": metadata_file,
            "outcome": str(found.state),
            "because": found.reason,
            "current metadata": found.current,
            "removed" if removed else "leftovers": list(found.leftovers),
            "left outside": dict(found.left_outside),
        }
    )
    if found.leftovers and not removed:
        application.warn(
            "dry run: add --yes to remove the leftovers; if the commit was reported to its writer "
            "as done, bring it back first: "
            f"{shell_command('repair', table, '--reapply', metadata_file)}"
        )
    if found.state is CommitState.PENDING and not yes:
        first = "add --yes to make it impossible, or " if checked else ""
        application.warn(f"{first}ask again when the file is an hour old")
    return OK if found.is_settled else UNKNOWN_COMMIT


@click.command()
@click.argument("table")
@click.option(
    "--to", "target", metavar="METADATA_FILE", help="The metadata file to point the table to."
)
@click.option(
    "--reapply",
    "lost",
    metavar="METADATA_FILE",
    help="Bring back the lost commits up to this file, which no later commit followed.",
)
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")
@click.pass_obj
def repair(
    application: Application, table: str, target: str | None, lost: str | None, *, yes: bool
) -> int:
    """Point a table to another of its metadata files, or correct its entry.

    With --to, for a table whose metadata file is lost or whose pointer went backwards: icecomb
    doctor names the file. Without, the metastore's parameters and columns are rewritten from the
    current metadata. No file is written or deleted.

    With --reapply, for a table whose history forked: commits that were made, and that an old copy
    of the entry removed, are picked into the table, each as a new commit. Appends are restored, and
    replaced partitions to which nothing was added since; their other changes are listed. It can be
    repeated: nothing is added twice. Bring back only commits that were reported to their writers as
    done, and that these have not written again since.

    Exit code 3 if a commit of --reapply cannot be brought back.
    """
    if lost is not None:
        if target is not None:
            raise click.UsageError("give either --to or --reapply")
        return _reapply(application, table, lost, yes=yes)
    from icecomb.catalog.hive.metadata_files import describe_loss
    from icecomb.catalog.hive.repair import apply_repair, plan_repair

    catalog = application.metastore()
    plan = plan_repair(catalog, table, target)
    if yes and (plan.target != plan.current or plan.parameters):
        apply_repair(catalog, plan)
    application.output.facts(
        {
            "table": plan.table,
            "points at": plan.current if plan.readable else f"{plan.current} (cannot be read)",
            "will point at": plan.target,
            "snapshots lost": len(plan.lost_snapshots)
            if plan.counted
            else describe_loss(plan.lost_snapshots, counted=False),
            "parameters": {
                key: f"{'missing' if old is None else old} -> {'removed' if new is None else new}"
                for key, (old, new) in plan.parameters.items()
            },
            "repaired": yes,
        }
    )
    if plan.names_folders:
        application.warn(
            "the metadata names other folders than the metastore, and whoever may write to "
            "its folder can do that: make sure that they are the table's alone; their files "
            "are then deleted once nothing needs them"
        )
    if not yes:
        application.warn("dry run: add --yes to do it")
    return OK


def _reapply(application: Application, name: str, location: str, *, yes: bool) -> int:
    from icecomb.catalog.lost_commits import Outcome, plan_reapplication, reapply

    table = application.table(name)
    line = plan_reapplication(table, location)
    if yes:
        line = reapply(table, line)
    outcomes = {one.outcome for one in line.commits}
    application.output.facts(
        {
            "table": name,
            "lost": location,
            "commits": [_commit_text(one) for one in line.commits],
            "not brought back": list(line.left_out),
            "repaired": yes,
        }
    )
    if not yes and Outcome.LOST in outcomes:
        application.warn("dry run: add --yes to bring back the lost commits")
    return BLOCKED if Outcome.REFUSED in outcomes or line.left_out else OK


def _commit_text(one: LostCommit) -> str:
    from icecomb.format.operation.conflict import writer_of

    snapshot = one.snapshot
    counts = (
        f"{snapshot.summary[f'{verb}-records']} rows {verb}"
        for verb in ("added", "deleted")
        if snapshot.summary.get(f"{verb}-records", "0") != "0"
    )
    facts = [", ".join(counts) or "no rows", *writer_of(snapshot)]
    at = exact_moment(snapshot.timestamp_ms)
    said = f"{snapshot.snapshot_id} {at} {snapshot.operation} ({', '.join(facts)}): {one.outcome}"
    return f"{said}: {one.reason}" if one.reason else said


@click.command()
@click.argument("table")
@click.argument("metadata_file")
@click.pass_obj
def register(application: Application, table: str, metadata_file: str) -> None:
    """Register an existing metadata file as TABLE. It is not copied, and never deleted."""
    made = application.catalog().register_table(table, metadata_file)
    application.output.facts({"table": ".".join(made.name()), "metadata": made.metadata_location})


@click.group()
def table() -> None:
    """Bring a table to another location, or back from a copy of its folder."""


@table.command()
@click.argument("metadata_file")
@click.option("--from", "source", metavar="PREFIX", help="Of its paths; by default its location.")
@click.option("--to", "target", metavar="PREFIX", required=True, help="The prefix they get.")
@click.option("--register", "name", metavar="NAME", help="Register the result as this table.")
@click.option("--copy", is_flag=True, help="Copy the files that are not at the target.")
@click.option("--check-sizes", is_flag=True, help="Compare data files with what manifests state.")
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")
@click.pass_obj
def relocate(
    application: Application,
    metadata_file: str,
    *,
    source: str | None,
    target: str,
    name: str | None,
    copy: bool,
    check_sizes: bool,
    yes: bool,
) -> int:
    """Rewrite all paths of a table for another location, from its files alone.

    METADATA_FILE is the newest one where the files are now, which need not be where its paths say
    they are. --to may be that folder: data files stay, and what contains paths is written beside
    the originals. No catalog is needed without --register. No file that exists is changed; after an
    interruption the same command goes on.

    Exit code 3 if files are missing, or have another length than stated.
    """
    from icecomb.catalog.hadoop.catalog import absolute
    from icecomb.catalog.identifier import database_and_table
    from icecomb.catalog.maintenance import backup
    from icecomb.format.spec.metadata_file import METADATA_SUFFIXES

    if not metadata_file.endswith(METADATA_SUFFIXES):
        raise click.UsageError(
            f"{metadata_file} does not end in .metadata.json: give the newest metadata file, which "
            "is in the folder metadata of the table"
        )
    for option, given in (("--from", source), ("--to", target)):
        if given is not None and not given.strip():
            raise click.UsageError(f"{option} is empty: give a folder")
    catalog = None if name is None else application.metastore()
    io = application.files() if catalog is None else catalog.io
    if catalog is not None and name is not None:
        place = database_and_table(name)
        catalog.load_namespace_properties(place[:1])
        catalog.entries.check_free(place)
    here, there = (absolute(text, io.properties) for text in (metadata_file, target))
    plan = backup.plan_relocation(
        io, here, source, there, check_sizes=check_sizes, progress=application.progress
    )
    done = yes and not plan.is_blocked
    copied = 0
    if done:
        copied = backup.relocate(io, plan, copy=copy, progress=application.progress)
        if catalog is not None and name is not None:
            catalog.register_table(name, plan.new_metadata_file)
    application.output.facts(
        {
            "metadata": plan.metadata_file,
            "uuid": str(plan.metadata.table_uuid),
            "paths begin with": plan.source,
            "files are in": plan.folder,
            "paths will begin with": plan.target,
            "new metadata": plan.new_metadata_file,
            "snapshots": len(plan.metadata.snapshots),
            "files": len(plan.files),
            "files rewritten": sum(file.is_rewritten for file in plan.files),
            "files to copy": len(plan.to_copy) - copied,
            "bytes to copy": 0 if copied else plan.bytes_to_copy,
            "files copied": copied,
            "missing": [str(one) for one in plan.missing],
            "of another length": [str(one) for one in plan.wrong_sizes],
            "missing, and left out": [str(one) for one in plan.left_out],
            "registered as": name if done else None,
            "relocated": done,
        }
    )
    if plan.is_blocked:
        application.warn("restore what is missing, or choose the metadata file of an older version")
        return BLOCKED
    if not yes:
        needs = " and --copy" if plan.to_copy and not copy else ""
        application.warn(f"dry run: add --yes{needs} to do it")
    return OK
