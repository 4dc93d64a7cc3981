"""Commands that list a table's metadata: its history, files, partitions, manifests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.state import State, with_state
from icecomb.catalog.cli.output.output import exact_moment, row_values

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_COUNTS: Final = (
    "added-records",
    "deleted-records",
    "total-records",
    "added-data-files",
    "deleted-data-files",
)
_FILES: Final = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
)
_FILE_CONTENTS: Final = ("data", "position_deletes", "equality_deletes")
_MANIFEST_CONTENTS: Final = ("data", "deletes")


@click.command()
@click.argument("table")
@click.pass_obj
def history(application: Application, table: str) -> None:
    """List the snapshots that main pointed to, and since when, oldest first.

    A snapshot that was rolled back is not an ancestor of the current one. Of an expired snapshot,
    only id and time are known. Reads only the metadata file; `icecomb snapshots` lists snapshots of
    branches, too.
    """
    loaded = application.table(table)
    metadata = loaded.metadata
    columns = ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"]
    known = row_values(loaded.inspect.history().select(columns))
    names = names_of(metadata)
    rows = [
        [*map(_value, row.values()), *_facts(metadata, number), names.get(number)]
        for row in known
        for number in [row["snapshot_id"]]
    ]
    counts = [name.replace("-", "_") for name in _COUNTS]
    application.output.table([*columns, "operation", *counts, "refs"], rows)


@click.command()
@click.argument("table")
@click.pass_obj
def refs(application: Application, table: str) -> None:
    """List the branches and tags of a table, and how long they and their snapshots are kept."""
    show_refs(application, table)


def show_refs(application: Application, table: str, kind: str | None = None) -> None:
    """Print the branches and tags, or those of one kind, as in the metadata table."""
    chosen = None if kind is None else f"type = '{kind.upper()}'"
    _show(application, table, "refs", row_filter=chosen)


def _listing(command: Any) -> Callable[..., Any]:
    for option in (
        click.option(
            "--columns", help="Names of the metadata table's columns, separated by commas."
        ),
        click.option(
            "--where", help="A predicate in SQL on the metadata table's columns, see below."
        ),
    ):
        command = option(command)
    return with_state(command)


@click.command()
@click.argument("table")
@_listing
@click.pass_obj
def files(
    application: Application, table: str, *, state: State, where: str | None, columns: str | None
) -> None:
    """List the data and delete files of a snapshot, by default the current one.

    Any number of them is printed as manifests are read. --where takes the columns of Iceberg's
    metadata table `files`, such as "partition.day >= '2024-01-01' and file_size_in_bytes < 1000000"
    or "content = 0" (0 data, 1 position deletes, 2 equality deletes).
    """
    _show(
        application,
        table,
        "files",
        state,
        row_filter=where,
        columns=columns,
        default=_FILES,
        contents=_FILE_CONTENTS,
    )


@click.command()
@click.argument("table")
@_listing
@click.pass_obj
def partitions(
    application: Application, table: str, *, state: State, where: str | None, columns: str | None
) -> None:
    """List the partitions of a snapshot: rows, files, deletes, and the last change of each.

    --where takes the columns of Iceberg's metadata table `partitions`, such as "record_count > 0"
    or "partition.day >= '2024-01-01'".
    """
    _show(application, table, "partitions", state, row_filter=where, columns=columns)


@click.command()
@click.argument("table")
@_listing
@click.pass_obj
def manifests(
    application: Application, table: str, *, state: State, where: str | None, columns: str | None
) -> None:
    """List the manifests of a snapshot: the files they track, and the partitions of these.

    --where takes the columns of Iceberg's metadata table `manifests`, such as "content = 1" (0
    data, 1 deletes) or "added_snapshot_id = 42".
    """
    _show(
        application,
        table,
        "manifests",
        state,
        row_filter=where,
        columns=columns,
        contents=_MANIFEST_CONTENTS,
    )


def _show(
    application: Application,
    table: str,
    name: str,
    state: State | None = None,
    *,
    row_filter: str | None = None,
    columns: str | None = None,
    default: Sequence[str] = (),
    contents: Sequence[str] = (),
) -> None:
    """Print a metadata table while its rows are read.

    Args:
        state: The snapshot, for metadata tables of one snapshot.
        columns: Names separated by commas.
        default: The columns printed where none are named; default all.
        contents: The words for the numbers in the column `content`.
    """
    loaded = application.table(table)
    snapshot = None if state is None else state.snapshot(loaded.metadata)
    snapshot_id = None if snapshot is None else snapshot.snapshot_id
    scan = loaded.inspect.scan(name, snapshot_id, row_filter)
    there = {field.name for field in scan.schema.fields}
    # an unpartitioned table's files have no partition: the column stays, for programs
    shown = [column for column in default if column in there]
    named = [] if columns is None else [column.strip() for column in columns.split(",")]
    selected = tuple(named or shown or ("*",))
    scan = loaded.inspect.scan(name, snapshot_id, row_filter, selected)
    header = list(default) if default and not named else scan.arrow_schema.names
    read = partial(_value, contents=contents)
    rows = (
        [read(row.get(column), column) for column in header]
        for batch in scan.to_arrow_batches()
        for row in row_values(batch)
    )
    application.output.table(header, rows)


def _value(value: Any, column: str = "", *, contents: Sequence[str] = ()) -> Any:
    if isinstance(value, dt.datetime):
        return exact_moment(value)
    if column == "content" and contents and value is not None:
        return contents[value]
    return value


def names_of(metadata: TableMetadata) -> dict[int, list[str]]:
    """Return the branches and tags that point to a snapshot, by its id."""
    found: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        found.setdefault(ref.snapshot_id, []).append(name)
    return found


def _facts(metadata: TableMetadata, snapshot_id: int) -> Iterator[Any]:
    """Yield what the history shows of a snapshot beyond the metadata table."""
    snapshot = metadata.snapshot_by_id(snapshot_id)
    summary = {} if snapshot is None else snapshot.summary
    yield summary.get("operation")
    yield from (_number(summary.get(name)) for name in _COUNTS)


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else text
