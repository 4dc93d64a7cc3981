"""Bringing a Paimon append table over: an Iceberg table of the same data files, where they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.definition import Draft, TableDefinition
from icecomb.catalog.paimon.binary_row import read_row
from icecomb.catalog.paimon.data_file_identity import examine
from icecomb.catalog.paimon.iceberg import (
    iceberg_name_mapping,
    iceberg_partition_spec,
    iceberg_properties,
    iceberg_schema,
    unreadable,
)
from icecomb.catalog.paimon.obstacle import file_obstacle, table_obstacles, value_change
from icecomb.catalog.table_creation import CreateTableTransaction
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    FileMissingError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.append import FastAppend
from icecomb.format.rows.added_file import AddedFiles
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_json
from icecomb.format.spec.types import (
    DateType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.paimon.snapshot import DataFileEntry, Snapshot
    from icecomb.catalog.paimon.source import PaimonSource
    from icecomb.catalog.paimon.table_schema import TableSchema
    from icecomb.catalog.table import Table
    from icecomb.format.manifests.manifest import DataFile

NAME_MAPPING: Final = "schema.name-mapping.default"
_FORMATS: Final = (".parquet", ".orc")
_AS_TEXT: Final = (DateType, TimeType, TimestampType, TimestamptzType)


@dataclass(slots=True)
class ImportPlan:
    """What bringing a table over would do.

    Attributes:
        source: The Paimon table.
        schema: Its latest schema.
        snapshot: Its latest snapshot; None if it has no data.
        blockers: Why it cannot be done, all reasons at once; none if it can.
        files: The data files as Iceberg describes them.
        schema_of_iceberg, spec, properties: What the Iceberg table gets.
        last_column_id: The highest id that a field of the files has, dropped ones included.
    """

    source: PaimonSource
    schema: TableSchema
    snapshot: Snapshot | None
    blockers: list[str] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)
    schema_of_iceberg: Schema = field(default_factory=Schema)
    last_column_id: int = 0
    spec: PartitionSpec = field(default_factory=PartitionSpec)
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.record_count for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs and people."""
        return {
            "source": self.source.name,
            "location": self.source.location,
            "schema": self.schema.schema_id,
            "snapshot": self.snapshot.snapshot_id if self.snapshot else None,
            "files": len(self.files),
            "rows": self.rows,
            "columns": [str(one) for one in self.schema_of_iceberg.fields],
            "partitioned by": list(self.schema.partition_keys),
            "blockers": self.blockers,
        }


class ImportBlockedError(ValidationError):
    """A Paimon table cannot be brought over; `context["blockers"]` has all reasons."""


def plan_import(source: PaimonSource) -> ImportPlan:
    """Look at everything that bringing a table over depends on; nothing is changed.

    Of each data file the footer is read, of ORC files all rows.

    Raises:
        NoSuchTableError: There is no Paimon table.
        CorruptFileError: A schema, snapshot, manifest or data file cannot be read.
        UnsupportedError: A snapshot or manifest is of an unknown version or form.
        CommitFailedError: The table changed meanwhile, and files that were looked for are gone.
    """
    # A schema is there before the first snapshot that has files of it.
    snapshot = source.snapshots.latest()
    plan = ImportPlan(source, source.schemas.latest(), snapshot)
    try:
        return _filled(plan)
    except (CorruptFileError, FileMissingError):
        _check_unchanged(plan)
        raise


def _filled(plan: ImportPlan) -> ImportPlan:
    schema, source = plan.schema, plan.source
    _check_table(plan)
    try:
        plan.schema_of_iceberg = iceberg_schema(schema)
        plan.spec = iceberg_partition_spec(schema)
    except UnsupportedError as error:
        plan.blockers.append(error.message)
    # Other owners of the files must not see them vanish: Paimon's table goes on to name them.
    plan.properties = {**iceberg_properties(schema), "gc.enabled": "false"}
    if not plan.blockers:
        entries = [] if plan.snapshot is None else source.snapshots.files(plan.snapshot)
        _check_entries(plan, entries)
        if not plan.blockers:
            _describe(plan, entries)
    return plan


