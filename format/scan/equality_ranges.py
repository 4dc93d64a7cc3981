"""Ranges of values that equality delete files delete: data files outside of them keep all rows.

A column of a delete file is compared when the file's metrics say that it deletes no null there and
give both bounds; one of a data file when it has both bounds. NaN is not covered by bounds, and
writers disagree on the order of UUIDs: columns of these types are not compared, nor are columns
inside of structs, lists and maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import binaries, integers
from icecomb.format.expressions.comparison import bounds_column, known_bounds
from icecomb.format.expressions.manifest_metrics import BOUNDS
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.spec.promotion import can_promote
from icecomb.format.spec.types import DoubleType, FloatType, PrimitiveType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.spec.schema import Schema

_Mask = npt.NDArray[np.bool_]
_Ranks = npt.NDArray[np.uint64]

_NOT_COMPARED: Final = (FloatType, DoubleType, UUIDType)
_MOST_PAIRS: Final = 1 << 22
"""The maximum number of pairs of a data file and a delete file compared at once."""


def comparable_columns(schemas: Iterable[Schema]) -> dict[int, PrimitiveType]:
    """Return the types of the columns whose bounds can be compared, the widest each has had.

    A table that was replaced may have reused an id for a column of another type: its files have
    bounds of either type, so the column is left out.

    Args:
        schemas: All schemas of a table: a delete file may name a column that was dropped since.
    """
    found: dict[int, PrimitiveType] = {}
    unlike: set[int] = set()
    for field in chain.from_iterable(schema.fields for schema in schemas):
        kind = field.field_type
        if not isinstance(kind, PrimitiveType) or isinstance(kind, _NOT_COMPARED):
            unlike.add(field.field_id)
            continue
        known = found.setdefault(field.field_id, kind)
        if can_promote(known, kind):
            found[field.field_id] = kind
        elif not can_promote(kind, known):
            unlike.add(field.field_id)
    return {field_id: kind for field_id, kind in found.items() if field_id not in unlike}


class EqualityRanges:
    """The ranges of equality delete files; for `types` see `comparable_columns`."""

    def __init__(self, types: Mapping[int, PrimitiveType]) -> None:
        self._types = types
        self._ranges: dict[int, _Ranges] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def add(
        self, columns: ManifestColumns, indices: pa.Array | None, files: Sequence[DataFile]
    ) -> None:
        """Add the equality delete files among `files`, those of the rows at `indices`.

        The manifest has `null_value_counts` and both bounds; None as `indices` means all rows.
        """
        named = {field_id for file in files for field_id in file.equality_ids or ()}
        for field_id in named & self._types.keys():
            nulls = _chosen(columns.statistic("null_value_counts", field_id), indices).to_pylist()
            lower, upper = (bound.to_pylist() for bound in self._bounds(columns, field_id, indices))
            for file, count, low, high in zip(files, nulls, lower, upper, strict=True):
                if (
                    file.content is DataFileContent.EQUALITY_DELETES
                    and field_id in (file.equality_ids or ())
                    and count == 0
                    and low is not None
                    and high is not None
                ):
                    self._ranges.setdefault(field_id, _Ranges()).add(file.file_path, low, high)

    def compared(self, columns: ManifestColumns, indices: pa.Array | None) -> ComparedRanges:
        """Return the ranges prepared for comparison with those of data files with both bounds.

        Args:
            indices: Indices of the manifest's rows to compare; None for all.
        """
        return ComparedRanges(
            [
                ranges.compared(*self._bounds(columns, field_id, indices))
                for field_id, ranges in self._ranges.items()
            ]
        )

    def _bounds(
        self, columns: ManifestColumns, field_id: int, indices: pa.Array | None
    ) -> list[pa.Array]:
        kind = self._types[field_id]
        lower, upper = (
            bounds_column(_chosen(columns.statistic(name, field_id), indices), kind)
            for name in BOUNDS
        )
        found = (bound.values for bound in known_bounds(lower, upper))
        return [
            values.cast(pa.int64() if pa.types.is_integer(values.type) else pa.large_binary())
            for values in found
        ]


class ComparedRanges:
    """Ranges of equality delete files and of data files, compared; see `EqualityRanges`."""

    def __init__(self, columns: Sequence[_Compared]) -> None:
        self._columns = columns

    def reaching(
        self, files: tuple[DataFile, ...], rows: Sequence[int]
    ) -> list[tuple[DataFile, ...]]:
        """Return, for each data file, the equality delete files that may delete its rows."""
        columns = [
            (column, [(at, column.places[f.file_path]) for at, f in enumerate(files)
                      if f.file_path in column.places])
            for column in self._columns
        ]  # fmt: skip
        step = max(_MOST_PAIRS // len(files), 1)
        found: list[tuple[DataFile, ...]] = []
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            reached: _Mask = np.ones((len(part), len(files)), dtype=bool)
            for column, known in columns:
                if known:
                    at, places = zip(*known, strict=True)
                    reached[:, at] &= column.overlap(part, places)
            found += [
                files if row.all() else tuple(compress(files, row.tolist())) for row in reached
            ]
        return found


class _Ranges:
    """The ranges of one column, one for each delete file."""

    __slots__ = ("_arrays", "_highs", "_lows", "_places")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._lows: list[Any] = []
        self._highs: list[Any] = []
        self._arrays: list[pa.Array] = []

    def add(self, path: str, low: Any, high: Any) -> None:
        self._places[path] = len(self._lows)
        self._lows.append(low)
        self._highs.append(high)
        self._arrays = []

    def compared(self, lower: pa.Array, upper: pa.Array) -> _Compared:
        arrays = self._arrays
        if not arrays:
            make = binaries if isinstance(self._lows[0], bytes) else integers
            arrays = self._arrays = [make(self._lows), make(self._highs)]
        known = pc.and_(lower.is_valid(), upper.is_valid()).to_numpy(zero_copy_only=False)
        # ranks compare like the values, whatever type these have
        ranks = pc.rank(pa.concat_arrays([lower, upper, *arrays]), tiebreaker="dense").to_numpy()
        ends = np.cumsum([len(lower), len(upper), len(self._lows)])
        return _Compared(self._places, known, *np.split(ranks, ends))


@dataclass(frozen=True, slots=True)
class _Compared:
    """The ends of one column's ranges, as ranks among all of them."""

    places: Mapping[str, int]
    known: _Mask
    lower: _Ranks
    upper: _Ranks
    lows: _Ranks
    highs: _Ranks

    def overlap(self, rows: Sequence[int], places: Sequence[int]) -> _Mask:
        """Return whether each data file may have values in the range of each delete file."""
        at, of = np.asarray(rows), np.asarray(places)
        below = self.upper[at, None] < self.lows[of]
        above = self.lower[at, None] > self.highs[of]
        apart: _Mask = (below | above) & self.known[at, None]
        return ~apart


def _chosen(array: pa.Array, indices: pa.Array | None) -> pa.Array:
    return array if indices is None else array.take(indices)
