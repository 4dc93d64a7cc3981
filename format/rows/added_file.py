"""Parquet files that exist already, described as data files of a table and checked against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from icecomb.format import single_value
from icecomb.format.errors import CorruptFileError, SchemaError, UnsupportedError, ValidationError
from icecomb.format.name_mapping import create_name_mapping
from icecomb.format.rows.arrow_projection import FileField, Projection, file_fields
from icecomb.format.rows.data_file import data_file
from icecomb.format.rows.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    parquet_metrics,
)
from icecomb.format.rows.parquet_reader import reading
from icecomb.format.rows.partition_path import path_values, value_of_text
from icecomb.format.transform import IdentityTransform, VoidTransform
from icecomb.format.types import DoubleType, FloatType, NestedField, PrimitiveType, StructType

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.metadata import TableMetadata
    from icecomb.format.partition import PartitionField

_FULL = MetricsConfig(MetricsMode(MetricsKind.FULL))


class AddedFiles:
    """Describes files for one table, with its current schema and partition spec.

    Args:
        io: Where the files lie.
        metadata: The table.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata) -> None:
        self._io = io
        self._schema = metadata.schema()
        self._spec = metadata.spec()
        self._name_mapping = metadata.name_mapping() or create_name_mapping(self._schema)
        self._config = MetricsConfig.from_properties(
            metadata.properties, self._schema, metadata.sort_order()
        )

    def describe(self, location: str) -> DataFile:
        """What a manifest says about a file, from its footer and its path alone.

        A partition value is what the statistics of the file prove it to be; where the file lacks
        the column, or has no statistics of it, it is what the path says.

        Raises:
            FileMissingError: There is no such file.
            UnsupportedError: It is no Parquet file by its name.
            CorruptFileError: It is none by its content.
            SchemaError: Its columns do not fit the table's.
            ValidationError: A required column holds nulls, or a partition value is not known, or
                not the same in all rows.
        """
        if location.lower().endswith((".orc", ".avro")):
            raise UnsupportedError(
                f"cannot add {location}: only Parquet files can be added", path=location
            )
        with self._io.open_input(location) as source, reading(location):
            size = source.size()
            footer = pq.read_metadata(source)
            arrow_schema = footer.schema.to_arrow_schema()
        fields = file_fields(arrow_schema, self._name_mapping, location)
        everything = parquet_metrics(footer, fields, self._schema, _FULL)
        texts = path_values(location)
        partition = tuple(
            self._partition_value(f, everything, texts, location) for f in self._spec.fields
        )
        self._check_columns(fields, partition, location)
        self._check_required(everything, location)
        metrics = parquet_metrics(footer, fields, self._schema, self._config)
        return data_file(location, size, metrics, self._spec, partition)

    def _partition_value(
        self,
        field: PartitionField,
        metrics: Metrics,
        texts: Mapping[str, str | None],
        location: str,
    ) -> Any:
        if isinstance(field.transform, VoidTransform):
            return None
        column = self._schema.find_field(field.source_id)
        stated = None
        identity = isinstance(field.transform, IdentityTransform)
        name = (
            next((n for n in (field.name, column.name) if n in texts), None) if identity else None
        )
        if name is not None:
            stated = (value_of_text(texts[name], column),)
        proven = _proven(field, column, metrics, location)
        if proven is not None and stated is not None and proven != stated:
            raise ValidationError(
                f"cannot add {location}: its folder says {field.name}={stated[0]!r}, its rows have "
                f"{proven[0]!r}",
                path=location,
            )
        known = proven if proven is not None else stated
        if known is None:
            raise ValidationError(
                f"cannot add {location}: the value of partition field {field.name} is not known: "
                "neither statistics of the file nor its path tell it",
                hint=f"Put the file into a folder {field.name}=<value>, or append its rows.",
                path=location,
            )
        return known[0]

    def _check_columns(
        self, fields: Sequence[FileField], partition: tuple[Any, ...], location: str
    ) -> None:
        extra = [f.name for f in fields if f.field_id is None or f.field_id not in self._top_ids()]
        if extra:
            raise SchemaError(
                f"cannot add {location}: the table has no column {extra[0]!r}",
                hint="Add the column to the table first.",
                path=location,
            )
        constants = {
            f.source_id: value
            for f, value in zip(self._spec.fields, partition, strict=True)
            if isinstance(f.transform, IdentityTransform)
        }
        try:
            Projection(self._schema.fields, fields, constants)
        except CorruptFileError as error:
            raise SchemaError(
                f"cannot add {location}: {error.message}",
                hint="Append its rows instead, cast to the table's columns.",
                path=location,
            ) from error

    def _top_ids(self) -> set[int]:
        return {f.field_id for f in self._schema.fields}

    def _check_required(self, metrics: Metrics, location: str) -> None:
        for f in _outside_lists(self._schema.fields):
            nulls = metrics.null_value_counts.get(f.field_id, 0)
            if f.required and nulls:
                raise ValidationError(
                    f"cannot add {location}: column {f.name!r} is required, and {nulls} values are "
                    "null",
                    path=location,
                )


def _proven(
    field: PartitionField, column: NestedField, metrics: Metrics, location: str
) -> tuple[Any] | None:
    """The partition value that all rows have by the file's statistics; None if they do not tell."""
    kind, number = column.field_type, column.field_id
    values, nulls = metrics.value_counts.get(number), metrics.null_value_counts.get(number)
    if values is None or nulls is None or not isinstance(kind, PrimitiveType):
        return None
    if values == nulls:
        return (None,)
    bounds = metrics.lower_bounds.get(number), metrics.upper_bounds.get(number)
    # No statistics count NaNs, so floating numbers prove nothing.
    if None in bounds or isinstance(kind, FloatType | DoubleType):
        return None
    lower, upper = (single_value.from_bytes(kind, b) for b in bounds if b is not None)
    first = field.transform.apply(lower, kind)
    same = lower == upper or (
        field.transform.preserves_order and first == field.transform.apply(upper, kind)
    )
    if nulls or not same:
        raise ValidationError(
            f"cannot add {location}: its rows belong to several partitions ({field.name})",
            hint="Append its rows instead.",
            path=location,
        )
    return (first,)


def _outside_lists(fields: Sequence[NestedField]) -> list[NestedField]:
    found: list[NestedField] = []
    for f in fields:
        found.append(f)
        # What a struct that is null lacks is no missing value.
        if isinstance(f.field_type, StructType) and f.required:
            found += _outside_lists(f.field_type.fields)
    return found
