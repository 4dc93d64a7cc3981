"""Counts, minima and maxima that manifests know exactly, so that no data file is read for them.

A manifest gives the number of rows of a file, the value that an identity partition column has in
all of them, and the counts and bounds of other columns as far as those are exact. Bounds are only
limits where another writer may have stated them (the specification lets them be wider than the
values, and some stamp those of all files of a statement on each), where they are truncated (text,
bytes), where the file's format keeps times in milliseconds (ORC), and where they leave NaN or the
sign of zero open. A column that a file's metrics do not name
may have been added later, or not been measured: the two cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.expressions.manifest_metrics import METRICS
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.column_history import unlike_in_table
from icecomb.format.spec.single_value import range_from_bytes
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StructType,
    UnknownType,
)

if TYPE_CHECKING:
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.scan.scan_planner import Selected
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema

_ALWAYS_EXACT: Final = (BooleanType, IntegerType, LongType)
"""The types whose bounds are in no calendar and of no unit."""
_EXACT: Final = (*_ALWAYS_EXACT, DateType, DecimalType, DoubleType, FloatType)


class AggregateFunction(Enum):
    """An aggregate function over a column."""

    COUNT = "count"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the rows of a table, which ignores nulls.

    It counts rows if `field_id` is None.
    """

    function: AggregateFunction
    field_id: int | None = None


class FileAggregates:
    """The aggregates of one scan."""

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        deletes: DeleteFileIndex,
    ) -> None:
        self._metadata = metadata
        self._schema = schema
        self._deletes = deletes
        # files without field ids were imported from other tables: their statistics are in the
        # calendar of whatever wrote them
        self._foreign = metadata.name_mapping() is not None

    def rows(
        self,
        selected: Iterable[Selected],
        aggregates: Sequence[Aggregate],
        group_by: Sequence[int] = (),
    ) -> list[tuple[Any, ...]] | None:
        """Return a row for each group: its key, then its aggregates, as internal values.

        Return None if manifests do not tell. A key that holds NaN may occur more than once.

        Args:
            selected: The entries of the scan, with `statistics_for` these aggregates.
            group_by: Field ids of identity partition columns; without them there is one group.
        """
        asked = {aggregate.field_id for aggregate in aggregates}.union(group_by)
        if not asked.isdisjoint(unlike_in_table(self._metadata, self._schema)):
            return None
        groups: dict[tuple[Any, ...], list[Any]] = {}
        if not group_by:
            groups[()] = _empty(aggregates)
        try:
            for chosen in selected:
                self._add(groups, chosen, aggregates, group_by)
            for state in groups.values():
                _check_signs(state)
        except _NotKnownError:
            return None
        return [(*key, *state) for key, state in groups.items()]

    def _add(
        self,
        groups: dict[tuple[Any, ...], list[Any]],
        chosen: Selected,
        aggregates: Sequence[Aggregate],
        group_by: Sequence[int],
    ) -> None:
        files = _Files(chosen, self._metadata, self._schema, foreign=self._foreign)
        self._check_whole(chosen)
        keys: Iterator[tuple[Any, ...]] = (
            zip(*(files.constants(field_id) for field_id in group_by), strict=True)
            if group_by
            else iter([()] * chosen.count)
        )
        columns = [files.values(aggregate) for aggregate in aggregates]
        values: Iterator[tuple[Any, ...]] = (
            zip(*columns, strict=True) if columns else iter([()] * chosen.count)
        )
        merges = [_MERGES[aggregate.function] for aggregate in aggregates]
        for rows, key, found in zip(files.records, keys, values, strict=True):
            if not rows:
                continue
            state = groups.get(key)
            if state is None:
                state = groups[key] = _empty(aggregates)
            for place, value in enumerate(found):
                if value is not None:
                    state[place] = merges[place](state[place], value)

    def _check_whole(self, chosen: Selected) -> None:
        """Reject files of which some rows may be deleted or filtered out."""
        if not all(isinstance(residual, AlwaysTrue) for residual in chosen.residuals):
            raise _NotKnownError
        if self._deletes and any(self._deletes.files_for(chosen.columns, chosen.rows)):
            raise _NotKnownError


class _NotKnownError(Exception):
    """A file would have to be read to know the answer."""


