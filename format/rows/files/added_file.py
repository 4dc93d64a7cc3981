"""Existing data files, described as data files of a table and checked against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias

from icecomb.format.errors import CorruptFileError, SchemaError, ValidationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.files.described_file import (
    VALUES,
    DescribedFile,
    FileDescriber,
    FileProblem,
)
from icecomb.format.rows.read.arrow_scan import BATCH_ROWS
from icecomb.format.rows.values.arrow_metrics import ArrowMetrics
from icecomb.format.rows.values.arrow_projection import FileField, Projection, ids_of
from icecomb.format.rows.values.column_check import UNKNOWN
from icecomb.format.rows.values.data_metrics import (
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    new_data_file,
)
from icecomb.format.rows.values.file_tail import ColumnSummary
from icecomb.format.rows.values.metadata_columns import LINEAGE
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.rows.write.partition_path import path_values, value_of_text
from icecomb.format.spec.name_mapping import create_name_mapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform, VoidTransform
from icecomb.format.spec.types import NestedField, PrimitiveType, StructType
from icecomb.format.storage.location import hadoop_location, is_ambiguous

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.rows.read.data_file_reader import DataFileReader
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.storage.file_io import FileIO

GivenPartition: TypeAlias = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]
"""Values of partition fields by name, or a function that returns them for a file's location."""


