"""Commands that list the metastore's locks, and release one whose holder is dead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.completion import TableArgument
from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.thrift.entity import LockRow


class _TableOrCommand(click.Group):
    """A group in which `locks db.t` means `locks list db.t`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:  # a word is completed: it may be either
            return super().parse_args(ctx, args)
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        (table,) = (p for p in self.commands["list"].params if p.name == "table")
        names = TableArgument().shell_complete(ctx, table, incomplete)
        return [*super().shell_complete(ctx, incomplete), *names]


@click.group(cls=_TableOrCommand)
def locks() -> None:
    """List who holds locks, or break one whose holder is dead.

    `icecomb locks` lists all, `icecomb locks db.table` those of one table.
    """


@locks.command("list")
@click.argument("table", required=False)
@click.pass_obj
def list_locks(application: Application, table: str | None) -> None:
    """List the locks of the metastore, or of one table; `gone`: the process ended on this host."""
    from icecomb.catalog.hive.lock import describe_age, is_gone, pid_of
    from icecomb.catalog.identifier import database_and_table

    database, name = (None, None) if table is None else database_and_table(table)
    client = application.metastore().client
    rows = client.locks(database, name)
    if not rows and database is not None and name is not None:
        client.table(database, name)  # raises if there is no such table
    now_ms = time.time() * 1000

    def age(since_ms: int | None) -> str | None:
        return None if since_ms is None else describe_age(now_ms - since_ms)

    application.output.table(
        ["lock", "table", "state", "holder", "pid", "gone", "agent", "age", "last heartbeat"],
        [
            [
                row.lock_id,
                row.database if row.table is None else f"{row.database}.{row.table}",
                row.state.name.lower(),
                f"{row.user}@{row.host}",
                pid_of(row),
                is_gone(row),
                row.agent,
                age(row.acquired_ms),
                row.last_heartbeat_ms and f"{age(row.last_heartbeat_ms)} ago",
            ]
            for row in sorted(rows, key=lambda row: row.lock_id)
        ],
    )


@locks.command("break")
@click.argument("lock_id", type=int)
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show the holder.")
@click.pass_obj
def break_lock(application: Application, lock_id: int, *, yes: bool) -> None:
    """Release a lock for its holder.

    A holder that is alive notices this before its commit and commits nothing; where the metastore
    checks the pointer (Hive 2.3.10, 4.0.1), it still commits unless others were first. Writers of
    other kinds rely on the lock alone: break it only if its holder is dead.
    """
    from icecomb.catalog.hive.lock import describe_holder

    catalog = application.metastore()
    row = _find(catalog, lock_id)
    if yes:
        catalog.client.unlock(lock_id)
    holder = describe_holder(row)
    table = f"{row.database}.{row.table}"
    application.output.facts({"lock": lock_id, "table": table, "holder": holder, "broken": yes})
    if not yes:
        application.warn("dry run: make sure the holder is dead, then add --yes to break its lock")


def _find(catalog: HiveCatalog, lock_id: int) -> LockRow:
    for row in catalog.client.locks():
        if row.lock_id == lock_id:
            return row
    raise ValidationError(
        f"The metastore has no lock {lock_id}",
        hint="It may have been released or have expired: icecomb locks lists those that are held.",
    )
