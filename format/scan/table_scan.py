"""Table scans: the choice of a snapshot, its rows and columns, and ways to read them.

A scan is an immutable value; `filter`, `select`, `use_ref` and the like return another one.
Planning reads only the manifests that may match and yields tasks one by one, so memory does not
grow with the table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from icecomb.format.argument import check_flags, checked_instant, checked_int, checked_text
from icecomb.format.errors import (
    IcecombError,
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.expressions.filter_argument import RowFilter, as_expression
from icecomb.format.optional_library import optional_library
from icecomb.format.property.table_property import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)
from icecomb.format.rows.values.metadata_columns import METADATA_COLUMNS, bind_rows, metadata_column
from icecomb.format.rows.values.scan_task import FileScanTask, ScanTaskGroup, plan_task_groups
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.column_history import reading_schema, unlike_in_table
from icecomb.format.spec.metadata import TableMetadata, existing_snapshot
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.types import TimestamptzNanoType
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.rows.read.arrow_scan import ArrowScan
    from icecomb.format.scan.column_ranges import ColumnRange
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.scan.description import Description
    from icecomb.format.scan.file_aggregates import Aggregate
    from icecomb.format.scan.scan_planner import PlanningMetrics, ScanPlanner
    from icecomb.format.scan.top_rows import TopRows
    from icecomb.format.spec.partition import PartitionSpec

__all__ = ["FileScanTask", "ScanTaskGroup", "TableScan"]


@dataclass(frozen=True, repr=False)
class TableScan:
    """A query of one snapshot of a table.

    Args:
        metadata: Metadata of the table.
        io: File system that holds the table.
        row_filter: Filter of the rows: an expression, SQL text such as `"id > 5 and s = 'x'"`, or a
            pyarrow filter such as `pc.field("id") > 5`; all rows by default.
        selected_fields: Names of the columns; `"*"` for all.
        case_sensitive: Whether column names are case-sensitive.
        snapshot_id: Id of the snapshot; the current one by default.
        limit: The maximum number of rows to return; None for all.
        ref: The branch or tag the snapshot was chosen by; see `use_ref`.
    """

    metadata: TableMetadata
    io: FileIO
    row_filter: RowFilter | None = None
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    snapshot_id: int | None = None
    limit: int | None = None
    ref: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_filter", as_expression(self.row_filter))
        # a string is a sequence of strings, too: take it as one name
        names = self.selected_fields
        object.__setattr__(
            self, "selected_fields", (names,) if isinstance(names, str) else tuple(names)
        )
        check_flags(case_sensitive=self.case_sensitive)
        if self.limit is not None:
            limit = checked_int("limit of a scan", self.limit, least=0, most=None)
            object.__setattr__(self, "limit", limit)
        if self.snapshot_id is not None:
            existing_snapshot(self.metadata, self.snapshot_id)

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot to read; None when the table is empty."""
        if self.snapshot_id is None:
            return self.metadata.current_snapshot()
        return self.metadata.snapshot_by_id(self.snapshot_id)

    def schema(self) -> Schema:
        """Return the schema of the scan: the chosen snapshot's, by default the current one.

        A branch is read with the current schema, with which it is also written; only if the table
        was replaced and now has another column under an id or a name, with its own schema.
        """
        snapshot = self.snapshot() if self.snapshot_id is not None else None
        if snapshot is None or snapshot.schema_id is None:
            return self.metadata.schema()
        if self._reads_branch():
            return reading_schema(self.metadata, snapshot)
        return self.metadata.schema_by_id(snapshot.schema_id)

    def projection(self) -> Schema:
        """Return the schema of the result.

        Raises:
            ValidationError: If a selected column is unknown.
        """
        schema = self.schema()
        own = {field.name for field in schema.fields}
        reserved = [n for n in self.selected_fields if n in METADATA_COLUMNS and n not in own]
        names = [name for name in self.selected_fields if name not in reserved]
        selected = schema.select(*names, case_sensitive=self.case_sensitive)
        if not reserved:
            return selected
        columns = (metadata_column(name, self.metadata, schema) for name in dict.fromkeys(reserved))
        fields = (*selected.fields, *columns)
        return Schema(fields, selected.schema_id, selected.identifier_field_ids)

    def bound_filter(self) -> BooleanExpression:
        """Return the filter bound to the schema of the scan, and to the columns of row lineage.

        Raises:
            ExpressionError: If a column is unknown, or a literal does not fit its type.
            UnsupportedError: If it is one of row lineage, which the table's version does not have.
        """
        expression = self.row_filter
        assert isinstance(expression, BooleanExpression)  # noqa: S101 - parsed on construction
        return bind_rows(
            self.metadata, self.schema(), expression, case_sensitive=self.case_sensitive
        )

    def filter(self, row_filter: RowFilter) -> TableScan:
        """Return a scan of the rows that also satisfy this filter."""
        expression = self.row_filter
        assert isinstance(expression, BooleanExpression)  # noqa: S101 - parsed on construction
        return replace(self, row_filter=expression & as_expression(row_filter))

    def select(self, *names: str) -> TableScan:
        """Return a scan of only these columns (of those selected so far)."""
        if "*" in self.selected_fields:
            return replace(self, selected_fields=names)
        kept = tuple(name for name in self.selected_fields if name in set(names))
        return replace(self, selected_fields=kept)

    def use_ref(self, name: str) -> TableScan:
        """Return a scan of the head of a branch, or of a tag.

        Raises:
            NoSuchSnapshotError: If the branch or tag does not exist.
        """
        snapshot = self.metadata.snapshot_by_name(checked_text("name of a branch or tag", name))
        if snapshot is not None:
            return replace(self, snapshot_id=snapshot.snapshot_id, ref=name)
        if name == "main" and self.metadata.current_snapshot() is None:
            return replace(self, snapshot_id=None, ref=None)
        raise NoSuchSnapshotError(
            f"There is no branch or tag {name!r}",
            hint=f"There are: {', '.join(sorted(self.metadata.refs)) or 'none'}.",
            ref=name,
        )

    def as_of(self, timestamp: int | dt.datetime) -> TableScan:
        """Return a scan of the snapshot that was current at a time.

        Args:
            timestamp: Milliseconds since 1970-01-01 UTC, or a timezone-aware datetime.

        Raises:
            NoSuchSnapshotError: If the table had no snapshot then, or its history has expired.
            ValidationError: If `timestamp` is neither.
        """
        found = self.metadata.snapshot_as_of(checked_instant("timestamp", timestamp))
        return replace(self, snapshot_id=found.snapshot_id, ref=None)

    def specs(self) -> list[PartitionSpec]:
        """Return the partition specs that data files of the scan may have.

        Raises:
            CorruptFileError: If the manifest list cannot be read.
        """
        from icecomb.format.manifests.manifest import ManifestContent
        from icecomb.format.manifests.manifest_list import read_manifests

        snapshot = self.snapshot()
        manifests = () if snapshot is None else read_manifests(self.io, snapshot)
        used = {
            manifest.partition_spec_id
            for manifest in manifests
            if manifest.content is ManifestContent.DATA and manifest.has_live_files()
        }
        return [self.metadata.spec_by_id(spec_id) for spec_id in sorted(used)]

    def plan_files(self, metrics: PlanningMetrics | None = None) -> Iterator[FileScanTask]:
        """Plan the data files to read, each with its delete files and its residual filter.

        Files come in the order of the snapshot's manifests, as they are found.

        Args:
            metrics: Counts of scanned and skipped files are added to it as files are consumed.

        Raises:
            ExpressionError: If the filter does not fit the schema.
            CorruptFileError: If a manifest cannot be read.
        """
        from icecomb.format.scan.scan_planner import ScanPlanner

        snapshot = self.snapshot()
        if snapshot is None:
            self.bound_filter()
            return iter(())
        planner = ScanPlanner(
            self.metadata,
            self.io,
            self.schema(),
            self.bound_filter(),
            read=self._read_columns(),
            metrics=metrics,
        )
        return planner.plan(snapshot, limit=self.limit)

    def plan_top_files(
        self, top: TopRows, metrics: PlanningMetrics | None = None
    ) -> Iterator[FileScanTask]:
        """Plan the files that may hold the first rows of an order; the reader sorts the rows.

        Args:
            top: The rows wanted; see `icecomb.format.scan.top_rows`.
            metrics: As in `plan_files`.

        Raises:
            ExpressionError: If the filter does not fit the schema.
            CorruptFileError: If a manifest cannot be read.
        """
        from icecomb.format.expressions.manifest_metrics import METRICS
        from icecomb.format.scan.top_rows import TopFiles

        field_type = top.ordered_type(self.metadata, self.schema())
        if field_type is None:
            yield from replace(self, limit=None).plan_files(metrics)
            return
        planner, manifests, deletes = self._planning(METRICS, metrics)
        selected = list(planner.selected(manifests, deletes))
        found = sum(chosen.count for chosen in selected)
        for chosen in TopFiles(top, field_type, deletes).needed(selected):
            found -= chosen.count
            yield from planner.tasks(chosen, deletes)
        if metrics is not None:
            metrics.skipped_data_files += found

    def plan_tasks(
        self,
        target_size: int | None = None,
        lookback: int | None = None,
        open_file_cost: int | None = None,
    ) -> Iterator[ScanTaskGroup]:
        """Plan the scan in groups of similar size: split large files and combine small ones.

        Args:
            target_size: Size of a group, in bytes; by default property `read.split.target-size`.
            lookback: Number of open groups; by default property `read.split.planning-lookback`.
            open_file_cost: The minimum weight of a file, in bytes; by default property
                `read.split.open-file-cost`.
        """
        size = SPLIT_TARGET_SIZE.of(self.metadata.properties, target_size)
        back = SPLIT_LOOKBACK.of(self.metadata.properties, lookback)
        cost = SPLIT_OPEN_FILE_COST.of(self.metadata.properties, open_file_cost)
        return plan_task_groups(self.plan_files(), size, back, cost)

    def to_arrow(self, tasks: Iterable[FileScanTask] | None = None) -> pa.Table:
        """Return the rows as one Arrow table.

        Args:
            tasks: The tasks to read, planned by this scan; all by default. A scan and its tasks can
                be pickled, so that many workers each read some; a `limit` then applies to each.
        """
        return self._reader().to_table(self.plan_files() if tasks is None else tasks)

    def to_arrow_batch_reader(
        self, tasks: Iterable[FileScanTask] | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow batches, in bounded memory; see `to_arrow`."""
        return self._reader().to_reader(self.plan_files() if tasks is None else tasks)

    def to_arrow_batches(
        self, tasks: Iterable[FileScanTask] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Return an iterator over the rows as Arrow record batches; see `to_arrow`."""
        return self._reader().to_record_batches(self.plan_files() if tasks is None else tasks)

    def to_pandas(self, **options: Any) -> Any:
        """Return the rows as a pandas DataFrame; options are those of `pyarrow.Table.to_pandas`.

        Raises:
            MissingDependencyError: If pandas is not installed.
        """
        optional_library("pandas", "to_pandas needs pandas", "pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> pl.LazyFrame:
        """Return the rows as a polars LazyFrame, which reads when it is collected.

        Only the columns, rows and files that the query needs are read.

        >>> table.scan().to_polars().filter(pl.col("id") > 5).collect()  # doctest: +SKIP
        """
        return lazy_frame(self)

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return the rows as a DuckDB relation, which reads them each time it is executed.

        >>> table.scan("id > 5").to_duckdb().aggregate("sum(amount)")  # doctest: +SKIP

        Args:
            connection: A DuckDB connection; DuckDB's default connection if None.

        Raises:
            MissingDependencyError: If DuckDB is not installed.
            UnsupportedError: If a column has points in time in nanoseconds.
            ValidationError: If `connection` is a string.
        """
        duckdb = optional_library("duckdb", "to_duckdb needs DuckDB", "icecomb[duckdb]")
        if isinstance(connection, str):
            raise ValidationError(
                f"A connection of DuckDB cannot be {connection!r}",
                hint=f"Name the relation instead: scan.to_duckdb().create_view({connection!r}).",
            )
        projection = self.projection()
        for f in walk(projection.as_struct()):
            if isinstance(f.field_type, TimestamptzNanoType):
                name = projection.find_column_name(f.field_id)
                raise UnsupportedError(
                    f"DuckDB would cut column {name!r} of type {f.field_type} to microseconds",
                    hint="Select other columns, or use to_arrow() or to_polars().",
                    column=name,
                )
        return (connection or duckdb.default_connection()).from_arrow(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream (Arrow PyCapsule interface)."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def count(self) -> int:
        """Count the rows; open data files only where their rows must be checked."""
        rows = replace(self, selected_fields=())
        return self._reader().count(rows.plan_files())

    def known_aggregates(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[int] = ()
    ) -> list[tuple[Any, ...]] | None:
        """Return counts, minima and maxima that manifests know exactly, without reading files.

        Args:
            aggregates: The aggregates wanted; see `icecomb.format.scan.file_aggregates`.
            group_by: Field ids of the columns to group by; one group by default.

        Returns:
            One row for each group, its key first, as internal values; a key that holds NaN may
            occur more than once. None where data or delete files would have to be read.
        """
        from icecomb.format.scan.file_aggregates import FileAggregates, statistics_for

        if self.limit is not None:
            return None
        planner, manifests, deletes = self._planning(keep=statistics_for(aggregates))
        known = FileAggregates(self.metadata, self.schema(), deletes)
        return known.rows(planner.selected(manifests, deletes), aggregates, group_by)

    def column_ranges(self, field_ids: Iterable[int]) -> dict[int, ColumnRange]:
        """Return about what values columns have, from manifests, for estimates.

        Columns of the scan that are not primitive, or that the table has under another type or
        name, are left out.

        Args:
            field_ids: Field ids of columns.
        """
        from icecomb.format.scan.column_ranges import COUNTED, column_ranges

        schema = self.schema()
        unlike = unlike_in_table(self.metadata, schema)
        columns = {f.field_id for f in schema.fields if f.field_type.is_primitive} - unlike
        known = [field_id for field_id in field_ids if field_id in columns]
        planner, manifests, deletes = self._planning(keep=COUNTED)
        return column_ranges(schema, known, planner.selected(manifests, deletes))

    def __repr__(self) -> str:
        return self._description().text()

    def _repr_html_(self) -> str:
        return self._description().html()

    def _description(self) -> Description:
        from icecomb.format.scan.description import Description

        asked = [("filter", str(self.row_filter))]
        if self.limit is not None:
            asked.append(("limit", f"{self.limit:,} rows"))
        return Description(f"{type(self).__name__}", [*self._state(), *asked], self._result())

    def _state(self) -> list[tuple[str, str]]:
        from icecomb.format.scan.description import snapshot_facts, table_facts

        named = [] if self.ref is None else [("ref", self.ref)]
        return [*table_facts(self.metadata), *named, *snapshot_facts(self.snapshot())]

    def _result(self) -> Schema:
        try:
            return self.projection()
        except IcecombError:  # an unknown column, which a read reports
            return self.schema()

    def _reader(self) -> ArrowScan:
        from icecomb.format.rows.read.arrow_scan import ArrowScan

        return ArrowScan(
            self.metadata,
            self.io,
            self.projection(),
            limit=self.limit,
            schema=self.schema(),
        )

    def _planning(
        self, keep: Iterable[str] = (), metrics: PlanningMetrics | None = None
    ) -> tuple[ScanPlanner, list[ManifestFile], DeleteFileIndex]:
        """Return the planner, the manifests to plan, and the delete files that may apply.

        Statistics in `keep` are kept whatever the filter needs; counts are added to `metrics`.
        """
        from icecomb.format.scan.delete_index import DeleteFileIndex
        from icecomb.format.scan.scan_planner import ScanPlanner

        planner = ScanPlanner(
            self.metadata,
            self.io,
            self.schema(),
            self.bound_filter(),
            read=self._read_columns(),
            keep=keep,
            metrics=metrics,
        )
        snapshot = self.snapshot()
        return planner, *(([], DeleteFileIndex()) if snapshot is None else planner.live(snapshot))

    def _read_columns(self) -> set[int]:
        """Return the field ids of the columns that are returned or filtered."""
        return {*self.projection().field_ids, *bound_references(self.bound_filter())}

    def _reads_branch(self) -> bool:
        ref = None if self.ref is None else self.metadata.refs.get(self.ref)
        return ref is not None and ref.is_branch


def lazy_frame(scan: TableScan) -> pl.LazyFrame:
    """Return a lazy frame that reads only what the query needs, when it is collected."""
    import polars as pl
    from polars.io.plugins import register_io_source

    from icecomb.format.expressions.forms.polars_form import implied_by

    empty = pl.from_arrow(
        schema_to_pyarrow(scan.projection(), include_field_ids=False).empty_table()
    )
    assert isinstance(empty, pl.DataFrame)  # noqa: S101 - of a table

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        part = scan
        if rows is not None:
            part = replace(part, limit=rows if part.limit is None else min(rows, part.limit))
        # A limit counts rows before the filter, so polars must filter then.
        if predicate is not None and part.limit is None:
            part = part.filter(implied_by(predicate, part.schema()))
        if columns is not None:
            asked = [] if predicate is None else predicate.meta.root_names()
            part = part.select(*dict.fromkeys([*columns, *asked]))
        for batch in part.to_arrow_batches():
            frame = pl.DataFrame(batch)
            if not frame.width:
                frame = pl.repeat(None, batch.num_rows, eager=True).to_frame()
            if predicate is not None:
                frame = frame.filter(predicate)
            # a frame keeps its rows when it drops all columns, and loses them when it selects none
            kept = empty.columns if columns is None else columns
            yield frame.select(kept) if kept else frame.drop(frame.columns)

    return register_io_source(read, schema=empty.schema)
