"""Rewriting of groups of files without decoding rows: their row groups are copied.

Only for files for which this is exact: Parquet files of one writer, with exactly the current
columns of the table and without deleted rows. Row groups keep the codec, encodings and page sizes
that their writer chose.
"""

from __future__ import annotations

import io as memory
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count, repeat
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.manifest_metrics import METRICS
from icecomb.format.maintenance.row_origin import RowOrigins, row_key
from icecomb.format.manifests.columns import mappings
from icecomb.format.manifests.manifest import DataFile, FileFormat, ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.property.table_property import COPY_MIN_ROW_GROUP_BYTES
from icecomb.format.rows.parquet.raw_footer import BLOOM, GROUP_ROWS, NotCopyableError, RawFooter
from icecomb.format.rows.parquet.row_group_copy import CopiedDataFile, CopyOptions, FileLayout
from icecomb.format.rows.parquet.writer import ParquetOptions, parquet_paths
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.data_metrics import MetricsConfig, MetricsKind, bounds, column_types
from icecomb.format.rows.values.metadata_columns import LAST_UPDATED, LINEAGE, lineage
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.values.statistics import ChunkStatistics, ColumnStatistics, reliable_zeros
from icecomb.format.rows.write.partition_writer import StoredColumns
from icecomb.format.spec import single_value
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import BooleanType, DoubleType, FloatType, PrimitiveType, VariantType

if TYPE_CHECKING:
    from icecomb.format.maintenance.file_group import FileGroup
    from icecomb.format.rows.write.file_settings import FileOptions, FileSettings
    from icecomb.format.rows.write.location_provider import LocationProvider
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_WITHOUT_BLOOM: Final = (BooleanType, VariantType)
"""The types whose columns have no bloom filters."""
_LONGEST: Final = 1.4
"""The factor above the intended length at which a row group goes to the next file."""


def is_large_enough(group: FileGroup, properties: Mapping[str, str]) -> bool:
    """Return whether row groups may be long enough to be copied, judged by the sizes of files."""
    files = sum(1 for task in group.tasks if task.record_count)
    return group.size >= files * COPY_MIN_ROW_GROUP_BYTES.of(properties)


