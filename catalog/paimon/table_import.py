"""Import of a Paimon append table: an Iceberg table of the same data files, in place.

Rows in Paimon's binary form, in which manifests store partitions (Paimon: BinaryRow).

Four bytes, big-endian, count the fields. Then, little-endian: one byte of the row's kind and a bit
for each field that is null, in whole words of eight bytes; a word for each field; longer values.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    AtomicType,
    DataField,
    DataType,
    children,
)
from icecomb.catalog.paimon.iceberg import (
    iceberg_name_mapping,
    iceberg_partition_spec,
    iceberg_properties,
    iceberg_schema,
    unreadable,
)
from icecomb.catalog.paimon.table_option import switched_on
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.report.finding import Finding, blocker
from icecomb.catalog.report.progress import SILENT, Progress, each
from icecomb.catalog.table.definition import Draft, TableDefinition
from icecomb.catalog.table.table_creation import CreateTableTransaction
from icecomb.catalog.table.takeover import BlockedError, TakeoverPlan
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    NoSuchFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.append import FastAppend
from icecomb.format.rows.files.added_file import AddedFiles
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_json
from icecomb.format.spec.types import (
    DateType,
    TimestampType,
    TimestamptzType,
    TimeType,
)
from icecomb.format.spec.values.decimal_value import scaled
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.paimon.snapshot import DataFileEntry, PaimonSnapshot
    from icecomb.catalog.paimon.source import PaimonSource
    from icecomb.catalog.table.table import Table
    from icecomb.format.manifests.manifest import DataFile


_FORMATS: Final = (".parquet", ".orc")
_AS_TEXT: Final = (DateType, TimeType, TimestampType, TimestamptzType)


@dataclass(frozen=True, slots=True)
class ImportPlan(TakeoverPlan):
    """The plan of importing a table.

    Attributes:
        snapshot: The table's latest snapshot; None if it has no data.
        files: The data files as Iceberg's; empty if there are blockers.
        mapping: The name mapping for files without field ids.
        last_column_id: The highest id of a field in the files, including dropped ones.
    """

    source: PaimonSource
    latest: TableSchema
    snapshot: PaimonSnapshot | None
    files: tuple[DataFile, ...]
    mapping: NameMapping
    last_column_id: int

    @property
    def rows(self) -> int:
        """Number of rows in all files."""
        return sum(file.record_count for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "source": self.table,
            "location": self.location,
            "schema": self.latest.schema_id,
            "snapshot": self.snapshot.snapshot_id if self.snapshot else None,
            "files": len(self.files),
            "rows": self.rows,
            "columns": [str(one) for one in self.schema.fields],
            "partitioned by": list(self.latest.partition_keys),
            "blockers": [finding.message for finding in self.blockers],
            "findings": [finding.to_json() for finding in self.findings],
        }


class ImportBlockedError(BlockedError, ValidationError):
    """A Paimon table cannot be imported; `context["blockers"]` has all reasons."""

    _REFUSED, _LISTING = "imported", ("paimon", "import", "--to", "DB.TABLE")


def plan_import(source: PaimonSource, progress: Progress = SILENT) -> ImportPlan:
    """Plan the import of a table; change nothing.

    The footer of each data file is read, and all rows of ORC files. `CommitFailedError` if the
    table changed meanwhile, and files are gone.
    """
    # A schema exists before the first snapshot with files of it, so it is read second.
    snapshot = source.snapshots.latest()
    latest = source.schemas.latest()
    try:
        return _Survey(source, snapshot, latest).plan(progress)
    except (CorruptFileError, NoSuchFileError):
        _check_unchanged(source, snapshot, latest)
        raise


def draft_import(plan: ImportPlan, catalog: Catalog, identifier: str) -> Draft:
    """Return the draft of the table for an import without blockers; nothing is written."""
    properties = iceberg_properties(plan.latest)
    made = plan.definition(properties, plan.mapping, plan.last_column_id)
    return catalog.draft(identifier, made)


def run_import(plan: ImportPlan, catalog: Catalog, identifier: str) -> Table:
    """Create the Iceberg table, with all rows or not at all.

    This is one step, which needs no journal: an interrupted import creates no table, and the Paimon
    table is only read. The snapshot's summary names Paimon's snapshot. `CommitStateUnknownError` if
    it is unknown whether the table was created.
    """
    if plan.blockers:
        raise ImportBlockedError(plan)
    _check_unchanged(plan.source, plan.snapshot, plan.latest)
    draft = draft_import(plan, catalog, identifier)
    transaction = CreateTableTransaction(draft)
    if plan.snapshot is not None and plan.files:
        origin = {
            "paimon.snapshot-id": str(plan.snapshot.snapshot_id),
            "paimon.schema-id": str(plan.snapshot.schema_id),
        }
        append = FastAppend(draft.io, origin)
        for file in plan.files:
            append.append_data_file(file)
        transaction.commit(append)
    return transaction.commit_transaction()


def _check_unchanged(
    source: PaimonSource, snapshot: PaimonSnapshot | None, latest: TableSchema
) -> None:
    now = source.snapshots.latest()
    planned, newest = (one.snapshot_id if one else None for one in (snapshot, now))
    schema = source.schemas.ids()[-1]
    if (planned, latest.schema_id) != (newest, schema):
        raise CommitFailedError(
            f"{source.name} changed while it was read: snapshot {planned} with "
            f"schema-{latest.schema_id} became snapshot {newest} with schema-{schema}",
            hint="Nothing was created. Stop what writes or compacts the table, and run it again.",
        )


class _Survey:
    """One survey of a table, which collects findings from all steps."""

    def __init__(
        self, source: PaimonSource, snapshot: PaimonSnapshot | None, latest: TableSchema
    ) -> None:
        self._source = source
        self._snapshot = snapshot
        self._latest = latest
        self._schema = Schema()
        self._spec = PartitionSpec()
        self._findings: list[Finding] = []
        self._written: dict[int, TableSchema] = {}
        self._without_ids: set[int] = set()
        self._last_column_id = latest.highest_field_id

    def plan(self, progress: Progress) -> ImportPlan:
        self._examine_table()
        entries: Sequence[DataFileEntry] = ()
        if self._snapshot is not None and not self._findings:
            entries = self._source.snapshots.files(self._snapshot)
            numbers = {entry.schema_id for entry in entries}
            self._written = {number: self._source.schemas.read(number) for number in numbers}
            self._examine_entries(entries)
        files: list[DataFile] = []
        mapping = NameMapping(())
        if not self._findings:
            files = self._described(entries, progress)
            mapping = self._mapping()
        return ImportPlan(
            self._source.name,
            self._source.location,
            self._schema,
            self._spec,
            tuple(self._findings),
            self._source,
            self._latest,
            self._snapshot,
            () if self._findings else tuple(files),
            mapping,
            self._last_column_id,
        )

    def _examine_table(self) -> None:
        self._findings += table_obstacles(self._latest)
        snapshot = self._snapshot
        if snapshot and "DELETION_VECTORS" in self._source.snapshots.index_kinds(snapshot):
            text = "it has deletion vectors: rows of its files are deleted"
            self._findings.append(blocker("deletion-vectors", text, "compact it fully with Paimon"))
        try:
            self._schema = iceberg_schema(self._latest)
            self._spec = iceberg_partition_spec(self._latest)
        except UnsupportedError as error:
            self._findings.append(
                blocker("unsupported-column", error.message, error.hint or NEW_TABLE)
            )

    def _examine_entries(self, entries: Sequence[DataFileEntry]) -> None:
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for entry in entries:
            if not entry.name.endswith(_FORMATS):
                found["file-format", "neither Parquet nor ORC"].append(entry.name)
            if entry.deleted_rows:
                found["deleted-rows", "with deletions of rows"].append(entry.name)
            written = self._written[entry.schema_id]
            columns = {f.name for f in written.fields}
            if entry.write_columns is not None and not columns <= set(entry.write_columns):
                found["partial-files", "with only some of the columns"].append(entry.name)
            if (obstacle := file_obstacle(written, entry.name)) is not None:
                found["moved-instants", obstacle].append(entry.name)
        for (code, what), names in found.items():
            text = f"it has {len(names)} data files {what}, the first is {names[0]}"
            self._findings.append(blocker(code, text, NEW_TABLE, tuple(names)))

    def _described(self, entries: Sequence[DataFileEntry], progress: Progress) -> list[DataFile]:
        """Return the files as Iceberg's, in the order of their schemas and partitions."""
        locations = _locations(self._source, entries)
        groups: dict[tuple[int, bytes], list[DataFileEntry]] = defaultdict(list)
        for entry in entries:
            groups[entry.schema_id, entry.partition].append(entry)
        found: list[tuple[DataFileEntry, str, AddedFiles]] = []
        for (number, packed), group in groups.items():
            written = self._written[number]
            try:
                schema = iceberg_schema(written)
                reason = unreadable(schema, self._schema) or value_change(written, self._latest)
            except UnsupportedError as error:
                reason = error.message
            if reason is not None:
                text = f"{len(group)} data files were written with schema-{number}: {reason}"
                names = tuple(entry.name for entry in group)
                self._findings.append(blocker("changed-type", text, NEW_TABLE, names))
                continue
            # Paimon may have dropped columns that files still have: their ids must not be reused.
            self._last_column_id = max(self._last_column_id, schema.highest_field_id)
            describer = self._describer(schema, packed)
            places = (locations[entry.name, entry.bucket] for entry in group)
            found += ((e, p, describer) for e, p in zip(group, places, strict=True))
        files: list[DataFile] = []
        wrong: dict[str, tuple[ValidationError, list[str]]] = {}
        examined = each(
            progress, "reading footers", "files", found, lambda one: self._examine(*one)
        )
        for (_, location, _), file in zip(found, examined, strict=True):
            if isinstance(file, ValidationError):
                # One finding for all files with the same message.
                wrong.setdefault(file.message.replace(location, ""), (file, []))[1].append(location)
            else:
                files.append(file)
        for first, same in wrong.values():
            self._findings.append(blocker("file", first.message, NEW_TABLE, tuple(same)))
        return files

    def _describer(self, schema: Schema, packed: bytes) -> AddedFiles:
        keys = {f.name: f for f in self._latest.fields}
        values = read_row(packed, [keys[name] for name in self._latest.partition_keys])
        partition: dict[str, Any] = {}
        for name, value in zip(self._latest.partition_keys, values, strict=True):
            kind = self._schema.find_type(name)
            textual = value is not None and isinstance(kind, _AS_TEXT)
            partition[name] = to_json(kind, value) if textual else value
        # Columns that are NOT NULL now must not be null in older files.
        required = {f.field_id for f in self._schema.fields if f.required}
        fields = (replace(f, required=f.required or f.field_id in required) for f in schema.fields)
        strict = Schema(tuple(fields), schema.schema_id)
        definition = TableDefinition(strict, partition_spec=self._spec, last_column_id=0)
        return AddedFiles(self._source.io, definition.metadata(self._source.location), partition)

    def _examine(
        self, entry: DataFileEntry, location: str, describer: AddedFiles
    ) -> DataFile | ValidationError:
        try:
            file = describer.describe(location)
        except ValidationError as error:
            return error
        if describer.by_name:
            self._without_ids.add(entry.schema_id)
        if (file.record_count, file.file_size_in_bytes) != (entry.row_count, entry.size):
            raise CorruptFileError(
                f"{location} has {file.record_count} rows and {file.file_size_in_bytes} bytes, "
                f"its manifest says {entry.row_count} and {entry.size}",
                hint="Restore that file from a backup, or compact its partition in Paimon.",
                path=location,
            )
        return file

    def _mapping(self) -> NameMapping:
        older = (self._written[number] for number in sorted(self._without_ids, reverse=True))
        try:
            return iceberg_name_mapping(self._latest, older)
        except ValidationError as error:
            text = f"data files have no field ids: {error.message}"
            self._findings.append(blocker("reassigned-name", text, NEW_TABLE))
            return NameMapping(())


