"""Writes: instructions for Spark to write data files, and their commit."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import (
    CommitStateUnknownError,
    IcecombError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.snapshot_producer import check_branch_columns
from icecomb.format.operation.summary import snapshot_texts
from icecomb.format.property.property import choice, optional_number
from icecomb.format.property.table_property import (
    ACCEPT_ANY_SCHEMA,
    DATA_FORMAT,
    DELETE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_BYTES,
    TARGET_FILE_BYTES,
)
from icecomb.format.rows.values.metadata_columns import PARTITION, lineage, with_lineage
from icecomb.format.rows.write.file_options import OUTPUT_SPEC, delete_properties
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.snapshot import MAIN_BRANCH, is_ancestor
from icecomb.spark.partitioning import name_path, transform_parts
from icecomb.spark.planner.files import HadoopLocations
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.protocol.catalogs import Done
from icecomb.spark.planner.protocol.writes import (
    AbortStaged,
    AbortWrite,
    BeginWrite,
    CommitStaged,
    CommittedWrite,
    CommitWrite,
    DataLocation,
    DeleteInstructions,
    Epoch,
    PartitionColumn,
    PlanChange,
    PlannedChange,
    StreamedWrite,
    WriteInstructions,
    WriteState,
    WrittenFile,
)
from icecomb.spark.planner.scan.predicates import exact_filter
from icecomb.spark.planner.scan.read_options import ReadOptions, check_is_whole
from icecomb.spark.planner.session.session_rewrites import group, named_group
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.table.audit import (
    CommitTarget,
    branch_of,
    check_read,
    commit_target,
    head,
)
from icecomb.spark.planner.table.catalogs import Catalogs
from icecomb.spark.planner.table.states import TableState, TableStates
from icecomb.spark.planner.table.tables import StagedTables, lost
from icecomb.spark.planner.write.epoch import EpochThereError, epoch_change, streamed_write
from icecomb.spark.planner.write.file_instructions import file_instructions
from icecomb.spark.planner.write.given_rows import check_rows, come_as_given, with_columns_of_rows
from icecomb.spark.planner.write.layout import (
    FILE_ID,
    POSITION,
    SPEC_ID,
    Layout,
    delta_layout,
    fans_out,
    group_layout,
    partition_columns,
    rewrite_columns,
    rewrite_layout,
    rows_layout,
)
from icecomb.spark.planner.write.table_change import (
    APPEND,
    CHANGE_ROWS,
    OVERWRITE,
    OVERWRITE_PARTITIONS,
    REPLACE_FILES,
    change_rows,
    check_same_table,
    check_uuid,
    insert_missing,
    overwrite,
    overwrite_partitions,
    replace_files,
)
from icecomb.spark.planner.write.written_files import (
    POSITION_DELETES,
    data_files,
    metrics_modes,
    written_with,
)
from icecomb.spark.schema import check_has_type

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.engine import RewriteJob
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO
    from icecomb.spark.planner.protocol.writes import MergedRows, QueriedTable


_NESTED_COERCION: Final = (
    "spark.sql.mergeNestedTypeCoercion.enabled",
    "spark.sql.insertNestedTypeCoercion.enabled",
)
"""Spark's settings by which statements may leave out fields of structs."""


