"""Commands about branches and tags: list, create, replace, delete, fast-forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.state import State, with_state
from icecomb.catalog.cli.argument.value import duration
from icecomb.catalog.cli.maintain import yes
from icecomb.catalog.cli.metadata_tables import show_refs

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.spec.snapshot import SnapshotRef

_Kind = Literal["branch", "tag"]

_retain = click.option(
    "--retain",
    callback=duration,
    metavar="AGE",
    help="Maximum age of its snapshot until expiration removes it, such as 7d; default forever.",
)
_limits = (
    click.option(
        "--min-snapshots",
        type=int,
        metavar="N",
        help="Expiration always keeps the last N snapshots of the branch.",
    ),
    click.option(
        "--max-snapshot-age",
        callback=duration,
        metavar="AGE",
        help="Expiration removes snapshots of the branch older than this, such as 7d.",
    ),
)


def _ref_arguments(command: Any) -> Any:
    return click.argument("table")(click.argument("name")(command))


def _of_branch(command: Any) -> Any:
    for option in reversed(_limits):
        command = option(command)
    return _retain(command)


@click.group()
def branch() -> None:
    """List, create, replace, delete and fast-forward the branches of a table.

    TABLE is a name, or the folder of a file-system table.
    """


@click.group()
def tag() -> None:
    """List, create, replace and delete the tags of a table.

    TABLE is a name, or the folder of a file-system table.
    """


@branch.command("list")
@click.argument("table")
@click.pass_obj
def list_branches(application: Application, table: str) -> None:
    """List the branches of a table, and how long they and their snapshots are kept."""
    show_refs(application, table, "branch")


@tag.command("list")
@click.argument("table")
@click.pass_obj
def list_tags(application: Application, table: str) -> None:
    """List the tags of a table, and how long they are kept."""
    show_refs(application, table, "tag")


@branch.command("create")
@_ref_arguments
@with_state
@_of_branch
@click.option("--if-not-exists", is_flag=True, help="Leave an existing branch unchanged.")
@click.pass_obj
def create_branch(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Create a branch at the table's current snapshot, or at another one.

    In a table without snapshots the branch begins with an empty one.
    """
    _make(application, table, "branch", name, create=True, yes=True, **options)


@tag.command("create")
@_ref_arguments
@with_state
@_retain
@click.option("--if-not-exists", is_flag=True, help="Leave an existing tag unchanged.")
@click.pass_obj
def create_tag(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Tag the table's current snapshot, or another one."""
    _make(application, table, "tag", name, create=True, yes=True, **options)


@branch.command("replace")
@_ref_arguments
@with_state
@_of_branch
@click.option("--create", is_flag=True, help="Create the branch if it does not exist.")
@yes
@click.pass_obj
def replace_branch(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Point a branch to any other snapshot: a dry run unless --yes.

    Limits that are not given stay. Snapshots of only this branch stay until they expire.
    """
    _make(application, table, "branch", name, replace=True, **options)


@tag.command("replace")
@_ref_arguments
@with_state
@_retain
@click.option("--create", is_flag=True, help="Create the tag if it does not exist.")
@yes
@click.pass_obj
def replace_tag(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Point a tag to another snapshot: a dry run unless --yes."""
    _make(application, table, "tag", name, replace=True, **options)


@branch.command("delete")
@_ref_arguments
@click.option("--if-exists", is_flag=True, help="Do nothing if the branch does not exist.")
@yes
@click.pass_obj
def delete_branch(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Delete a branch: a dry run unless --yes. Snapshots of only it stay until they expire."""
    _drop(application, table, "branch", name, **options)


@tag.command("delete")
@_ref_arguments
@click.option("--if-exists", is_flag=True, help="Do nothing if the tag does not exist.")
@yes
@click.pass_obj
def delete_tag(application: Application, /, table: str, name: str, **options: Any) -> None:
    """Delete a tag: a dry run unless --yes. Snapshots of only it stay until they expire."""
    _drop(application, table, "tag", name, **options)


@branch.command("fast-forward")
@_ref_arguments
@click.option("--to", required=True, metavar="REF", help="A branch or tag that descends from it.")
@click.pass_obj
def fast_forward(application: Application, table: str, name: str, *, to: str) -> None:
    """Move a branch forward to a branch or tag that descends from its head.

    A branch that does not exist is created.
    """
    loaded = application.table(table)
    transaction = loaded.transaction()
    with transaction.manage_snapshots() as manage:
        manage.fast_forward(name, to)
    _finish(application, table, loaded, transaction, "branch", name, yes=True)


def _make(
    application: Application,
    table: str,
    kind: _Kind,
    name: str,
    *,
    state: State,
    retain: int | None,
    create: bool = False,
    replace: bool = False,
    if_not_exists: bool = False,
    min_snapshots: int | None = None,
    max_snapshot_age: int | None = None,
    yes: bool,
) -> None:
    from icecomb.catalog.table.ref_change import MakeRef, make_ref

    loaded = application.table(table)
    snapshot = state.snapshot(loaded.metadata)
    wanted = MakeRef(
        kind,
        name,
        create=create,
        replace=replace,
        if_not_exists=if_not_exists,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        max_ref_age_ms=retain,
        min_snapshots_to_keep=min_snapshots,
        max_snapshot_age_ms=max_snapshot_age,
    )
    transaction = loaded.transaction()
    make_ref(transaction, wanted)
    _finish(application, table, loaded, transaction, kind, name, yes=yes)


def _drop(
    application: Application, table: str, kind: _Kind, name: str, *, if_exists: bool, yes: bool
) -> None:
    from icecomb.catalog.table.ref_change import DropRef, drop_ref

    loaded = application.table(table)
    transaction = loaded.transaction()
    drop_ref(transaction, DropRef(kind, name, if_exists=if_exists))
    _finish(application, table, loaded, transaction, kind, name, yes=yes)


def _finish(  # noqa: PLR0917 - what the commands above know
    application: Application,
    table: str,
    loaded: Table,
    transaction: Transaction,
    kind: _Kind,
    name: str,
    *,
    yes: bool,
) -> None:
    """Commit the change or abandon it, and print the branch or tag before and after."""
    before, after = loaded.metadata.refs.get(name), transaction.metadata.refs.get(name)
    if yes:
        transaction.commit_transaction()
    else:
        transaction.abandon()
    application.output.facts(
        {
            "table": table,
            kind: name,
            "before": _facts(before),
            "after": _facts(after),
            "done": yes,
        }
    )
    if not yes:
        application.warn("dry run: add --yes to do it")


def _facts(ref: SnapshotRef | None) -> dict[str, Any] | None:
    """Return a branch's or tag's members, named as in the metadata table; None without one."""
    if ref is None:
        return None
    facts = {
        "snapshot_id": ref.snapshot_id,
        "max_reference_age_in_ms": ref.max_ref_age_ms,
        "min_snapshots_to_keep": ref.min_snapshots_to_keep,
        "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
    }
    return {name: value for name, value in facts.items() if value is not None}
