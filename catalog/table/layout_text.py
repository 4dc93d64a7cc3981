"""Text of partition fields, sort keys and types for people, with the names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.spec.schema import children

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortField
    from icecomb.format.spec.types import IcebergType


def column_name(schema: Schema, field_id: int) -> str:
    """Return the full name of a column; its number if the schema does not have it."""
    return schema.find_column_name(field_id) or f"#{field_id}"


def term_text(field: PartitionField, schema: Schema) -> str:
    """Format the term of a partition field: ``day(ts)``."""
    return f"{field.transform}({column_name(schema, field.source_id)})"


def key_text(key: SortField, schema: Schema) -> str:
    """Format a key of a sort order: ``bucket[4](id) asc nulls first``."""
    source, transform = column_name(schema, key.source_id), str(key.transform)
    term = source if transform == "identity" else f"{transform}({source})"
    nulls = "" if key.null_order is None else f" {key.null_order.value.replace('-', ' ')}"
    return f"{term} {key.direction.value}{nulls}"


def own_type(field_type: IcebergType) -> str:
    """Return a type without its inner fields, which are printed separately."""
    text = str(field_type)
    return text.partition("<")[0] if children(field_type) else text