def draft_import(plan: ImportPlan, catalog: Catalog, identifier: str) -> Draft:
    """The table that an import without blockers begins with; nothing is written.

    Raises:
        TableAlreadyExistsError: The name is taken.
        NoSuchNamespaceError: There is no such namespace.
    """
    # Paimon may have dropped columns that files still have: no later one may get their ids.
    last_column_id = max(plan.last_column_id, plan.schema.highest_field_id)
    return catalog.draft(
        identifier,
        TableDefinition(
            plan.schema_of_iceberg,
            partition_spec=plan.spec,
            properties=plan.properties,
            last_column_id=last_column_id,
        ),
    )


def run_import(plan: ImportPlan, catalog: Catalog, identifier: str) -> Table:
    """Make the Iceberg table; it appears with all rows or not at all.

    Raises:
        ImportBlockedError: The plan has blockers; nothing was changed.
        CommitFailedError: The Paimon table is not any more what was planned; nothing was changed.
        TableAlreadyExistsError: The name is taken.
        CommitStateUnknownError: It cannot be told whether the table was made.
    """
    if plan.blockers:
        raise ImportBlockedError(
            f"{plan.source.name} cannot be brought over: {plan.blockers[0]}",
            hint="icecomb paimon import without --yes lists all reasons.",
            blockers=plan.blockers,
        )
    _check_unchanged(plan)
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


def _check_unchanged(plan: ImportPlan) -> None:
    now = plan.source.snapshots.latest()
    planned, latest = (one.snapshot_id if one else None for one in (plan.snapshot, now))
    schema = plan.source.schemas.ids()[-1]
    if (planned, plan.schema.schema_id) != (latest, schema):
        raise CommitFailedError(
            f"{plan.source.name} changed while it was read: snapshot {planned} with "
            f"schema-{plan.schema.schema_id} became snapshot {latest} with schema-{schema}",
            hint="Nothing was made. Stop what writes or compacts the table, and run it again.",
        )


def _check_table(plan: ImportPlan) -> None:
    plan.blockers += table_obstacles(plan.schema)
    snapshot = plan.snapshot
    if snapshot is not None and "DELETION_VECTORS" in plan.source.snapshots.index_kinds(snapshot):
        plan.blockers.append(
            "it has deletion vectors: rows of its files are deleted; compact it fully with Paimon"
        )


def _check_entries(plan: ImportPlan, entries: Sequence[DataFileEntry]) -> None:
    written = {number: plan.source.schemas.read(number) for number in _schema_ids(entries)}
    found: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if not entry.name.endswith(_FORMATS):
            found["neither Parquet nor ORC"].append(entry.name)
        if entry.deleted_rows:
            found["with deletions of rows"].append(entry.name)
        columns = {f.name for f in written[entry.schema_id].fields}
        if entry.write_columns is not None and not columns <= set(entry.write_columns):
            found["with only some of the columns"].append(entry.name)
        obstacle = file_obstacle(written[entry.schema_id], entry.name)
        if obstacle is not None:
            found[obstacle].append(entry.name)
    plan.blockers += [
        f"it has {len(names)} data files {what}, the first is {names[0]}"
        for what, names in found.items()
    ]


