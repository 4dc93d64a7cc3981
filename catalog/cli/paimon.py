"""Commands about Paimon tables: their schemas, and importing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.output.output import finding_lines, moment
from icecomb.format.errors import ConfigurationError, SchemaError
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.catalog.paimon.schema_change import Position, SchemaChange
    from icecomb.catalog.paimon.source import PaimonSource

_COLUMNS = ["change", "id", "path", "before", "after"]


@click.group()
def paimon() -> None:
    """Show and evolve the schemas of Apache Paimon tables, import append tables.

    TABLE is a folder (/warehouse/db.db/t, ./t, hdfs://...), or a table's name in the Hive
    metastore (db.t).
    """


@paimon.command()
@click.argument("namespace", required=False)
@click.pass_obj
def tables(application: Application, namespace: str | None) -> None:
    """List the Paimon tables of a namespace of the metastore, or of all."""
    from icecomb.catalog.paimon.source import list_tables

    catalog = application.metastore()
    names = [namespace] if namespace else [name[0] for name in catalog.list_namespaces()]
    found = [table for name in names for table in list_tables(catalog, name)]
    rows = [[table.full_name, table.storage.location] for table in found]
    application.output.table(["table", "location"], rows)


@paimon.command()
@click.argument("table")
@click.pass_obj
def history(application: Application, table: str) -> None:
    """List all schemas of a table, oldest first, with what each changed."""
    from icecomb.catalog.paimon.difference import differences

    found = _source(application, table).schemas.history()
    rows = []
    for before, schema in zip((None, *found), found, strict=False):
        changes = [] if before is None else differences(before, schema)
        said = [f"{one.kind} {one.path}".strip() for one in changes]
        rows.append(
            [
                schema.schema_id,
                moment(schema.time_millis),
                len(schema.fields),
                "created" if before is None else "; ".join(said),
            ]
        )
    application.output.table(["schema", "made", "columns", "changes"], rows)


@paimon.command()
@click.argument("table")
@click.argument("old", type=int)
@click.argument("new", type=int)
@click.pass_obj
def diff(application: Application, table: str, old: int, new: int) -> int:
    """Compare two schemas, fields by id at all depths. Exit code 3 if they differ."""
    from icecomb.catalog.paimon.difference import differences

    schemas = _source(application, table).schemas
    found = differences(schemas.read(old), schemas.read(new))
    rows = [[d.kind, d.field_id, d.path, d.before, d.after] for d in found]
    application.output.table(_COLUMNS, rows)
    return BLOCKED if found else OK


@paimon.command()
@click.argument("table")
@click.pass_obj
def drift(application: Application, table: str) -> int:
    """Compare the latest schema with the metastore's columns. Exit code 3 if they differ."""
    from icecomb.catalog.paimon.difference import drifts

    source = _source(application, table)
    if source.entry is None:
        raise ConfigurationError(
            f"{table} is a folder: drift compares a table of the metastore",
            hint="Name the table, as db.table.",
        )
    found = drifts(source.schemas.latest(), source.entry)
    rows = [[one.column, one.kind, one.schema, one.metastore] for one in found]
    application.output.table(["column", "drift", "schema file", "metastore"], rows)
    return BLOCKED if found else OK


@paimon.command()
@click.argument("table")
@click.pass_obj
def prune(application: Application, table: str) -> None:
    """List the schemas that nothing refers to. No schema is ever deleted."""
    from icecomb.catalog.paimon.source import schema_use

    source = _source(application, table)
    rows = [
        [one.schema_id, not one.users, ", ".join(one.users)]
        for one in schema_use(source.schemas, source.snapshots)
    ]
    application.output.table(["schema", "unused", "used by"], rows)


@paimon.command()
@click.argument("table")
@click.option("--add", nargs=2, multiple=True, metavar="COLUMN TYPE", help="Add a column.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Drop this column.")
@click.option("--rename", nargs=2, multiple=True, metavar="COLUMN NAME", help="Rename a column.")
@click.option(
    "--retype", nargs=2, multiple=True, metavar="COLUMN TYPE", help="Change a column's type."
)
@click.option(
    "--move",
    nargs=2,
    multiple=True,
    metavar="COLUMN PLACE",
    help="Move a column: first, last, after:X, before:X.",
)
@click.option("--nullable", multiple=True, metavar="COLUMN", help="Make this column nullable.")
@click.option("--not-null", multiple=True, metavar="COLUMN", help="Make this column not null.")
@click.option(
    "--describe", nargs=2, multiple=True, metavar="COLUMN TEXT", help="Set a column's comment."
)
@click.option(
    "--default",
    nargs=2,
    multiple=True,
    metavar="COLUMN VALUE",
    help="Set a column's default for new rows; '' removes it.",
)
@click.option(
    "--set", "options", nargs=2, multiple=True, metavar="KEY VALUE", help="Set a table option."
)
@click.option("--unset", multiple=True, metavar="KEY", help="Reset an option to its default.")
@click.option("--comment", help="Set the table's comment.")
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would change.")
@click.pass_obj
def evolve(application: Application, /, table: str, *, yes: bool, **given: Any) -> None:
    """Create the next schema, by Paimon's rules. Old schema files stay.

    COLUMN may be nested: spots.element.x is a field of the rows in an array. Changes are made in
    the order of the options above.
    """
    from icecomb.catalog.paimon.difference import differences

    source = _source(application, table)
    changes = _changes(**given)
    if not changes:
        raise click.UsageError("no change is given")
    base, new = source.schemas.evolved(changes)
    if yes:
        new = source.schemas.evolve(changes)
        base = source.schemas.read(new.schema_id - 1)
    rows = [[d.kind, d.field_id, d.path, d.before, d.after] for d in differences(base, new)]
    application.output.table(_COLUMNS, rows)
    if not yes:
        application.warn(f"dry run: add --yes to create schema-{new.schema_id}")
    elif source.entry is not None:
        application.warn(
            f"the metastore's columns did not change: {shell_command('paimon', 'drift', table)}"
        )


@paimon.command("import")
@click.argument("table")
@click.option("--to", "target", required=True, metavar="DB.TABLE", help="The Iceberg table.")
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")
@click.pass_obj
def import_(application: Application, table: str, target: str, *, yes: bool) -> int:
    """Create an Iceberg table of a Paimon append table's data files, in place.

    The files still belong to the Paimon table: the Iceberg table gets gc.enabled=false. First stop
    whatever writes, compacts or expires the Paimon table. Exit code 3 if it is blocked.
    """
    from icecomb.catalog.paimon.table_import import draft_import, plan_import, run_import

    plan = plan_import(_source(application, table), application.progress)
    done = yes and not plan.blockers
    if done:
        run_import(plan, application.catalog(), target)
    elif not plan.blockers:
        draft_import(plan, application.catalog(), target)
    facts = {"table": target, "imported": done, **plan.to_json()}
    if application.text:
        del facts["blockers"], facts["findings"]
    application.output.facts(facts)
    application.output.lines(finding_lines(plan.findings))
    if plan.blockers:
        return BLOCKED
    if not yes:
        application.warn("dry run: add --yes to import it")
    return OK


def _source(application: Application, table: str) -> PaimonSource:
    from icecomb.catalog.paimon.source import PaimonSource, find_table

    if "/" in table:
        from icecomb.catalog.configuration.configuration import load_configuration
        from icecomb.format.storage.file_io import FileIO

        io = FileIO(load_configuration("path", {}).properties)
        # Only a local folder can be named relative to the working directory.
        relative = table.startswith(".") or (":" not in table and not table.startswith("/"))
        return PaimonSource(
            table, io, str(Path(table).absolute()) if relative else table.rstrip("/")
        )
    return find_table(application.metastore(), table)


def _changes(  # noqa: PLR0917 - the options of one command
    add: Any,
    drop: Any,
    rename: Any,
    retype: Any,
    move: Any,
    nullable: Any,
    not_null: Any,
    describe: Any,
    default: Any,
    options: Any,
    unset: Any,
    comment: str | None,
) -> list[SchemaChange]:
    from icecomb.catalog.paimon import schema_change as change
    from icecomb.catalog.paimon.type_parser import parse_type

    comments = [] if comment is None else [change.UpdateComment(comment or None)]
    return [
        *(change.AddColumn(_path(name), parse_type(kind)) for name, kind in add),
        *(change.DropColumn(_path(name)) for name in drop),
        *(change.RenameColumn(_path(name), new) for name, new in rename),
        *(change.UpdateType(_path(name), parse_type(kind)) for name, kind in retype),
        *(change.MoveColumn(_path(name), _position(place)) for name, place in move),
        *(change.UpdateNullability(_path(name), nullable=True) for name in nullable),
        *(change.UpdateNullability(_path(name), nullable=False) for name in not_null),
        *(change.UpdateDescription(_path(name), text or None) for name, text in describe),
        *(change.UpdateDefault(_path(name), value or None) for name, value in default),
        *(change.SetOption(key, value) for key, value in options),
        *(change.RemoveOption(key) for key in unset),
        *comments,
    ]


def _path(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def _position(place: str) -> Position:
    from icecomb.catalog.paimon.schema_change import Position

    kind, _, reference = place.partition(":")
    if kind.lower() not in {"first", "last", "after", "before"} or (
        (kind.lower() in {"after", "before"}) != bool(reference)
    ):
        raise SchemaError(
            f"{json.dumps(place)} is not a position: first, last, after:X or before:X",
            hint="Use one of those four, with the name of a column for X.",
        )
    return Position(kind.upper(), reference or None)
