"""Procedures about the columns of tables."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.format.evolution.schema_edit import find_deleted_column
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import Flag, Int, Text, procedure


@dataclass(frozen=True, slots=True)
class Undeleted:
    """A column that came back, and the schema that has it."""

    restored_field_id: Int
    applied_schema_id: Int
    wrote_during_window: Flag
    was_identifier: Flag


@procedure
def undelete_column(call: Call, table: Text, column: Text) -> list[Undeleted]:
    """Add a dropped column again, with the values that files have of it."""
    found = call.load(table)
    path = parse_name(column) if "`" in column else column
    before = found.metadata
    with found.update_schema(case_sensitive=call.case_sensitive) as update:
        update.undelete_column(path)
    call.changed(found)
    schema = found.schema()
    name = column if isinstance(path, str) else ".".join(path)
    field = schema.find_field(name, call.case_sensitive)
    deleted = find_deleted_column(before, schema.find_parent_id(field.field_id), field.name)
    return [
        Undeleted(field.field_id, schema.schema_id, deleted.written_since, deleted.was_identifier)
    ]