def _describe(plan: ImportPlan, entries: Sequence[DataFileEntry]) -> None:
    locations = _locations(plan, entries)
    groups: dict[tuple[int, bytes], list[DataFileEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.schema_id, entry.partition].append(entry)
    written = {number: plan.source.schemas.read(number) for number, _ in groups}
    by_name: dict[int, TableSchema] = {}
    keys = {f.name: f for f in plan.schema.fields}
    for (number, packed), group in groups.items():
        schema = iceberg_schema(written[number])
        plan.last_column_id = max(plan.last_column_id, schema.highest_field_id)
        reason = unreadable(schema, plan.schema_of_iceberg)
        reason = reason or value_change(written[number], plan.schema)
        if reason is not None:
            plan.blockers.append(
                f"{len(group)} data files were written with schema-{number}: {reason}"
            )
            continue
        values = read_row(packed, [keys[name] for name in plan.schema.partition_keys])
        partition = _partition(plan, values)
        described = TableDefinition(
            _as_strict(schema, plan), partition_spec=plan.spec, last_column_id=0
        ).metadata(plan.source.location)
        describer = AddedFiles(plan.source.io, described, partition)
        for entry in group:
            location = locations[entry.name, entry.bucket]
            try:
                with_ids, wrong = examine(plan.source.io, location, schema)
                if wrong is not None:
                    plan.blockers.append(f"{location}: {wrong}")
                    continue
                if not with_ids:
                    by_name[number] = written[number]
                file = describer.describe(location)
            except CorruptFileError:
                raise
            except ValidationError as error:
                plan.blockers.append(error.message)
                continue
            if (file.record_count, file.file_size_in_bytes) != (entry.row_count, entry.size):
                raise CorruptFileError(
                    f"{location} has {file.record_count} rows and {file.file_size_in_bytes} bytes, "
                    f"its manifest says {entry.row_count} and {entry.size}",
                    hint="restore that file from a backup, or compact its partition in Paimon",
                    path=location,
                )
            plan.files.append(file)
    older = [by_name[number] for number in sorted(by_name, reverse=True)]
    try:
        plan.properties[NAME_MAPPING] = iceberg_name_mapping(plan.schema, older).to_json()
    except ValidationError as error:
        plan.blockers.append(f"data files have no field ids, and {error.message}")
    if plan.blockers:
        plan.files.clear()


def _locations(plan: ImportPlan, entries: Sequence[DataFileEntry]) -> dict[tuple[str, int], str]:
    """Where the data files are: how partitions are spelled in folders depends on options."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for status in plan.source.io.list(plan.source.location.rstrip("/")):
        folder, _, name = status.location.rpartition("/")
        found[name, folder.rpartition("/")[2]].append(status.location)
    out: dict[tuple[str, int], str] = {}
    for entry in entries:
        candidates = found[entry.name, f"bucket-{entry.bucket}"]
        if entry.external_path is not None:
            candidates = [entry.external_path]
        if (entry.name, entry.bucket) in out:
            raise CorruptFileError(
                f"data file {entry.name} of bucket {entry.bucket} is named twice by the manifests "
                f"of {plan.source.location}",
                hint="repair the table in Paimon, or roll it back to an older snapshot there",
                path=plan.source.location,
            )
        if len(candidates) != 1:
            what = "is missing" if not candidates else f"occurs {len(candidates)} times"
            raise CorruptFileError(
                f"data file {entry.name} of bucket {entry.bucket} {what} in {plan.source.location}",
                hint="restore that file from a backup, or roll the table back in Paimon",
                path=plan.source.location,
            )
        out[entry.name, entry.bucket] = candidates[0]
    return out


def _schema_ids(entries: Sequence[DataFileEntry]) -> set[int]:
    return {entry.schema_id for entry in entries}


def _partition(plan: ImportPlan, values: Sequence[Any]) -> Mapping[str, Any]:
    out: dict[str, Any] = {}
    for name, value in zip(plan.schema.partition_keys, values, strict=True):
        kind = plan.schema_of_iceberg.find_type(name)
        textual = value is not None and isinstance(kind, _AS_TEXT)
        out[name] = to_json(kind, value) if textual and isinstance(kind, PrimitiveType) else value
    return out


def _as_strict(older: Schema, plan: ImportPlan) -> Schema:
    """An older schema in which what is NOT NULL by now must not be null in its files."""
    required = {f.field_id for f in plan.schema_of_iceberg.fields if f.required}
    fields = (replace(f, required=f.required or f.field_id in required) for f in older.fields)
    return Schema(tuple(fields), older.schema_id)
