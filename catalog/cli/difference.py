"""The command that compares two states of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.argument.state import State, state_of
from icecomb.catalog.cli.output.output import exact_moment, row_values

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.table_difference import Endpoint, TableDifference

_CHANGES: Final = ("what", "change", "name", "before", "after")


@click.command()
@click.argument("table")
@click.argument("old", metavar="FROM")
@click.argument("new", metavar="[TO]", required=False)
@click.option("--files", "list_files", is_flag=True, help="List the added and removed files.")
@click.pass_obj
def diff(
    application: Application, table: str, old: str, new: str | None, *, list_files: bool
) -> int:
    """Compare two states of a table: files, rows, columns, layout, properties.

    FROM and TO are snapshots, branches, tags, times or ages, in any order; TO is the table's
    current state by default. Rows are counted by files; counts that no file tells are reported as
    unknown. Only manifests that one of the states lacks are read. Exit code 3 if they differ.
    """
    from icecomb.catalog.table.table_difference import table_difference

    loaded = application.table(table)
    first = state_of(old, loaded.metadata)
    second = State() if new is None else state_of(new, loaded.metadata)
    ends = (_endpoint(loaded, first), _endpoint(loaded, second))
    found = table_difference(loaded, *ends)
    if list_files:
        application.output.table(*_file_rows(found))
    elif application.json:
        application.output.facts(_facts(table, ends, found))
    elif application.text:
        _show(application, table, ends, found)
    else:
        application.output.table(_CHANGES, [*_count_rows(found), *_rows(found)])
    return BLOCKED if found.changes or len(found.added) or len(found.removed) else OK


def _endpoint(table: Table, state: State) -> Endpoint:
    from icecomb.catalog.table.table_difference import Endpoint

    return Endpoint(state.snapshot(table.metadata), *state.table_metadata(table))


def _facts(table: str, ends: tuple[Endpoint, Endpoint], found: TableDifference) -> dict[str, Any]:
    return {
        "table": table,
        "from": _end_facts(ends[0]),
        "to": _end_facts(ends[1]),
        "commits": found.commits,
        "undone": found.undone,
        **_counts(found),
        "changes": [dict(zip(_CHANGES, row, strict=True)) for row in _rows(found)],
        "unknown": list(found.unknown),
    }


def _end_facts(end: Endpoint) -> dict[str, Any] | None:
    snapshot = end.snapshot
    if snapshot is None:
        return None
    at = exact_moment(snapshot.timestamp_ms)
    return {"snapshot_id": snapshot.snapshot_id, "committed": at, "operation": snapshot.operation}


def _counts(found: TableDifference) -> dict[str, dict[str, int]]:
    from icecomb.catalog.table.table_difference import file_counts

    return {"added": file_counts(found.added), "removed": file_counts(found.removed)}


def _rows(found: TableDifference) -> Iterator[list[Any]]:
    for what, one in found.changes:
        yield [what, one.kind, one.path, one.before, one.after]


def _count_rows(found: TableDifference) -> Iterator[list[Any]]:
    counts = _counts(found)
    for change, place in (("added", 4), ("removed", 3)):
        for name, count in counts[change].items():
            if count:
                row: list[Any] = ["files", change, name, None, None]
                row[place] = count
                yield row


def _show(
    application: Application, table: str, ends: tuple[Endpoint, Endpoint], found: TableDifference
) -> None:
    facts = _facts(table, ends, found)
    output = application.output
    for change in ("added", "removed"):
        facts[change] = {name: n for name, n in facts[change].items() if n} or "nothing"
    for change in ("commits", "undone"):
        facts[change] = "unknown" if facts[change] is None else facts[change] or "none"
    changes, unknown = facts.pop("changes"), facts.pop("unknown")
    output.facts(facts)
    if changes:
        output.lines([""])
        output.table(_CHANGES, [list(row.values()) for row in changes])
    if unknown:
        output.lines(["", *(f"not known: {sentence}" for sentence in unknown)])


def _file_rows(found: TableDifference) -> tuple[list[str], Iterator[list[Any]]]:
    from icecomb.catalog.table.table_difference import CONTENTS, FILE_COLUMNS

    def rows() -> Iterator[list[Any]]:
        for change, files in (("removed", found.removed), ("added", found.added)):
            for batch in files.to_batches():
                for row in row_values(batch):
                    row["content"] = CONTENTS[row["content"]]
                    yield [change, *(row.get(name) for name in FILE_COLUMNS)]

    return ["change", *FILE_COLUMNS], rows()
