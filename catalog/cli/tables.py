"""Commands about tables: list, describe, show rows, drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.state import State, with_state
from icecomb.catalog.cli.metadata_tables import names_of
from icecomb.catalog.cli.output.output import exact_moment, moment, row_values
from icecomb.catalog.identifier import parse_identifier
from icecomb.format.errors import CorruptFileError, NoSuchFileError, UnsupportedError
from icecomb.format.spec.snapshot import Snapshot


@click.command()
@click.pass_obj
def namespaces(application: Application) -> None:
    """List the namespaces (databases)."""
    found = application.catalog().list_namespaces()
    application.output.table(["namespace"], [[".".join(name)] for name in found])


@click.command()
@click.argument("namespace", required=False)
@click.pass_obj
def tables(application: Application, namespace: str | None) -> None:
    """List the Iceberg tables of a namespace, or of all."""
    catalog = application.catalog()
    names = [parse_identifier(namespace)] if namespace else catalog.list_namespaces()
    rows = [[".".join(table)] for name in names for table in catalog.list_tables(name)]
    application.output.table(["table"], rows)


@click.command()
@click.argument("table")
@click.pass_obj
def describe(application: Application, table: str) -> None:
    """Show columns, partitioning, properties and size of a table.

    TABLE is a name, or the folder or a metadata file of a file-system table.
    """
    loaded = application.table(table)
    metadata = loaded.metadata
    snapshot = metadata.current_snapshot()
    schema, spec = metadata.schema(), metadata.spec()
    application.output.facts(
        {
            "table": ".".join(loaded.name()),
            "location": metadata.location,
            "metadata": loaded.metadata_location,
            "format version": metadata.format_version,
            "uuid": str(metadata.table_uuid),
            "columns": [_column(field) for field in schema.columns],
            "partitioned by": [
                f"{field.transform}({schema.find_column_name(field.source_id)})"
                for field in spec.fields
            ],
            "snapshots": len(metadata.snapshots),
            "current snapshot": _snapshot_facts(snapshot) if snapshot else None,
            "properties": dict(sorted(metadata.properties.items())),
        }
    )


@click.command()
@click.argument("table")
@click.option("-n", "limit", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--where", help="A predicate in SQL, such as \"day >= '2024-01-01'\".")
@click.option("--columns", help="Names separated by commas; all by default.")
@with_state
@click.pass_obj
def head(
    application: Application,
    table: str,
    *,
    limit: int,
    where: str | None,
    columns: str | None,
    state: State,
) -> None:
    """Show the first rows of a table.

    TABLE is a name, or the folder or a metadata file of a file-system table.
    """
    loaded = application.table(table)
    chosen: dict[str, Any] = {"limit": limit, **state.scan_arguments(loaded)}
    if where:
        chosen["row_filter"] = where
    if columns:
        chosen["selected_fields"] = tuple(name.strip() for name in columns.split(","))
    rows = loaded.scan(**chosen).to_arrow()
    application.output.table(rows.column_names, [list(row.values()) for row in row_values(rows)])


@click.command()
@click.argument("table")
@click.pass_obj
def snapshots(application: Application, table: str) -> None:
    """List the snapshots of a table, oldest first.

    Total rows are those that a scan finds: the rows of the data files minus those that position
    deletes remove. The total is unknown if there are equality deletes.

    TABLE is a name, or the folder or a metadata file of a file-system table.
    """
    metadata = application.table(table).metadata
    names = names_of(metadata)
    application.output.table(
        [
            *("committed", "snapshot", "parent", "operation"),
            *("added rows", "total rows", "deletes", "refs"),
        ],
        [
            [
                exact_moment(snapshot.timestamp_ms),
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.summary.get("operation"),
                snapshot.summary.get("added-records"),
                _live_rows(snapshot.summary),
                _deletes(snapshot.summary),
                ",".join(names.get(snapshot.snapshot_id, ())),
            ]
            for snapshot in sorted(metadata.snapshots, key=lambda s: s.timestamp_ms)
        ],
    )


@click.command()
@click.argument("table")
@click.option(
    "--purge", is_flag=True, help="Also delete every file of the table; cannot be undone."
)
@click.option(
    "--outside",
    metavar="FOLDER",
    multiple=True,
    help="With --purge, also delete the table's files there, outside of its folders; repeatable.",
)
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")
@click.pass_obj
def drop(
    application: Application, table: str, *, purge: bool, outside: tuple[str, ...], yes: bool
) -> None:
    """Drop an Iceberg table from the catalog. Its files stay unless --purge is given.

    Works for a table whose metadata file is lost, too. A table whose property gc.enabled is false
    cannot be purged. Files outside of the table's folders are left, and counted for each folder.
    """
    if outside and not purge:
        raise click.UsageError("--outside is for --purge")
    catalog = application.catalog()
    pointer = catalog.load_pointer(table)
    location = held = metadata = None
    try:
        metadata = catalog.load_table(table).metadata
    except (NoSuchFileError, CorruptFileError, UnsupportedError) as error:
        application.warn(f"its metadata cannot be read: {error.message}")
    else:
        location, held = metadata.location, len(metadata.snapshots)
    catalog.check_drop(table, metadata, purge_requested=purge)
    facts: dict[str, Any] = {
        "table": table,
        "dropped": yes,
        "files deleted in" if purge else "files kept in": location,
        "metadata": pointer,
        "snapshots": held,
    }
    if purge:
        purged = catalog.purge_table(table, delete_outside=outside, dry_run=not yes)
        facts["left outside"] = dict(purged.left_outside)
    elif yes:
        catalog.drop_table(table)
    application.output.facts(facts)
    if not yes:
        application.warn("dry run: add --yes to drop it")


_DELETES: Final = ("total-position-deletes", "total-equality-deletes")


def _deletes(summary: Mapping[str, str]) -> str | None:
    """Return the number of deletes in the delete files; None if the summary does not have it."""
    counts = [summary.get(name, "") for name in _DELETES]
    return str(sum(map(int, counts))) if all(map(str.isdecimal, counts)) else None


def _live_rows(summary: Mapping[str, str]) -> str | None:
    """Return the number of rows that a scan finds; None if the summary does not tell it."""
    rows, by_position, by_value = (
        summary.get(name, "0" if name in _DELETES else "") for name in ("total-records", *_DELETES)
    )
    if not (rows.isdecimal() and by_position.isdecimal()) or by_value != "0":
        return None
    return str(int(rows) - int(by_position))


def _column(field: Any) -> str:
    need = " not null" if field.required else ""
    doc = f"  -- {field.doc}" if field.doc else ""
    return f"{field.name}  {field.field_type}{need}{field.default_text}{doc}"


def _snapshot_facts(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "id": snapshot.snapshot_id,
        "committed": moment(snapshot.timestamp_ms),
        **{
            name: snapshot.summary[name]
            for name in ("operation", "total-records", "total-data-files", "total-files-size")
            if name in snapshot.summary
        },
        # zeros of a table without deletes are left out
        **{
            name: snapshot.summary[name]
            for name in ("total-delete-files", *_DELETES)
            if snapshot.summary.get(name, "0") != "0"
        },
    }
