"""ALTER TABLE: the changes of one statement in one commit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.expressions.sql.constant import constant_of
from icecomb.format.property.table_property import PARTITION_OVERWRITE_MODE
from icecomb.format.property.way_back import has_way_back
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.planner.statements.change import change_by_statement
from icecomb.spark.planner.table.table_definition import check_has_no_statement
from icecomb.spark.schema import iceberg_type, spark_type

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.evolution.schema_update import UpdateSchema
    from icecomb.format.spec.metadata import TableMetadata

_PROPERTIES: Final = frozenset({"set_property", "remove_property"})
_STATEMENT: Final = "statement"
_COLUMNS: Final = frozenset(
    {
        "add_column",
        "rename_column",
        "update_column_type",
        "update_column_nullability",
        "update_column_comment",
        "update_column_position",
        "update_column_default",
        "delete_column",
    }
)


def alter_table(table: Table, changes: Sequence[Mapping[str, Any]]) -> None:
    """Apply the changes of one statement, as in the protocol; the table gets the new metadata."""
    _check_known(changes)
    with table.transaction() as transaction:
        properties = [change for change in changes if change["action"] in _PROPERTIES]
        if properties:
            _alter_properties(transaction, properties)
        columns = [change for change in changes if change["action"] in _COLUMNS]
        if columns:
            # Spark has resolved the names of existing columns: their case is the table's
            with transaction.update_schema() as update:
                keys = _trailing_keys(transaction.metadata)
                for change in columns:
                    _alter_column(transaction, update, change, keys)
        for change in changes:
            if change["action"] == _STATEMENT:
                change_by_statement(
                    transaction, change["text"], case_sensitive=change["case_sensitive"]
                )


def _check_known(changes: Sequence[Mapping[str, Any]]) -> None:
    unknown = [
        change.get("text") or change["action"]
        for change in changes
        if change["action"] not in _PROPERTIES | _COLUMNS | {_STATEMENT}
    ]
    if unknown:
        raise UnsupportedError(
            f"ALTER TABLE cannot do this here: {', '.join(sorted(set(unknown)))}",
            hint="columns, properties, the comment, the location, partition fields, write order, "
            "identifier fields, branches and tags can be altered: see docs/spark.md",
        )


def _alter_properties(transaction: Transaction, changes: Sequence[Mapping[str, Any]]) -> None:
    with transaction.update_properties() as update:
        for change in changes:
            key = change["key"]
            if change["action"] == "remove_property":
                update.remove(key)
            elif key not in _ACTIONS:
                check_has_no_statement(key)
                update.set(key, change["value"])
    for change in changes:
        if change["action"] == "set_property" and change["key"] in _ACTIONS:
            _ACTIONS[change["key"]](transaction, change["value"])


def _set_current_snapshot(transaction: Transaction, snapshot_id: str) -> None:
    with transaction.manage_snapshots() as manage:
        manage.set_current_snapshot(_snapshot_id(snapshot_id))


def _cherry_pick(transaction: Transaction, snapshot_id: str) -> None:
    with transaction.manage_snapshots() as manage:
        manage.cherry_pick(_snapshot_id(snapshot_id))


def _set_location(transaction: Transaction, location: str) -> None:
    if has_way_back(transaction.metadata.properties):
        raise UnsupportedError(
            "SET LOCATION does not show the rows of another folder, as it did when the table was a "
            "Hive table: an Iceberg table knows its files",
            hint="take files in with CALL system.add_files, or overwrite the table with SELECT * "
            "FROM parquet.`folder`; after `icecomb migrate finalize` it says where new files go",
        )
    transaction.update_location(location)


def _snapshot_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValidationError(
            f"{text!r} is not a snapshot id",
            hint="ids are numbers: look at the table's snapshots",
        ) from None


_ACTIONS: Final[Mapping[str, Callable[[Transaction, str], object]]] = {
    "location": _set_location,
    "current-snapshot-id": _set_current_snapshot,
    "cherry-pick-snapshot-id": _cherry_pick,
}
"""Actions run when these are set, as in Iceberg Java: they are not stored as properties."""


def _trailing_keys(metadata: TableMetadata) -> tuple[str, ...]:
    """Return a former Hive table's partition columns, if they are its last columns.

    Hive and Spark add columns of such tables before them, and jobs that insert by position go on as
    before. Without `icecomb.partition-overwrite-mode` there are none, as in Iceberg.
    """
    if not PARTITION_OVERWRITE_MODE.of(metadata.properties):
        return ()
    keys = {
        field.source_id
        for field in metadata.spec().fields
        if isinstance(field.transform, IdentityTransform)
    }
    fields = reversed(metadata.schema().fields)
    last = itertools.takewhile(lambda field: field.field_id in keys, fields)
    return tuple(field.name for field in last)[::-1]


def _alter_column(
    transaction: Transaction,
    update: UpdateSchema,
    change: Mapping[str, Any],
    keys: Sequence[str],
) -> None:
    path = tuple(change["path"])
    match change["action"]:
        case "add_column":
            update.add_column(
                path,
                iceberg_type(change["type"], itertools.count(1)),
                change.get("comment"),
                required=not change["nullable"],
                default_value=constant_of(change["default"], ".".join(path)),
            )
            if change.get("position") is None and len(path) == 1 and keys:
                update.move_before(path, (keys[0],))
            else:
                _move(update, path, change.get("position"))
        case "rename_column":
            update.rename_column(path, change["new_name"])
        case "update_column_type":
            # a uuid is a string for Spark: the type that Spark already shows is not a change
            if change["type"] != spark_type(
                transaction.metadata.schema().find_type(".".join(path))
            ):
                update.update_column(path, iceberg_type(change["type"], itertools.count(1)))
        case "update_column_nullability":
            update.update_column(path, required=not change["nullable"])
        case "update_column_comment":
            update.update_column(path, doc=change["comment"])
        case "update_column_default":
            update.set_default_value(path, constant_of(change["default"], ".".join(path)))
        case "update_column_position":
            _move(update, path, change["position"])
        case _:
            if not change["if_exists"] or transaction.metadata.schema().contains(".".join(path)):
                update.delete_column(path)


def _move(update: UpdateSchema, path: tuple[str, ...], position: Mapping[str, Any] | None) -> None:
    if position is None:
        return
    if "after" in position:
        update.move_after(path, (*path[:-1], position["after"]))
    else:
        update.move_first(path)