class Writes:
    """The protocol's methods that write."""

    def __init__(
        self,
        catalogs: Catalogs,
        states: TableStates,
        staged: StagedTables,
        works: PendingWorks,
    ) -> None:
        self._catalogs = catalogs
        self._states = states
        self._staged = staged
        self._works = works

    def begin_write(self, request: BeginWrite) -> WriteInstructions:
        query = request.query
        tables = self._staged if request.reference.staged else self._states
        if query is None:
            state = tables.find(request.reference)
        else:
            state = self._states.now(request.reference)
            check_uuid(state.name, state.metadata, query.uuid)
        options, found = WriteOptions(request.options, request.settings), state
        rewrite = named_group(self._works, options)
        branch = options.text("branch")
        target = (
            commit_target(request.audit, state.metadata, branch_of(state, branch))
            if rewrite is None
            else CommitTarget()
        )
        _check_writable(state, request, rewritten=rewrite is not None)
        if not state.staged and rewrite is None:
            table = self._catalogs.load_table(state.catalog, state.identifier)
            table.check_new_files()
        begin = head(state.metadata, target.branch)
        if rewrite is None and begin is not None:
            check_branch_columns(
                state.metadata, state.metadata.snapshot_by_id(begin), target.branch
            )
        if request.command is not None:
            check_read(request.audit, state)
            if branch not in {None, state.branch}:
                raise UnsupportedError(
                    f"Table {state.name}: {request.command.upper()} cannot change a branch that an "
                    "option names: it has read the table's own rows",
                    hint=f"Name it in the statement: {state.name}.branch_{branch}.",
                    table=state.name,
                )
        state = with_columns_of_rows(self._catalogs, self._states, state, request, options)
        check_rows(state, request, options)
        metadata = state.metadata
        schema, properties = metadata.schema(), metadata.properties
        if rewrite is None:
            spec, layout = options.output_spec(metadata), _layout(metadata, request, options)
            order = options.output_sort_order(metadata, is_ordered=bool(layout.ordering))
        else:
            rewrite.check(state)
            spec, layout = rewrite.job.spec, _layout_of_group(rewrite.job, options)
            order = rewrite.job.sort_order_id
        read = head(found.metadata, target.branch)
        since = oldest_read(self._states, request.queried, found.metadata, target.branch, read)
        deletes = None
        if request.operation == CHANGE_ROWS:
            deletes = delete_instructions(metadata, options)
        location = _data_location(state.io, metadata)
        told = HadoopLocations(state.io).of(location.root)
        modes = metrics_modes(metadata)
        moves = bool(lineage(metadata)) and _moves_rows(request)
        files = file_instructions(
            options.of(DATA_FORMAT, properties, "write-format"),
            with_lineage(schema) if moves or state.moves_rows else schema,
            options.of(TARGET_FILE_BYTES, properties, "target-file-size-bytes"),
            modes,
            properties,
            options,
        )
        return WriteInstructions(
            write=WriteState(
                catalog=state.catalog,
                identifier=state.identifier,
                uuid=str(metadata.table_uuid),
                schema_id=metadata.current_schema_id,
                spec_id=spec.spec_id,
                specs=tuple(one.to_json() for one in metadata.partition_specs),
                sort_order_id=order,
                operation=options.operation(request),
                command=request.command,
                filters=request.filters,
                rewrite=None if rewrite is None else rewrite.id,
                snapshot_id=(
                    options.validated_from(metadata, since) if request.command is None else since
                ),
                older=since != read,
                branch=target.branch,
                wap_id=target.wap_id,
                serializable=options.is_serializable(),
                metrics=modes,
                file_format=files.format,
                delete_format=None if deletes is None else deletes.files.format,
                root=location.root,
                told_root=told,
                summary=snapshot_properties(options),
                streamed=(None if query is None else streamed_write(query, state, target, options)),
            ),
            files=files,
            partition=tuple(_partition_columns(spec, schema)),
            location=replace(location, root=told),
            operation_id=str(uuid.uuid4()),
            distribution=layout.distribution,
            ranges=layout.ranges,
            ordering=layout.ordering,
            advisory_bytes=layout.advisory_bytes,
            fanout=fans_out(metadata, options, layout),
            deletes=deletes,
            lineage=moves,
            as_given=come_as_given(request, metadata),
        )

    def plan_change(self, request: PlanChange) -> PlannedChange:
        return planned_change(self._states.find(request.reference), request)

    def commit_write(self, request: CommitWrite) -> CommittedWrite:
        """Answer `CommitWrite`; after `CommitStateUnknownError` the files must stay."""
        write = request.write
        if write.rewrite is not None:
            rewrite = group(self._works, write.rewrite)
            rewrite.take(data_files(rewrite.job.metadata, write, request.files))
            return CommittedWrite({})
        if not request.files and write.operation == APPEND:
            return CommittedWrite({})
        if write.streamed is not None and request.epoch is not None:
            return self._commit_epoch(request, write.streamed, request.epoch)
        from icecomb.format.operation.row_delta import RowDelta
        from icecomb.format.row_changes.write_target import WrittenChange

        table = self._catalogs.load_table(write.catalog, write.identifier)
        change = self._change(table, request)
        if change is None:
            return CommittedWrite({})
        written = WrittenChange(
            change,
            written_with(table.metadata, write),
            delete_files=change.added_vectors if isinstance(change, RowDelta) else (),
            without_ids=self._moves_without_ids(request),
        )
        with _only_proven_failures(table.identifier), _explaining_older_rows(write):
            table.commit(written)
            return _committed(table, change)

    def _moves_without_ids(self, request: CommitWrite) -> bool:
        """Return whether a statement moves rows that may have got ids since it read them."""
        if request.write.operation == REPLACE_FILES and request.replaced is not None:
            reference = request.replaced.reference
        elif request.write.operation == CHANGE_ROWS and request.delta is not None:
            reference = request.delta.reference
        else:
            return False
        snapshot = self._states.find(reference).scan().snapshot()
        return snapshot is not None and snapshot.first_row_id is None

    def _commit_epoch(
        self, request: CommitWrite, streamed: StreamedWrite, epoch: Epoch
    ) -> CommittedWrite:
        write = request.write
        table = self._catalogs.load_table(write.catalog, write.identifier)
        check_same_table(table, write.uuid)
        files = data_files(table.metadata, write, request.files)
        change = epoch_change(table, write, streamed, epoch, files, self._summary(write))
        try:
            with _only_proven_failures(table.identifier):
                table.commit(change)
                return _committed(table, change.change.producer)
        except EpochThereError:
            # committed by an attempt whose files had other names
            self._delete(write.catalog, [file.path for file in request.files])
            return CommittedWrite({})

    def abort_write(self, request: AbortWrite) -> Done:
        self._delete(request.write.catalog, request.files)
        return Done()

    def commit_staged(self, request: CommitStaged) -> Done:
        """Answer `CommitStaged`; after `CommitStateUnknownError` the files must stay."""
        from icecomb.catalog.table.table_creation import ReplaceTableTransaction

        transaction = self._staged.take(request.reference)
        if transaction is None:
            raise lost(request.reference)
        try:
            if isinstance(transaction, ReplaceTableTransaction):
                for state in map(self._states.find, request.read):
                    # a snapshot selected by id or time does not change
                    if state.read_ref is not None or not state.time_travel:
                        transaction.rely_on(state.snapshot_id, state.read_ref or MAIN_BRANCH)
            if request.write is not None:
                self._write_staged(transaction, request.write, request.files)
            with _only_proven_failures(request.reference.identifier):
                transaction.commit_transaction()
        finally:
            transaction.abandon()
        return Done()

    def abort_staged(self, request: AbortStaged) -> Done:
        self._delete(request.reference.catalog, request.files)
        transaction = self._staged.take(request.reference)
        if transaction is not None:
            transaction.abandon()
        return Done()

    def _delete(self, catalog: str, paths: Sequence[str]) -> None:
        from icecomb.format.storage.file_io import FileIO

        FileIO(dict(self._catalogs[catalog].properties)).delete(paths)

    def _write_staged(
        self, transaction: Transaction, write: WriteState, written: Sequence[WrittenFile]
    ) -> None:
        target, summary = CommitTarget.of(write), self._summary(write)
        if target.branch != MAIN_BRANCH and target.branch in transaction.metadata.refs:
            # REPLACE TABLE leaves other branches as they are, its rows replace this one's
            transaction.delete(snapshot_properties=summary, branch=target.branch)
        if written:
            files = data_files(transaction.metadata, write, written)
            transaction.append_data_files(
                files, summary, target.branch, stage_only=target.is_staged
            )

    def _change(self, table: Table, request: CommitWrite) -> SnapshotProducer | None:
        """Return the change that the write makes to the table; None if it changes nothing."""
        from icecomb.format.operation.append import MergeAppend

        write, replaced = request.write, request.replaced
        check_same_table(table, write.uuid)
        files = data_files(table.metadata, write, request.files)
        written = sum(file.record_count for file in files)
        counts = merged_rows(request.merged, written, _removed_rows(request))
        summary = {**self._summary(write), **counts}
        if write.operation == OVERWRITE:
            return overwrite(table, write, files, summary)
        if write.operation == OVERWRITE_PARTITIONS:
            return overwrite_partitions(table, write, files, summary)
        if write.operation == REPLACE_FILES and replaced is not None:
            state = self._states.find(replaced.reference)
            return replace_files(table, state, write, replaced, files, summary)
        if write.operation == CHANGE_ROWS and request.delta is not None:
            state = self._states.find(request.delta.reference)
            return change_rows(table, state, write, request.delta, files, summary)
        if write.operation == APPEND and request.delta is not None:
            state = self._states.find(request.delta.reference)
            return insert_missing(table, state, write, request.delta, files, summary)
        if write.operation != APPEND:
            raise ValueError(f"a write cannot {write.operation}")
        target = CommitTarget.of(write)
        append = MergeAppend(table.io, summary, target.branch, stage_only=target.is_staged)
        for file in files:
            append.append_data_file(file)
        return append

    def _summary(self, write: WriteState) -> dict[str, str]:
        return {
            **self._catalogs.application(write.catalog),
            **write.summary,
            **CommitTarget.of(write).summary,
        }


