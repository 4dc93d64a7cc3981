"""Views of a catalog, in Spark's dialect.

What Iceberg's view format lacks is stored in properties: the names of the query's own columns under
Iceberg Java's key, and what Spark needs to read the query like its author under the keys of
Spark's own views.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import NoSuchViewError, UnsupportedError
from icecomb.format.spec.view import VIEW_FORMAT_VERSION, with_properties
from icecomb.spark.planner.protocol.catalogs import Done, Dropped
from icecomb.spark.planner.protocol.tables import Exists, TableName, TableNames
from icecomb.spark.planner.protocol.views import (
    AlterView,
    CreateView,
    DropView,
    ListViews,
    LoadView,
    RenameView,
    ReplaceView,
    ViewDescription,
    ViewExists,
)
from icecomb.spark.planner.table.catalogs import Catalogs, one_level
from icecomb.spark.planner.table.states import identifier
from icecomb.spark.schema import iceberg_schema, spark_schema

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.view.view import View

_DIALECT: Final = "spark"
_QUERY_COLUMNS: Final = "spark.query-column-names"
_SETTING: Final = "view.sqlConfig."
_OF_MEANING: Final = re.compile(
    r"spark\.sql\.(?:(?:ansi|legacy|parser|function|tvf|collation)\..+|session\.timeZone"
    r"|caseSensitive|mapKeyDedupPolicy|timestampType|storeAssignmentPolicy|charAsVarchar"
    r"|readSideCharPadding|preserveCharVarcharTypeInfo|groupByOrdinal|orderByOrdinal|groupByAliases"
    r"|crossJoin\.enabled|decimalOperations\.allowPrecisionLoss|datetime\.java8API\.enabled"
    r"|jsonGenerator\.ignoreNullFields)"
)
"""The settings that say what a query means. Others name classes, files and hosts, as those of a
catalog do, and whoever writes to the view's folder could have put them there."""
_SUBSTITUTION: Final = "spark.sql.variable.substitute"
"""Whether Spark puts the reader's settings and environment into a query for `${...}`. The statement
that makes a view has had it done; a file's query could name them in a path of any host."""
_SCHEMA_MODE: Final = "view.schemaMode"
_SHOWN_ONLY: Final = frozenset({"provider", "location", "table_type", "format-version"})
"""Properties that Spark adds to every view, or icecomb to a shown one."""
_RESERVED: Final = frozenset({"provider", "location", "format-version", _QUERY_COLUMNS})
"""Properties that ALTER VIEW cannot set or unset: Iceberg's ``SparkView.RESERVED_PROPERTIES``."""


class PlannerViews:
    """The protocol's methods that name a view."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def list_views(self, request: ListViews) -> TableNames:
        found = self._catalogs[request.catalog].list_views(one_level(request.namespace))
        return TableNames(tuple(TableName(tuple(i[:-1]), i[-1]) for i in found))

    def view_exists(self, request: ViewExists) -> Exists:
        """Answer `ViewExists`; a catalog without a metastore has no views."""
        catalog, view = self._catalogs[request.catalog], request.view
        return Exists(_can_have(catalog, view) and catalog.view_exists(identifier(view)))

    def load_view(self, request: LoadView) -> ViewDescription:
        catalog, view = self._catalogs[request.catalog], request.view
        if not _can_have(catalog, view):
            raise NoSuchViewError(
                f"There is no view {'.'.join((*view.namespace, view.name))} in {catalog.name}",
                hint="Name it namespace.view, in a catalog with a metastore.",
            )
        return _described(catalog, catalog.load_view(identifier(view)))

    def create_view(self, request: CreateView) -> ViewDescription:
        catalog, definition = self._catalogs[request.catalog], request.definition
        made = catalog.create_view(
            identifier(request.view),
            iceberg_schema(definition.schema),
            {_DIALECT: definition.query},
            default_namespace=definition.current_namespace,
            default_catalog=_other_catalog(catalog, definition),
            location=definition.properties.get("location"),
            properties=_stored(definition),
        )
        return _described(catalog, made)

    def replace_view(self, request: ReplaceView) -> ViewDescription:
        """Answer `ReplaceView`; an unchanged query keeps those in other dialects."""
        catalog, wanted = self._catalogs[request.catalog], request.definition
        name = identifier(request.view)
        if request.create and not catalog.view_exists(name):
            return self.create_view(CreateView(request.catalog, request.view, wanted))
        view = catalog.load_view(name)
        if not request.create:
            _check_altered(_described(catalog, view).properties, wanted.properties)
        properties = _stored(wanted)
        if not request.create:  # what is not shown is not what the statement leaves out
            properties |= {k: v for k, v in view.properties.items() if _is_not_shown(k)}
        if not _is_same(catalog, view, wanted):
            view = catalog.replace_view(
                name,
                iceberg_schema(wanted.schema),
                {_DIALECT: wanted.query},
                default_namespace=wanted.current_namespace,
                default_catalog=_other_catalog(catalog, wanted),
                properties=properties,
            )
        gone = view.properties.keys() - properties.keys()
        view.change(lambda base: with_properties(base, properties, gone))
        return _described(catalog, view)

    def alter_view(self, request: AlterView) -> ViewDescription:
        catalog = self._catalogs[request.catalog]
        view = catalog.load_view(identifier(request.view))
        for verb, names in (("set", request.set), ("unset", request.remove)):
            for name in names:
                _check_reserved(verb, name)
        return _described(catalog, view.update_properties(request.set, request.remove))

    def drop_view(self, request: DropView) -> Dropped:
        """Answer `DropView`; only views are dropped."""
        try:
            self._catalogs[request.catalog].drop_view(identifier(request.view))
        except NoSuchViewError:
            return Dropped(dropped=False)
        return Dropped(dropped=True)

    def rename_view(self, request: RenameView) -> Done:
        self._catalogs[request.catalog].rename_view(
            identifier(request.view), identifier(request.target)
        )
        return Done()


def _can_have(catalog: Catalog, view: TableName) -> bool:
    """Return whether a catalog can have a view: one with a metastore, in a namespace."""
    return catalog.keeps_views and len(view.namespace) == 1


def _described(catalog: Catalog, view: View) -> ViewDescription:
    """Return the description of a view, with a query in Spark's dialect, for the bridge."""
    version, schema = view.current_version(), view.schema()
    query = {name.lower(): sql for name, sql in version.queries.items()}.get(_DIALECT)
    if query is None:
        dialects = ", ".join(version.queries) or "none that icecomb knows"
        raise UnsupportedError(
            f"View {'.'.join(view.name())} has no query in the dialect spark, only in: {dialects}",
            hint="CREATE OR REPLACE it in Spark, with the property "
            "replace.drop-dialect.allowed=true if the other queries may go.",
        )
    names = view.properties.get(_QUERY_COLUMNS, "")
    columns = tuple(names.split(",")) if names else ()
    return ViewDescription(
        query=query,
        schema=spark_schema(schema),
        query_columns=columns if len(columns) == len(schema.fields) else (),
        current_catalog=version.default_catalog or catalog.name,
        current_namespace=version.default_namespace,
        settings={
            **{
                name: value
                for key, value in view.properties.items()
                if _OF_MEANING.fullmatch(name := key.removeprefix(_SETTING)) and name != key
            },
            _SUBSTITUTION: "false",
        },
        schema_mode=view.properties.get(_SCHEMA_MODE),
        properties={
            **{key: value for key, value in view.properties.items() if not _is_own(key)},
            "provider": "iceberg",
            "location": view.location(),
            "format-version": str(VIEW_FORMAT_VERSION),
        },
    )


