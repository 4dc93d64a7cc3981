"""The protocol's methods that list, load, create, change, rename and drop tables."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import (
    CommitFailedError,
    NoSuchNamespaceError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.expressions.sql.parser import constant_of
from icecomb.format.property.table_property import (
    ACCEPT_ANY_SCHEMA,
    DATA_FORMAT,
    ENTRY_PROPERTIES,
    FOLDER_PATHS,
    FORMER_FOLDERS,
    GC_ENABLED,
    NAME_MAPPING,
    PARTITION_OVERWRITE_MODE,
    RESERVED_PROPERTIES,
    SCHEMA_EVOLUTION,
)
from icecomb.format.property.way_back import has_way_back
from icecomb.format.rows.values.metadata_columns import lineage
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.partitioning import partition_spec, spark_transforms
from icecomb.spark.planner.protocol.catalogs import Done, Dropped
from icecomb.spark.planner.protocol.tables import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropTable,
    Exists,
    ListTables,
    LoadTable,
    RenameTable,
    StageTable,
    TableDescription,
    TableExists,
    TableName,
    TableNames,
)
from icecomb.spark.planner.statements.change import change_by_statement
from icecomb.spark.planner.table.audit import branch_to_read, identity_of
from icecomb.spark.planner.table.catalogs import Catalogs, one_level
from icecomb.spark.planner.table.selectors import at_time, at_version
from icecomb.spark.planner.table.states import (
    TableState,
    TableStates,
    identifier,
    is_location,
    name_or_location,
    named,
)
from icecomb.spark.schema import (
    check_has_type,
    defined_schema,
    iceberg_type,
    shown_schema,
    spark_schema,
    spark_struct,
    spark_type,
)
from icecomb.spark.values import shown_to_json

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.evolution.schema_update import UpdateSchema
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.spark.planner.protocol.tables import NewTable, TableReference


class Tables:
    """The protocol's methods that name a table."""

    def __init__(self, catalogs: Catalogs, states: TableStates, staged: StagedTables) -> None:
        self._catalogs = catalogs
        self._states = states
        self._staged = staged

    def list_tables(self, request: ListTables) -> TableNames:
        found = self._catalogs[request.catalog].list_tables(one_level(request.namespace))
        return TableNames(tuple(TableName(tuple(i[:-1]), i[-1]) for i in found))

    def table_exists(self, request: TableExists) -> Exists:
        meant = named(request.table)
        if meant.selector is None and not is_location(meant.identifier):
            return Exists(self._catalogs[request.catalog].table_exists(meant.identifier))
        try:
            self._states.load(request.catalog, request.table)
        except (NoSuchTableError, NoSuchSnapshotError, NoSuchNamespaceError):
            return Exists(exists=False)
        return Exists(exists=True)

    def load_table(self, request: LoadTable) -> TableDescription:
        state = self._states.load(request.catalog, request.table)
        if request.version is not None:
            state = at_version(state, request.version)
        elif request.timestamp_us is not None:
            state = at_time(state, request.timestamp_us)
        elif not state.is_selected and (branch := branch_to_read(request.audit, state.metadata)):
            state = replace(state, ref=branch)
        return replace(
            described(state, identity_of(request.audit, state)),
            below=named(request.table).selector is not None,
        )

    def create_table(self, request: CreateTable) -> TableDescription:
        definition = parsed_definition(request.definition)
        name = definition[0]
        catalog, own = self._catalogs.home(request.catalog, name)
        return self._described(request.catalog, name, catalog.create_table(own, *definition[1:]))

    def create_table_like(self, request: CreateTableLike) -> TableDescription:
        source = self._states.find(request.source)
        definition = copied_definition(request.table, source, request.properties)
        name = definition[0]
        catalog, own = self._catalogs.home(request.catalog, name)
        return self._described(request.catalog, name, catalog.create_table(own, *definition[1:]))

    def stage_table(self, request: StageTable) -> TableDescription:
        definition = parsed_definition(request.definition)
        name = definition[0]
        catalog, own = self._catalogs.home(request.catalog, name)
        begin = {
            "create": catalog.create_table_transaction,
            "replace": catalog.replace_table_transaction,
            "create_or_replace": catalog.create_or_replace_table_transaction,
        }[request.operation]
        return described(self._staged.add(request.catalog, name, begin(own, *definition[1:])))

    def drop_table(self, request: DropTable) -> Dropped:
        try:
            catalog, own = self._catalogs.home(request.catalog, name_or_location(request.table))
            catalog.drop_table(own, purge_requested=request.purge)
        except NoSuchTableError as error:
            if type(error) is not NoSuchTableError:
                raise
            return Dropped(dropped=False)
        return Dropped(dropped=True)

    def rename_table(self, request: RenameTable) -> Done:
        self._catalogs[request.catalog].rename_table(
            identifier(request.table), identifier(request.target)
        )
        return Done()

    def alter_table(self, request: AlterTable) -> TableDescription:
        name = name_or_location(request.table)
        table = self._catalogs.load_table(request.catalog, name)
        alter_table(table, request.changes)
        return self._described(request.catalog, name, table)

    def _described(self, catalog: str, name: tuple[str, ...], table: Table) -> TableDescription:
        return described(replace(self._states.pin(catalog, table), identifier=name))