def _committed(table: Table, change: SnapshotProducer) -> CommittedWrite:
    snapshot = table.metadata.snapshot_by_id(change.snapshot_id)
    return CommittedWrite({} if snapshot is None else commit_metrics(snapshot.summary))


def _removed_rows(request: CommitWrite) -> int | None:
    """Return how many rows a change removes or rewrites; None if that is not known."""
    if request.delta is not None:
        return sum(deletes.deleted for deletes in request.delta.deletes)
    entries = () if request.replaced is None else request.replaced.files
    if any(entry.has_deletes or entry.rows < 0 for entry in entries):
        return None
    return sum(entry.rows for entry in entries)


@contextmanager
def _only_proven_failures(identifier: Iterable[str]) -> Iterator[None]:
    """Convert unexpected errors to an unknown outcome: the bridge deletes files after a failure."""
    try:
        yield
    except IcecombError:
        raise
    except Exception as error:
        name = ".".join(identifier)
        raise CommitStateUnknownError(
            f"The commit to {name} ended in {type(error).__name__}: {error}",
            hint="Check whether the rows are there before writing them again; no file was deleted.",
            table=name,
        ) from error


@contextmanager
def _explaining_older_rows(write: WriteState) -> Iterator[None]:
    """Explain where older rows come from: a repeated statement would find the same ones again."""
    try:
        yield
    except ValidationError as error:
        if write.older:
            name = ".".join(write.identifier)
            error.hint = (
                f"the statement reads an older state of {name}, which the session has cached or a "
                "DataFrame was made of: REFRESH TABLE or create a new DataFrame, and repeat it"
            )
        raise


