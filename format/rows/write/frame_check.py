"""A check that a frame of rows can be written to a table, which lists the differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from icecomb.format.arrow.plain_layout import plain_schema
from icecomb.format.arrow.storage_type import without_nulls
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.rows.values.arrow_values import writing_cast
from icecomb.format.rows.values.variant_column import is_variant, variant_problem
from icecomb.format.spec.arrow_schema import child_fields
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    VariantType,
)


def check_frame(schema: Schema, frame: pa.Schema) -> None:
    """Reject a frame whose columns do not fit the table's; the error lists each on a line.

    Columns are compared by name, at every depth. An optional column may be missing; types may
    differ if the conversion cannot lose any value.
    """
    lines = list(_differences(schema.fields, list(plain_schema(frame)), ""))
    if not lines:
        return
    hint = "Add, rename or cast columns of the data, or change the table's schema first."
    if b"pandas" in (frame.metadata or {}):
        hint += _hint_of_pandas(schema, frame)
    raise SchemaError(
        "The data does not fit the table's columns:\n" + "\n".join(f"  {line}" for line in lines),
        hint=hint,
    )


def missing_in_table(schema: Schema, frame: pa.Schema) -> pa.Schema:
    """Return the columns of a frame that a table lacks or has too narrow, for a union by name.

    Required columns stay required, and new columns are optional: existing rows have no values for
    them.
    """
    known = StructType(schema.fields)
    return pa.schema(list(_aligned(known, pa.struct(list(plain_schema(frame))))))


def check_required(schema: Schema, batch: pa.RecordBatch) -> None:
    """Reject nulls in required columns, and variants without parts, at every depth.

    The columns of `batch` have the schema's order and types.
    """
    for f, array in zip(schema.fields, batch.columns, strict=True):
        _check_nulls(f, array, f.name)


def _hint_of_pandas(schema: Schema, frame: pa.Schema) -> str:
    """Return what to do about columns that pandas added, or made floats of."""
    hint = ""
    columns = {one["field_name"] for one in json.loads(frame.metadata[b"pandas"])["columns"]}
    if not columns.issuperset(frame.names):
        hint += " An index of pandas is among the columns: df.reset_index(drop=True) leaves it out."
    whole = {f.name for f in schema.fields if isinstance(f.field_type, (IntegerType, LongType))}
    floats = [f.name for f in frame if f.name in whole and pa.types.is_floating(f.type)]
    if floats:
        kinds = ", ".join(f"{name!r}: 'Int64'" for name in floats)
        hint += f" pandas makes floats of integers beside nulls: df.astype({{{kinds}}})."
    return hint


def _differences(
    fields: Sequence[NestedField], given: Sequence[pa.Field], prefix: str
) -> Iterator[str]:
    names = [f.name for f in given]
    by_name = {f.name: f for f in given}
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"! {prefix}{name}: more than once in the data"
    for f in fields:
        found = by_name.get(f.name)
        path = f"{prefix}{f.name}"
        if found is not None:
            yield from _type_differences(f.field_type, found.type, path)
        else:
            yield from _unfilled(f, path)
    known = {f.name for f in fields}
    lowered = {f.name.lower(): f.name for f in fields}
    for extra in given:
        if extra.name in known:
            continue
        near = lowered.get(extra.name.lower())
        asked = "" if near is None else f" (did you mean {prefix}{near}?)"
        yield f"+ {prefix}{extra.name}: {extra.type} in the data, not in the table{asked}"


def _unfilled(field: NestedField, path: str) -> Iterator[str]:
    """Yield the required fields for which neither the data nor a default has a value."""
    if field.write_default is None:
        if field.required:
            yield f"- {path}: required {field.field_type} in the table, missing in the data"
    elif isinstance(field.field_type, StructType):
        for inner in field.field_type.fields:
            yield from _unfilled(inner, f"{path}.{inner.name}")


def _type_differences(kind: IcebergType, given: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_null(given):
        return
    if isinstance(kind, VariantType):
        if not is_variant(given):
            made = "icecomb.format.variants_to_arrow makes variants of values"
            yield f"! {path}: {kind} in the table, {given} in the data ({made})"
        return
    inside = child_fields(given)
    if isinstance(kind, StructType) and pa.types.is_struct(given):
        yield from _differences(kind.fields, inside, f"{path}.")
    elif isinstance(kind, ListType) and len(inside) == 1 and not pa.types.is_struct(given):
        yield from _type_differences(kind.element_type, inside[0].type, f"{path}.element")
    elif isinstance(kind, MapType) and pa.types.is_map(given):
        yield from _type_differences(kind.key_type, inside[0].type, f"{path}.key")
        yield from _type_differences(kind.value_type, inside[1].type, f"{path}.value")
    elif not kind.is_primitive or inside or not _castable(given, kind, path):
        yield f"! {path}: {kind} in the table, {given} in the data"


def _aligned(kind: IcebergType, given: pa.DataType) -> pa.DataType:
    """Return the part of a frame's type that does not fit, nullable as the table's type is."""
    inside = child_fields(given)
    if isinstance(kind, StructType) and pa.types.is_struct(given):
        known = {f.name: f for f in kind.fields}
        return pa.struct(
            [
                f.with_nullable(True)
                if f.name not in known
                else pa.field(
                    f.name,
                    _aligned(known[f.name].field_type, f.type),
                    nullable=not known[f.name].required,
                )
                for f in inside
                if f.name not in known
                or any(_type_differences(known[f.name].field_type, f.type, f.name))
            ]
        )
    if isinstance(kind, ListType) and len(inside) == 1 and not pa.types.is_struct(given):
        element = _aligned(kind.element_type, inside[0].type)
        return pa.list_(pa.field("element", element, nullable=not kind.element_required))
    if isinstance(kind, MapType) and pa.types.is_map(given):
        value = _aligned(kind.value_type, inside[1].type)
        return pa.map_(inside[0].type, pa.field("value", value, nullable=not kind.value_required))
    return given


def _castable(given: pa.DataType, kind: IcebergType, path: str) -> bool:
    try:
        writing_cast(given, kind, path)
    except SchemaError:
        return False
    return True


def _check_nulls(field: NestedField, array: pa.Array, path: str) -> None:
    if field.required and array.null_count:
        raise ValidationError(
            f"Column {path!r} is required, and {array.null_count} of {len(array)} values are null",
            hint="Fill the nulls, or make the column optional.",
            column=path,
        )
    kind = field.field_type
    if not _has_required(kind):
        return
    live = without_nulls(array)
    if isinstance(kind, VariantType):
        if problem := variant_problem(live):
            raise SchemaError(
                f"Column {path!r}: {problem}",
                hint="Make variants of values with icecomb.format.variants_to_arrow.",
                column=path,
            )
    elif isinstance(kind, StructType):
        for i, inner in enumerate(kind.fields):
            _check_nulls(inner, live.field(i), f"{path}.{inner.name}")
    elif isinstance(kind, ListType):
        _check_nulls(kind.element_field, live.flatten(), f"{path}.element")
    elif isinstance(kind, MapType):
        _check_nulls(kind.value_field, _live_values(live), f"{path}.value")


def _live_values(array: pa.MapArray) -> pa.Array:
    """Return the values of maps without nulls, only those inside the array's slice."""
    if not len(array):
        return array.items.slice(0, 0)
    begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.items.slice(begin, end - begin)


def _has_required(kind: IcebergType) -> bool:
    if isinstance(kind, StructType):
        return any(f.required or _has_required(f.field_type) for f in kind.fields)
    if isinstance(kind, ListType):
        return kind.element_required or _has_required(kind.element_type)
    if isinstance(kind, MapType):
        return kind.value_required or _has_required(kind.value_type)
    return isinstance(kind, VariantType)