class RowGroupCopier:
    """A copier of groups of files, for one state of a table."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        spec: PartitionSpec,
        *,
        settings: FileSettings,
        locations: LocationProvider,
        sources: SourceMetrics,
    ) -> None:
        self._io = io
        self._spec = spec
        self._schema = metadata.schema()
        self._lineage = CopiedLineage(io, metadata, settings) if lineage(metadata) else None
        self._mapping = metadata.name_mapping()
        self._least_bytes = COPY_MIN_ROW_GROUP_BYTES.of(metadata.properties)
        self._settings = settings
        self._locations = locations
        self._sources = sources
        self._columns = _physical_columns(StoredColumns(self._schema).schema)
        self._bloom_columns = _bloom_columns(self._schema, self._columns, settings.options)

    def copy(
        self, group: FileGroup, origins: RowOrigins, name: Callable[[int], str]
    ) -> list[DataFile]:
        """Write the files of a group; if anything fails, the written files are removed.

        It raises NotCopyableError if the group has to be decoded; `name` gives names without
        extension.
        """
        layout, digests = self._layout(group)
        settings = replace(self._settings, options=CopyOptions(layout=layout))
        run = _Run(
            self._io,
            settings,
            self._spec,
            group,
            origins=origins,
            sources=self._sources,
            lineage=self._lineage,
            new_location=self._new_location(group, name),
        )
        try:
            for source, task in enumerate(group.tasks):
                with _named(task), closing(self._open(task)) as footer:
                    _check_same(footer, digests[source])
                    run.take(source, footer)
            return run.close()
        except BaseException as problem:
            run.abort(problem)
            raise

    def _layout(self, group: FileGroup) -> tuple[FileLayout, list[bytes]]:
        """Return the common layout of the files of a group, and the digests of their footers.

        It raises NotCopyableError if the files do not have all that copying needs.
        """
        if self._settings.options.file_format is not FileFormat.PARQUET:
            raise NotCopyableError(f"new files are {self._settings.options.file_format.value}")
        for task in group.tasks:
            with _named(task):
                self._check_entry(task)
        # A file with rows has one row group at least: small files need not be opened.
        self._check_average(group.size, sum(1 for task in group.tasks if task.record_count))
        beside = None if self._lineage is None else self._lineage.layout()
        first: FileLayout | None = None
        digests = []
        size = groups = 0
        for task in group.tasks:
            check_wanted()
            with _named(task), closing(self._open(task)) as footer:
                layout = FileLayout.of(footer, self._schema, self._mapping, beside)
                if first is None:
                    first = layout
                first.check(layout)
                digests.append(footer.digest)
                self._check_bloom_filters(footer)
                self._check_partition(footer, group.partition)
                for _, one in footer.numbered_groups():
                    length = footer.length(one)
                    if length > group.split_size:
                        raise NotCopyableError(
                            f"it has a row group of {length} bytes, and new files get about "
                            f"{group.split_size}"
                        )
                    size += length
                    groups += 1
        self._check_average(size, groups)
        assert first is not None  # noqa: S101 - a group has files
        return first, digests

    def _check_entry(self, task: FileScanTask) -> None:
        """Refuse a file that cannot be copied, by its manifest entry, which is mostly enough."""
        file = task.file
        if file.file_format is not FileFormat.PARQUET:
            raise NotCopyableError(f"it is {file.file_format.value}")
        if task.delete_files:
            raise NotCopyableError("rows of it are deleted")
        if task.spec.spec_id != self._spec.spec_id:
            raise NotCopyableError(
                f"it is of partition spec {task.spec.spec_id}, new files of {self._spec.spec_id}"
            )
        if file.key_metadata is not None:
            raise NotCopyableError("it is encrypted")

    def _check_average(self, size: int, groups: int) -> None:
        if not groups:
            raise NotCopyableError("its files have no rows")
        if size < groups * self._least_bytes:
            raise NotCopyableError(
                f"its row groups have {size // groups} bytes on average or less, "
                f"{COPY_MIN_ROW_GROUP_BYTES.key} is {self._least_bytes}"
            )

    def _check_bloom_filters(self, footer: RawFooter) -> None:
        """Refuse a file without the table's bloom filters, which are made from decoded rows."""
        if not self._bloom_columns:
            return
        for _, group in footer.numbered_groups():
            chunks = list(footer.chunks(group))
            for name, at in self._bloom_columns.items():
                if not chunks[at].metadata.get(BLOOM):
                    raise NotCopyableError(f"it has no bloom filter of column {name}")

    def _check_partition(self, footer: RawFooter, partition: tuple[Any, ...]) -> None:
        """Refuse a file whose identity columns may have other values than its partition.

        Readers take the partition's value for the column; bounds of other values would hide it.
        """
        for field, value in zip(self._spec.fields, partition, strict=True):
            column = next((c for c in self._schema.fields if c.field_id == field.source_id), None)
            if column is None or not isinstance(field.transform, IdentityTransform):
                continue
            at = self._columns[column.field_id]
            statistics = ColumnStatistics(footer.parsed, at, column.field_type)
            for number, _ in footer.numbered_groups():
                if not _has_only(statistics.chunk(number), value):
                    raise NotCopyableError(
                        f"its footer does not say that column {column.name} has just the value of "
                        "its partition"
                    )

    def _open(self, task: FileScanTask) -> RawFooter:
        file = task.file
        return RawFooter(self._io, file.file_path, file.file_size_in_bytes, file.record_count)

    def _new_location(self, group: FileGroup, name: Callable[[int], str]) -> Callable[[], str]:
        partition = group.partition
        path = self._spec.partition_to_path(partition, self._schema) if partition else None
        numbers = count(1)
        return lambda: self._locations.new_data_location(f"{name(next(numbers))}.parquet", path)