def _check_writable(state: TableState, request: BeginWrite, *, rewritten: bool) -> None:
    # DELETE by position writes no rows
    written = request.operation != CHANGE_ROWS or request.command != "delete"
    for field in state.schema.fields:
        check_has_type(field, written=written, downcast=True)
    if not rewritten:
        _check_defaults(state, request)
    if state.is_read_only and not rewritten:
        raise ValidationError(
            f"A version of table {state.name} cannot be written to",
            hint="Write to the table itself, or to a branch of it (….branch_name).",
        )
    if request.operation == OVERWRITE:
        exact_filter(request.filters, state.schema, case_sensitive=True)


def _check_defaults(state: TableState, request: BeginWrite) -> None:
    """Refuse defaults that Spark does not fill in where rows may lack the field.

    It fills in those of simple columns. Of a struct, rows give all fields, unless a setting says
    otherwise or Spark does not compare the rows with the table.
    """
    schema = state.schema
    partly = come_as_given(request, state.metadata) or any(
        request.settings.get(key) == "true" for key in _NESTED_COERCION
    )
    filled = {field.field_id for field in schema.fields if field.field_type.is_primitive}
    for field in walk(schema.as_struct()) if partly else schema.fields:
        if field.write_default is not None and field.field_id not in filled:
            raise UnsupportedError(
                f"Cannot write to table {state.name} by Spark: rows may lack its field "
                f"{schema.find_column_name(field.field_id)}, which has a default, and Spark fills "
                "in those of simple columns only",
                hint=f"Set {' and '.join(_NESTED_COERCION)} to false, and remove the table "
                f"property {ACCEPT_ANY_SCHEMA.key}, so that statements give all fields; streams "
                "write to such tables from Python.",
                table=state.name,
            )


def _moves_rows(request: BeginWrite) -> bool:
    if request.operation == CHANGE_ROWS:
        return request.command != "delete"
    return request.operation == REPLACE_FILES


