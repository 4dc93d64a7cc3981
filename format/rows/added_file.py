"""Data files that exist already, described as data files of a table and checked against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.parquet as pq

from icecomb.format.errors import CorruptFileError, SchemaError, ValidationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.arrow_metrics import ArrowMetrics
from icecomb.format.rows.column_check import REMEDIES, UNKNOWN, ColumnCheck
from icecomb.format.rows.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    data_file,
    parquet_metrics,
)
from icecomb.format.rows.read.arrow_projection import FileField, Projection, file_fields, ids_of
from icecomb.format.rows.read.arrow_scan import BATCH_ROWS
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.rows.unproven_values import check_values
from icecomb.format.rows.unread_field import UnreadField
from icecomb.format.rows.write.partition_path import path_values, value_of_text
from icecomb.format.spec import single_value
from icecomb.format.spec.name_mapping import create_name_mapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform, VoidTransform
from icecomb.format.spec.types import DoubleType, FloatType, NestedField, PrimitiveType, StructType

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.rows.read.data_file_reader import DataFileReader
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.storage.file_io import FileIO

GivenPartition: TypeAlias = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]
"""Values of partition fields by name, or what gives them for a file."""
_FULL = MetricsConfig(MetricsMode(MetricsKind.FULL))
_FORMATS = {b"ORC": FileFormat.ORC, b"Obj": FileFormat.AVRO}
"""Formats by how their files begin: files of Hive have no suffix that would tell."""


class AddedFiles:
    """Describes files for one table, with its current schema and partition spec.

    Args:
        io: Where the files lie.
        metadata: The table.
        partition: Values of partition fields that all files have, by the name of the field or, for
            identity fields, of its column; text is understood as in paths, None is null. Or what
            gives them for a file, by its location.
        take_unread: Whether files may have columns that the table does not have.

    Attributes:
        name_mapping: What gives files without field ids theirs.
        by_name: Whether one of the files described so far has no field ids.
        unread: What the files described so far have and the table does not.

    Raises:
        ValidationError: There is no such partition field, or it cannot have such a value.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        partition: GivenPartition | None = None,
        *,
        take_unread: bool = False,
    ) -> None:
        self._io = io
        self._schema = metadata.schema()
        self._check = ColumnCheck(self._schema, metadata.schemas)
        self._spec = metadata.spec()
        self.name_mapping = metadata.name_mapping() or create_name_mapping(self._schema)
        self.by_name = False
        self.unread: list[UnreadField] = []
        self._take_unread = take_unread
        self._config = MetricsConfig.from_properties(
            metadata.properties, self._schema, metadata.sort_order()
        )
        self._give = partition if callable(partition) else None
        self._given = {} if callable(partition) else self._partition_given(partition or {})

    def describe(self, location: str) -> DataFile:
        """What a manifest says about a file.

        Its content tells the format. Of Parquet files only the footer is read, and plain
        bytes that are to be texts; of ORC and Avro files, whose statistics say too little or do not
        exist, all rows. A partition value is what
        was given, or what the rows prove it to be; where neither tells it, as the file lacks the
        column, it is what the path says.

        Raises:
            FileMissingError: There is no such file.
            CorruptFileError: It is no Parquet, ORC or Avro file.
            SchemaError: Its columns do not fit the table's, or times in a Parquet file are neither
                microseconds nor INT96.
            ValidationError: A required column holds nulls, or a partition value is not known, or
                not the same in all rows.
        """
        with self._io.open_input(location) as source, reading(location):
            size = source.size()
            magic = source.read(3)
        kind = _FORMATS.get(magic, FileFormat.PARQUET)
        if kind is FileFormat.PARQUET:
            fields, everything, metrics = self._of_footer(location)
        else:
            fields, everything, metrics = self._counted(location, kind)
        texts = path_values(location)
        given = self._given if self._give is None else self._partition_given(self._give(location))
        there = frozenset(number for number, _ in ids_of(fields))
        partition = tuple(
            self._partition_value(
                f, self._proven(f, everything, there, location), texts, given, location
            )
            for f in self._spec.fields
        )
        self._check_columns(fields, partition, location)
        self._check_folders(there, texts, location)
        if kind is FileFormat.PARQUET:
            self._check_values(fields, location)
        self._check_required(everything, location)
        return data_file(location, size, metrics, self._spec, partition, file_format=kind)

    def _of_footer(self, location: str) -> tuple[Sequence[FileField], Metrics, Metrics]:
        """The fields of a Parquet file, all its metrics, and those that the table keeps."""
        with self._io.open_input(location) as source, reading(location):
            footer = pq.read_metadata(source)
            arrow_schema = footer.schema.to_arrow_schema()
        fields = file_fields(arrow_schema, self.name_mapping, location)
        self._check_names(fields, location, footer.schema)
        everything = parquet_metrics(footer, fields, self._schema, _FULL)
        return fields, everything, parquet_metrics(footer, fields, self._schema, self._config)

    def _counted(
        self, location: str, kind: FileFormat
    ) -> tuple[Sequence[FileField], Metrics, Metrics]:
        """The fields of a file, all metrics of its rows, and those that the table keeps."""
        reader = self._reader(location, kind)
        try:
            self._check_names(reader.fields, location, zones=kind is FileFormat.ORC)
            there = {f.field_id for f in reader.fields}
            schema = Schema(tuple(f for f in self._schema.fields if f.field_id in there))
            projection = self._projection(schema, reader.fields, {}, location)
            everything, kept = ArrowMetrics(schema, _FULL), ArrowMetrics(schema, self._config)
            for position, batch in reader.batches(
                projection.leaves, reader.row_groups(), BATCH_ROWS
            ):
                rows = projection.apply(batch, position)
                everything.add(rows)
                kept.add(rows)
        finally:
            reader.close()
        return reader.fields, everything.result(), kept.result()

    def _reader(self, location: str, kind: FileFormat) -> DataFileReader:
        if kind is FileFormat.ORC:
            from icecomb.format.rows.orc.reader import OrcReader

            return OrcReader(self._io, location, self.name_mapping)
        from icecomb.format.rows.avro.reader import AvroReader

        return AvroReader(self._io, location, self.name_mapping)

    def _partition_given(self, given: Mapping[str, Any]) -> dict[int, Any]:
        """Values by the id of the partition field."""
        found: dict[int, Any] = {}
        left = dict(given)
        for f in self._spec.fields:
            column = self._schema.find_field(f.source_id)
            name = _spelled(f, column, left)
            if name is not None and isinstance(column.field_type, PrimitiveType):
                kind = f.transform.result_type(column.field_type)
                value = NestedField(f.field_id, name, kind)
                found[f.field_id] = value_of_text(left.pop(name), value)
        if left:
            known = ", ".join(f.name for f in self._spec.fields) or "none"
            raise ValidationError(
                f"The table has no partition field {next(iter(left))!r}",
                hint=f"Its partition fields: {known}.",
            )
        return found

    def _partition_value(
        self,
        field: PartitionField,
        proven: tuple[Any] | None,
        texts: Mapping[str, str | None],
        given: Mapping[int, Any],
        location: str,
    ) -> Any:
        if isinstance(field.transform, VoidTransform):
            return None
        column = self._schema.find_field(field.source_id)
        stated, by = None, ""
        identity = _is_identity(field)
        name = _spelled(field, column, texts) if identity else None
        if field.field_id in given:
            stated, by = (given[field.field_id],), "you say"
        elif name is not None:
            stated, by = (value_of_text(texts[name], column),), "its folder says"
        if proven is not None and stated is not None and proven != stated:
            raise ValidationError(
                f"Cannot add {location}: {by} {field.name}={stated[0]!r}, its rows have "
                f"{proven[0]!r}",
                hint="Correct the partition that is stated, or append the rows instead.",
                path=location,
            )
        known = proven if proven is not None else stated
        if known is None:
            raise ValidationError(
                f"Cannot add {location}: the value of partition field {field.name} is not known: "
                "neither statistics of the file nor its path tell it",
                hint=f"Give partition={{{field.name!r}: <value>}}, put the file into a folder "
                f"{field.name}=<value>, or append its rows.",
                path=location,
            )
        return known[0]

    def _proven(
        self, field: PartitionField, metrics: Metrics, there: AbstractSet[int], location: str
    ) -> tuple[Any] | None:
        """The partition value that all rows have by the file; None if it does not tell."""
        if field.source_id not in there and not _is_identity(field):
            # rows of a file without the column have null, and only identity gives them a value
            return (None,)
        return _proven(field, self._schema.find_field(field.source_id), metrics, location)

    def _check_columns(
        self, fields: Sequence[FileField], partition: tuple[Any, ...], location: str
    ) -> None:
        constants = {
            f.source_id: value
            for f, value in zip(self._spec.fields, partition, strict=True)
            if _is_identity(f)
        }
        self._projection(self._schema, fields, constants, location)

    def _check_folders(
        self, there: AbstractSet[int], texts: Mapping[str, str | None], location: str
    ) -> None:
        """What Hive keeps in the name of a folder only would be null in a table not split by it."""
        identities = {f.source_id for f in self._spec.fields if _is_identity(f)}
        columns = {c.name.lower(): c for c in self._schema.fields}
        for name, text in texts.items():
            column = columns.get(name.lower())
            if column is None or text is None or column.field_id in there | identities:
                continue
            raise ValidationError(
                f"Cannot add {location}: its folder says {name}={text}, but the file has no column "
                f"{column.name!r}, and the table is not partitioned by it: the value would be lost",
                hint=f"Partition the table by {column.name} (identity), or append the rows.",
                path=location,
                column=column.name,
            )

    def _check_names(
        self,
        fields: Sequence[FileField],
        location: str,
        footer: pq.ParquetSchema | None = None,
        *,
        zones: bool = False,
    ) -> None:
        self.by_name = self.by_name or all(f.by_name for f in fields)
        for problem in self._check.problems(fields, footer, zones=zones):
            if problem.code == UNKNOWN and self._take_unread:
                self.unread.append(UnreadField(problem.parent_id, problem.found))
                continue
            raise SchemaError(
                f"Cannot add {location}: column {problem.column!r}: {problem.message}",
                hint=REMEDIES[problem.code],
                path=location,
                column=problem.column,
            )

    def _check_values(self, fields: Sequence[FileField], location: str) -> None:
        try:
            check_values(self._io, location, self.name_mapping, self._schema, fields)
        except SchemaError as error:
            raise SchemaError(
                f"Cannot add {location}: {error.message}",
                hint="Append its rows instead, cast to the table's columns.",
                path=location,
            ) from error

    def _projection(
        self,
        schema: Schema,
        fields: Sequence[FileField],
        constants: Mapping[int, Any],
        location: str,
    ) -> Projection:
        try:
            return Projection(schema.fields, fields, constants)
        except CorruptFileError as error:
            raise SchemaError(
                f"Cannot add {location}: {error.message}",
                hint="Append its rows instead, cast to the table's columns.",
                path=location,
            ) from error

    def _check_required(self, metrics: Metrics, location: str) -> None:
        for f in _outside_lists(self._schema.fields):
            nulls = metrics.null_value_counts.get(f.field_id, 0)
            if f.required and nulls:
                raise ValidationError(
                    f"Cannot add {location}: column {f.name!r} is required, and {nulls} values are "
                    "null",
                    hint="Make the column optional, or append the rows without nulls.",
                    path=location,
                )


def _is_identity(field: PartitionField) -> bool:
    return isinstance(field.transform, IdentityTransform)


def _spelled(field: PartitionField, column: NestedField, names: Iterable[str]) -> str | None:
    """The one of ``names`` that means a partition field; Hive spells all in small letters."""
    meant = (field.name, column.name) if _is_identity(field) else (field.name,)
    exact = next((n for n in meant if n in names), None)
    if exact is not None:
        return exact
    small = {n.lower() for n in meant}
    return next((n for n in names if n.lower() in small), None)


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
            f"Cannot add {location}: its rows belong to several partitions ({field.name})",
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
