"""Tables of a catalog: listed, loaded, created, dropped, renamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import NoSuchTableError, UnsupportedError
from icecomb.spark.partitioning import partition_spec, spark_transforms
from icecomb.spark.planner.alterations import alter_table
from icecomb.spark.planner.audit import Audit
from icecomb.spark.planner.catalogs import Catalogs, one_level
from icecomb.spark.planner.staging import StagedTables
from icecomb.spark.planner.states import TableState, TableStates, at_time, at_version
from icecomb.spark.schema import iceberg_schema, spark_schema

if TYPE_CHECKING:
    from icecomb.format.partition import PartitionSpec
    from icecomb.format.schema import Schema

# what Spark says about a new table beside the user's own properties; owner and comment stay
# properties
_SPARKS_OWN: Final = frozenset({"provider", "location", "external", "is_managed_location"})
_OPTION_COPY: Final = "option."


class Tables:
    """The methods of the protocol that name a table."""

    def __init__(self, catalogs: Catalogs, states: TableStates, staged: StagedTables) -> None:
        self._catalogs = catalogs
        self._states = states
        self._staged = staged

    def list_tables(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: list_tables."""
        found = self._catalogs[params["catalog"]].list_tables(one_level(params["namespace"]))
        return {"tables": [{"namespace": list(i[:-1]), "name": i[-1]} for i in found]}

    def table_exists(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: table_exists."""
        catalog = self._catalogs[params["catalog"]]
        return {"exists": catalog.table_exists(_identifier(params))}

    def load_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: load_table."""
        state = self._states.load(params["catalog"], params["namespace"], params["name"])
        audit = Audit.of(params)
        if (version := params.get("version")) is not None:
            state = at_version(state, version)
        elif (timestamp_us := params.get("timestamp_us")) is not None:
            state = at_time(state, timestamp_us)
        elif (branch := audit.branch_to_read(state.metadata)) is not None:
            state = replace(state, ref=branch)
        return table_answer(state)

    def create_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: create_table."""
        catalog = self._catalogs[params["catalog"]]
        table = catalog.create_table(*_definition(params))
        return table_answer(self._states.pin(params["catalog"], table))

    def stage_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: stage_table. The table is made, or replaced, by commit_staged."""
        catalog = self._catalogs[params["catalog"]]
        begin = {
            "create": catalog.create_table_transaction,
            "replace": catalog.replace_table_transaction,
            "create_or_replace": catalog.create_or_replace_table_transaction,
        }[params["operation"]]
        definition = _definition(params)
        state = self._staged.add(params["catalog"], definition[0], begin(*definition))
        return table_answer(state)

    def drop_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: drop_table."""
        catalog = self._catalogs[params["catalog"]]
        if params["purge"]:
            raise UnsupportedError(
                "DROP TABLE … PURGE is not there yet",
                hint="DROP TABLE takes the table out of the catalog and keeps its files",
            )
        try:
            catalog.drop_table(_identifier(params))
        except NoSuchTableError as error:
            if type(error) is not NoSuchTableError:
                raise
            return {"dropped": False}
        return {"dropped": True}

    def rename_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: rename_table."""
        self._catalogs[params["catalog"]].rename_table(
            _identifier(params["from"]), _identifier(params["to"])
        )
        return {}

    def alter_table(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: alter_table."""
        table = self._catalogs[params["catalog"]].load_table(_identifier(params))
        alter_table(table, params["changes"])
        return table_answer(self._states.pin(params["catalog"], table))


def table_answer(state: TableState) -> dict[str, Any]:
    """What the bridge learns about a table."""
    return {
        "reference": state.reference(),
        "schema": spark_schema(state.schema),
        "partitioning": _partitioning(state),
        "properties": _shown_properties(state),
        "uuid": str(state.metadata.table_uuid),
        # never null: Spark would read an empty table as empty for ever, see V2TableRefreshUtil
        "version": _version(state),
        "writable": not state.time_travel,
    }


def _partitioning(state: TableState) -> list[dict[str, Any]]:
    # an old schema may lack the columns of today's spec, and a version is not written to anyway
    if state.schema.schema_id != state.metadata.current_schema_id:
        return []
    return spark_transforms(state.metadata.spec(), state.schema)


def _shown_properties(state: TableState) -> dict[str, str]:
    metadata = state.metadata
    return {
        **metadata.properties,
        "provider": "iceberg",
        "location": metadata.location,
        "format": f"iceberg/{metadata.properties.get('write.format.default', 'parquet')}",
        "format-version": str(metadata.format_version),
        "current-snapshot-id": _version(state),
    }


def _version(state: TableState) -> str:
    return "none" if state.snapshot_id is None else str(state.snapshot_id)


def _definition(
    params: Mapping[str, Any],
) -> tuple[tuple[str, ...], Schema, str | None, PartitionSpec, None, dict[str, str]]:
    """What a catalog makes tables of: the arguments of `Catalog.create_table`.

    Raises:
        UnsupportedError: The statement says USING something else.
    """
    properties: dict[str, str] = params["properties"]
    provider = properties.get("provider", "iceberg")
    if provider.lower() != "iceberg":
        raise UnsupportedError(
            f"this catalog creates Iceberg tables, not {provider}",
            hint="write USING iceberg, or create the table in spark_catalog",
        )
    schema = iceberg_schema(params["schema"])
    spec = partition_spec(params["partitioning"], schema)
    unsorted = None
    return (
        _identifier(params),
        schema,
        properties.get("location"),
        spec,
        unsorted,
        _own_properties(properties),
    )


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in properties.items()
        if key not in _SPARKS_OWN and not key.startswith(_OPTION_COPY)
    }


def _identifier(named: Mapping[str, Any]) -> tuple[str, ...]:
    return (*one_level(named["namespace"]), named["name"])