def _check_altered(there: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Refuse changes of reserved properties in a statement that lists all properties."""
    for name, value in wanted.items():
        if there.get(name) != value:
            _check_reserved("set", name)
    for name in there.keys() - wanted.keys():
        _check_reserved("unset", name)


def _check_reserved(verb: str, name: str) -> None:
    if name in _RESERVED or _is_own(name):
        raise UnsupportedError(
            f"Cannot {verb} reserved property: '{name}'",
            hint="It is derived from the view; use CREATE OR REPLACE VIEW to change it.",
        )


def _is_own(key: str) -> bool:
    return key in {_QUERY_COLUMNS, _SCHEMA_MODE} or key.startswith(_SETTING)


def _is_not_shown(key: str) -> bool:
    name = key.removeprefix(_SETTING)
    return name != key and _OF_MEANING.fullmatch(name) is None


def _stored(definition: ViewDescription) -> dict[str, str]:
    """Return all properties to store for a view.

    A column name of the query must have no comma, which separates Iceberg's list.
    """
    if wrong := [name for name in definition.query_columns if "," in name]:
        raise UnsupportedError(
            f"An Iceberg view cannot have the column {wrong[0]!r} in its query: names are stored "
            "as a comma-separated list",
            hint="Give it another name: SELECT ... AS name.",
        )
    given = definition.properties.items()
    stored = {
        **{key: value for key, value in given if key not in _SHOWN_ONLY},
        **{_SETTING + k: v for k, v in definition.settings.items() if k != _SUBSTITUTION},
    }
    if definition.query_columns:
        stored[_QUERY_COLUMNS] = ",".join(definition.query_columns)
    if definition.schema_mode is not None:
        stored[_SCHEMA_MODE] = definition.schema_mode
    return stored


def _other_catalog(catalog: Catalog, definition: ViewDescription) -> str | None:
    """Return the catalog to record; None if it is the view's own, which others may rename."""
    named = definition.current_catalog
    return None if named == catalog.name else named


def _is_same(catalog: Catalog, view: View, wanted: ViewDescription) -> bool:
    """Return whether a view already has this query and these columns."""
    version = view.current_version()
    there = {name.lower(): sql for name, sql in version.queries.items()}.get(_DIALECT)
    return (
        there == wanted.query
        and version.default_namespace == wanted.current_namespace
        and version.default_catalog == _other_catalog(catalog, wanted)
        and _columns(spark_schema(view.schema())) == _columns(wanted.schema)
    )


def _columns(schema: Mapping[str, Any]) -> list[Any]:
    return [
        (field["name"], _bare(field["type"]), (field.get("metadata") or {}).get("comment"))
        for field in schema["fields"]
    ]


def _bare(spark_json: Any) -> Any:
    """Strip ids and nullability, which views do not guarantee, from a type."""
    if isinstance(spark_json, str):
        return spark_json
    if spark_json["type"] == "struct":
        return _columns(spark_json)
    inner = [
        spark_json[key] for key in ("elementType", "keyType", "valueType") if key in spark_json
    ]
    return (spark_json["type"], *map(_bare, inner))