def _layout(metadata: TableMetadata, request: BeginWrite, options: Options) -> Layout:
    if request.operation == CHANGE_ROWS:
        return delta_layout(metadata, str(request.command), options)
    if request.operation == REPLACE_FILES:
        return rewrite_layout(metadata, str(request.command), options)
    return rows_layout(metadata, options)


def _partition_columns(spec: PartitionSpec, schema: Schema) -> Iterator[PartitionColumn]:
    for field in spec.fields:
        name, number = transform_parts(field.transform)
        # the source of a void field may have been dropped
        source = name_path(schema, field.source_id) if name != "void" else ()
        yield PartitionColumn(field.name, name, number, tuple(source))


def _data_location(io: FileIO, metadata: TableMetadata) -> DataLocation:
    """Return the location in which tasks create new files."""
    from icecomb.format.rows.write.location_provider import (
        ObjectStoreLocationProvider,
        load_location_provider,
    )

    provider = load_location_provider(io, metadata.location, metadata.properties)
    if isinstance(provider, ObjectStoreLocationProvider):
        return DataLocation(
            provider.root,
            hashed=True,
            partitioned_paths=provider.partitioned_paths,
            context=provider.context,
        )
    return DataLocation(provider.root, hashed=False, partitioned_paths=True, context=None)


def _layout_of_group(job: RewriteJob, options: Options) -> Layout:
    """Return the distribution and order of the rows to write."""
    mixed = job.spec.is_partitioned() and not job.group.partition
    return group_layout(
        job.metadata,
        job.spec,
        job.order,
        file_bytes=job.group.split_size,
        mixed=mixed,
        options=options,
    )


_NAMES: Final = {
    "added-data-files": "addedDataFiles",
    "added-delete-files": "addedDeleteFiles",
    "added-equality-deletes": "addedEqualityDeletes",
    "added-equality-delete-files": "addedEqualityDeleteFiles",
    "added-files-size": "addedFileSizeInBytes",
    "added-position-deletes": "addedPositionalDeletes",
    "added-position-delete-files": "addedPositionalDeleteFiles",
    "added-records": "addedRecords",
    "deleted-data-files": "removedDataFiles",
    "removed-delete-files": "removedDeleteFiles",
    "removed-equality-deletes": "removedEqualityDeletes",
    "removed-equality-delete-files": "removedEqualityDeleteFiles",
    "removed-files-size": "removedFileSizeInBytes",
    "removed-position-deletes": "removedPositionalDeletes",
    "removed-position-delete-files": "removedPositionalDeleteFiles",
    "deleted-records": "removedRecords",
    "total-data-files": "totalDataFiles",
    "total-delete-files": "totalDeleteFiles",
    "total-equality-deletes": "totalEqualityDeletes",
    "total-files-size": "totalFileSizeInBytes",
    "total-position-deletes": "totalPositionalDeletes",
    "total-records": "totalRecords",
}
"""Iceberg Java's `CommitMetricsResult`: keys of a snapshot's summary."""


def commit_metrics(summary: Mapping[str, str]) -> dict[str, int]:
    """Return the metrics in a snapshot's summary; missing ones are left out."""
    return {name: int(summary[key]) for key, name in _NAMES.items() if key in summary}


def oldest_read(
    states: TableStates,
    queried: Iterable[QueriedTable],
    metadata: TableMetadata,
    branch: str,
    head: int | None,
) -> int | None:
    """Return the snapshot since which concurrent commits may conflict with a write.

    A query may read an older snapshot of the table than the one that the write begins with: one
    that the session has cached, or that of an old DataFrame. What others added since then is not
    among the new rows. It is the oldest snapshot of the branch that is read, or the head; None if
    the branch was read before its first snapshot. A snapshot no longer in the branch's history
    counts as oldest.
    """
    # a missing branch will start at main's snapshot
    followed = branch if branch in metadata.refs else MAIN_BRANCH
    oldest = head
    for each in queried:
        state = states.find(each.reference)
        options = ReadOptions(each.options)
        if _branch_read(state, options) != followed:
            continue
        read = options.scan_of(state).snapshot()
        if read is None:
            return None
        number = read.snapshot_id
        if oldest is None or number == oldest or _is_newer(state.metadata, metadata, number):
            continue
        if not is_ancestor(metadata, number, head):
            return number
        if not is_ancestor(metadata, oldest, number):
            oldest = number
    return oldest


