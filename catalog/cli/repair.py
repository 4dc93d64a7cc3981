"""Commands that set right what went wrong: a commit of unknown outcome, a lost pointer target."""

from __future__ import annotations

import click

from icecomb.catalog.cli.application import OK, UNKNOWN_COMMIT, Application


@click.group()
def commit() -> None:
    """Look after a commit whose outcome is unknown."""


@commit.command()
@click.argument("table")
@click.argument("metadata_file")
@click.option(
    "--checked",
    is_flag=True,
    help="Its request said which pointer it expects: errors of icecomb say whether it did.",
)
@click.option("--yes", is_flag=True, help="Remove what a commit that did not happen left behind.")
@click.pass_obj
def settle(
    application: Application, table: str, metadata_file: str, *, checked: bool, yes: bool
) -> int:
    """Say what became of a commit: committed, superseded, not committed, pending or unknown.

    TABLE (or a view) and METADATA_FILE are those that the error named. Superseded means committed,
    and others have gone on since. A pending commit has not happened, but a late request could still
    make it happen. With --checked, --yes makes that impossible first, by moving the pointer on with
    a commit that changes nothing; without, wait until the file is an hour old. Data files are never
    removed.

    Exit code 0 if the question is answered for good, 4 if not.
    """
    from icecomb.catalog.commit_status import Fate, commit_fate, fence, remove_leftovers

    catalog = application.catalog()
    found = commit_fate(catalog, table, metadata_file, told=checked)
    if yes and found.fate is Fate.PENDING and catalog.refuses_late(table, told=checked):
        fence(catalog, table)
        found = commit_fate(catalog, table, metadata_file, told=checked)
    removed = yes and found.fate is Fate.NOT_COMMITTED
    if removed:
        remove_leftovers(catalog, found)
    application.output.facts(
        {
            "name": table,
            "metadata file": metadata_file,
            "outcome": str(found.fate),
            "because": found.reason,
            "current metadata": found.current,
            "removed" if removed else "leftovers": list(found.leftovers),
        }
    )
    if found.leftovers and not removed:
        application.warn("dry run: add --yes to remove the leftovers")
    if found.fate is Fate.PENDING and not yes:
        first = "add --yes to make it impossible, or " if checked else ""
        application.warn(f"{first}ask again when the file is an hour old")
    return OK if found.is_settled else UNKNOWN_COMMIT


@click.command()
@click.argument("table")
@click.option("--to", "target", metavar="METADATA_FILE", help="Where the table is to point.")
@click.option("--yes", is_flag=True, help="Do it; without, only what would happen is shown.")
@click.pass_obj
def repair(application: Application, table: str, target: str | None, *, yes: bool) -> None:
    """Point a table at another metadata file of its own, or set right what its entry says.

    With --to, for a table whose metadata file is lost or whose pointer went backwards: icecomb
    doctor names the file. Without, the metastore's parameters and columns are written anew from the
    current metadata. No file is written or deleted.
    """
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
    if not yes:
        application.warn("dry run: add --yes to do it")


@click.command()
@click.argument("table")
@click.argument("metadata_file")
@click.pass_obj
def register(application: Application, table: str, metadata_file: str) -> None:
    """Take an existing metadata file in as TABLE. It is not copied, and never deleted."""
    made = application.catalog().register_table(table, metadata_file)
    application.output.facts({"table": ".".join(made.name()), "metadata": made.metadata_location})
