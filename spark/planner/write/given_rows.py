"""Checks of the rows that a query writes, and columns that they add to the table.

Spark compares rows with a table and casts them to fit, unless the table accepts any schema
(``write.spark.accept-any-schema``) or the query is a streaming one. Then Iceberg Java's rules
apply: columns are matched by name, the options ``check-nullability`` and ``check-ordering`` decide
how strictly they are compared, and with ``merge-schema`` the table gets missing columns and wider
types in a commit of its own before the rows are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import SchemaError
from icecomb.format.property.property import flag
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    BinaryType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icecomb.spark.planner.table.tables import takes_any_rows
from icecomb.spark.planner.write.table_change import check_same_table
from icecomb.spark.schema import iceberg_schema

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol.writes import BeginWrite
    from icecomb.spark.planner.table.catalogs import Catalogs
    from icecomb.spark.planner.table.states import TableState, TableStates

_MERGE: Final = flag("merge-schema", "Whether new columns are added to the table.", default=False)
_NULLABILITY: Final = flag(
    "check-nullability",
    "Whether nullable columns are refused for required ones.",
    default=True,
)
_ORDERING: Final = flag(
    "check-ordering", "Whether columns must come in the table's order.", default=True
)
_SPARKS_MERGE: Final = "mergeschema"


def come_as_given(request: BeginWrite, metadata: TableMetadata) -> bool:
    """Return whether Spark has not cast the rows of a write to fit the table."""
    return request.rows is not None and (request.query is not None or takes_any_rows(metadata))


def with_columns_of_rows(
    catalogs: Catalogs,
    states: TableStates,
    state: TableState,
    request: BeginWrite,
    options: Options,
) -> TableState:
    """Add the rows' columns to the table if asked to; return the state to write to.

    Args:
        states: The states of tables, to pin the new one.
        state: The table's state when the statement began.
    """
    if request.rows is None or request.reference.staged or not _merges(options):
        return state
    table = catalogs.load_table(state.catalog, state.identifier)
    check_same_table(table, str(state.metadata.table_uuid))
    given = _meant(request, table.metadata.schema())
    with table.update_schema(case_sensitive=request.case_sensitive) as update:
        update.union_by_name(Schema(given.fields))
        # refused rows add no columns
        changes = update.apply(table.metadata)
        merged = update_table_metadata(table.metadata, changes.updates).schema()
        check_rows(state, request, options, merged)
    return states.now(request.reference)


def _merges(options: Options) -> bool:
    name = _MERGE.key if options.text(_SPARKS_MERGE) is None else _SPARKS_MERGE
    return options.of(_MERGE, {}, name, _MERGE.key)


def check_rows(
    state: TableState, request: BeginWrite, options: Options, schema: Schema | None = None
) -> None:
    """Refuse columns in another order than the table's, or nullable where those are required.

    A streaming query's may be both: its rows are checked for nulls as they are written.

    Args:
        schema: The schema the table is going to have; by default its current one.
    """
    nullability = options.of(_NULLABILITY, {}, _NULLABILITY.key, _NULLABILITY.key)
    ordering = options.of(_ORDERING, {}, _ORDERING.key, _ORDERING.key)
    if request.query is not None or not come_as_given(request, state.metadata):
        return
    schema = state.metadata.schema() if schema is None else schema
    found: list[str] = []
    if nullability:
        found += _nullable(schema.as_struct(), _meant(request, schema), request, "")
    if ordering:
        found += _out_of_order(schema.as_struct(), _meant(request, schema), request, "")
    if found:
        off = [_NULLABILITY.key] if any("required" in each for each in found) else []
        off += [_ORDERING.key] if any("order" in each for each in found) else []
        raise SchemaError(
            f"Cannot write rows to table {state.name}: {'; '.join(found)}",
            hint="Select the columns as the table has them, or set the option "
            f"{' and '.join(off)} to false: columns are found by name, and nulls by the row.",
            table=state.name,
        )


def _meant(request: BeginWrite, schema: Schema) -> StructType:
    """Return the rows' columns, with the table's types where Spark has no equivalent."""
    given = iceberg_schema(request.rows).as_struct()
    return _fixed_struct(given, schema.as_struct(), case_sensitive=request.case_sensitive)


def _fixed_up(given: IcebergType, known: IcebergType, *, case_sensitive: bool) -> IcebergType:
    if isinstance(given, StringType) and isinstance(known, UUIDType):
        return known
    if isinstance(given, BinaryType) and isinstance(known, FixedType | UUIDType):
        return known
    if isinstance(given, StructType) and isinstance(known, StructType):
        return _fixed_struct(given, known, case_sensitive=case_sensitive)
    if isinstance(given, ListType) and isinstance(known, ListType):
        element = _fixed_up(given.element_type, known.element_type, case_sensitive=case_sensitive)
        return replace(given, element_type=element)
    if isinstance(given, MapType) and isinstance(known, MapType):
        key = _fixed_up(given.key_type, known.key_type, case_sensitive=case_sensitive)
        value = _fixed_up(given.value_type, known.value_type, case_sensitive=case_sensitive)
        return replace(given, key_type=key, value_type=value)
    return given


def _fixed_struct(given: StructType, known: StructType, *, case_sensitive: bool) -> StructType:
    fields = []
    for field in given.fields:
        column = known.field_by_name(field.name, case_sensitive=case_sensitive)
        if column is None:
            # existing rows have no value in a new column
            fields.append(replace(field, required=False))
        else:
            inner = _fixed_up(field.field_type, column.field_type, case_sensitive=case_sensitive)
            fields.append(replace(field, field_type=inner))
    return StructType(fields=tuple(fields))


def _pairs(
    known: IcebergType, given: IcebergType, request: BeginWrite
) -> Iterator[tuple[NestedField, NestedField]]:
    """Yield the common direct fields of two types, in the order of the first."""
    if isinstance(known, StructType) and isinstance(given, StructType):
        of_rows = {_key(field, request): field for field in given.fields}
        for field in known.fields:
            if (other := of_rows.get(_key(field, request))) is not None:
                yield field, other
    elif type(known) is type(given):
        yield from zip(children(known), children(given), strict=True)


def _key(field: NestedField, request: BeginWrite) -> str:
    return field.name if request.case_sensitive else field.name.lower()


def _nullable(
    known: IcebergType, given: IcebergType, request: BeginWrite, path: str
) -> Iterator[str]:
    for field, other in _pairs(known, given, request):
        if field.required and not other.required:
            yield f"{path}{field.name} should be required, but is optional"
        yield from _nullable(field.field_type, other.field_type, request, f"{path}{field.name}.")


def _out_of_order(
    known: IcebergType, given: IcebergType, request: BeginWrite, path: str
) -> Iterator[str]:
    places = {field.field_id: place for place, field in enumerate(children(given))}
    last: NestedField | None = None
    for field, other in _pairs(known, given, request):
        if last is not None and places[last.field_id] > places[other.field_id]:
            yield f"{path}{field.name} is out of order, before {last.name}"
        last = other
        yield from _out_of_order(
            field.field_type, other.field_type, request, f"{path}{field.name}."
        )