class _Files:
    """The known values of one manifest's chosen files, as lists with one item a file."""

    def __init__(
        self, chosen: Selected, metadata: TableMetadata, schema: Schema, *, foreign: bool
    ) -> None:
        self._chosen = chosen
        self._schema = schema
        self._foreign = foreign
        self._constants: dict[int, list[Any]] = {}
        self._statistics: dict[tuple[str, int], list[Any]] = {}
        spec = metadata.specs()[chosen.columns.manifest.partition_spec_id]
        self._identities = {
            field.source_id: place
            for place, field in enumerate(spec.fields)
            if isinstance(field.transform, IdentityTransform)
        }
        self.records: list[int] = chosen.column("record_count").to_pylist()
        # a negative count means that it is unknown (old imports of Avro)
        if any(rows is None or rows < 0 for rows in self.records):
            raise _NotKnownError

    def constants(self, field_id: int) -> list[Any]:
        """Return, for each file, the value of an identity partition column in all its rows."""
        place = self._identities.get(field_id)
        if place is None:
            raise _NotKnownError
        if field_id not in self._constants:
            tuples = self._chosen.columns.partition_tuples(self._chosen.rows)
            if any(place >= len(partition) for partition in tuples):
                raise _NotKnownError
            self._constants[field_id] = [partition[place] for partition in tuples]
        return self._constants[field_id]

    def values(self, aggregate: Aggregate) -> list[Any]:
        """Return the aggregate of each file by itself; None where all its values are null."""
        field_id = aggregate.field_id
        if field_id is None:
            return self.records
        if isinstance(self._schema.find_type(field_id), UnknownType):
            # whatever the file has under its id
            return [None] * len(self.records)
        counts = aggregate.function is AggregateFunction.COUNT
        if field_id in self._identities:
            constants = self.constants(field_id)
            if not counts:
                return list(map(_comparable, constants))
            return [
                None if value is None else rows
                for value, rows in zip(constants, self.records, strict=True)
            ]
        if not counts:
            return self._bounds(field_id, aggregate.function)
        if (parent := self._schema.find_parent_id(field_id)) is not None:
            self._check_structs(parent)
        return [
            _not_null(rows, values, nulls)
            for rows, values, nulls in zip(
                self.records,
                self._statistic("value_counts", field_id),
                self._statistic("null_value_counts", field_id),
                strict=True,
            )
        ]

    def _bounds(self, field_id: int, function: AggregateFunction) -> list[Any]:
        field_type = self._schema.find_type(field_id)
        self._check_exact(field_type)
        assert isinstance(field_type, PrimitiveType)  # noqa: S101 - only such types are exact
        side = 0 if function is AggregateFunction.MIN else 1
        exact = self._chosen.columns.has_exact_bounds
        nested = self._schema.find_parent_id(field_id) is not None
        nans = (
            self._statistic("nan_value_counts", field_id)
            if isinstance(field_type, FloatType | DoubleType)
            else [0] * len(self.records)
        )
        return [
            None
            if _only_nulls(rows, values, nulls, nan, nested=nested)
            else _comparable(_exact(field_type, lower, upper, exact=exact)[side])
            for lower, upper, rows, values, nulls, nan in zip(
                self._statistic("lower_bounds", field_id),
                self._statistic("upper_bounds", field_id),
                self.records,
                self._statistic("value_counts", field_id),
                self._statistic("null_value_counts", field_id),
                nans,
                strict=True,
            )
        ]

    def _check_exact(self, field_type: IcebergType) -> None:
        """Reject types whose bounds need not be values in the file."""
        if isinstance(field_type, _ALWAYS_EXACT):
            return
        if self._foreign or not isinstance(field_type, (*_EXACT, *TIMESTAMP_TYPES)):
            raise _NotKnownError
        if isinstance(field_type, TIMESTAMP_TYPES):
            self._check_parquet()

    def _check_structs(self, parent: int | None) -> None:
        """Reject counts of a nested field that may leave out rows whose struct is null."""
        while parent is not None:
            if not isinstance(self._schema.find_type(parent), StructType):
                raise _NotKnownError
            parent = self._schema.find_parent_id(parent)
        self._check_parquet()

    def _check_parquet(self) -> None:
        formats = set(self._chosen.column("file_format").to_pylist())
        if any(FileFormat(name) is not FileFormat.PARQUET for name in formats):
            raise _NotKnownError

    def _statistic(self, name: str, field_id: int) -> list[Any]:
        key = name, field_id
        if key not in self._statistics:
            picked = self._chosen.columns.statistic(name, field_id)
            self._statistics[key] = self._chosen.chosen(picked).to_pylist()
        return self._statistics[key]


def _not_null(rows: int, values: int | None, nulls: int | None) -> int:
    if values is None or nulls is None or values != rows or not 0 <= nulls <= values:
        raise _NotKnownError
    return rows - nulls


def _only_nulls(
    rows: int, values: int | None, nulls: int | None, nans: int | None, *, nested: bool
) -> bool:
    if values is None or nulls is None or nans != 0 or not 0 <= nulls <= values:
        raise _NotKnownError
    # counts of a nested column may leave out rows whose struct is null, but hardly all rows
    if (rows and not values) if nested else rows != values:
        raise _NotKnownError
    return values == nulls


def _exact(
    field_type: PrimitiveType, lower: bytes | None, upper: bytes | None, *, exact: bool
) -> tuple[Any, Any]:
    """Return the least and the greatest value of a file, which has some."""
    found = range_from_bytes(field_type, lower, upper)
    # between equal bounds, however wide they may be, there is one value
    if found is None or not (exact or found[0] == found[1]):
        raise _NotKnownError
    return found


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN
        raise _NotKnownError
    return value


def _check_signs(state: Iterable[Any]) -> None:
    """Reject a zero among the floats: Parquet bounds do not tell 0.0 from -0.0."""
    if any(isinstance(value, float) and value == 0 for value in state):
        raise _NotKnownError


def _empty(aggregates: Sequence[Aggregate]) -> list[Any]:
    return [0 if one.function is AggregateFunction.COUNT else None for one in aggregates]


_MERGES: Final[Mapping[AggregateFunction, Callable[[Any, Any], Any]]] = {
    AggregateFunction.COUNT: lambda state, value: state + value,
    AggregateFunction.MIN: lambda state, value: value if state is None else min(state, value),
    AggregateFunction.MAX: lambda state, value: value if state is None else max(state, value),
}


def statistics_for(aggregates: Iterable[Aggregate]) -> tuple[str, ...]:
    """Return the names of the manifest statistics that aggregates may need."""
    return METRICS if any(one.field_id is not None for one in aggregates) else ()