def described(state: TableState, identity: str | None = None) -> TableDescription:
    """Return the description of a table for the bridge.

    Args:
        identity: The identity, see `TableDescription`; by default the table's uuid.
    """
    return TableDescription(
        reference=state.reference(),
        schema=_schema(state),
        partitioning=tuple(_partitioning(state)),
        partition_type=partition_struct(
            state.metadata, state.scan().schema(), downcast=state.downcasts
        ),
        properties=_shown_properties(state),
        uuid=str(state.metadata.table_uuid),
        identity=identity or str(state.metadata.table_uuid),
        # metadata tables change with the metadata, not with the rows
        version=_version(state) if state.metadata_table is None else state.metadata_location,
        has_files=state.has_files,
        takes_any_rows=state.metadata_table is None and takes_any_rows(state.metadata),
        evolves=not state.is_read_only and SCHEMA_EVOLUTION.of(state.metadata.properties),
        overwrite_mode=PARTITION_OVERWRITE_MODE.of(state.metadata.properties) or None,
        has_lineage=(state.has_files and not state.moves_rows and bool(lineage(state.metadata))),
        table=state.identifier,
        below=False,
    )


def _schema(state: TableState) -> dict[str, Any]:
    if state.has_files:
        return shown_schema(state.schema, downcast=state.downcasts)
    for field in state.schema.fields:
        check_has_type(field, downcast=state.downcasts)
    return spark_schema(state.schema)


def _partitioning(state: TableState) -> list[dict[str, Any]]:
    if state.metadata_table is not None:
        return []
    # an old schema may lack columns of the current spec, and past versions are not written to
    if state.schema.schema_id != state.metadata.current_schema_id:
        return []
    return spark_transforms(state.metadata.spec(), state.schema)


def _shown_properties(state: TableState) -> dict[str, str]:
    metadata = state.metadata
    return {
        **(metadata.properties if state.metadata_table is None else {}),
        "provider": "iceberg",
        "location": metadata.location,
        "format": f"iceberg/{metadata.properties.get(DATA_FORMAT.key, DATA_FORMAT.default)}",
        "format-version": str(metadata.format_version),
        "current-snapshot-id": _version(state),
    }


def _version(state: TableState) -> str:
    return "none" if state.snapshot_id is None else str(state.snapshot_id)


def takes_any_rows(metadata: TableMetadata) -> bool:
    """Return whether Spark should leave the comparison of rows with the table to icecomb."""
    return ACCEPT_ANY_SCHEMA.of(metadata.properties)


_PROPERTIES: Final = frozenset({"set_property", "remove_property"})
_STATEMENT: Final = "statement"
_COLUMNS: Final = frozenset(
    {
        "add_column",
        "rename_column",
        "update_column_type",
        "update_column_nullability",
        "update_column_comment",
        "update_column_position",
        "update_column_default",
        "delete_column",
    }
)


