"""Writing of equality deletes, which delete rows by values (spec: Equality Delete Files)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.property.table_property import (
    DATA_FORMAT,
    DELETE_FORMAT,
    DELETE_TARGET_FILE_BYTES,
)
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.write.data_writer import FrameProjections, check_required
from icecomb.format.rows.write.file_options import delete_properties, load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import load_location_provider
from icecomb.format.rows.write.partition_writer import PartitionWriter
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import VoidTransform
from icecomb.format.spec.types import FixedType

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.storage.file_io import FileIO


class EqualityDeleteWriter:
    """A writer of the values of rows to delete, into files of one partition each.

    Deletes of a partition apply only to older rows of that partition; those of a spec without
    fields apply to all older rows of the table. Format and size are those of position deletes.

    Args:
        io: File system for the files.
        metadata: Metadata of the table.
        operation_id: The common part of the file names.
        columns: The names of the columns to compare.
        spec_id: Id of the partition spec; the current one by default.

    Raises:
        ValidationError: If a column or the spec does not exist, or a column is not primitive or is
            nested in another one.
        UnsupportedError: If a column is of a fixed-length type.
        ConfigurationError: If the format is unknown, or a write property is invalid.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        operation_id: str,
        columns: Sequence[str],
        *,
        spec_id: int | None = None,
    ) -> None:
        schema = metadata.schema()
        spec = metadata.spec() if spec_id is None else metadata.spec_by_id(spec_id)
        compared = _compared(schema, columns)
        self._schema = _with_sources(schema, spec, compared)
        properties = delete_properties(metadata.properties)
        chosen = DELETE_FORMAT.of(properties, default=DATA_FORMAT.of(properties))
        settings = FileSettings(
            self._schema,
            load_file_options(chosen, properties),
            MetricsConfig.from_properties(properties, schema),
            content=DataFileContent.EQUALITY_DELETES,
            equality_ids=compared,
        )
        self._files = PartitionWriter(
            io,
            load_location_provider(io, metadata.location, properties),
            settings,
            spec,
            target=DELETE_TARGET_FILE_BYTES.of(properties),
            name=lambda number: f"{0:05d}-0-{operation_id}-{number:05d}-deletes",
        )
        self._projections = FrameProjections(self._schema)

    @property
    def schema(self) -> Schema:
        """The columns that are written: those compared and the sources of partition fields."""
        return self._schema

    def write(self, batch: pa.RecordBatch) -> None:
        """Delete all rows with the same values as one of these rows; nulls are equal.

        Args:
            batch: The rows. Columns are matched by name; those not needed are ignored.

        Raises:
            SchemaError: If a column does not fit.
            ValidationError: If a column is missing, or a required column holds a null.
        """
        if not batch.num_rows:
            return
        needed = {f.name for f in self._schema.fields}
        rows = batch.select([name for name in batch.schema.names if name in needed])
        self._check_complete(rows)
        fitted = self._projections.of(rows.schema).apply(rows, 0)
        check_required(self._schema, fitted)
        self._files.write(fitted)

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        return self._files.close()

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        self._files.abort(problem)

    def _check_complete(self, rows: pa.RecordBatch) -> None:
        # A missing column must not be taken for "delete where it is null".
        missing = [f.name for f in self._schema.fields if f.name not in rows.schema.names]
        if missing:
            raise ValidationError(
                f"Equality deletes need column {missing[0]!r}, which the rows do not have",
                hint="Columns that are compared, and those of the partition spec, must be given.",
                column=missing[0],
            )


def _compared(schema: Schema, columns: Sequence[str]) -> tuple[int, ...]:
    if not columns:
        raise ValidationError(
            "Equality deletes must compare at least one column",
            hint="Name the columns that identify the deleted rows.",
        )
    ids = []
    for name in columns:
        field = schema.find_field(name)
        # Iceberg Java 1.11 ignores columns in structs, and so deletes rows that differ in them.
        if not field.field_type.is_primitive or field not in schema.fields:
            raise ValidationError(
                f"Equality deletes cannot compare column {name!r} ({field.field_type})",
                hint="Name columns of the table itself that have one value a row.",
                column=name,
            )
        if isinstance(field.field_type, FixedType):
            # Iceberg Java 1.11 keeps one array for all keys of a file: only the last one counts.
            raise UnsupportedError(
                f"Equality deletes cannot compare column {name!r} ({field.field_type}): Iceberg "
                "Java would go on to show rows that they delete",
                hint="Compare another column, or delete the rows by their positions: table.delete.",
                column=name,
            )
        ids.append(field.field_id)
    return tuple(dict.fromkeys(ids))


def _with_sources(schema: Schema, spec: PartitionSpec, compared: Sequence[int]) -> Schema:
    """Return the top-level columns with the compared fields and the partition sources."""
    wanted = [
        *compared,
        *(f.source_id for f in spec.fields if not isinstance(f.transform, VoidTransform)),
    ]
    tops = {_top(schema, number) for number in wanted}
    return Schema(tuple(f for f in schema.fields if f.field_id in tops))


def _top(schema: Schema, field_id: int) -> int:
    parent = schema.find_parent_id(field_id)
    while parent is not None:
        field_id, parent = parent, schema.find_parent_id(parent)
    return field_id
