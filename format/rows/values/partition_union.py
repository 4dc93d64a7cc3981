"""The common partition type of all files of a table, whatever specs they were written with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import PartitionField
from icecomb.format.spec.promotion import can_promote, unlike_columns
from icecomb.format.spec.transform import UnknownTransform, VoidTransform
from icecomb.format.spec.types import NestedField, PrimitiveType, StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema


def partition_union(metadata: TableMetadata, read: Schema | None = None) -> StructType:
    """Return the partition fields of all specs that a table has had, ordered by id.

    A field has its latest name; where a newer field has that name too, its id is appended, as
    format version 1 does for void fields. Fields whose column was dropped are left out: their type
    is not known for certain.

    Args:
        read: The schema with which files are read; the current one by default. Where a column's
            type there cannot be promoted to the current one, its partitions have that type.
    """
    schema = metadata.schema()
    read = schema if read is None else read
    unlike = unlike_columns(read, schema)
    chosen: dict[int, PartitionField] = {}
    for spec in sorted(metadata.partition_specs, key=lambda spec: -spec.spec_id):
        for field in spec.fields:
            if isinstance(field.transform, UnknownTransform):
                raise ValidationError(
                    f"Partition field {field} has a transform whose type is not known",
                    hint="A newer writer may have made it: use a newer icecomb.",
                )
            if schema.contains(field.source_id):
                known = chosen.get(field.field_id)
                chosen[field.field_id] = field if known is None else _merged(known, field)
    names = _names(chosen)
    return StructType(
        tuple(
            NestedField(
                number,
                names[number],
                field.transform.result_type(
                    (read if field.source_id in unlike else schema).find_type(field.source_id)
                ),
            )
            for number, field in sorted(chosen.items())
        )
    )


def _names(fields: Mapping[int, PartitionField]) -> dict[int, str]:
    """Return a distinct name for each field, by its id; newer fields keep theirs."""
    found: dict[int, str] = {}
    taken = {field.name for field in fields.values()}
    given: set[str] = set()
    for number, field in fields.items():
        name = field.name
        if name in given:
            name = f"{name}_{number}"
            while name in taken:
                name += "_"
        given.add(name)
        taken.add(name)
        found[number] = name
    return found


def union_columns(
    columns: ManifestColumns,
    spec: PartitionSpec,
    fields: Sequence[NestedField],
    doubted: Collection[int] = (),
) -> list[pa.Array]:
    """Return the partitions of a manifest's files in the types of the union.

    Args:
        fields: Fields of the union; those that the spec lacks are null.
        doubted: Ids of columns that may have another type in the files, see `ColumnDoubts`:
            partitions by them that are not of the union's types are null.
    """
    import pyarrow as pa

    from icecomb.format.rows.values.value_array import internal_to_arrow
    from icecomb.format.spec.arrow_schema import type_to_pyarrow

    unlike = {field.field_id for field in spec.fields if field.source_id in doubted}
    positions = {field.field_id: at for at, field in enumerate(spec.fields)}
    positions |= {
        column.field_id: at
        for at, column in enumerate(columns.partition_columns)
        if column.field_id is not None
    }
    out = []
    for field in fields:
        at = positions.get(field.field_id, len(columns.partition_columns))
        values = None if at >= len(columns.partition_columns) else columns.partition(at)
        if values is not None and field.field_id in unlike:
            stored = columns.partition_columns[at].field_type
            if stored is not None and not can_promote(stored, field.field_type):
                values = None
        if values is None or values.null_count == len(values):
            out.append(pa.nulls(len(columns), type_to_pyarrow(field.field_type)))
        else:
            assert isinstance(field.field_type, PrimitiveType)  # noqa: S101 - as transforms give
            out.append(internal_to_arrow(values, field.field_type))
    return out


def _merged(known: PartitionField, field: PartitionField) -> PartitionField:
    if known.source_id != field.source_id or not (
        known.transform == field.transform
        or isinstance(known.transform, VoidTransform)
        or isinstance(field.transform, VoidTransform)
    ):
        raise ValidationError(
            f"Partition fields {known} and {field} have one id",
            hint="The metadata is damaged: read an older metadata file.",
        )
    if isinstance(known.transform, VoidTransform):
        return replace(known, transform=field.transform)
    return known