def _locations(
    source: PaimonSource, entries: Sequence[DataFileEntry]
) -> dict[tuple[str, int], str]:
    """Return the locations of data files, whose partition folders depend on options."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for status in source.io.list(source.location.rstrip("/")):
        folder, _, name = status.location.rpartition("/")
        found[name, folder.rpartition("/")[2]].append(status.location)
    out: dict[tuple[str, int], str] = {}
    for entry in entries:
        candidates = found[entry.name, f"bucket-{entry.bucket}"]
        if entry.external_path is not None:
            candidates = [entry.external_path]
        if (entry.name, entry.bucket) in out:
            raise CorruptFileError(
                f"Data file {entry.name} of bucket {entry.bucket} is named twice by the manifests "
                f"of {source.location}",
                hint="Repair the table in Paimon, or roll it back to an older snapshot there.",
                path=source.location,
            )
        if len(candidates) != 1:
            what = "is missing" if not candidates else f"occurs {len(candidates)} times"
            raise CorruptFileError(
                f"Data file {entry.name} of bucket {entry.bucket} {what} in {source.location}",
                hint="Restore that file from a backup, or roll the table back in Paimon.",
                path=source.location,
            )
        out[entry.name, entry.bucket] = candidates[0]
    check_local_names(source.io, source.location, [*out.values()])
    return out


NEW_TABLE: Final = "write the rows into a new table"
_ELSEWHERE: Final = (
    *("scan.snapshot-id", "scan.tag-name", "scan.version", "scan.timestamp"),
    *("scan.timestamp-millis", "scan.creation-time-millis", "scan.file-creation-time-millis"),
    *("scan.watermark", "scan.fallback-branch", "scan.primary-branch"),
    *("scan.fallback-snapshot-branch", "scan.fallback-delta-branch", "incremental-between"),
    *("incremental-between-timestamp", "incremental-to-auto-tag"),
)
"""Options under which Paimon reads other rows than those of the latest snapshot of this table."""
_LATEST: Final = frozenset(("default", "latest", "latest-full", "full"))
_NARROW: Final = {"TINYINT": 1, "SMALLINT": 2, "INT": 3}
_TEXT: Final = frozenset(("CHAR", "VARCHAR"))
_BYTES: Final = frozenset(("BINARY", "VARBINARY"))
_TIMESTAMPS: Final = frozenset(("TIMESTAMP", LOCAL_ZONED))
_ZONED_AS_WRITTEN: Final = "orc.timestamp-ltz.legacy.type"


def table_obstacles(schema: TableSchema) -> Iterator[Finding]:
    """Yield the obstacles in the latest schema to reading the files directly."""
    options = schema.options
    if not schema.is_append_table:
        yield blocker(
            "primary-key",
            f"it has a primary key ({', '.join(schema.primary_keys)}): its files hold several "
            "versions of a row, which only Paimon can merge",
            NEW_TABLE,
        )
    for code, reason in _unusual(options):
        yield blocker(code, reason, NEW_TABLE)


def _unusual(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if switched_on(options, "data-evolution.enabled"):
        yield "partial-files", "data-evolution.enabled: its rows are spread over several files"
    if switched_on(options, "chain-table.enabled"):
        yield "other-rows", "chain-table.enabled: it has rows of other branches"
    if options.get("type", "table").lower() != "table":
        yield "no-table", f"it is a Paimon {options['type']}, not a table"
    if options.get("branch", "main") != "main":
        branch = options["branch"]
        yield "other-rows", f"option branch={branch}: its rows are those of that branch"
    mode = options.get("scan.mode", "default")
    if mode not in _LATEST:
        yield "other-rows", f"option scan.mode={mode}: Paimon does not read its latest rows"
    for key in _ELSEWHERE:
        if key in options:
            said = f"option {key}={options[key]}"
            yield "other-rows", f"{said}: Paimon does not read (only) its latest rows"
    for key, value in options.items():
        if key.startswith("fields.") and key.endswith(".default-value"):
            yield "null-values", f"option {key}: Paimon before 1.3 reads its nulls as {value!r}"
        if key.endswith(".map.storage-layout") and value.lower() != "default":
            said = f"option {key}={value}"
            yield "map-layout", f"{said}: its maps are stored in a form of Paimon's own"


def file_obstacle(written: TableSchema, name: str) -> str | None:
    """Return the obstacle to reading a data file by the schema it was written with, or None."""
    if name.endswith(".orc") and switched_on(written.options, _ZONED_AS_WRITTEN, default=True):
        for field in written.all_fields():
            if any(kind.root == LOCAL_ZONED for kind in _atoms(field.field_type)):
                return (
                    f"in ORC with {field.name} {field.field_type}, whose instants Paimon moves by "
                    f"the zone of the process that writes (option {_ZONED_AS_WRITTEN})"
                )
    return None


def value_change(old: TableSchema, new: TableSchema) -> str | None:
    """Return a column with values in older files that Paimon changes when reading, or None.

    Iceberg has neither lengths, nor times coarser than microseconds, nor numbers under 32 bits: it
    reads such values unchanged, where Paimon truncates, pads or wraps them.
    """
    before = {field.field_id: field for field in old.all_fields()}
    for field in new.all_fields():
        known = before.get(field.field_id)
        if known is not None and not _kept(known.field_type, field.field_type):
            was, is_ = known.field_type, field.field_type
            return f"{field.name} changed from {was} to {is_}, for which Paimon changes the values"
    return None


def _kept(old: DataType, new: DataType) -> bool:
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        # Other shapes are compared as Iceberg types, fields of ROWs separately.
        inner = zip(children(old), children(new), strict=False)
        same = type(old) is type(new)
        return not same or all(_kept(was, is_) for was, is_ in inner)
    if (old.root, old.parameters) == (new.root, new.parameters):
        return True
    if old.root in _NARROW and new.root in _NARROW:
        return _NARROW[old.root] < _NARROW[new.root]
    if {old.root, new.root} <= _TEXT or {old.root, new.root} <= _BYTES:
        return new.root.startswith("VAR") and old.parameters[0] <= new.parameters[0]
    if old.root == new.root and old.root in _TIMESTAMPS:
        return old.parameters[0] <= new.parameters[0]
    return True


def _atoms(kind: DataType) -> Iterator[AtomicType]:
    if isinstance(kind, AtomicType):
        yield kind
    for child in children(kind):
        yield from _atoms(child)


_WORD: Final = 8
_INLINE: Final = 0x80
_COMPACT_DECIMAL: Final = 18
_MILLISECONDS: Final = 3
_NUMBER_FORMATS: Final = {
    "BOOLEAN": "<?",
    "TINYINT": "<b",
    "SMALLINT": "<h",
    "INT": "<i",
    "BIGINT": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
    "DATE": "<i",
    "TIME": "<i",
}


def read_row(data: bytes, fields: Sequence[DataField]) -> tuple[Any, ...]:
    """Return the values of a row for Iceberg: dates in days, times in microseconds."""
    try:
        (count,) = struct.unpack_from(">i", data)
        if count != len(fields):
            raise CorruptFileError(
                f"A partition has {count} values, its keys are {len(fields)}",
                hint="Restore the manifest from a backup, or roll the table back in Paimon.",
            )
        return tuple(_value(data[4:], at, len(fields), field) for at, field in enumerate(fields))
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptFileError(
            f"A partition of a manifest cannot be read: {error}",
            hint="Restore the manifest from a backup, or roll the table back in Paimon.",
        ) from error


def _value(row: bytes, at: int, count: int, field: DataField) -> Any:
    bit = at + 8
    if row[bit // 8] >> (bit % 8) & 1:
        return None
    start = (count + 63 + 8) // 64 * _WORD + at * _WORD
    kind = field.field_type
    if not isinstance(kind, AtomicType):
        raise UnsupportedError(
            f"Partition key {field.name}: {kind} cannot be read",
            hint="Bring the table over without this partition key, through Spark or Flink.",
        )
    if kind.root in _NUMBER_FORMATS:
        (value,) = struct.unpack_from(_NUMBER_FORMATS[kind.root], row, start)
        return value * 1000 if kind.root == "TIME" else value
    if kind.root in {"CHAR", "VARCHAR"}:
        return _bytes(row, start).decode("utf-8")
    if kind.root in {"BINARY", "VARBINARY"}:
        return _bytes(row, start)
    if kind.root == "DECIMAL":
        return _decimal(row, start, *kind.parameters)
    if kind.root in {"TIMESTAMP", LOCAL_ZONED}:
        return _timestamp(row, start, kind.parameters[0])
    raise UnsupportedError(
        f"Partition key {field.name}: {kind} cannot be read",
        hint="Bring the table over without this partition key, through Spark or Flink.",
    )


def _bytes(row: bytes, start: int) -> bytes:
    mark = row[start + _WORD - 1]
    if mark & _INLINE:
        return row[start : start + (mark & ~_INLINE)]
    size, offset = struct.unpack_from("<II", row, start)
    return _slice(row, offset, size)


def _decimal(row: bytes, start: int, precision: int, scale: int) -> Decimal:
    if precision <= _COMPACT_DECIMAL:
        (number,) = struct.unpack_from("<q", row, start)
    else:
        size, offset = struct.unpack_from("<II", row, start)
        number = int.from_bytes(_slice(row, offset, size), "big", signed=True)
    return scaled(number, scale)


def _timestamp(row: bytes, start: int, precision: int) -> int:
    if precision <= _MILLISECONDS:
        (milliseconds,) = struct.unpack_from("<q", row, start)
        return int(milliseconds) * 1000
    nanoseconds, offset = struct.unpack_from("<II", row, start)
    (milliseconds,) = struct.unpack_from("<q", row, offset)
    return int(milliseconds) * 1000 + int(nanoseconds) // 1000


def _slice(row: bytes, offset: int, size: int) -> bytes:
    found = row[offset : offset + size]
    if len(found) != size:
        raise IndexError("it is cut short")
    return found