class _Run:
    """The copying of one group's row groups to new files."""

    def __init__(
        self,
        io: FileIO,
        settings: FileSettings,
        spec: PartitionSpec,
        group: FileGroup,
        *,
        origins: RowOrigins,
        sources: SourceMetrics,
        lineage: CopiedLineage | None,
        new_location: Callable[[], str],
    ) -> None:
        self._io = io
        self._settings = settings
        self._spec = spec
        self._group = group
        self._origins = origins
        self._sources = sources
        self._lineage = lineage
        self._new_location = new_location
        self._file: CopiedDataFile | None = None
        self._rows: dict[int, int] = {}
        self._keys: list[int] = []
        self._lengths: list[int] = []
        self._bytes = 0
        self._total = 0
        self._done: list[DataFile] = []

    def take(self, source: int, footer: RawFooter) -> None:
        """Copy all row groups of a file; `source` is its number in the group."""
        position = 0
        groups = list(footer.numbered_groups())
        beside: Iterator[RawFooter | None] = repeat(None)
        if self._lineage is not None:
            lengths = [group[GROUP_ROWS] for _, group in groups]
            beside = self._lineage.row_groups(self._group.tasks[source], lengths)
        for number, group in groups:
            check_wanted()
            rows, size = group[GROUP_ROWS], footer.length(group)
            if self._is_full(size):
                self._finish()
            if self._file is None:
                self._file = CopiedDataFile(
                    self._io,
                    self._new_location(),
                    self._settings,
                    self._spec,
                    self._group.partition,
                )
            self._file.copy(footer, number, next(beside))
            self._note(source, position, rows)
            position += rows
            self._bytes += size
            self._total += size

    def close(self) -> list[DataFile]:
        """Finish the last file, and return all files."""
        self._finish()
        return self._done

    def abort(self, problem: BaseException) -> None:
        """Remove all files."""
        if self._file is not None:
            self._file.abort(problem)
            self._file = None
        self._io.discard([file.file_path for file in self._done])
        self._done = []

    def _is_full(self, more: int) -> bool:
        """Return whether a row group of `more` bytes belongs in the next file."""
        if self._file is None:
            return False
        split = self._group.split_size
        end = (len(self._done) + 1) * split
        return self._total + more / 2 > end or self._bytes + more > _LONGEST * split

    def _note(self, source: int, position: int, rows: int) -> None:
        key = row_key(source, position)
        row_key(source, position + rows)
        self._rows[source] = self._rows.get(source, 0) + rows
        if self._keys and self._keys[-1] + self._lengths[-1] == key:
            self._lengths[-1] += rows
            return
        self._keys.append(key)
        self._lengths.append(rows)

    def _finish(self) -> None:
        if self._file is None:
            return
        settings = self._settings
        parts = []
        for source, rows in self._rows.items():
            file = self._group.tasks[source].file
            parts.append(CopiedPart(self._sources.of(file), rows == file.record_count))
        written = self._file.close()
        self._file = None
        self._done.append(written)
        self._done[-1] = completed(written, parts, settings.schema, settings.metrics)
        keys, lengths = np.array(self._keys, np.int64), np.array(self._lengths, np.int64)
        self._origins.keep(self._done[-1], keys, lengths)
        self._rows, self._keys, self._lengths, self._bytes = {}, [], [], 0


def _has_only(found: ChunkStatistics, value: Any) -> bool:
    if value is None:
        return found.only_nulls
    return found.null_count == 0 and found.lower == value and found.upper == value


def _physical_columns(stored: Schema) -> dict[int, int]:
    """Return the number of the physical column of each field; of a variant, that of its first."""
    found, at = {}, 0
    for number in parquet_paths(stored.fields):
        found[number] = at
        at += 2 if isinstance(stored.find_type(number), VariantType) else 1
    return found