def alter_table(table: Table, changes: Sequence[Mapping[str, Any]]) -> None:
    """Apply the changes of one statement, as in the protocol; the table gets the new metadata."""
    _check_known(changes)
    with table.transaction() as transaction:
        properties = [change for change in changes if change["action"] in _PROPERTIES]
        if properties:
            _alter_properties(transaction, properties)
        columns = [change for change in changes if change["action"] in _COLUMNS]
        if columns:
            # Spark has resolved the names of existing columns: their case is the table's
            with transaction.update_schema() as update:
                keys = _trailing_keys(transaction.metadata)
                for change in columns:
                    _alter_column(transaction, update, change, keys)
        for change in changes:
            if change["action"] == _STATEMENT:
                change_by_statement(
                    transaction, change["text"], case_sensitive=change["case_sensitive"]
                )


def _check_known(changes: Sequence[Mapping[str, Any]]) -> None:
    unknown = [
        change.get("text") or change["action"]
        for change in changes
        if change["action"] not in _PROPERTIES | _COLUMNS | {_STATEMENT}
    ]
    if unknown:
        raise UnsupportedError(
            f"ALTER TABLE cannot do this here: {', '.join(sorted(set(unknown)))}",
            hint="Columns, properties, the comment, the location, partition fields, write order, "
            "identifier fields, branches and tags can be altered: see docs/spark.md",
        )


def _alter_properties(transaction: Transaction, changes: Sequence[Mapping[str, Any]]) -> None:
    with transaction.update_properties() as update:
        for change in changes:
            key = change["key"]
            if change["action"] == "remove_property":
                update.remove(key)
            elif key not in _ACTIONS:
                check_has_no_statement(key)
                update.set(key, change["value"])
    for change in changes:
        if change["action"] == "set_property" and change["key"] in _ACTIONS:
            _ACTIONS[change["key"]](transaction, change["value"])


def _set_current_snapshot(transaction: Transaction, snapshot_id: str) -> None:
    with transaction.manage_snapshots() as manage:
        manage.set_current_snapshot(_snapshot_id(snapshot_id))


def _cherry_pick(transaction: Transaction, snapshot_id: str) -> None:
    with transaction.manage_snapshots() as manage:
        manage.cherry_pick(_snapshot_id(snapshot_id))


def _set_location(transaction: Transaction, location: str) -> None:
    if has_way_back(transaction.metadata.properties):
        raise UnsupportedError(
            "SET LOCATION does not show the rows of another folder, as it did when the table was a "
            "Hive table: an Iceberg table knows its files",
            hint="Take files in with CALL system.add_files, or overwrite the table with SELECT * "
            "FROM parquet.`folder`; after `icecomb migrate finalize` it says where new files go.",
        )
    transaction.update_location(location)


def _snapshot_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValidationError(
            f"{text!r} is not a snapshot id",
            hint="Ids are numbers: look at the table's snapshots.",
        ) from None


_ACTIONS: Final[Mapping[str, Callable[[Transaction, str], object]]] = {
    "location": _set_location,
    "current-snapshot-id": _set_current_snapshot,
    "cherry-pick-snapshot-id": _cherry_pick,
}
"""Actions run when these are set, as in Iceberg Java: they are not stored as properties."""


def _trailing_keys(metadata: TableMetadata) -> tuple[str, ...]:
    """Return a former Hive table's partition columns, if they are its last columns.

    Hive and Spark add columns of such tables before them, and jobs that insert by position go on as
    before. Without `icecomb.partition-overwrite-mode` there are none, as in Iceberg.
    """
    if not PARTITION_OVERWRITE_MODE.of(metadata.properties):
        return ()
    keys = {
        field.source_id
        for field in metadata.spec().fields
        if isinstance(field.transform, IdentityTransform)
    }
    fields = reversed(metadata.schema().fields)
    last = itertools.takewhile(lambda field: field.field_id in keys, fields)
    return tuple(field.name for field in last)[::-1]


