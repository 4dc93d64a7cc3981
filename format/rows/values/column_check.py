"""A check that the columns of a data file written elsewhere can be those of a table.

It runs before such a file becomes part of a table, whatever its format and its origin
(`add_files`, migration of a Hive table, import from Paimon): every engine can read the files that
pass, and reads the right columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.values.arrow_projection import FileField, ids_of
from icecomb.format.rows.values.statistics import logical_type
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    ZONED_TYPES,
    BinaryType,
    DateType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

AMBIGUOUS: Final = "ambiguous-column"
FOREIGN_IDS: Final = "foreign-field-ids"
FOREIGN_TYPE: Final = "foreign-type"
REASSIGNED: Final = "reassigned-name"
SPELLING: Final = "name-spelling"
UNITS: Final = "timestamp-unit"
INT96: Final = "int96-nanoseconds"
UNKNOWN: Final = "unknown-column"
ZONES: Final = "timestamp-zone"
REMEDIES: Final = {
    AMBIGUOUS: "Rewrite the file under distinct names.",
    FOREIGN_IDS: "Append its rows instead, or rewrite it without field ids.",
    FOREIGN_TYPE: "Append its rows instead, cast to the table's columns.",
    REASSIGNED: "Append its rows instead, rewrite it with field ids, or rename its column.",
    SPELLING: "Append its rows instead, or rename its column.",
    INT96: "Append its rows instead, which writes nanoseconds that all readers compare.",
    UNITS: "Append its rows instead, or write it with coerce_timestamps='us'.",
    UNKNOWN: "Add the column to the table first.",
    ZONES: "Append its rows instead, with the time zone they are meant in.",
}


@dataclass(frozen=True, slots=True)
class ColumnProblem:
    """A reason why a file's column cannot be a table's.

    Attributes:
        code: The stable name of the kind of problem, a key of `REMEDIES`.
        message: A description of the problem, as a sentence about the file.
        parent_id: The id of the table's field around it; None for a top-level column.
    """

    code: str
    column: str
    message: str
    found: FileField
    parent_id: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """A check of files against one schema; older files have names and ids of `older` schemas."""

    schema: Schema
    older: Iterable[Schema] = ()
    _names: dict[int, set[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names: dict[int, set[str]] = {}
        for schema in (self.schema, *self.older):
            for field_id in schema.field_ids:
                names.setdefault(field_id, set()).add(schema.find_field(field_id).name.lower())
        object.__setattr__(self, "_names", names)

    def problems(
        self,
        fields: Sequence[FileField],
        footer: pq.ParquetSchema | None = None,
        file_format: FileFormat = FileFormat.PARQUET,
    ) -> Iterator[ColumnProblem]:
        """Yield the problems of a file, in the order of its columns.

        Args:
            footer: The schema of a Parquet file, to check the units of its columns.
            file_format: Format of the file, which decides which types Iceberg Java can read.
        """
        walk = _Walk(self._names, frozenset(self.schema.field_ids), footer, file_format)
        return walk.struct(fields, self.schema.fields, "", None)


class _Level:
    """Sibling fields of a table.

    Args:
        names: All names that fields of the table have or had, in lower case, by id.
        current: The ids of all fields in the table's current schema.
    """

    def __init__(
        self,
        known: Sequence[NestedField],
        names: Mapping[int, set[str]],
        current: AbstractSet[int],
    ) -> None:
        self.by_id = {k.field_id: k for k in known}
        self._exact = {k.name: k for k in known}
        self._lower = {k.name.lower(): k for k in reversed(known)}
        self._names = names
        self._current = current

    def wrong(self, f: FileField) -> tuple[str, str] | None:
        """Return why a field of a file is not the one its id refers to, as code and message."""
        by_id = None if f.field_id is None else self.by_id.get(f.field_id)
        exact = self._exact.get(f.name)
        by_name = exact or self._lower.get(f.name.lower())
        if f.by_name:
            if exact is not None and f.field_id is not None and exact is not by_id:
                now = "dropped" if by_id is None else f"{by_id.name!r} now"
                return REASSIGNED, (
                    f"in files without field ids the name {f.name!r} stands for an older column, "
                    f"which is {now}, and the table's {f.name!r} is another one"
                )
        elif by_id is not by_name and (
            by_name is not None
            or (by_id is not None and f.name.lower() not in self._names[by_id.field_id])
        ):
            wanted = by_name or by_id
            assert wanted is not None  # noqa: S101 - they differ, so one is there
            return FOREIGN_IDS, _other_id(f, wanted)
        if by_id is not None:
            return None
        if by_name is not None:
            return SPELLING, (
                f"the table has no column {f.name!r}, but {by_name.name!r}: names of files without "
                "field ids are told apart by case"
            )
        if not f.by_name and (taken := self._taken(f)) is not None:
            return FOREIGN_IDS, taken
        return UNKNOWN, f"the table has no column {f.name!r}"

    def _taken(self, f: FileField) -> str | None:
        """Return why a field unknown to the table cannot keep its id, if another field has it."""
        for number, name in ids_of((f,)):
            names = self._names.get(number, ())
            if number in self._current or (names and name.lower() not in names):
                return (
                    f"field id {number} is in it, which is another field of the table "
                    f"({', '.join(sorted(names))})"
                )
        return None


@dataclass(frozen=True, slots=True)
class _Walk:
    names: Mapping[int, set[str]]
    current: AbstractSet[int]
    footer: pq.ParquetSchema | None
    file_format: FileFormat

    def struct(
        self,
        found: Sequence[FileField],
        known: Sequence[NestedField],
        path: str,
        parent_id: int | None,
    ) -> Iterator[ColumnProblem]:
        level = _Level(known, self.names, self.current)
        seen: dict[str, FileField] = {}
        ids: dict[int | None, FileField] = {}
        for f in found:
            name, wrong = f"{path}{f.name}", level.wrong(f)
            if wrong is None or wrong[0] != UNKNOWN or f.name.lower() in seen:
                other = seen.setdefault(f.name.lower(), f)
                if wrong is None and other is f:
                    other = ids.setdefault(f.field_id, f)
                if other is not f:
                    wrong = AMBIGUOUS, f"it has columns {other.name} and {f.name}, which are one"
            if wrong is not None:
                yield ColumnProblem(wrong[0], name, wrong[1], f, parent_id)
            elif f.field_id is not None:
                yield from self._inside(f, level.by_id[f.field_id], name)

    def _inside(self, f: FileField, known: NestedField, path: str) -> Iterator[ColumnProblem]:
        if not f.children:
            yield from self._leaf(f, known.field_type, path)
            return
        if isinstance(known.field_type, StructType) and pa.types.is_struct(f.arrow_type):
            inner = known.field_type.fields
            yield from self.struct(f.children, inner, f"{path}.", known.field_id)
            return
        # The contents of lists and maps are found by position; other checks reject other types.
        for child, part in zip(f.children, children(known.field_type), strict=False):
            name = f"{path}.{part.name}"
            if not child.by_name and child.field_id != part.field_id:
                text = _other_id(child, part)
                yield ColumnProblem(FOREIGN_IDS, name, text, child, known.field_id)
            else:
                yield from self._inside(child, part, name)

    def _leaf(self, f: FileField, known: IcebergType, path: str) -> Iterator[ColumnProblem]:
        kind = f.arrow_type
        if pa.types.is_unsigned_integer(kind) or pa.types.is_float16(kind):
            text = f"it holds {kind}, which is not an Iceberg type: Iceberg Java cannot read it"
            yield ColumnProblem(FOREIGN_TYPE, path, text, f)
        elif _unread_by_java(kind, known, self.file_format):
            text = f"it holds {kind}, which Iceberg Java cannot read as {known}"
            yield ColumnProblem(FOREIGN_TYPE, path, text, f)
        times = isinstance(known, TIMESTAMP_TYPES) and pa.types.is_timestamp(kind)
        orc = self.file_format is FileFormat.ORC
        if orc and times and (kind.tz is None) is isinstance(known, ZONED_TYPES):
            held = "instants" if kind.tz is not None else "local times"
            text = f"it holds {held}, the table says {known}: Iceberg Java cannot read it"
            yield ColumnProblem(ZONES, path, text, f)
        # Iceberg Java reads other units, too, but its filters take the numbers in a row group's
        # statistics for those of the column, and skip rows that match. INT96 has no statistics.
        wanted = "nanoseconds" if isinstance(known, NANO_TYPES) else "microseconds"
        if self.footer is not None and (unit := _unit(self.footer, f.leaves[0], wanted)):
            owner = "the column" if isinstance(known, NANO_TYPES) else "Iceberg"
            text = f"it holds {unit}, {owner} has {wanted}: filters would skip rows"
            yield ColumnProblem(UNITS, path, text, f)
        elif self.footer is not None and wanted == "nanoseconds" and _is_int96(self.footer, f):
            text = "it holds INT96, which Iceberg Java compares in microseconds: filters miss rows"
            yield ColumnProblem(INT96, path, text, f)


def _unread_by_java(kind: pa.DataType, known: IcebergType, file_format: FileFormat) -> bool:
    """Return whether Iceberg Java fails on a type that icecomb can read (tested with 1.11)."""
    if pa.types.is_date(kind):
        return not isinstance(known, DateType)
    if file_format is FileFormat.PARQUET:
        return False
    if isinstance(known, StringType):
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
    if isinstance(known, BinaryType):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if file_format is FileFormat.ORC:
        return isinstance(known, LongType) and kind in (pa.int8(), pa.int16())
    # Avro's local-timestamp-*; Iceberg's own timestamps without a zone are timestamp-micros
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _other_id(f: FileField, wanted: NestedField) -> str:
    own = "no field id" if f.field_id is None else f"field id {f.field_id}"
    return f"it carries {own} where the table has {wanted.field_id} ({wanted.name})"


def _unit(footer: pq.ParquetSchema, leaf: int, wanted: str) -> str | None:
    """Return the unit of times in a Parquet column; None for the wanted one (spec, Appendix A)."""
    column = footer.column(leaf)
    kind = logical_type(column)
    if kind["Type"] in {"Timestamp", "Time"} and kind["timeUnit"] != wanted:
        return str(kind["timeUnit"])
    if column.physical_type == "INT96" and wanted != "microseconds" and "." in column.path:
        return "INT96, which is read as microseconds inside other columns"
    return None


def _is_int96(footer: pq.ParquetSchema, field: FileField) -> bool:
    return bool(footer.column(field.leaves[0]).physical_type == "INT96")