def _is_newer(read: TableMetadata, begun: TableMetadata, number: int) -> bool:
    """Return whether a snapshot was made after a write loaded the table."""
    return begun.snapshot_by_id(number) is None and read.last_updated_ms > begun.last_updated_ms


def _branch_read(state: TableState, options: ReadOptions) -> str | None:
    """Return the branch whose current rows a query reads; None if it reads others."""
    if state.metadata_table is not None or options.selects_snapshots():
        return None
    if state.time_travel and state.read_ref is None:
        return None
    return state.branch or options.text("branch") or state.ref or MAIN_BRANCH


_SORT_ORDER: Final = optional_number("output-sort-order-id", "The sort order of new files.")
_FROM: Final = optional_number(
    "validate-from-snapshot-id", "The snapshot from which concurrent commits are validated."
)
_ISOLATION: Final = choice(
    "isolation-level",
    ("serializable", "snapshot"),
    "Whether concurrently added rows conflict.",
)


class WriteOptions(Options):
    """The options of one write."""

    def output_spec(self, metadata: TableMetadata) -> PartitionSpec:
        """Return the partition spec of new files."""
        number = self.of(OUTPUT_SPEC, {}, OUTPUT_SPEC.key)
        if number is None:
            return metadata.spec()
        specs = metadata.specs()
        if number not in specs:
            raise ValidationError(
                f"Output spec id {number} is not a valid spec id for table",
                hint=f"It has {', '.join(map(str, sorted(specs)))}.",
            )
        return specs[number]

    def output_sort_order(self, metadata: TableMetadata, *, is_ordered: bool) -> int:
        """Return the id of the sort order of new files; 0 for none.

        Args:
            is_ordered: Whether rows come in the table's order.
        """
        number = self.of(_SORT_ORDER, {}, _SORT_ORDER.key)
        if number is None:
            return metadata.sort_order().order_id if is_ordered else 0
        known = {order.order_id for order in metadata.sort_orders}
        if number not in known:
            raise ValidationError(
                f"Cannot use output sort order id {number} because the table does not contain a "
                "sort order with that id",
                hint=f"It has {', '.join(map(str, sorted(known)))}.",
            )
        return number

    def operation(self, request: BeginWrite) -> str:
        """Return the operation; `overwrite-mode=dynamic` restricts a full overwrite.

        It then replaces only the partitions of the new files.
        """
        everything = all(each.get("op") == "always_true" for each in request.filters)
        if (
            request.operation == OVERWRITE
            and everything
            and (self.text("overwrite-mode") or "").lower() == "dynamic"
        ):
            return OVERWRITE_PARTITIONS
        return request.operation

    def validated_from(self, metadata: TableMetadata, head: int | None) -> int | None:
        """Return the snapshot from which concurrent commits are validated; None for all.

        Who gives an isolation level without it has Iceberg look at the whole history, too.

        Args:
            head: The snapshot that the statement has read, see `oldest_read`.
        """
        number = self.of(_FROM, {}, _FROM.key)
        if number is None:
            return head if self.is_serializable() is None else None
        if metadata.snapshot_by_id(number) is None:
            raise ValidationError(
                f"There is no snapshot {number} to validate from",
                hint="Give the id of a snapshot that the branch has had.",
            )
        return number

    def is_serializable(self) -> bool | None:
        """Return whether concurrently added rows conflict; None to use the table's properties."""
        if self.text(_ISOLATION.key) is None:
            return None
        return self.of(_ISOLATION, {}, _ISOLATION.key) == "serializable"


def planned_change(state: TableState, request: PlanChange) -> PlannedChange:
    """Plan how a statement changes rows, according to ``write.<command>.mode``."""
    from icecomb.format.row_changes.write_target import WriteTarget

    metadata, command = state.metadata, request.command
    check_is_whole(state, ReadOptions(request.options, request.settings))
    options = Options(request.options, request.settings)
    merge_on_read = WriteTarget(state.io, metadata).merges_on_read(command)
    columns = (
        partition_columns(metadata)
        if merge_on_read
        else rewrite_columns(metadata, command, options)
    )
    needed = {FILE_ID, *columns} | ({POSITION, SPEC_ID, PARTITION.name} if merge_on_read else set())
    if not merge_on_read or command != "delete":
        moved = tuple(field.name for field in lineage(metadata))
        if moved and not request.keeps_metadata:
            error = _loses_ids(state, command)
            if command != "delete":
                raise error
            return PlannedChange(merge_on_read=False, metadata_columns=columns, refusal=str(error))
        columns, needed = (*columns, *moved), needed.union(moved)
    _check_hides_nothing(state, command, needed, merge_on_read=merge_on_read)
    return PlannedChange(merge_on_read=merge_on_read, metadata_columns=columns, refusal=None)


