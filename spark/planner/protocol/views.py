"""Views: named, described, made, changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable, Unrepeatable
from icecomb.spark.planner.protocol.tables import TableName


@dataclass(frozen=True, slots=True)
class ListViews(Repeatable):
    """Names the views of a namespace. Answer: `TableNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewExists(Repeatable):
    """Asks whether there is a view. Answer: `Exists`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class LoadView(Repeatable):
    """Asks for a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class ViewDescription(Message):
    """A view, as it is or is to be.

    Args:
        query: Its SQL, in the dialect of Spark.
        schema: Its columns, as Spark's schema.
        query_columns: The names that the query itself gives them; empty where nobody says.
        current_catalog: Where the query's names without a catalog are.
        current_namespace: Where those without a namespace are.
        settings: Of the session that made it, under which Spark reads the query.
        schema_mode: What Spark does when the query's columns have changed; null where nobody says.
        properties: As users see them.
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
    """Makes a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName
    definition: ViewDescription


@dataclass(frozen=True, slots=True)
class ReplaceView(Unrepeatable):
    """Makes a view another one; properties that are not given go. Answer: `ViewDescription`.

    Args:
        catalog: The catalog's handle.
        view: Its name.
        definition: What it becomes.
        create: Whether it is made where there is none.
    """

    catalog: str
    view: TableName
    definition: ViewDescription
    create: bool


@dataclass(frozen=True, slots=True)
class AlterView(Unrepeatable):
    """Sets and removes properties of a view. Answer: `ViewDescription`."""

    catalog: str
    view: TableName
    set: Mapping[str, str]
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropView(Unrepeatable):
    """Drops a view. Answer: `Dropped`."""

    catalog: str
    view: TableName


@dataclass(frozen=True, slots=True)
class RenameView(Unrepeatable):
    """Gives a view another name. Answer: `Done`."""

    catalog: str
    view: TableName
    target: TableName
