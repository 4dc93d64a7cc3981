"""Paimon's rules for a whole schema, checked before it is written (Paimon: SchemaValidation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.format.errors import SchemaError

_RESERVED: Final = frozenset(("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"))
_RESERVED_PREFIX: Final = "_KEY_"
_OF_ALL_COLUMNS: Final = "default-aggregate-function"
_NAMING: Final = frozenset(
    (
        *("bucket-key", "sequence.field", "rowkind.field", "record-level.time-field"),
        *("clustering.columns", "vector-field", "blob-field", "blob-descriptor-field"),
        *("blob-view-field", "pk-vector.index.columns", "pk-btree.index.columns"),
        *("pk-bitmap.index.columns", "pk-multivalue.index.columns", "pk-full-text.index.columns"),
    )
)
"""Options whose values are names of columns."""
_DYNAMIC, _POSTPONED = "-1", "-2"


def check_rules(base: TableSchema, new: TableSchema) -> None:
    """Check that changes break no rule of Paimon, unless the old schema violates it already."""
    known = set(_broken(base))
    for problem in _broken(new):
        if problem not in known:
            raise SchemaError(
                f"Paimon would refuse the new schema: {problem}",
                hint="Make another change, or change what the message names in the same step.",
            )


def named_by_options(schema: TableSchema) -> dict[str, str]:
    """Return the columns named by options' values or names, with one such option each."""
    found: dict[str, str] = {}
    for key, value in schema.options.items():
        names = value.split(",") if key in _NAMING else []
        if key.startswith("file-index.") and key.endswith(".columns"):
            names = [name.partition("[")[0] for name in value.split(",")]
        elif key.startswith("fields.") and key != f"fields.{_OF_ALL_COLUMNS}":
            names = key.split(".")[1].split(",")
        for name in names:
            found.setdefault(name.strip(), key)
    return found


def _broken(schema: TableSchema) -> Iterator[str]:
    columns = {field.name for field in schema.fields}
    for name in columns:
        if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
            yield f"the name {name} is one of Paimon's own columns"
    for name, option in named_by_options(schema).items():
        if name not in columns:
            yield f"option {option} names the column {name}, which does not exist"
    yield from _broken_buckets(schema)
    if schema.is_append_table and schema.options.get("changelog-producer", "none") != "none":
        yield "option changelog-producer needs a primary key"


def _broken_buckets(schema: TableSchema) -> Iterator[str]:
    bucket, key = schema.options.get("bucket", _DYNAMIC), schema.options.get("bucket-key")
    if bucket == _DYNAMIC:
        if key is not None:
            yield "option bucket-key needs a number of buckets (bucket)"
    elif bucket == _POSTPONED and not schema.is_append_table:
        return
    elif not (bucket.isascii() and bucket.isdigit() and int(bucket) > 0):
        yield f"option bucket is {bucket!r}, not a number of buckets"
    elif key is None and schema.is_append_table:
        yield "option bucket of an append table needs the option bucket-key"
    elif key is not None and not schema.is_append_table:
        for name in map(str.strip, key.split(",")):
            if name not in schema.primary_keys:
                yield f"option bucket-key names {name}, which is not in the primary key"
