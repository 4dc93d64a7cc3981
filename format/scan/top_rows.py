"""Pruning of files by bounds for the first rows of an order: ORDER BY … LIMIT n.

When some files certainly hold n rows up to some value, files whose rows all come after that value
are not needed. Any of the rows at the value itself may be in the result: they tie. Only the first
key of an order counts: rows that come later by it come later whatever the other keys are. A file
certainly holds its rows where none may be deleted and the filter takes all; that its rows come
later is true in either case.

Files are always read where bounds do not tell the order of their rows: files without counts or
bounds of the column, and all files where the column holds floats (NaN), text (the collation is the
engine's), times in ORC (which keeps milliseconds), or where imported files may have dates and times
with bounds of another calendar or another writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.column_history import unlike_in_table
from icecomb.format.spec.single_value import range_from_bytes
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
)

if TYPE_CHECKING:
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.scan.scan_planner import Selected
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema

_WHOLE_NUMBERS: Final = (IntegerType, LongType)
_OTHERS: Final = (DateType, DecimalType)
_NULLS_FIRST: Final = (0, 0)
_VALUE: Final = 1
_NULLS_LAST: Final = (2, 0)

# a position in the order: of nulls, or of values (negated where the order descends)
_Place = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first `count` rows, at least one, of an order by its first key."""

    field_id: int
    descending: bool
    nulls_first: bool
    count: int

    def ordered_type(self, metadata: TableMetadata, schema: Schema) -> PrimitiveType | None:
        """Return the type of the column; None where bounds do not order the table's files."""
        if not schema.contains(self.field_id) or schema.find_parent_id(self.field_id) is not None:
            return None
        if self.field_id in unlike_in_table(metadata, schema):
            return None
        foreign = metadata.name_mapping() is not None
        ordered = _WHOLE_NUMBERS if foreign else (*_WHOLE_NUMBERS, *_OTHERS, *TIMESTAMP_TYPES)
        found = schema.find_type(self.field_id)
        return found if isinstance(found, PrimitiveType) and isinstance(found, ordered) else None


class TopFiles:
    """The files that may hold the first rows; for `field_type` see `TopRows.ordered_type`."""

    def __init__(self, top: TopRows, field_type: PrimitiveType, deletes: DeleteFileIndex) -> None:
        self._top = top
        self._type = field_type
        self._deletes = deletes

    def needed(self, selected: Sequence[Selected]) -> Iterator[Selected]:
        """Yield the entries that may hold the rows; all given ones have counts and bounds."""
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
        """Return the position up to which there certainly are enough rows; None without one."""
        missing = self._top.count
        for place, rows in sorted(sure):
            missing -= rows
            if missing <= 0:
                return place
        return None

    def _look_at(self, chosen: Selected, sure: list[tuple[_Place, int]]) -> list[_Place | None]:
        """Return where each file's rows begin, None if unknown; add where they end to `sure`."""
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
        """Return, for each file, whether all its rows are in the scan's result."""
        whole = [isinstance(each, AlwaysTrue) for each in chosen.residuals] or [True] * chosen.count
        if self._deletes:
            deleted = self._deletes.files_for(chosen.columns, chosen.rows)
            whole = [each and not files for each, files in zip(whole, deleted, strict=True)]
        return whole

    def _values(self, chosen: Selected) -> Iterator[tuple[Any, Any, int, int] | None]:
        """Yield each file's first and last value by the order, its values and its nulls.

        None where these are not known; values and nulls are counts.
        """
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
                    isinstance(field_type, TIMESTAMP_TYPES)
                    and FileFormat(file_format) is not FileFormat.PARQUET
                )
            ):
                yield None
            elif nulls == counted:
                yield None, None, 0, nulls
            elif (found := range_from_bytes(field_type, lower, upper)) is None:
                yield None
            else:
                low, high = found
                # negation may round decimals of many digits: that keeps their order, or makes a tie
                ends = (-high, -low) if self._top.descending else (low, high)
                yield (*ends, counted - nulls, nulls)
