"""Read options of a query, and settings of its session for scans.

Options of streams are ignored by batch queries, and unknown options by all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, UnsupportedError, ValidationError
from icecomb.format.operation.snapshot_producer import check_moved
from icecomb.format.property.property import flag, optional_number
from icecomb.format.property.table_property import (
    PARQUET_BATCH_ROWS,
    PARQUET_VECTORIZED,
    SPLIT_ADAPTIVE,
)
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.scan.table_scan import TableScan
from icecomb.spark.planner.options import PREFIX, Options
from icecomb.spark.planner.table.selectors import check_shows_one_snapshot, use_ref

if TYPE_CHECKING:
    from icecomb.format.property.property import Property
    from icecomb.spark.planner.protocol.scans import Selection
    from icecomb.spark.planner.table.states import TableState

_SNAPSHOT_ID: Final = optional_number("snapshot-id", "The snapshot to read.")
_AS_OF: Final = optional_number("as-of-timestamp", "The time to read, in ms since 1970.")
_START: Final = optional_number("start-snapshot-id", "The snapshot after which appends are read.")
_END: Final = optional_number("end-snapshot-id", "The last append to read.")
_AGGREGATES: Final = flag(
    "aggregate-push-down-enabled",
    "Whether counts, minima and maxima come from metadata where it has them.",
    default=True,
)
_COLUMN_STATISTICS: Final = flag(
    "report-column-stats", "Whether numbers of distinct values are given to Spark.", default=True
)
_ONE_STATE: Final = (_SNAPSHOT_ID.key, _AS_OF.key, "branch", "tag")
_OF_CHANGELOGS: Final = ("start-timestamp", "end-timestamp")
_GROUPED: Final = flag(
    f"{PREFIX}planning.preserve-data-grouping",
    "Whether no task reads two partitions.",
    default=False,
)
_LOCALITY: Final = flag("locality", "Whether tasks run where files are stored.", default=False)
_PARALLELISM: Final = optional_number(
    f"{PREFIX}read.adaptive-split-size.parallelism", "How many tasks run at once.", least=1
)


class ReadOptions(Options):
    """The options of one query."""

    @classmethod
    def of_selection(cls, selection: Selection) -> ReadOptions:
        """Return the options of one of Spark's queries."""
        return cls(selection.options, selection.settings)

    def is_vectorized(self, properties: Mapping[str, str]) -> bool:
        """Return whether rows are read in columnar batches."""
        return self.of(
            PARQUET_VECTORIZED, properties, "vectorization-enabled", "vectorization.enabled"
        )

    def batch_rows(self, properties: Mapping[str, str]) -> int | None:
        """Return the number of rows of a batch; None to leave it to Spark."""
        return self.of(PARQUET_BATCH_ROWS, properties, "batch-size")

    def is_adaptive(self, properties: Mapping[str, str]) -> bool:
        """Return whether a scan smaller than the cluster is split to use every core."""
        return self.of(SPLIT_ADAPTIVE, properties, None, "read.adaptive-split-size.enabled")

    def pushes_aggregates(self) -> bool:
        """Return whether aggregates may be answered from metadata."""
        return self.of(
            _AGGREGATES, {}, "aggregate-push-down-enabled", "aggregate-push-down.enabled"
        )

    def keeps_partitions_apart(self) -> bool:
        """Return whether no task reads rows of two partitions, so that Spark can rely on it."""
        return self.of(_GROUPED, {}, None, "planning.preserve-data-grouping")

    def is_local(self, *, on_hdfs: bool) -> bool:
        """Return whether tasks prefer the hosts of their files; by default if any is on HDFS."""
        if self.text("locality", "locality.enabled") is not None:
            return self.of(_LOCALITY, {}, "locality", "locality.enabled")
        return on_hdfs

    def reports_column_statistics(self) -> bool:
        """Return whether column statistics are given to Spark's cost-based optimizer."""
        return self.of(_COLUMN_STATISTICS, {}, None, "report-column-stats")

    def selects_snapshots(self) -> bool:
        """Return whether options select snapshots by ids, times or a tag."""
        chosen = {_SNAPSHOT_ID.key, _AS_OF.key, "tag", _START.key, _END.key}
        return not chosen.isdisjoint(self._options)

    def parallelism(self, default: int) -> int:
        """Return how many tasks run at once."""
        return _PARALLELISM.of(self._settings) or default

    def scan_of(self, state: TableState) -> TableScan:
        """Return the scan of the state named by the table, else of the one options select."""
        self._check(state)
        start = self._number(_START)
        chosen = [option for option in _ONE_STATE if option in self._options]
        if start is not None:
            return _appends(state, start, self._number(_END))
        if not chosen or state.time_travel or state.branch is not None:
            return state.scan()
        check_shows_one_snapshot(state)
        scan = self._chosen_scan(state)
        if state.metadata_table is None and (snapshot := scan.snapshot()) is not None:
            check_moved(
                state.metadata,
                snapshot,
                f"Table {state.name}: option {chosen[0]} reads with the current columns, and "
                f"snapshot {snapshot.snapshot_id} is of an older table",
                "Say VERSION AS OF instead, or name the branch or tag behind the table's name: "
                "these read with the columns of that time.",
            )
        return scan

    def _chosen_scan(self, state: TableState) -> TableScan:
        """Return the scan selected by the one option that chooses a state."""
        if (name := self.text("branch") or self.text("tag")) is not None:
            return use_ref(state, name)
        base = TableScan(state.metadata, state.io)
        as_of = self._number(_AS_OF)
        try:
            if as_of is not None:
                return base.as_of(as_of)
            return TableScan(state.metadata, state.io, snapshot_id=self._number(_SNAPSHOT_ID))
        except NoSuchSnapshotError as error:
            raise NoSuchSnapshotError(
                f"Table {state.name}: {error.message}", hint=error.hint, table=state.name
            ) from None

    def _check(self, state: TableState) -> None:
        options = self._options
        chosen = [option for option in _ONE_STATE if option in options]
        range_ends = [option for option in (_START.key, _END.key) if option in options]
        if any(option in options for option in _OF_CHANGELOGS):
            raise ValidationError(
                f"Table {state.name}: {' and '.join(_OF_CHANGELOGS)} are for changelogs, "
                "not for a scan of the table",
                hint=f"Use {_AS_OF.key}, or {_START.key} with {_END.key}.",
            )
        if len(chosen) > 1 or (chosen and range_ends):
            raise ValidationError(
                f"Table {state.name}: only one of the options that choose a state can be set: "
                f"{', '.join([*chosen, *range_ends])}",
                hint="Leave the others out.",
            )
        if range_ends == [_END.key]:
            raise ValidationError(
                f"Cannot set only {_END.key} for an incremental scan of table {state.name}",
                hint=f"Set {_START.key}, too.",
            )
        if (chosen or range_ends) and not self._agrees(state, chosen):
            raise ValidationError(
                f"Table {state.name}: the option {(chosen + range_ends)[0]} contradicts the name "
                "of the table, or VERSION or TIMESTAMP AS OF, which already say what is read",
                hint="Leave one of them out.",
            )

    def _agrees(self, state: TableState, chosen: list[str]) -> bool:
        """Return whether an option selects the same as the name, which is allowed."""
        if state.time_travel:
            return bool(chosen) and self._chosen_scan(state).snapshot_id == state.travelled_to
        return state.branch is None or (
            chosen == ["branch"] and self._options["branch"] == state.branch
        )

    def _number(self, option: Property[int | None]) -> int | None:
        return option.of(self._options)


def check_is_whole(state: TableState, options: ReadOptions) -> None:
    """Check that options select no other rows to replace than those of the table as named."""
    branch = options.text("branch")
    if branch not in {None, state.branch} or options.scan_of(state) != state.scan():
        raise UnsupportedError(
            f"Table {state.name}: a statement that changes rows cannot read others by read options",
            hint=f"Name the branch: {state.name}.branch_{branch or '…'}",
            table=state.name,
        )


def _appends(state: TableState, start: int, end: int | None) -> TableScan:
    if state.metadata_table is not None:
        raise ValidationError(
            f"Incremental append scan is not supported by {state.name}.{state.metadata_table}",
            hint=f"Leave {_START.key} out.",
        )
    try:
        return IncrementalAppendScan(
            state.metadata, state.io, from_snapshot_id=start, to_snapshot_id=end
        )
    except (NoSuchSnapshotError, ValidationError) as error:
        raise ValidationError(
            f"Table {state.name}: {error.message}", hint=error.hint, table=state.name
        ) from None