def _bloom_columns(
    schema: Schema, numbers: Mapping[int, int], options: FileOptions
) -> dict[str, int]:
    """Return the numbers of the physical columns that are to have bloom filters, by name."""
    if not isinstance(options, ParquetOptions):
        return {}
    found = {}
    for name in options.bloom_filters:
        if not schema.contains(name):
            continue
        field = schema.find_field(name)
        if field.field_id in numbers and not isinstance(field.field_type, _WITHOUT_BLOOM):
            found[name] = numbers[field.field_id]
    return found


def _check_same(footer: RawFooter, digest: bytes) -> None:
    if footer.digest != digest:
        raise footer.wrong("it became another file while it was read")


@contextmanager
def _named(task: FileScanTask) -> Iterator[None]:
    try:
        yield
    except NotCopyableError as problem:
        raise NotCopyableError(f"{task.file_path}: {problem}") from None


_NAME: Final = "ids of rows"


class CopiedLineage:
    """The columns of row lineage of the rows that are copied, as Parquet in memory."""

    def __init__(self, io: FileIO, metadata: TableMetadata, settings: FileSettings) -> None:
        self._io = io
        schema = Schema(LINEAGE)
        self._scan = ArrowScan(metadata, io, schema, workers=1, checksums=True)
        # ids are all different; numbers of commits are few
        self._settings = replace(settings, schema=schema, dictionaries=(LAST_UPDATED.name,))

    def layout(self) -> RawFooter:
        """Return a file of these columns without rows."""
        return self._file([])

    def row_groups(self, task: FileScanTask, lengths: Iterable[int]) -> Iterator[RawFooter]:
        """Yield a file of one row group for each row group of a source without deleted rows."""
        batches = self._scan.read(FileScanTask(task.file, spec=task.spec))
        left: list[pa.RecordBatch] = []
        for length in lengths:
            while (found := sum(batch.num_rows for batch in left)) < length:
                left.append(next(batches))
            rows = pa.Table.from_batches(left)
            yield self._file(rows.slice(0, length).to_batches())
            left = rows.slice(length).to_batches() if found > length else []

    def _file(self, batches: list[pa.RecordBatch]) -> RawFooter:
        stream = memory.BytesIO()
        writer = self._settings.options.open(stream, self._settings)
        if batches:
            writer.write(batches)
        writer.close()
        data = pa.py_buffer(stream.getvalue())
        rows = sum(batch.num_rows for batch in batches)
        return RawFooter(self._io, _NAME, data.size, rows, source=pa.BufferReader(data))


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """The part of a source that is in a new file, or the whole."""

    file: DataFile
    whole: bool


def completed(
    written: DataFile, parts: Sequence[CopiedPart], schema: Schema, config: MetricsConfig
) -> DataFile:
    """Complete the metrics of a copied file, known by its footer, with those of its sources."""
    nulls = dict(written.null_value_counts or {})
    nans = dict(written.nan_value_counts or {})
    lowers, uppers = dict(written.lower_bounds or {}), dict(written.upper_bounds or {})
    kinds = column_types(schema)
    for number in written.value_counts or {}:
        kind = kinds[number]
        if isinstance(kind, FloatType | DoubleType):
            _put(nans, number, _count(parts, number, "nan_value_counts"))
        if number not in nulls:
            _put(nulls, number, _count(parts, number, "null_value_counts"))
        mode = config.mode(number)
        if mode.kind is MetricsKind.COUNTS or (number in lowers and number in uppers):
            continue
        # of zeros of both signs, `min` and `max` take the first
        least, most = bounds(kind, *reliable_zeros(*_bounds(parts, number, kind)), mode)
        if number not in lowers:
            _put(lowers, number, least)
        if number not in uppers:
            _put(uppers, number, most)
    return replace(
        written,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lowers,
        upper_bounds=uppers,
        # the sources' footers and bounds may be those of another writer
        has_exact_bounds=all(part.whole and part.file.has_exact_bounds for part in parts),
    )


def _put(where: dict[int, Any], number: int, value: Any) -> None:
    if value is not None:
        where[number] = value


