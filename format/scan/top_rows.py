"""Which files may hold the first rows of an order, as far as bounds tell: ORDER BY … LIMIT n.

Files that surely hold n rows up to some value make every file needless whose rows all come after
that value. Rows at the value itself may be any of those that tie. Only the first key of an order
counts: rows that come later by it come later whatever the other keys are. A file is sure of its
rows where none may be deleted and the filter takes all; to come later is true of them all the same.

Files of which the order of their rows is not known are read: those without counts or bounds of the
column, and all of floats (NaN), of text (whose collation is the engine's), of times in ORC (which
keeps milliseconds), and of files that other tables brought along, whose bounds are by another
calendar, or another writer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.column_history import unlike_in_table
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

if TYPE_CHECKING:
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.scan.scan_planner import Selected
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema

_WHOLE_NUMBERS: Final = (IntegerType, LongType)
_OTHERS: Final = (DateType, DecimalType)
_TIMES: Final = (TimestampType, TimestamptzType)
_NULLS_FIRST: Final = (0, 0)
_VALUE: Final = 1
_NULLS_LAST: Final = (2, 0)

# where rows are in the order: nulls, values by themselves, or by what is minus them
_Place = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first rows of an order.

    Attributes:
        field_id: The column that is the order's first key.
        descending: Whether the largest value comes first.
        nulls_first: Whether nulls come before all values.
        count: How many rows, at least one.
    """

    field_id: int
    descending: bool
    nulls_first: bool
    count: int

    def ordered_type(self, metadata: TableMetadata, schema: Schema) -> PrimitiveType | None:
        """The type of the column, None where files of the table cannot be told apart by it.

        Args:
            metadata: The table.
            schema: What its files are read with.
        """
        if not schema.contains(self.field_id) or schema.find_parent_id(self.field_id) is not None:
            return None
        if self.field_id in unlike_in_table(metadata, schema):
            return None
        foreign = metadata.name_mapping() is not None
        ordered = _WHOLE_NUMBERS if foreign else (*_WHOLE_NUMBERS, *_OTHERS, *_TIMES)
        found = schema.find_type(self.field_id)
        return found if isinstance(found, PrimitiveType) and isinstance(found, ordered) else None


class TopFiles:
    """The files that may hold the first rows.

    Args:
        top: Which rows.
        field_type: The type of their column, see `TopRows.ordered_type`.
        deletes: What is deleted from the files.
    """

    def __init__(self, top: TopRows, field_type: PrimitiveType, deletes: DeleteFileIndex) -> None:
        self._top = top
        self._type = field_type
        self._deletes = deletes

    def needed(self, selected: Sequence[Selected]) -> Iterator[Selected]:
        """The entries that may hold the rows.

        Args:
            selected: All entries of the scan, with counts and bounds.
        """
        sure: list[tuple[_Place, int]] = []
        begins = [self._look_at(chosen, sure) for chosen in selected]
        last = self._last(sure)
        for chosen, firsts in zip(selected, begins, strict=True):
            rows = [
                row
                for row, first in enumerate(firsts)
                if last is None or first is None or first <= last
            ]
            if len(rows) == chosen.count:
                yield chosen
            elif rows:
                yield chosen.some(rows)

    def _last(self, sure: list[tuple[_Place, int]]) -> _Place | None:
        """Up to where there are enough rows; None where that is not sure of any place."""
        missing = self._top.count
        for place, rows in sorted(sure):
            missing -= rows
            if missing <= 0:
                return place
        return None

    def _look_at(self, chosen: Selected, sure: list[tuple[_Place, int]]) -> list[_Place | None]:
        """Where the rows of each file begin, None if that is not known; adds where they end."""
        begins: list[_Place | None] = []
        nulls_place = _NULLS_FIRST if self._top.nulls_first else _NULLS_LAST
        whole = self._whole(chosen)
        for found, counts in zip(self._values(chosen), whole, strict=True):
            if found is None:
                begins.append(None)
                continue
            first, last, values, nulls = found
            places = [(nulls_place, nulls)] if nulls else []
            if values:
                places.append(((_VALUE, last), values))
            if counts:
                sure.extend(places)
            starts = [nulls_place] if nulls else []
            if values:
                starts.append((_VALUE, first))
            begins.append(min(starts) if starts else None)
        return begins

    def _whole(self, chosen: Selected) -> list[bool]:
        """Of which files all rows are in the scan's answer."""
        whole = [isinstance(each, AlwaysTrue) for each in chosen.residuals] or [True] * chosen.count
        if self._deletes:
            deleted = self._deletes.files_for(chosen.columns, chosen.rows)
            whole = [each and not files for each, files in zip(whole, deleted, strict=True)]
        return whole

    def _values(self, chosen: Selected) -> Iterator[tuple[Any, Any, int, int] | None]:
        """The first and last value of each file by the order, how many it has, how many nulls."""
        field_type = self._type
        columns = (
            chosen.column("record_count").to_pylist(),
            chosen.column("file_format").to_pylist(),
            *(
                chosen.chosen(chosen.columns.statistic(name, self._top.field_id)).to_pylist()
                for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
            ),
        )
        for rows, file_format, counted, nulls, lower, upper in zip(*columns, strict=True):
            if (
                None in {rows, counted, nulls}
                or counted != rows
                or not 0 <= nulls <= counted
                or (
                    isinstance(field_type, _TIMES)
                    and FileFormat(file_format) is not FileFormat.PARQUET
                )
            ):
                yield None
            elif nulls == counted:
                yield None, None, 0, nulls
            elif lower is None or upper is None:
                yield None
            else:
                low, high = from_bytes(field_type, lower), from_bytes(field_type, upper)
                # minus may round decimals of many digits: never past another, so that they tie
                ends = (-high, -low) if self._top.descending else (low, high)
                yield (*ends, counted - nulls, nulls) if low <= high else None
