"""The operations of a table on rows: delete, overwrite, upsert, and adding files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from icecomb.format.argument import check_flags
from icecomb.format.errors import CommitFailedError, NoSuchFileError, NoSuchSnapshotError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.expressions.filter_argument import RowFilter, as_expression
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.commit.commit import Producer
    from icecomb.catalog.commit.pointer import WriteGuard
    from icecomb.catalog.table.merge import Merge
    from icecomb.format.arrow.batch_stream import GivenRows
    from icecomb.format.row_changes.merge import MergeResult
    from icecomb.format.row_changes.merge_clause import MergeClauses, MergeCondition
    from icecomb.format.row_changes.upsert import UpsertResult
    from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
    from icecomb.format.rows.files.added_file import GivenPartition
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


T = TypeVar("T")

_EVERYTHING = AlwaysTrue()
_Write: TypeAlias = Callable[["WriteTarget"], tuple["WrittenChange | NoChange | None", T]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an operation is asked besides its rows; `wanted` columns are added to the table."""

    snapshot_properties: Mapping[str, str] | None
    branch: str
    wanted: pa.Schema | None = None
    case_sensitive: bool = True


class RowOperations(ABC):
    """Changes of a `Table` to rows; each is one snapshot, or none if nothing changes.

    An operation is refused, and its files are removed, if other writers changed the same rows
    meanwhile: the table properties `write.delete.isolation-level` and `write.merge.isolation-level`
    say when (`serializable`, the default, or `snapshot`).
    """

    io: FileIO
    write_properties: Mapping[str, str]
    """Properties that take precedence over the table's for files that this object writes."""
    _pointer: WriteGuard

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The metadata that this object is pinned to."""

    @abstractmethod
    def commit(self, producer: Producer) -> Any:
        """Commit a change."""

    @abstractmethod
    def _committed(self) -> TableMetadata:
        """Return the metadata without changes that are not committed yet."""

    def check_new_files(self) -> None:
        """Check that new files would go to folders that the catalog vouches for.

        Operations do so themselves; whoever writes files by other means asks before.

        Raises:
            ValidationError: If only the metadata file names the folder; see the catalog property
                ``own-folders.allowed-prefixes``.
        """
        from icecomb.catalog.commit.commit import check_new_files

        check_new_files(self._pointer, self.io, self._committed())

    @abstractmethod
    def _widened(self, frame: pa.Schema) -> AbstractContextManager[RowOperations]:
        """Widen the table to the columns of a frame, in the commit of the returned operations."""

    def append(
        self,
        df: Any,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        merge_schema: bool = False,
    ) -> None:
        """Add rows and commit them; afterwards this object sees them.

        Args:
            df: The rows: a `pyarrow.Table`, record batches or a `RecordBatchReader`, a pandas data
                frame (whose named index levels are columns, and others if the table has Arrow's
                column of them, ``__index_level_0__``), a polars frame (lazy ones, too), a DuckDB
                relation, or anything else with ``__arrow_c_stream__``; streams are written batch by
                batch. Columns are matched by name, for each batch by itself, in any layout of
                Arrow.
            snapshot_properties: More keys of the snapshot's summary.
            branch: The branch to commit to; one that does not exist begins at ``main``.
            merge_schema: Whether columns that the table lacks are added, and narrower ones of it
                widened, in the same commit; otherwise they are refused.

        Raises:
            SchemaError: If the columns do not fit; the message lists every difference.
            ValidationError: If a required column holds a null.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the rows were committed.
        """
        from icecomb.format.row_changes.table_append import append_rows

        check_flags(merge_schema=merge_schema)
        data = arrow_data(df, self.metadata.schema(), may_be_nothing=True)
        asked = _Asked(snapshot_properties, branch, data.schema if merge_schema else None)
        self._write(asked, lambda target: (append_rows(target, data), None))

    def delete(
        self,
        delete_filter: RowFilter = _EVERYTHING,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        branch: str = MAIN_BRANCH,
    ) -> None:
        """Delete the rows for which a filter is true; rows for which it is unknown stay.

        Files whose every row matches are removed unread; of others, rows are removed as the
        property ``write.delete.mode`` says: by rewriting the file (``copy-on-write``, the
        default), or by a position delete file (``merge-on-read``).

        Args:
            delete_filter: The rows to delete; by default all.
            snapshot_properties: More keys of the snapshot's summary.
            case_sensitive: Whether names of columns are case-sensitive.
            branch: The branch to commit to.

        Raises:
            ExpressionError: If a column is unknown, or a value does not fit its type.
            ValidationError: If another commit contradicts this one.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the change was committed.
        """
        from icecomb.format.row_changes.row_level_change import delete_rows

        check_flags(case_sensitive=case_sensitive)
        rows = as_expression(delete_filter)

        asked = _Asked(snapshot_properties, branch, case_sensitive=case_sensitive)
        self._retry_delete(
            lambda: self._on_newest(asked, lambda target: (delete_rows(target, rows), None))
        )

    def overwrite(
        self,
        df: Any,
        overwrite_filter: RowFilter = _EVERYTHING,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        branch: str = MAIN_BRANCH,
        *,
        merge_schema: bool = False,
    ) -> None:
        """Delete the rows that match a filter and add others, in one snapshot.

        Args:
            df: The new rows, as for `Table.append`; they need not match the filter. An iterator
                without a batch is refused: one that was read before looks the same.
            overwrite_filter: The rows to delete; by default all.
            snapshot_properties: More keys of the snapshot's summary.
            case_sensitive: Whether names of columns in the filter are case-sensitive.
            branch: The branch to commit to.
            merge_schema: As for `append`.

        Raises:
            SchemaError: If the columns do not fit.
            ExpressionError: If a column of the filter is unknown, or a value does not fit its type.
            ValidationError: If a required column holds a null, or another commit contradicts this
                one.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the change was committed.
        """
        from icecomb.format.row_changes.row_level_change import overwrite_rows

        check_flags(case_sensitive=case_sensitive, merge_schema=merge_schema)
        rows = as_expression(overwrite_filter)
        data = OneUse(arrow_data(df, self.metadata.schema()))
        wanted = data.schema if merge_schema else None
        asked = _Asked(snapshot_properties, branch, wanted, case_sensitive)
        self._on_newest(asked, lambda target: (overwrite_rows(target, data.rows, rows), None), data)

    def dynamic_partition_overwrite(
        self,
        df: Any,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        merge_schema: bool = False,
    ) -> None:
        """Replace all rows of the partitions that the new rows belong to.

        They are those of the table's current partition spec. Of files written under another one,
        the rows that belong to the partitions are replaced, too: such files are rewritten if they
        hold other rows. (Iceberg Java leaves all of them.)

        Args:
            df: The new rows, as for `Table.append`.
            snapshot_properties: More keys of the snapshot's summary.
            branch: The branch to commit to.
            merge_schema: As for `append`.

        Raises:
            ValidationError: If the table is not partitioned, a required column holds a null, or
                another commit changed one of the partitions.
            SchemaError: If the columns do not fit.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the change was committed.
        """
        from icecomb.format.row_changes.row_level_change import replace_partitions

        check_flags(merge_schema=merge_schema)
        data = OneUse(arrow_data(df, self.metadata.schema(), may_be_nothing=True))
        asked = _Asked(snapshot_properties, branch, data.schema if merge_schema else None)
        self._on_newest(asked, lambda target: (replace_partitions(target, data.rows), None), data)

    def upsert(  # noqa: PLR0917 - PyIceberg's signature
        self,
        df: Any,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        when_not_matched_insert_all: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        merge_schema: bool = False,
    ) -> UpsertResult:
        """Replace the rows that differ from a new row of the same key, and add the other new rows.

        All in one snapshot. The new rows are held in memory, the table is not. Rows are replaced
        as the property ``write.merge.mode`` says.

        Args:
            df: The new rows, as for `Table.append`; their keys must be different and not null.
            join_cols: The columns of the key; by default the schema's identifier fields.
            when_matched_update_all: Whether rows are replaced.
            when_not_matched_insert_all: Whether rows are added.
            case_sensitive: Whether names in ``join_cols`` are case-sensitive.
            branch: The branch to commit to.
            snapshot_properties: More keys of the snapshot's summary.
            merge_schema: As for `append`.

        Returns:
            The numbers of rows replaced and added.

        Raises:
            SchemaError: If the columns do not fit.
            ValidationError: If there is no key, or a row's key is null or not unique; a required
                column holds a null; or another commit contradicts this one.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the change was committed.
        """
        from icecomb.format.row_changes.upsert import upsert_rows

        check_flags(
            when_matched_update_all=when_matched_update_all,
            when_not_matched_insert_all=when_not_matched_insert_all,
            case_sensitive=case_sensitive,
            merge_schema=merge_schema,
        )
        data = Kept(arrow_data(df, self.metadata.schema(), may_be_nothing=True))
        wanted = data.schema if merge_schema else None
        return self._on_newest(
            _Asked(snapshot_properties, branch, wanted, case_sensitive),
            lambda target: upsert_rows(
                target,
                data.rows,
                join_cols,
                update=when_matched_update_all,
                insert=when_not_matched_insert_all,
            ),
        )

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Merge:
        """Begin a merge (SQL's ``MERGE INTO``): clauses follow, then ``execute``; see `Merge`.

        >>> (  # doctest: +SKIP
        ...     table.merge(changes, on="t.id = s.id")
        ...     .when_matched_delete("s.gone")
        ...     .when_matched_update_all()
        ...     .when_not_matched_insert_all()
        ...     .execute()
        ... )

        Args:
            source: The rows, as for `Table.append`; they may have other columns, too.
            on: The columns that are equal in both, or SQL text that begins with equalities.
            target_alias: The alias of the table in SQL.
            source_alias: The alias of the source in SQL.
            branch: The branch to commit to.
            snapshot_properties: More keys of the snapshot's summary.

        Raises:
            ExpressionError: If ``on`` does not begin with an equality of columns.
        """
        from icecomb.catalog.table.merge import Merge

        return Merge(
            self,
            source,
            on,
            target_alias=target_alias,
            source_alias=source_alias,
            branch=branch,
            snapshot_properties=snapshot_properties,
        )

    def add_files(
        self,
        file_paths: Sequence[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
        branch: str = MAIN_BRANCH,
        *,
        on_duplicate: str = "error",
        partition: GivenPartition | None = None,
        parallelism: int = 16,
    ) -> None:
        """Add Parquet, ORC and Avro files to the table in place.

        Only the tails of files are read (see `AddedFiles.describe` for the few columns for which
        they tell too little); bounds of ORC files are kept if they can be trusted, and Avro
        files have none. The value of a partition field is the one that the file proves; if
        the file lacks the column, it is the given one, or that of a Hive-style path
        (``.../day=2024-01-31/x.parquet``). A table without a name mapping gets one, for files
        without field ids.

        Args:
            file_paths: The locations of the files.
            snapshot_properties: More keys of the snapshot's summary.
            check_duplicate_files: Whether to check for files that are already in the table.
            branch: The branch to commit to.
            on_duplicate: Whether such files, or paths given twice, are an ``error``, or to
                ``skip``.
            partition: Values of partition fields, by name, that all these files have; or a
                function that returns them for a file, by its path.
            parallelism: Number of files read at once.

        Raises:
            NoSuchFileError: If there is no such file.
            CorruptFileError: If it is not a Parquet, ORC or Avro file.
            SchemaError: If its columns do not fit the table's.
            ValidationError: If it is already in the table, a partition value is unknown or
                ambiguous, or a required column holds nulls.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the files were added.
        """
        from icecomb.format.row_changes.table_append import add_files

        check_flags(check_duplicate_files=check_duplicate_files)

        def add(target: WriteTarget) -> tuple[WrittenChange | None, None]:
            change = add_files(
                target,
                file_paths,
                check_duplicate_files=check_duplicate_files,
                on_duplicate=on_duplicate,
                partition=partition,
                parallelism=parallelism,
            )
            return change, None

        self._on_newest(_Asked(snapshot_properties, branch), add)

    def _merge(
        self,
        source: Any,
        condition: MergeCondition,
        clauses: MergeClauses,
        *,
        aliases: tuple[str, str],
        branch: str,
        snapshot_properties: Mapping[str, str] | None,
    ) -> MergeResult:
        from icecomb.format.row_changes.merge import merge_rows

        data = Kept(arrow_data(source, self.metadata.schema()))

        return self._on_newest(
            _Asked(snapshot_properties, branch),
            lambda target: merge_rows(
                target,
                data.rows,
                condition,
                clauses,
                target_alias=aliases[0],
                source_alias=aliases[1],
            ),
        )

    def _on_newest(self, asked: _Asked, write: _Write[T], data: OneUse | None = None) -> T:
        """Run an operation that reads the table, again on newer metadata if it has to be.

        Other writers may have expired the snapshot that an idle table object is pinned to, or made
        the branch since; and that there is nothing to do holds for the newest metadata only.

        Args:
            write: Reads the pinned metadata's files, too; see `_write`.
            data: Other input of it, which may be a stream.
        """
        from icecomb.format.operation.conflict import OutdatedError
        from icecomb.format.property.table_property import COMMIT_RETRIES

        outdated = (NoSuchFileError, NoSuchSnapshotError, OutdatedError)
        renewed = False
        # each time another writer has committed, as in `_retry_delete`
        retries = COMMIT_RETRIES.of(self.metadata.properties, default=100)
        while True:
            retries -= 1
            state = self.metadata
            try:
                result, holds = self._write(asked, write)
                if holds or renewed or not self._renew(state):
                    return result
            except outdated as error:
                if not self._renew(state) or retries < 0:
                    raise
                if data is not None and data.is_used_up:
                    raise CommitFailedError(
                        f"The table has changed since this object was loaded: {error.message}",
                        hint="Repeat it with the rows: their stream is used up.",
                    ) from error
            renewed = True

    def _retry_delete(self, delete: Callable[[], T]) -> T:
        """Delete rows; find them again if others deleted rows of the same data files first.

        In format version 2, position delete files of several writers lie side by side. A deletion
        vector must have all deleted rows of its data file, but the deletes do not conflict.
        """
        from icecomb.format.operation.conflict import VectorConflictError
        from icecomb.format.property.table_property import COMMIT_RETRIES

        # each time another writer has committed: there is progress, as of commits without locks
        for _ in range(COMMIT_RETRIES.of(self.metadata.properties, default=100)):
            state = self.metadata
            try:
                return delete()
            except VectorConflictError:
                if not self._renew(state):
                    raise
        return delete()

    def _renew(self, state: TableMetadata) -> bool:  # noqa: ARG002
        """Move to the newest metadata; return whether it is other metadata than ``state``.

        A transaction stays at the metadata that it began with.
        """
        return False

    def _write(self, asked: _Asked, write: _Write[T]) -> tuple[T, bool]:
        """Write and commit a change; return its result, and whether that holds on newer metadata.

        Args:
            write: Writes the files; returns the change, None if there is none whatever the table
                has, and the result.
        """
        from icecomb.format.operation.summary import snapshot_texts
        from icecomb.format.row_changes.write_target import WriteTarget
        from icecomb.format.rows.write.data_writer import missing_in_table
        from icecomb.format.spec.metadata import with_properties

        wanted, schema = asked.wanted, self.metadata.schema()
        missing = () if wanted is None else missing_in_table(schema, wanted)
        with self._widened(missing) if missing else nullcontext(self) as operations:
            metadata = operations.metadata
            self._pointer.check_writable(metadata)
            self.check_new_files()
            more = snapshot_texts(asked.snapshot_properties)
            written = with_properties(metadata, self.write_properties)
            target = WriteTarget(operations.io, written, asked.branch, more, asked.case_sensitive)
            target.check_branch_columns()
            change, result = write(target)
            return result, operations._commit_change(change)  # noqa: SLF001 - of this class, too

    def _commit_change(self, change: WrittenChange | NoChange | None) -> bool:
        """Commit an operation's change; return whether it holds though others committed."""
        from icecomb.format.row_changes.write_target import NoChange

        if isinstance(change, NoChange):
            return False
        if change is not None:
            self.commit(change)
        return True


def arrow_data(df: Any, table: Schema, *, may_be_nothing: bool = False) -> GivenRows:
    """Convert rows in any of the forms that `Table.append` takes to Arrow.

    Streams stay streams: readers, lazy frames of polars, relations of DuckDB and data sets are
    computed and read batch by batch. The NaNs of a pandas frame become nulls. Each named level of
    its index becomes a column, also a `RangeIndex`; unnamed levels are left out, unless the table
    has the column that Arrow makes of one (``__index_level_0__``).

    Args:
        may_be_nothing: Whether an empty iterable of batches is accepted, and means no rows.
            Otherwise it is refused, as neither its columns nor whether it is used up is known.
    """
    import pyarrow as pa

    from icecomb.format.arrow.batch_stream import RowStream
    from icecomb.format.errors import ValidationError

    if isinstance(df, (pa.Table, pa.RecordBatchReader)):
        return df
    if isinstance(df, pa.RecordBatch):
        return pa.Table.from_batches([df])
    if _is_of(df, "pandas") and hasattr(type(df), "columns"):
        return _of_pandas(df, table)
    if _is_of(df, "polars") and hasattr(type(df), "columns"):
        return _of_polars(df)
    problem: Exception | None = None
    try:
        if hasattr(df, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(df)
        if hasattr(df, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(df)])
    except (pa.ArrowInvalid, TypeError) as refused:
        # the protocol is also that of single columns
        problem = refused
    if _is_of(df, "pyarrow") and hasattr(df, "scanner"):
        return df.scanner().to_reader()
    if isinstance(df, Iterable) and not isinstance(df, (str, bytes, dict)):
        batches = iter(df)
        first = next(batches, None)
        if isinstance(first, pa.RecordBatch):
            return RowStream(first.schema, _checked(chain([first], batches)))
        # an empty column yields nothing either, but is not an iterable of batches
        nothing = first is None and isinstance(df, (Iterator, Sequence))
        if nothing and may_be_nothing:
            return table.as_arrow().empty_table()
        if nothing:
            raise ValidationError(
                f"{type(df).__name__} without a batch: its columns are not known, nor whether "
                "its rows were read before",
                hint="To go on without rows, give an empty table: "
                "table.schema().as_arrow().empty_table().",
            )
    raise ValidationError(
        f"{type(df).__name__} is not a table of rows",
        hint="Give a pyarrow table, record batches or a reader of them, a data frame of pandas or "
        "polars, a relation of DuckDB, or anything else with __arrow_c_stream__. For a list of "
        "dicts: pa.Table.from_pylist(rows, schema=table.schema().as_arrow()).",
    ) from problem


class Kept:
    """Rows that can be read again and again; the batches of a stream are kept as they come."""

    def __init__(self, rows: GivenRows) -> None:
        self.schema: pa.Schema = rows.schema
        self._rows = rows
        self._read: list[pa.RecordBatch] = []

    @property
    def rows(self) -> GivenRows:
        """The rows, from the start."""
        import pyarrow as pa

        from icecomb.format.arrow.batch_stream import RowStream

        if isinstance(self._rows, pa.Table):
            return self._rows
        return RowStream(self.schema, chain(tuple(self._read), self._unread(self._rows)))

    def _unread(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self._read.append(batch)
            yield batch


class OneUse:
    """Rows that know if they can still be read from the start; a stream is read only once."""

    def __init__(self, rows: GivenRows) -> None:
        import pyarrow as pa

        from icecomb.format.arrow.batch_stream import RowStream

        self.schema: pa.Schema = rows.schema
        self.rows = rows
        self.is_used_up = False
        if not isinstance(rows, pa.Table):
            self.rows = RowStream(rows.schema, self._batches(rows))

    def _batches(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.is_used_up = self.is_used_up or bool(batch.num_rows)
            yield batch


def _is_of(df: object, library: str) -> bool:
    """Return whether a class or a base of it is a library's, without importing the library."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(df).__mro__)


def _of_pandas(frame: Any, table: Schema) -> pa.Table:
    import pyarrow as pa

    from icecomb.format.errors import ValidationError

    found = pa.Table.from_pandas(frame, preserve_index=False)
    for number, label in enumerate(frame.index.names):
        level = frame.index.get_level_values(number)
        name = f"__index_level_{number}__" if label is None else str(label)
        if label is None and (name in found.column_names or not _keeps(table, name, level)):
            continue
        (values,) = pa.Table.from_pandas(level.to_frame(name=name), preserve_index=False).columns
        if name not in found.column_names:
            # append_column keeps the frame's metadata, which marks it as pandas'
            found = found.append_column(name, values)
        elif found.column_names.count(name) > 1 or not found[name].equals(values):
            raise ValidationError(
                f"The index of the pandas frame and one of its columns are both named {name!r}, "
                "and their values differ",
                hint="Rename one of them (df.rename_axis), or leave the index out: "
                "df.reset_index(drop=True).",
            )
    return found


def _keeps(table: Schema, name: str, level: Any) -> bool:
    """Return whether a table has the column that Arrow makes of an unnamed index level.

    The default index of a frame counts as one only where that column holds integers.
    """
    import numpy as np

    from icecomb.format.spec.types import IntegerType, LongType

    kept = next((f.field_type for f in table.fields if f.name == name), None)
    given = isinstance(kept, (IntegerType, LongType)) or not np.array_equal(
        level, range(len(level))
    )
    return kept is not None and given


def _of_polars(frame: Any) -> pa.Table | pa.RecordBatchReader:
    """Convert a polars frame; not by its stream, whose views would have to be copied here."""
    import polars as pl
    import pyarrow as pa

    if not isinstance(frame, pl.LazyFrame):
        return frame.to_arrow()
    if not hasattr(frame, "collect_batches"):
        return frame.collect().to_arrow()
    schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema
    batches = (b for part in frame.collect_batches() for b in part.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _checked(batches: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from icecomb.format.errors import ValidationError

    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise ValidationError(
                f"A {type(batch).__name__} among record batches",
                hint="Give record batches only.",
            )
        yield batch