def _count(parts: Iterable[CopiedPart], number: int, name: str) -> int | None:
    """Return the total count of such values in the parts; None if unknown."""
    total = 0
    for part in parts:
        found = _of(part.file, name).get(number)
        if found is None or not 0 <= found <= part.file.record_count:
            return None
        if found and not part.whole:
            return None
        total += found
    return total


def _bounds(parts: Iterable[CopiedPart], number: int, kind: PrimitiveType) -> tuple[Any, Any]:
    """Return bounds of all values, None if unknown; those of a file are valid for its parts."""
    lowers: list[Any] = []
    uppers: list[Any] = []
    for part in parts:
        raw = [_of(part.file, name).get(number) for name in ("lower_bounds", "upper_bounds")]
        if raw == [None, None] and _has_no_values(part.file, number):
            continue
        if None not in raw and single_value.range_from_bytes(kind, *raw) is None:
            return None, None
        for values, bound in zip((lowers, uppers), raw, strict=True):
            values.append(None if bound is None else _read(kind, bound))
    return _chosen(min, lowers), _chosen(max, uppers)


def _read(kind: PrimitiveType, bound: bytes) -> Any:
    with suppress(ValidationError):
        return single_value.from_bytes(kind, bound)
    return None


def _chosen(choose: Callable[..., Any], bounds: Sequence[Any]) -> Any:
    """Return the outermost of bounds, None if one is unknown or there is none; NaN is none."""
    if any(bound is None or bound != bound for bound in bounds):  # noqa: PLR0124 - NaN
        return None
    return choose(bounds, default=None)


def _has_no_values(file: DataFile, number: int) -> bool:
    """Return whether a column is known to hold only nulls and NaN."""
    values = _of(file, "value_counts").get(number)
    nulls = _of(file, "null_value_counts").get(number)
    if values is None or nulls is None or not (values or not file.record_count):
        return False
    return bool(values == nulls + _of(file, "nan_value_counts").get(number, 0))


def _of(file: DataFile, name: str) -> Mapping[int, Any]:
    found: Mapping[int, Any] | None = getattr(file, name)
    return found or {}


class SourceMetrics:
    """The metrics of some files of a snapshot, as manifests state them.

    Planning leaves them out, because they are not needed for most files. Manifests are read for
    them once per run, when the first group is copied.
    """

    def __init__(self, io: FileIO, snapshot: Snapshot, paths: Collection[str]) -> None:
        self._io = io
        self._snapshot = snapshot
        self._paths = paths
        self._lock = Lock()
        self._found: list[dict[str, pa.Array]] = []
        self._places: Mapping[str, tuple[int, int]] | None = None

    def of(self, file: DataFile) -> DataFile:
        """Return a file with its metrics, or unchanged if it is not one of `paths`."""
        with self._lock:
            if self._places is None:
                self._places = self._read()
        place = self._places.get(file.file_path)
        if place is None:
            return file
        columns, row = self._found[place[0]], place[1]
        values: dict[str, Any] = {
            name: mappings(columns[name].slice(row, 1))[0] for name in METRICS
        }
        return replace(file, **values)

    def _read(self) -> Mapping[str, tuple[int, int]]:
        places: dict[str, tuple[int, int]] = {}
        wanted = pa.array(self._paths, pa.string())
        manifests = [
            manifest
            for manifest in read_manifests(self._io, self._snapshot)
            if manifest.content is ManifestContent.DATA and manifest.has_live_files()
        ]
        for columns in read_each_columns(self._io, manifests, lambda _: None, METRICS):
            check_wanted()
            paths = columns.column("file_path")
            rows = pc.indices_nonzero(pc.and_(columns.live, pc.is_in(paths, wanted)))
            if not len(rows):
                continue
            for row, path in enumerate(paths.take(rows).to_pylist()):
                places[path] = len(self._found), row
            self._found.append({name: columns.column(name).take(rows) for name in METRICS})
        return places