def _alter_column(
    transaction: Transaction,
    update: UpdateSchema,
    change: Mapping[str, Any],
    keys: Sequence[str],
) -> None:
    path = tuple(change["path"])
    match change["action"]:
        case "add_column":
            update.add_column(
                path,
                iceberg_type(change["type"], itertools.count(1)),
                change.get("comment"),
                required=not change["nullable"],
                default_value=constant_of(change["default"], ".".join(path)),
            )
            if change.get("position") is None and len(path) == 1 and keys:
                update.move_before(path, (keys[0],))
            else:
                _move(update, path, change.get("position"))
        case "rename_column":
            update.rename_column(path, change["new_name"])
        case "update_column_type":
            # a uuid is a string for Spark: the type that Spark already shows is not a change
            if change["type"] != spark_type(
                transaction.metadata.schema().find_type(".".join(path))
            ):
                update.update_column(path, iceberg_type(change["type"], itertools.count(1)))
        case "update_column_nullability":
            update.update_column(path, required=not change["nullable"])
        case "update_column_comment":
            update.update_column(path, doc=change["comment"])
        case "update_column_default":
            update.set_default_value(path, constant_of(change["default"], ".".join(path)))
        case "update_column_position":
            _move(update, path, change["position"])
        case _:
            if not change["if_exists"] or transaction.metadata.schema().contains(".".join(path)):
                update.delete_column(path)


def _move(update: UpdateSchema, path: tuple[str, ...], position: Mapping[str, Any] | None) -> None:
    if position is None:
        return
    if "after" in position:
        update.move_after(path, (*path[:-1], position["after"]))
    else:
        update.move_first(path)


STATEMENTS: Final = {
    "sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE … SET IDENTIFIER FIELDS",
}
"""Properties that Iceberg Java shows but sets by a statement of its own, and that statement."""

_PROVIDER: Final = "provider"
# added by Spark to the properties of a new table; owner and comment stay properties
_SPARKS_OWN: Final = frozenset({_PROVIDER, "location", "external", "is_managed_location"})
# shown of every table by SHOW TBLPROPERTIES and SHOW CREATE TABLE
_SHOWN_FORMAT: Final = ("format", "iceberg/")
_FORMAT_VERSION: Final = "format-version"
# locations and ownership of a table's files, and the column mapping of files without ids, do not
# apply to another table's files; the owner is the user who creates the table
_OF_OWN_FILES: Final = (
    RESERVED_PROPERTIES
    | ENTRY_PROPERTIES
    | {
        *(each.key for each in FOLDER_PATHS),
        FORMER_FOLDERS.key,
        NAME_MAPPING.key,
        GC_ENABLED.key,
        "migrated",
        "snapshot",
        "owner",
    }
)


def parsed_definition(
    definition: NewTable,
) -> tuple[tuple[str, ...], Schema, str | None, PartitionSpec, None, dict[str, str]]:
    """Convert a table definition to the arguments of `Catalog.create_table`.

    The name may be a location, see `Catalogs.home`.
    """
    properties = definition.properties
    schema = defined_schema(definition.schema)
    unsorted = None
    return (
        name_or_location(definition.table),
        schema,
        properties.get("location"),
        partition_spec(definition.partitioning, schema),
        unsorted,
        _own_properties(properties) | _data_format(properties),
    )


def copied_definition(
    table: TableName, source: TableState, given: Mapping[str, str]
) -> tuple[
    tuple[str, ...], Schema, str | None, PartitionSpec | None, SortOrder | None, dict[str, str]
]:
    """Convert CREATE TABLE … LIKE to the arguments of `Catalog.create_table`.

    The columns with their comments and identifier fields, the partitions, the write order, the
    format version and the properties are those of the source, as in Iceberg Java's
    ``createTableLike``, without properties that apply to the source's own files only. Of a metadata
    table, and of a version whose columns are not the current ones, only the columns are used.

    Args:
        given: Properties of the statement, which take precedence, including ``provider`` and
            ``location``.
    """
    name, location = name_or_location(table), given.get("location")
    own = _own_properties(given) | _data_format(given)
    metadata = source.metadata
    if source.metadata_table is not None:
        return name, source.schema, location, None, None, own
    copied = {
        key: value for key, value in metadata.properties.items() if key not in _OF_OWN_FILES
    } | {_FORMAT_VERSION: str(metadata.format_version)}
    if source.schema.schema_id != metadata.current_schema_id:
        return name, source.schema, location, None, None, copied | own
    return name, source.schema, location, metadata.spec(), metadata.sort_order(), copied | own


def check_has_no_statement(key: str) -> None:
    """Refuse properties that are set by a statement, which the hint names."""
    if key in STATEMENTS:
        raise UnsupportedError(
            f"{key!r} is not a table property: it is reserved for what it shows",
            hint=f"Use {STATEMENTS[key]}.",
        )


