"""Existing data files, described by their tails, whatever their origin.

Files that are added to a table and those of a Hive table being migrated are examined here: each is
opened once, for its tail. Obstacles are returned as problems, which callers raise as errors or
report as findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.format.errors import CorruptFileError, SchemaError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.parquet.footer import ParquetFooter
from icecomb.format.rows.parquet.footer_reading import read_footer
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.read.arrow_scan import BATCH_ROWS
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.rows.values.arrow_projection import FileField, Projection, file_fields
from icecomb.format.rows.values.column_check import REMEDIES, UNKNOWN, ColumnCheck
from icecomb.format.rows.values.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    column_types,
    summarised,
)
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.spec.schema import children
from icecomb.format.spec.types import FixedType, IcebergType, StringType, StructType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


ACID: Final = "acid-file"
ENCRYPTED: Final = "encrypted-file"
NUMBERED: Final = "numbered-columns"
OLD_DATES: Final = "old-dates"
UNKNOWN_FORMAT: Final = "unknown-format"
VALUES: Final = "type-differs"
_FORMATS: Final = {b"ORC": FileFormat.ORC, b"Obj": FileFormat.AVRO, b"PAR": FileFormat.PARQUET}
"""Formats by the first bytes of their files: Hive's files have no suffix that tells."""
_ACID_COLUMNS: Final = frozenset(("operation", "bucket", "rowId", "row"))
"""Columns of ORC files of Hive's transactional tables (OrcRecordUpdater)."""
_PARQUET: Final = b"PAR1"
_PARQUET_ENCRYPTED: Final = b"PARE"
_REMEDIES: Final = {
    **REMEDIES,
    ACID: "Append the rows of its table instead, read by Hive.",
    NUMBERED: "Rewrite it with Hive 2 or later, or with Spark; or append its rows.",
    OLD_DATES: "Append its rows instead, read by the engine that wrote it.",
    VALUES: "Append its rows instead, cast to the table's columns.",
}


class UnknownFormatError(CorruptFileError):
    """A file of a format that a table cannot have.

    `context["code"]` is the stable name of what the file is, `context["what"]` describes it.
    """


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A reason why a file cannot be added to a table unchanged.

    Attributes:
        code: The stable name of the kind of problem.
        message: A description of the problem, as a sentence about the file.
        column: The column concerned, or "".
    """

    code: str
    message: str
    column: str = ""

    def error(self, location: str) -> SchemaError:
        """Return the error for an attempt to add the file."""
        about = f"column {self.column!r}: " if self.column else ""
        return SchemaError(
            f"Cannot add {location}: {about}{self.message}",
            hint=_REMEDIES[self.code],
            path=location,
            column=self.column,
        )


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """The description of a file as one of a table.

    Attributes:
        columns: The tail's summary of each of the table's columns, by field id.
        problems: Reasons why the file cannot be added; `UNKNOWN` for each unread field.
        unread: Fields that the file has and the table does not.
    """

    tail: FileTail
    fields: Sequence[FileField]
    columns: Mapping[int, ColumnSummary]
    problems: tuple[FileProblem, ...]
    unread: tuple[UnreadField, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The part of a description shared by files with the same columns, mostly successive ones."""

    tail: FileTail
    mapping: NameMapping
    fields: tuple[FileField, ...]
    problems: tuple[FileProblem, ...]
    unread: tuple[UnreadField, ...]

    def is_of(self, tail: FileTail, mapping: NameMapping) -> bool:
        """Return whether a file has these columns."""
        mine = self.tail
        return (
            mapping is self.mapping
            and tail.file_format is mine.file_format
            and tail.schema.equals(mine.schema, check_metadata=True)
            and (tail.parquet_schema is None or tail.parquet_schema.equals(mine.parquet_schema))
        )


