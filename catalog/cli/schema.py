"""The command that shows the columns of a table with their ids, and its layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.state import State, with_state
from icecomb.catalog.table.table_difference import column_name, key_text, own_type, term_text

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder

_COLUMNS: Final = ("id", "name", "type", "required", "identifier", "doc")
_DEFAULTS: Final = ("initial_default", "write_default")
"""The columns of a table that has defaults."""


@click.command()
@click.argument("table")
@with_state
@click.pass_obj
def schema(application: Application, table: str, *, state: State) -> None:
    """Show the columns of a table with their ids, its partition spec and its sort order.

    For a snapshot, a tag or a time, this is the schema of that time; a branch is read with the
    table's own. The spec and order of that time are shown if the table still has the metadata file.
    """
    loaded = application.table(table)
    shown = loaded.scan(**state.scan_arguments(loaded)).schema()
    fields = list(schema_fields(shown))
    defaulted = any(field[name] is not None for field in fields for name in _DEFAULTS)
    columns = (*_COLUMNS, *_DEFAULTS) if defaulted else _COLUMNS
    rows = [[field[name] for name in columns] for field in fields]
    metadata, missing = state.table_metadata(loaded)
    spec = None if metadata is None else spec_facts(metadata.spec(), shown)
    order = None if metadata is None else order_facts(metadata.sort_order(), shown)
    if application.json:
        application.output.facts(
            {
                "schema": shown.schema_id,
                "fields": [dict(zip(columns, row, strict=True)) for row in rows],
                "partition_spec": spec,
                "sort_order": order,
            }
        )
    else:
        application.output.table(columns, rows)
    if application.text:
        application.output.lines([""])
        application.output.facts(
            {
                "schema": shown.schema_id,
                "partition spec": spec and spec["id"],
                "partitioned by": spec and [field["text"] for field in spec["fields"]],
                "sort order": order and order["id"],
                "sorted by": order and [field["text"] for field in order["fields"]],
            }
        )
    if missing:
        application.warn(f"partition spec and sort order are not known: {missing}")


def schema_fields(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield all fields of a schema, a parent before its children, with their full names."""
    from icecomb.format.spec.schema import walk

    for field in walk(schema.as_struct()):
        raw = field.to_json()
        yield {
            "id": field.field_id,
            "name": schema.find_column_name(field.field_id),
            "type": own_type(field.field_type),
            "required": field.required,
            "identifier": field.field_id in schema.identifier_field_ids,
            "doc": field.doc,
            "initial_default": raw.get("initial-default"),
            "write_default": raw.get("write-default"),
        }


def spec_facts(spec: PartitionSpec, schema: Schema) -> dict[str, Any]:
    """Describe a partition spec with the names of its columns."""
    fields = [
        {
            "id": field.field_id,
            "name": field.name,
            "transform": str(field.transform),
            "source": column_name(schema, field.source_id),
            "text": f"{field.name}: {term_text(field, schema)}",
        }
        for field in spec.fields
    ]
    return {"id": spec.spec_id, "fields": fields}


def order_facts(order: SortOrder, schema: Schema) -> dict[str, Any]:
    """Describe a sort order with the names of its columns."""
    fields = [
        {
            "transform": str(key.transform),
            "source": column_name(schema, key.source_id),
            "direction": key.direction.value,
            "null_order": None if key.null_order is None else key.null_order.value,
            "text": key_text(key, schema),
        }
        for key in order.fields
    ]
    return {"id": order.order_id, "fields": fields}