class AddedFiles:
    """A describer of files for one table, with its current schema and partition spec.

    Args:
        partition: Values of partition fields that all files have, by the name of the field or,
            for identity fields, of its column; text is parsed as in paths, None is null. Or a
            function that returns them for a file's location.
        take_unread: Whether files may have columns that the table does not have.

    Attributes:
        by_name: Whether one of the files described so far has no field ids.
        unread: Fields that the files described so far have and the table does not.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        partition: GivenPartition | None = None,
        *,
        take_unread: bool = False,
    ) -> None:
        # bounds are written into manifests
        self._io = io = io.to_copy()
        self._schema = metadata.schema()
        self._spec = metadata.spec()
        self._sources = frozenset(
            f.source_id for f in self._spec.fields if not isinstance(f.transform, VoidTransform)
        )
        self._required = frozenset(
            f.field_id for f in _outside_lists(self._schema.fields) if f.required
        )
        self.name_mapping = metadata.name_mapping() or create_name_mapping(self._schema)
        self.by_name = False
        self.unread: list[UnreadField] = []
        self._take_unread = take_unread
        self._fitting: tuple[Sequence[FileField], AbstractSet[int]] | None = None
        config = MetricsConfig.from_properties(
            metadata.properties, self._schema, metadata.sort_order()
        )
        self._describer = FileDescriber(
            io, self._schema, config, metadata.schemas, self._sources | self._required
        )
        self._give = partition if callable(partition) else None
        self._given = {} if callable(partition) else self._partition_given(partition or {})

    def describe(self, location: str) -> DataFile:
        """Return a file's description for a manifest, after checking it against the table.

        Only the tail is read (of Avro files the header and the row counts of blocks), and columns
        where it does not tell enough. A partition value is the one given, or the one that the rows
        prove; where the file lacks the column and none was given, the one in the path.
        """
        if is_ambiguous(location):
            raise ValidationError(
                f"File {location} cannot be added: for engines that read by Hadoop it is "
                f"{hadoop_location(location)}",
                hint="Copy it to a key without empty and dotted parts, and add that.",
                path=location,
            )
        tail, size = self._describer.look(location)
        file = self._describer.describe(location, tail, self.name_mapping)
        self._check_names(file, location)
        there = frozenset(number for number, _ in ids_of(file.fields))
        for lineage in LINEAGE:
            if lineage.field_id in there:
                raise ValidationError(
                    f"Cannot add {location}: it has column {lineage.name}, by which its rows would "
                    "have the ids of other rows",
                    hint="Read its rows without that column, and append them.",
                    path=location,
                    column=lineage.name,
                )
        columns = self._with_rows(file, there, location)
        texts = path_values(location)
        given = self._given if self._give is None else self._partition_given(self._give(location))
        partition = tuple(
            self._partition_value(
                f,
                self._proven(f, columns, there, location),
                texts,
                given,
                there=there,
                location=location,
            )
            for f in self._spec.fields
        )
        self._check_columns(file.fields, partition, location)
        self._check_folders(there, texts, location)
        self._check_values(file, location)
        self._check_required(columns, location)
        metrics = self._describer.metrics(file)
        return new_data_file(
            location, size, metrics, self._spec, partition, file_format=tail.file_format
        )

    def _with_rows(
        self, file: DescribedFile, there: AbstractSet[int], location: str
    ) -> Mapping[int, ColumnSummary]:
        """Add what only rows tell of partition columns and required columns.

        Rows of Parquet files are not read, as Iceberg Java reads none.
        """
        if file.tail.file_format is FileFormat.PARQUET:
            return file.columns
        untold = [
            column
            for column in self._schema.fields
            if column.field_id in there and self._is_untold(column, file.columns)
        ]
        if not untold:
            return file.columns
        schema, config = Schema(tuple(untold)), MetricsConfig(MetricsMode(MetricsKind.FULL))
        counted = ArrowMetrics(schema, config)
        reader = self._reader(location, file.tail.file_format)
        try:
            projection = self._projection(schema, reader.fields, {}, location)
            for position, batch in reader.batches(
                projection.leaves, reader.row_groups(), BATCH_ROWS
            ):
                counted.add(projection.apply(batch, position))
        finally:
            reader.close()
        return {**file.columns, **counted.summaries()}

    def _is_untold(self, column: NestedField, columns: Mapping[int, ColumnSummary]) -> bool:
        """Return whether partition or required values in a column, or inside it, are unknown."""
        for f in _outside_lists([column], through=True):
            known = columns.get(f.field_id)
            values = None if known is None else known.values
            if f.field_id in self._required and (values is None or values.null_count is None):
                return True
            if f.field_id in self._sources and (
                values is None
                or values.null_count is None
                or (not values.only_nulls and (values.lower is None or values.upper is None))
            ):
                return True
        return False

    def _reader(self, location: str, kind: FileFormat) -> DataFileReader:
        if kind is FileFormat.ORC:
            from icecomb.format.rows.orc.reader import OrcReader

            return OrcReader(self._io, location, self.name_mapping)
        from icecomb.format.rows.avro.reader import AvroReader

        return AvroReader(self._io, location, self.name_mapping)

    def _partition_given(self, given: Mapping[str, Any]) -> dict[int, Any]:
        """Return the given values by the id of the partition field."""
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
        *,
        there: AbstractSet[int],
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
        # No statistics count NaNs: those of floating-point numbers contradict, but prove nothing.
        if proven is not None and isinstance(proven[0], float):
            proven = None
        known = proven if proven is not None else stated
        if known is None and column.field_id not in there and column.initial_default is not None:
            known = self._of_default(field, there, location)
        if known is None:
            raise ValidationError(
                f"Cannot add {location}: the value of partition field {field.name} is not known: "
                "neither statistics of the file nor its path tell it",
                hint=f"Put the file into a folder {field.name}=<value>, append its rows, or give "
                "the value as partition of Python's add_files.",
                path=location,
            )
        return known[0]

    def _proven(
        self,
        field: PartitionField,
        columns: Mapping[int, ColumnSummary],
        there: AbstractSet[int],
        location: str,
    ) -> tuple[Any] | None:
        """Return the partition value that the file proves for all rows, as a tuple; else None."""
        if field.source_id in there:
            return _proven(field, columns.get(field.source_id), location)
        # Rows of a file without the column have its default; only identity gives them another.
        return None if _is_identity(field) else self._of_default(field, there, location)

    def _of_default(
        self, field: PartitionField, there: AbstractSet[int], location: str
    ) -> tuple[Any]:
        """Return the partition value of rows in a file without the column, as a tuple."""
        column = self._schema.find_field(field.source_id)
        parent = self._schema.find_parent_id(column.field_id)
        default = column.initial_default
        if parent is not None and parent not in there:
            # a struct that is null has no fields with defaults
            default = (
                default if self._schema.find_field(parent).initial_default is not None else None
            )
        elif parent is not None and default is not None:
            raise ValidationError(
                f"Cannot add {location}: it has no column for partition field {field.name}, whose "
                "rows have a default only where the struct around it is not null",
                hint="Append its rows instead.",
                path=location,
            )
        if default is None or not isinstance(column.field_type, PrimitiveType):
            return (None,)
        return (field.transform.apply(default, column.field_type),)

    def _check_columns(
        self, fields: Sequence[FileField], partition: tuple[Any, ...], location: str
    ) -> None:
        constants = {
            f.source_id: value
            for f, value in zip(self._spec.fields, partition, strict=True)
            if _is_identity(f)
        }
        # The check does not depend on values, and successive files mostly have the same columns.
        fitting = (fields, constants.keys())
        if self._fitting is None or fields is not self._fitting[0] or fitting != self._fitting:
            self._projection(self._schema, fields, constants, location)
            self._fitting = fitting

    def _check_folders(
        self, there: AbstractSet[int], texts: Mapping[str, str | None], location: str
    ) -> None:
        """Reject values only in folder names, which a table not partitioned by them would lose."""
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

    def _check_names(self, file: DescribedFile, location: str) -> None:
        self.by_name = self.by_name or all(f.by_name for f in file.fields)
        for problem in file.problems:
            if problem.code != UNKNOWN or not self._take_unread:
                raise problem.error(location)
        self.unread.extend(file.unread)

    def _check_values(self, file: DescribedFile, location: str) -> None:
        try:
            self._describer.check_values(location, file, self.name_mapping)
        except SchemaError as error:
            raise FileProblem(VALUES, error.message).error(location) from error

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

    def _check_required(self, columns: Mapping[int, ColumnSummary], location: str) -> None:
        for f in _outside_lists(self._schema.fields):
            values = columns[f.field_id].values if f.field_id in columns else None
            nulls = 0 if values is None else values.null_count
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
    """Return which of `names` means a partition field; Hive writes names in lower case."""
    meant = (field.name, column.name) if _is_identity(field) else (field.name,)
    exact = next((n for n in meant if n in names), None)
    if exact is not None:
        return exact
    small = {n.lower() for n in meant}
    return next((n for n in names if n.lower() in small), None)


def _proven(field: PartitionField, known: ColumnSummary | None, location: str) -> tuple[Any] | None:
    """Return the value that statistics show for all rows, as a tuple; None where they do not tell.

    There may be NaNs among floating-point numbers.
    """
    if known is None or known.values is None:
        return None
    kind, values = known.kind, known.values
    if values.null_count is None:
        return None
    if values.only_nulls:
        return (None,)
    lower, upper, nulls = values.lower, values.upper, values.null_count
    if lower is None or upper is None:
        return None
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


def _outside_lists(fields: Sequence[NestedField], *, through: bool = False) -> list[NestedField]:
    """Return columns and fields of structs; of nullable structs only with `through`."""
    found: list[NestedField] = []
    for f in fields:
        found.append(f)
        # A field of a null struct is not a missing value.
        if isinstance(f.field_type, StructType) and (f.required or through):
            found += _outside_lists(f.field_type.fields, through=through)
    return found