def _data_format(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the file format set by USING parquet, orc or avro, as in Iceberg Java."""
    provider = properties.get(_PROVIDER, "iceberg").lower()
    if provider in {"iceberg", "icecomb"}:
        return {}
    if provider not in {"parquet", "orc", "avro"}:
        raise ValidationError(
            f"This catalog creates Iceberg tables, not {provider}",
            hint="Write USING iceberg, or create the table in spark_catalog.",
        )
    given = properties.get(DATA_FORMAT.key, provider)
    if given.lower() != provider:
        raise ValidationError(
            f"USING {provider} contradicts '{DATA_FORMAT.key}'='{given}'",
            hint="Leave one of them out, or make them equal.",
        )
    return {DATA_FORMAT.key: provider}


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the user's properties, without those that SHOW CREATE TABLE adds.

    Iceberg Java ignores reserved properties of a new table, too, so that its text can be run again.
    """
    own = {}
    for key, value in properties.items():
        check_has_no_statement(key)
        name, prefix = _SHOWN_FORMAT
        shown = key in RESERVED_PROPERTIES - {_FORMAT_VERSION} or (
            key == name and value.startswith(prefix)
        )
        if not shown and key not in _SPARKS_OWN:
            own[key] = value
    return own


class StagedTables:
    """The transactions of statements that create or replace a table.

    They are lost with the planner process: their statements then fail, with nothing committed.
    """

    def __init__(self) -> None:
        self._transactions: dict[str, Transaction] = {}
        self._lock = threading.Lock()

    def add(
        self, catalog: str, identifier: tuple[str, ...], transaction: Transaction
    ) -> TableState:
        """Add a table that is being created in the catalog of a handle; return its state."""
        staged = str(uuid.uuid4())
        with self._lock:
            self._transactions[staged] = transaction
        return _state(catalog, identifier, staged, transaction)

    def find(self, reference: TableReference) -> TableState:
        """Find the state of a reference to a staged table; `CommitFailedError` if it was lost."""
        staged = reference.staged or ""
        with self._lock:
            transaction = self._transactions.get(staged)
        if transaction is None:
            raise lost(reference)
        return _state(reference.catalog, reference.identifier, staged, transaction)

    def take(self, reference: TableReference) -> Transaction | None:
        """Remove and return the transaction; None if it was lost."""
        with self._lock:
            return self._transactions.pop(reference.staged or "", None)


def _state(
    catalog: str, identifier: tuple[str, ...], staged: str, transaction: Transaction
) -> TableState:
    no_file = ""
    return TableState(
        catalog, identifier, no_file, transaction.metadata, transaction.io, staged=staged
    )


def lost(reference: TableReference) -> CommitFailedError:
    """Return the error of a statement whose transaction was lost."""
    name = ".".join(reference.identifier)
    return CommitFailedError(
        f"Table {name} was not created: the icecomb planner was restarted in the meantime",
        hint="Run the statement again.",
        table=name,
    )


def partition_struct(
    metadata: TableMetadata, schema: Schema | None = None, *, downcast: bool = False
) -> dict[str, Any] | None:
    """Return the fields of all specs as Spark's struct; None if Spark cannot represent them.

    Args:
        schema: The schema its files are read with, see `partition_union`.
        downcast: Whether nanoseconds are shown as microseconds.
    """
    try:
        fields = partition_union(metadata, schema).fields
        for field in fields:
            check_has_type(field, downcast=downcast)
        return spark_struct(fields)
    except (UnsupportedError, ValidationError):
        return None


class PartitionValues:
    """The values of `_partition` in the files of a table.

    Args:
        schema: The schema its files are read with, see `partition_union`.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self._fields = partition_union(metadata, schema).fields
        self._specs = metadata.specs()

    def of(self, file: DataFile) -> dict[str, Any] | None:
        """Return the value for a file's rows, by field name; None in an unpartitioned table."""
        if not self._fields:
            return None
        places = {f.field_id: place for place, f in enumerate(self._specs[file.spec_id].fields)}
        return {
            f.name: shown_to_json(f.field_type, file.partition[places[f.field_id]])
            if f.field_id in places
            else None
            for f in self._fields
        }
