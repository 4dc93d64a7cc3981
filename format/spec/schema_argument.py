"""Schema arguments in all the forms that callers may give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.argument import json_of_pyiceberg, name_of_type
from icecomb.format.errors import SchemaError
from icecomb.format.spec.schema import V3_FORMAT_VERSION, Schema, check_depth

if TYPE_CHECKING:
    import pyarrow as pa

_OF_FRAMES: Final = {
    "pandas": "Give pa.Schema.from_pandas(frame).",
    "polars": "Give frame.to_arrow().schema.",
}


def as_schema(schema: Schema | pa.Schema, format_version: int) -> Schema:
    """Convert a schema of PyIceberg or Arrow to an Iceberg schema; Arrow fields get ids.

    Arrow's timestamps of nanoseconds become columns of microseconds where the format version has no
    others.
    """
    if isinstance(schema, Schema):
        check_depth(f.field_type for f in schema.fields)
        return schema
    if isinstance(raw := json_of_pyiceberg(schema), dict):
        return Schema.from_json(raw, ids_may_repeat=True)
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import check_arrow_depth, pyarrow_to_schema

    if not isinstance(schema, pa.Schema):
        of_frame = isinstance(getattr(schema, "schema", None), pa.Schema)
        library = type(schema).__module__.partition(".")[0]
        raise SchemaError(
            f"A schema is Schema(...) or pa.schema(...), not {name_of_type(schema)}",
            hint="Give its .schema." if of_frame else _OF_FRAMES.get(library, "Give one of these."),
        )

    check_arrow_depth(schema)
    return pyarrow_to_schema(schema, nanoseconds=format_version >= V3_FORMAT_VERSION)
