"""Parts of a query answered without reading files: whole partitions, counts, minima, maxima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import ExpressionError, UnsupportedError, ValidationError
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.whole_partitions import selects_partitions
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.spec.column_history import unlike_in_table
from icecomb.format.spec.types import NANO_TYPES, LongType
from icecomb.spark.planner.protocol.scans import (
    Aggregated,
    AggregateFiles,
    AskedAggregate,
    DecidedFilters,
    DecideFilters,
    Selection,
)
from icecomb.spark.planner.scan.predicates import exact_filter
from icecomb.spark.planner.scan.read_options import ReadOptions
from icecomb.spark.planner.table.states import TableState, TableStates
from icecomb.spark.schema import check_has_type
from icecomb.spark.values import value_to_json

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.types import NestedField


class PushDown:
    """The protocol's methods by which Spark pushes work down to the planner."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def decide_filters(self, request: DecideFilters) -> DecidedFilters:
        selection = request.selection
        state = self._states.find(selection.reference)
        if state.metadata_table is not None:
            return DecidedFilters((False,) * len(selection.filters))
        scan = ReadOptions.of_selection(selection).scan_of(state)
        specs = scan.specs()
        alone = (replace(selection, filters=(each,)) for each in selection.filters)
        return DecidedFilters(tuple(_is_whole(state, scan, specs, each) for each in alone))

    def aggregate_files(self, request: AggregateFiles) -> Aggregated:
        selection = request.selection
        state = self._states.find(selection.reference)
        options = ReadOptions.of_selection(selection)
        if state.metadata_table is not None or not options.pushes_aggregates():
            return Aggregated(None)
        try:
            scan = _filtered(state, options.scan_of(state), selection)
        except UnsupportedError:
            return Aggregated(None)
        columns = _Columns(state, scan, case_sensitive=selection.case_sensitive)
        try:
            keys = [columns.shown(path) for path in request.group_by]
            asked = [
                (AggregateFunction(one.name), None if one.column is None else columns.asked(one))
                for one in request.functions
            ]
        except (ValidationError, UnsupportedError, _OtherColumnError):
            return Aggregated(None)
        aggregates = [
            Aggregate(name, None if column is None else column.field_id) for name, column in asked
        ]
        found = scan.known_aggregates(aggregates, [column.field_id for column in keys])
        if found is None:
            return Aggregated(None)
        types = [
            *(column.field_type for column in keys),
            *(
                LongType()
                if column is None or name is AggregateFunction.COUNT
                else column.field_type
                for name, column in asked
            ),
        ]
        return Aggregated(tuple(tuple(map(value_to_json, types, row)) for row in found))


class _OtherColumnError(Exception):
    """A column of the query is missing or different in the scan."""


class _Columns:
    """The columns of a query that are the same in its scan."""

    def __init__(self, state: TableState, scan: TableScan, *, case_sensitive: bool) -> None:
        self._schema = state.schema
        self._read = scan.schema()
        self._case_sensitive = case_sensitive
        self._downcast = state.downcasts

    def asked(self, function: AskedAggregate) -> NestedField:
        """Find the column of a function, like `shown`; values are counted whatever their type."""
        path = function.column or ()
        return (
            self.find(path)
            if AggregateFunction(function.name) is AggregateFunction.COUNT
            else self.shown(path)
        )

    def shown(self, path: Sequence[str]) -> NestedField:
        """Find a column by its path, like `find`, whose values Spark shows as they are.

        `_OtherColumnError` also if it shows them in microseconds.
        """
        field = self.find(path)
        if isinstance(field.field_type, NANO_TYPES):
            raise _OtherColumnError
        return field

    def find(self, path: Sequence[str]) -> NestedField:
        """Find a column by its path.

        `_OtherColumnError` if the scan lacks it, or has it with another type; `UnsupportedError` if
        Spark cannot read it; `ValidationError` if there is none: it may be a metadata column.
        """
        field = self._schema.find_field(".".join(path), self._case_sensitive)
        check_has_type(field, downcast=self._downcast)
        known = self._read.contains(field.field_id)
        if not known or self._read.find_type(field.field_id) != field.field_type:
            raise _OtherColumnError
        return field


def _is_whole(
    state: TableState,
    scan: TableScan,
    specs: Sequence[PartitionSpec],
    selection: Selection,
) -> bool:
    try:
        bound = _filtered(state, scan, selection).bound_filter()
    except (UnsupportedError, ExpressionError):
        return False
    if not unlike_in_table(state.metadata, scan.schema()).isdisjoint(bound_references(bound)):
        return False
    return selects_partitions(bound, specs)


def _filtered(state: TableState, scan: TableScan, selection: Selection) -> TableScan:
    """Restrict a scan to the rows for which Spark's predicates, converted exactly, are true."""
    return scan.filter(
        exact_filter(
            selection.filters,
            state.schema,
            case_sensitive=selection.case_sensitive,
            read=scan.schema(),
        )
    )
