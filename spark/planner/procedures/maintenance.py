"""Procedures that maintain tables, made of the actions of `icecomb maintain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.maintenance.action import ACTIONS, MaintenanceAction
from icecomb.format.argument import checked_int
from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import declared
from icecomb.spark.planner.procedures.snapshots import milliseconds

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.orphans import OrphanFiles

_STREAMED: Final = 20_000
"""The most orphans shown with `stream_results`, as by Iceberg."""
_ORPHANS: Final = "remove_orphan_files"


def _run(action: MaintenanceAction, call: Call, table: str, **given: Any) -> list[Sequence[Any]]:
    """Run an action with the arguments of its procedure, and return the rows."""
    found = call.load_to_rewrite(table) if "options" in given else call.load(table)
    values = {
        "case_sensitive": call.case_sensitive,
        "snapshot_properties": call.summary,
        "dry_run": False,
        **_values(call, {name: value for name, value in given.items() if value is not None}),
    }
    if action.name == _ORPHANS:
        from icecomb.catalog.maintenance.orphans import age_limit

        # its hint is one for CALL
        values["older_than"] = age_limit(values.get("older_than"), any_age=None)
    taken = action.parameters
    result = action.of(found, call.session)(
        **{name: value for name, value in values.items() if name in taken}
    )
    if action.name == _ORPHANS:
        return _orphans(table, result, _STREAMED if given["stream_results"] else None)
    if action.commits:
        call.changed(found)
    row = [getattr(result, column.name) for column in MAINTENANCE[action.name].columns]
    return [] if row == [None] else [row]


def _values(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the method for those of the procedure that are not null."""
    if "max_concurrent_deletes" in given:
        # files of snapshots are deleted in bulk, for which Iceberg ignores it, too
        checked_int("max_concurrent_deletes", given["max_concurrent_deletes"], 1)
    if given.get("sort_by") == ():
        raise ValidationError(
            "sort_by must not be empty when provided",
            hint="Leave it out to sort by all partition fields.",
        )
    values = dict(given)
    if "older_than" in given:
        values["older_than"] = milliseconds(given["older_than"])
    if "where" in given:
        values["where"] = parse(given["where"], of_spark=True)
    if "snapshot_id" in given:
        values["snapshot"] = given["snapshot_id"]
    if "file_list_view" in given:
        values["files"] = _listed(call, given["file_list_view"])
    if "prefix_mismatch_mode" in given:
        values["prefix_mismatch_mode"] = (given["prefix_mismatch_mode"] or "ERROR").upper()
    if "options" in given:
        values["options"] = dict(given["options"])
        values["engine"] = values["options"].pop("engine", "auto")
    elif not given.get("engine"):
        values["engine"] = "auto"
    return values


def _listed(call: Call, view: str) -> Iterator[tuple[str, int]]:
    """Yield the files of a view with their modification times, in ms since 1970."""
    columns = "file_path, unix_millis(last_modified) AS changed"
    # a file without a time is younger than any limit, as in Iceberg
    known = "file_path IS NOT NULL AND last_modified IS NOT NULL"
    name = quoted_name(*parse_name(view))
    statement = f"SELECT {columns} FROM {name} WHERE {known}"  # noqa: S608 - quoted
    for row in call.query(statement):
        yield row["file_path"], row["changed"]


def _orphans(table: str, result: OrphanFiles, shown: int | None) -> list[Sequence[Any]]:
    """Return the locations of orphans, all of which must be deleted."""
    if result.failed_files:
        raise FileIOError(
            f"{result.deleted_files_count} orphan files of {table} were deleted, "
            f"{len(result.failed_files)} could not be, as {result.failed_files[0]}",
            hint="Check the permissions of its folder, and call it again.",
            path=result.failed_files[0],
        )
    return [(location,) for location in result.orphan_file_location[:shown]]


MAINTENANCE: Final = {
    action.name: declared(action.name, action.description, action.procedure, partial(_run, action))
    for action in ACTIONS
    if action.procedure
}
