"""The protocol's methods that list, load, create, change, rename and drop tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import NoSuchNamespaceError, NoSuchSnapshotError, NoSuchTableError
from icecomb.format.property.table_property import (
    ACCEPT_ANY_SCHEMA,
    DATA_FORMAT,
    PARTITION_OVERWRITE_MODE,
    SCHEMA_EVOLUTION,
)
from icecomb.format.rows.values.metadata_columns import lineage
from icecomb.spark.partitioning import spark_transforms
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
from icecomb.spark.planner.table.alterations import alter_table
from icecomb.spark.planner.table.audit import branch_to_read, identity_of
from icecomb.spark.planner.table.catalogs import Catalogs, one_level
from icecomb.spark.planner.table.metadata_columns import partition_struct
from icecomb.spark.planner.table.selectors import at_time, at_version
from icecomb.spark.planner.table.staging import StagedTables
from icecomb.spark.planner.table.states import TableState, TableStates
from icecomb.spark.planner.table.table_definition import copied_definition, parsed_definition
from icecomb.spark.planner.table.table_name import identifier, is_location, name_or_location, named
from icecomb.spark.schema import check_has_type, shown_schema, spark_schema

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata


class Tables:
    """The protocol's methods that name a table."""

    def __init__(self, catalogs: Catalogs, states: TableStates, staged: StagedTables) -> None:
        self._catalogs = catalogs
        self._states = states
        self._staged = staged

    def list_tables(self, request: ListTables) -> TableNames:
        """Answer `ListTables`."""
        found = self._catalogs[request.catalog].list_tables(one_level(request.namespace))
        return TableNames(tuple(TableName(tuple(i[:-1]), i[-1]) for i in found))

    def table_exists(self, request: TableExists) -> Exists:
        """Answer `TableExists`."""
        meant = named(request.table)
        if meant.selector is None and not is_location(meant.identifier):
            return Exists(self._catalogs[request.catalog].table_exists(meant.identifier))
        try:
            self._states.load(request.catalog, request.table)
        except (NoSuchTableError, NoSuchSnapshotError, NoSuchNamespaceError):
            return Exists(exists=False)
        return Exists(exists=True)

    def load_table(self, request: LoadTable) -> TableDescription:
        """Answer `LoadTable`."""
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
        """Answer `CreateTable`."""
        definition = parsed_definition(request.definition)
        name = definition[0]
        catalog, own = self._catalogs.home(request.catalog, name)
        return self._described(request.catalog, name, catalog.create_table(own, *definition[1:]))

    def create_table_like(self, request: CreateTableLike) -> TableDescription:
        """Answer `CreateTableLike`."""
        source = self._states.find(request.source)
        definition = copied_definition(request.table, source, request.properties)
        name = definition[0]
        catalog, own = self._catalogs.home(request.catalog, name)
        return self._described(request.catalog, name, catalog.create_table(own, *definition[1:]))

    def stage_table(self, request: StageTable) -> TableDescription:
        """Answer `StageTable`."""
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
        """Answer `DropTable`."""
        try:
            catalog, own = self._catalogs.home(request.catalog, name_or_location(request.table))
            catalog.drop_table(own, purge_requested=request.purge)
        except NoSuchTableError as error:
            if type(error) is not NoSuchTableError:
                raise
            return Dropped(dropped=False)
        return Dropped(dropped=True)

    def rename_table(self, request: RenameTable) -> Done:
        """Answer `RenameTable`."""
        self._catalogs[request.catalog].rename_table(
            identifier(request.table), identifier(request.target)
        )
        return Done()

    def alter_table(self, request: AlterTable) -> TableDescription:
        """Answer `AlterTable`."""
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
