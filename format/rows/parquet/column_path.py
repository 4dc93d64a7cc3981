"""Paths of a table's columns in Parquet files (spec: Parquet, nested types)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icecomb.format.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    VariantType,
)


def parquet_paths(fields: Sequence[NestedField]) -> dict[int, str]:
    """Return the dotted Parquet path of each primitive column, by field id, in order.

    The path of a variant is that of its metadata, which mostly repeats.
    """
    return {number: path for f in fields for number, path in _paths(f, f.name)}


def _paths(field: NestedField, path: str) -> Iterator[tuple[int, str]]:
    kind: IcebergType = field.field_type
    if isinstance(kind, StructType):
        for f in kind.fields:
            yield from _paths(f, f"{path}.{f.name}")
    elif isinstance(kind, ListType):
        yield from _paths(kind.element_field, f"{path}.list.element")
    elif isinstance(kind, MapType):
        yield from _paths(kind.key_field, f"{path}.key_value.key")
        yield from _paths(kind.value_field, f"{path}.key_value.value")
    elif isinstance(kind, VariantType):
        yield field.field_id, f"{path}.metadata"
    else:
        yield field.field_id, path