class FileDescriber:
    """A describer of files for one schema.

    Args:
        older: Former schemas of the table.
        asked: Ids of columns whose counts and bounds are wanted, even if metrics keep none.
    """

    def __init__(
        self,
        io: FileIO,
        schema: Schema,
        config: MetricsConfig,
        older: Iterable[Schema] = (),
        asked: Iterable[int] = (),
    ) -> None:
        self._io = io
        self._schema = schema
        self._config = config
        self._check = ColumnCheck(schema, older)
        self._kinds = column_types(schema)
        kept = (i for i in self._kinds if config.mode(i).kind is not MetricsKind.NONE)
        self._wanted = frozenset((*kept, *asked))
        self._shape: _Shape | None = None

    def look(self, location: str, size: int | None = None) -> tuple[FileTail, int]:
        """Return the tail of a file, and the file's length in bytes."""
        with self._io.open_input(location, size) as source, reading(location):
            length = source.size()
            head = bytes(source.read(len(_PARQUET)))
            kind = _FORMATS.get(head[:3])
            if kind is FileFormat.ORC:
                from icecomb.format.rows.orc.file_tail import OrcFileTail

                return OrcFileTail(source, location), length
            if kind is FileFormat.AVRO:
                from icecomb.format.rows.avro.reader import AvroHeader

                source.seek(0)
                return AvroHeader(source, location), length
            source.seek(max(0, length - len(_PARQUET)))
            end = bytes(source.read(len(_PARQUET)))
            if _PARQUET_ENCRYPTED in (head, end):
                raise _unknown(ENCRYPTED, location, "an encrypted Parquet file")
            if head != _PARQUET:
                raise _unknown(UNKNOWN_FORMAT, location, "not a Parquet, ORC or Avro file")
            if end != _PARQUET or length <= 2 * len(_PARQUET):
                raise _unknown(UNKNOWN_FORMAT, location, "a Parquet file that is cut off")
            return ParquetFooter(read_footer(source, location)), length

    def describe(self, location: str, tail: FileTail, mapping: NameMapping) -> DescribedFile:
        """Describe a file as one of the table."""
        shape = self._shape
        if shape is None or not shape.is_of(tail, mapping):
            shape = self._shape = self._new_shape(location, tail, mapping)
        fields, problems = shape.fields, [*shape.problems]
        columns = tail.columns(fields, self._kinds, self._wanted)
        if all(f.by_name for f in fields):
            problems += [
                FileProblem(
                    OLD_DATES,
                    "it has dates before 1582-10-15 by the calendar of its writer: every reader of "
                    "Iceberg shows other days",
                    self._schema.find_column_name(number) or "",
                )
                for number, column in columns.items()
                if column.old
            ]
        return DescribedFile(tail, fields, columns, tuple(problems), shape.unread)

    def _new_shape(self, location: str, tail: FileTail, mapping: NameMapping) -> _Shape:
        fields = file_fields(tail.schema, mapping, location)
        problems: list[FileProblem] = []
        unread: list[UnreadField] = []
        if tail.numbered:
            text = "its columns have numbers for names (_col0, ...), as Hive before version 2 wrote"
            problems.append(FileProblem(NUMBERED, text))
        if tail.file_format is FileFormat.ORC and _ACID_COLUMNS.issubset(tail.schema.names):
            problems.append(
                FileProblem(ACID, "it holds changes of a transactional table, not rows")
            )
        found = self._check.problems(fields, tail.parquet_schema, tail.file_format)
        for problem in () if problems else found:
            if problem.code == UNKNOWN:
                unread.append(UnreadField(problem.parent_id, problem.found))
            problems.append(FileProblem(problem.code, problem.message, problem.column))
        return _Shape(tail, mapping, fields, tuple(problems), tuple(unread))

    def check_values(self, location: str, file: DescribedFile, mapping: NameMapping) -> None:
        """Check values that a Parquet footer does not prove to be of the column's type."""
        if file.tail.file_format is FileFormat.PARQUET:
            check_values(self._io, location, mapping, self._schema, file.fields)

    def metrics(self, file: DescribedFile) -> Metrics:
        """Return the metrics of a file in the form that manifests keep."""
        return summarised(file.tail, file.columns, self._config)


def _unknown(code: str, location: str, what: str) -> UnknownFormatError:
    return UnknownFormatError(
        f"Cannot read data file {location}: it is {what}",
        hint="Data files are Parquet, ORC or Avro, whole and not encrypted.",
        path=location,
        code=code,
        what=what,
    )


def check_values(
    io: FileIO,
    location: str,
    name_mapping: NameMapping | None,
    schema: Schema,
    fields: Sequence[FileField],
) -> None:
    """Check columns of plain bytes that are strings, or of fixed length, in the table.

    Old writers left out the annotation of strings; values that are not strings after all would make
    every scan of the table fail. Files without such columns are not read.
    """
    found = {f.field_id: f for f in fields}
    columns = [
        c
        for c in schema.fields
        if c.field_id in found and _unproven(c.field_type, found[c.field_id])
    ]
    if not columns:
        return
    reader = ParquetReader(io, location, name_mapping)
    try:
        projection = Projection(columns, reader.fields, {})
        for position, batch in reader.batches(projection.leaves, reader.row_groups(), BATCH_ROWS):
            projection.apply(batch, position)
    finally:
        reader.close()


def _unproven(kind: IcebergType, found: FileField) -> bool:
    arrow = found.arrow_type
    if isinstance(kind, StringType | FixedType | UUIDType):
        return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow))
    if isinstance(kind, StructType):
        inner = ((f.field_type, found.child(f.field_id)) for f in kind.fields)
        return any(child is not None and _unproven(part, child) for part, child in inner)
    pairs = zip(children(kind), found.children, strict=False)
    return any(_unproven(part.field_type, child) for part, child in pairs)
