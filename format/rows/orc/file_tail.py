"""The tail of an ORC file: its columns, counts and bounds.

Timestamps have no bounds, because ORC's are exact to a millisecond at best, and writers disagree on
their zone; nor do truncated strings, padded ones (`char`) and binary.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import DecimalException

import pyarrow as pa
from pyarrow import orc

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.orc.tail import OrcTail
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail, is_old
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    DecimalType,
    PrimitiveType,
)
from icecomb.format.spec.values.decimal_value import rescaled

_PLACE_NAME = re.compile(r"_col\d+")


@dataclass(frozen=True, slots=True)
class NumberedType:
    """A leaf column, with the number of its ORC type.

    Args:
        number: The number of its type, counted depth-first, the row being 0.
        repeated: Whether it is inside a list or map, so that a row may have many values or
            none.
    """

    field: FileField
    number: int
    repeated: bool


def open_file(source: pa.NativeFile, location: str) -> tuple[orc.ORCFile, pa.Schema, OrcTail]:
    """Open a file; return it, its schema and its tail, or raise CorruptFileError.

    The tail is checked before pyarrow makes the schema, which takes a stack of its depth.
    """
    with reading(location):
        file = orc.ORCFile(source)
        serialized = file.reader.serialized_file_tail()
    try:
        tail = OrcTail(serialized)
    except ValueError as problem:
        raise CorruptFileError(
            f"Cannot read data file {location}: {problem}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from problem
    with reading(location):
        return file, file.schema, tail


class OrcFileTail(FileTail):
    """The tail of an ORC file."""

    file_format = FileFormat.ORC

    def __init__(self, source: pa.NativeFile, location: str) -> None:
        _, schema, self._tail = open_file(source, location)
        stripes = tuple(stripe.offset for stripe in self._tail.stripes)
        super().__init__(schema, self._tail.rows, stripes)

    def columns(
        self,
        fields: Sequence[FileField],
        kinds: Mapping[int, PrimitiveType],
        wanted: Container[int],
    ) -> dict[int, ColumnSummary]:
        """Implement `FileTail.columns`."""
        if self._tail.type_count != count_types(fields) + 1:
            return {}
        found = {}
        for one in types_of(fields):
            number = one.field.field_id
            kind = None if number is None else kinds.get(number)
            if number is None or kind is None:
                continue
            size, values = self._tail.total(one.number, kind)
            old = False
            if values is not None and number in wanted and not one.repeated:
                values, old = self._trusted(values, kind)
            else:
                values = None
            found[number] = ColumnSummary(kind, size, values, old)
        return found

    def text_lengths(self, fields: Sequence[FileField]) -> dict[int, int]:
        """Implement `FileTail.text_lengths`."""
        if self._tail.type_count != count_types(fields) + 1:
            return {}
        lengths = self._tail.lengths
        found = ((one.field.field_id, lengths[one.number]) for one in types_of(fields))
        return {number: length for number, length in found if number is not None and length}

    @property
    def numbered(self) -> bool:
        """True if the columns are named by number; see `FileTail.numbered`."""
        return has_place_names(self.schema)

    def _trusted(self, found: ChunkStatistics, kind: PrimitiveType) -> tuple[ChunkStatistics, bool]:
        """Return the trusted part of counts and bounds, and whether there are old dates."""
        old = self._tail.julian and is_old(kind, found.lower)
        if isinstance(kind, TIMESTAMP_TYPES):
            return replace(found, lower=None, upper=None), old
        if isinstance(kind, DecimalType) and found.lower is not None:
            try:
                lower, upper = (rescaled(v, kind.scale) for v in (found.lower, found.upper))
            except (DecimalException, ValueError):
                return replace(found, lower=None, upper=None), False
            return replace(found, lower=lower, upper=upper), False
        return found, old


def has_place_names(schema: pa.Schema) -> bool:
    """Return whether all columns are named by number, as Hive before version 2 did."""
    return len(schema) > 0 and all(_PLACE_NAME.fullmatch(name) for name in schema.names)


def types_of(fields: Sequence[FileField]) -> Iterator[NumberedType]:
    """Yield the leaf columns with the numbers of their types."""
    return _types(fields, 1, repeated=False)


def count_types(fields: Sequence[FileField]) -> int:
    """Count the types of the columns, at every depth."""
    return sum(1 + count_types(f.children) for f in fields)


def _types(fields: Sequence[FileField], number: int, *, repeated: bool) -> Iterator[NumberedType]:
    for f in fields:
        if f.children:
            inner = repeated or not pa.types.is_struct(f.arrow_type)
            yield from _types(f.children, number + 1, repeated=inner)
        elif not pa.types.is_nested(f.arrow_type):
            yield NumberedType(f, number, repeated)
        number += 1 + count_types(f.children)
