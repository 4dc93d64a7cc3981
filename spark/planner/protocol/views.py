"""Messages about views: names, descriptions, creation, changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import Message, Repeatable, Unrepeatable
from icecomb.spark.planner.protocol.tables import TableName


@dataclass(frozen=True, slots=True)
class ListViews(Repeatable):
    """Request to list the views of a namespace. Answer: `TableNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewExists(Repeatable):
    """Request to check whether a view exists. Answer: `Exists`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class LoadView(Repeatable):
    """Request to load a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class ViewDescription(Message):
    """The description of an existing or new view.

    Args:
        query: The query in Spark SQL.
        query_columns: The query's own names of the columns; empty if unknown.
        current_catalog: The catalog of the query's names without a catalog.
        current_namespace: The namespace of the query's names without a namespace.
        settings: Settings of the session that created it, under which Spark reads the query.
        schema_mode: Spark's behavior when the query's columns have changed; null if unknown.
        properties: The properties shown to users.
    """

    query: str
    schema: Any
    query_columns: tuple[str, ...]
    current_catalog: str
    current_namespace: tuple[str, ...]
    settings: Mapping[str, str]
    schema_mode: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateView(Unrepeatable):
    """Request to create a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName
    definition: ViewDescription


@dataclass(frozen=True, slots=True)
class ReplaceView(Unrepeatable):
    """Request to replace a view and all its properties. Answer: `ViewDescription`.

    Args:
        create: Whether to create it if it does not exist.
    """

    catalog: str
    view: TableName
    definition: ViewDescription
    create: bool


@dataclass(frozen=True, slots=True)
class AlterView(Unrepeatable):
    """Request to set and remove properties of a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName
    set: Mapping[str, str]
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropView(Unrepeatable):
    """Request to drop a view. Answer: `Dropped`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class RenameView(Unrepeatable):
    """Request to rename a view. Answer: `Done`."""

    catalog: str
    view: TableName
    target: TableName