def _loses_ids(state: TableState, command: str) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot {command.upper()} rows of table {state.name} by Spark before version 4.0 as this "
        "session is configured: rows that move to other files would lose their ids, which tables "
        f"of format version {state.metadata.format_version} keep",
        hint="Set spark.sql.extensions to org.icecomb.spark.IcecombSessionExtensions, which keeps "
        "them; with the property write.delete.mode set to merge-on-read DELETE moves no rows.",
        table=state.name,
    )


def _check_hides_nothing(
    state: TableState, command: str, needed: Collection[str], *, merge_on_read: bool
) -> None:
    for field in state.metadata.schema().fields:
        name = field.name.lower()
        if name in needed:
            free = merge_on_read and name in {POSITION, SPEC_ID, PARTITION.name}
            other = f", or set write.{command}.mode to copy-on-write" if free else ""
            raise UnsupportedError(
                f"Table {state.name}: its column {field.name} hides Spark's metadata column of "
                f"that name, which {command.upper()} needs to find rows",
                hint=f"Rename the column{other}.",
                table=state.name,
            )


def delete_instructions(metadata: TableMetadata, options: Options) -> DeleteInstructions:
    """Return the instructions for tasks that write position deletes."""
    properties = delete_properties(metadata.properties)
    data_format = options.of(DATA_FORMAT, properties, "write-format")
    file_format = options.of(DELETE_FORMAT, properties, "delete-format", default=data_format)
    as_vectors = metadata.format_version >= 3
    granularity = options.of(DELETE_GRANULARITY, properties, "delete-granularity")
    return DeleteInstructions(
        files=file_instructions(
            file_format,
            POSITION_DELETES,
            options.of(DELETE_TARGET_FILE_BYTES, properties, "target-delete-file-size-bytes"),
            # readers match data files by whole paths, so bounds must not be truncated
            {str(i): "full" for i in sorted(POSITION_DELETES.field_ids)},
            properties,
            options,
        ),
        by_file=as_vectors or granularity == "file",
        as_vectors=as_vectors,
    )


_PREFIX: Final = "snapshot-property."
_MERGE_PREFIX: Final = "spark.merge-into.num-target-rows-"


def snapshot_properties(options: Options) -> dict[str, str]:
    """Return the requested keys, without the prefixes of settings and options."""
    return snapshot_texts(options.with_prefix(_PREFIX))


def merged_rows(
    counted: MergedRows | None, written: int, removed: int | None = None
) -> dict[str, str]:
    """Return a MERGE's row counts under Iceberg Java's keys (BaseSparkWrite).

    Spark counts rows twice when a task whose executor was lost runs again: counts that contradict
    the files are left out.

    Args:
        written: Number of rows in the new data files.
        removed: Number of rows in the removed files, or deleted by the new deletes; None if
            unknown.
    """
    if counted is None or not _agrees(counted, written, removed):
        return {}
    numbers = {
        "copied": counted.copied,
        "deleted": counted.deleted,
        "updated": counted.updated,
        "inserted": counted.inserted,
        "matched-updated": counted.matched_updated,
        "matched-deleted": counted.matched_deleted,
        "not-matched-by-source-updated": counted.unmatched_updated,
        "not-matched-by-source-deleted": counted.unmatched_deleted,
    }
    return {f"{_MERGE_PREFIX}{key}": str(n) for key, n in numbers.items() if n >= 0}


def _agrees(counted: MergedRows, written: int, removed: int | None) -> bool:
    def total(*counts: int) -> int:
        # -1 if it was not counted
        return sum(count for count in counts if count > 0)

    return (
        written == total(counted.copied, counted.updated, counted.inserted)
        and removed in {None, total(counted.copied, counted.updated, counted.deleted)}
        and max(counted.updated, 0) == total(counted.matched_updated, counted.unmatched_updated)
        and max(counted.deleted, 0) == total(counted.matched_deleted, counted.unmatched_deleted)
    )
