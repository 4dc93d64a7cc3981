"""Views: stored queries with the schemas of their results (Iceberg view spec, version 1).

Every change replaces a view's metadata file as a whole, as with tables. A change of the query
creates a new version; ``version.history.num-entries`` limits the number of versions kept.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from icecomb.format.argument import checked_members, checked_text, property_texts
from icecomb.format.errors import ValidationError
from icecomb.format.property.table_property import (
    VIEW_DROP_DIALECT,
    VIEW_HISTORY_SIZE,
    check_no_entry_properties,
)
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.values.json_object import extra_field

VIEW_FORMAT_VERSION: Final = 1
_FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class SQLViewRepresentation:
    """The query in one dialect of SQL, such as ``spark``, ``trino`` or ``hive``."""

    sql: str
    dialect: str
    extra: Mapping[str, Any] = extra_field()


@dataclass(frozen=True, slots=True)
class UnknownRepresentation:
    """A representation of a type that icecomb does not know; it is kept unchanged."""

    raw: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """The state of a view between two changes.

    Args:
        version_id: The number of this version among the view's versions.
        schema_id: The id of the schema of its result.
        timestamp_ms: The time of creation, in milliseconds since 1970 UTC.
        summary: Facts about its creator, such as ``engine-name``; all text.
        representations: The query, at most once in each dialect.
        default_namespace: The namespace of names without one.
        default_catalog: The catalog of names without one; None for the view's.
        extra: Members that icecomb does not know, such as ``storage-table``.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    summary: Mapping[str, str] = field(hash=False)
    representations: tuple[SQLViewRepresentation | UnknownRepresentation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    extra: Mapping[str, Any] = extra_field()

    @property
    def queries(self) -> dict[str, str]:
        """The SQL by dialect, in the given order."""
        return {
            one.dialect: one.sql
            for one in self.representations
            if isinstance(one, SQLViewRepresentation)
        }

    def sql_for(self, dialect: str) -> str | None:
        """Return the query in this dialect (case is ignored), else in the first one there is."""
        queries = self.queries
        lowered = {known.lower(): sql for known, sql in reversed(queries.items())}
        return lowered.get(dialect.lower(), next(iter(queries.values()), None))

    def behaves_like(self, other: ViewVersion) -> bool:
        """Return whether both versions are the same except for their number and time."""
        same = replace(other, version_id=self.version_id, timestamp_ms=self.timestamp_ms)
        return self == same and self.extra == other.extra


@dataclass(frozen=True, slots=True)
class ViewLogEntry:
    """A change of the current version, and its time in milliseconds since 1970 UTC."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True, slots=True)
class ViewMetadata:
    """The metadata of a view; `icecomb.format.spec.view.view_json` reads and writes it.

    Args:
        view_uuid: The view's UUID.
        location: The base folder, below which metadata files are created.
        schemas: The schemas of the versions.
        current_version_id: The id of the current version.
        versions: The known versions.
        version_log: The changes of the current version, oldest first.
        properties: The view's properties.
        extra: Members that icecomb does not know; they are written back.
    """

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    extra: Mapping[str, Any] = extra_field()

    def __reduce__(self) -> tuple[Callable[[str], ViewMetadata], tuple[str]]:
        # Pickled as its JSON, like the metadata of a table.
        from icecomb.format.spec.view.view_json import view_from_json, view_to_json

        return view_from_json, (view_to_json(self),)

    def __copy__(self) -> ViewMetadata:
        return self

    def __deepcopy__(self, memo: object) -> ViewMetadata:
        return self

    @property
    def current_version(self) -> ViewVersion:
        """The current version."""
        return next(v for v in self.versions if v.version_id == self.current_version_id)

    def schema(self) -> Schema:
        """Return the schema of the view's result."""
        wanted = self.current_version.schema_id
        return next(schema for schema in self.schemas if schema.schema_id == wanted)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """The requested state of a view.

    Args:
        schema: The columns of its result; their ids are reassigned.
        queries: The SQL by dialect.
        default_catalog: The catalog of names without one; None for the view's.
        summary: Facts about its creator.
    """

    schema: Schema
    queries: Mapping[str, str] = field(hash=False)
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.queries, Mapping):
            raise ValidationError(
                f"The queries of a view are SQL by dialect, not {self.queries!r}",
                hint='Give a mapping such as {"spark": "SELECT ..."}.',
            )
        for dialect, sql in self.queries.items():
            checked_text("dialect of a query", dialect)
            checked_text(f"query in {dialect!r}", sql)
        namespace = checked_members("default namespace", self.default_namespace, str)
        object.__setattr__(self, "default_namespace", namespace)
        for part in namespace:
            checked_text("default namespace", part)
        if self.default_catalog is not None:
            checked_text("default catalog", self.default_catalog)
        object.__setattr__(self, "summary", property_texts("summary", self.summary))
        if not self.queries or not all(map(str.strip, self.queries.values())):
            raise ValidationError(
                "A view needs a query", hint='Give it as {"spark": "SELECT ..."}, SQL by dialect.'
            )
        check_dialects(self.queries)


def check_dialects(dialects: Iterable[str]) -> None:
    """Check that each query has a dialect of its own; the error names the dialect."""
    seen: set[str] = set()
    for dialect in dialects:
        lowered = dialect.lower()
        if not lowered or lowered in seen:
            raise ValidationError(
                f"A view has one query per dialect, not two in {lowered!r}",
                hint="Keep one query of that dialect.",
            )
        seen.add(lowered)


def new_view_metadata(
    definition: ViewDefinition, location: str, properties: Mapping[str, str]
) -> ViewMetadata:
    """Return the metadata of a new view."""
    properties = property_texts("property", properties)
    VIEW_HISTORY_SIZE.of(properties)
    check_no_entry_properties(properties)
    schema = replace(assign_fresh_schema_ids(definition.schema), schema_id=0)
    version = _version(definition, _FIRST_VERSION, schema.schema_id)
    return ViewMetadata(
        view_uuid=str(uuid.uuid4()),
        location=checked_text("location of a view", location).rstrip("/"),
        schemas=(schema,),
        current_version_id=version.version_id,
        versions=(version,),
        version_log=(ViewLogEntry(version.timestamp_ms, version.version_id),),
        properties=MappingProxyType(properties),
    )


def replace_view(
    base: ViewMetadata,
    definition: ViewDefinition,
    properties: Mapping[str, str],
    location: str | None = None,
) -> ViewMetadata:
    """Return the metadata of a view with a new definition; its UUID and history stay.

    Columns keep the ids of the columns of the same names, and properties are added to the old ones.
    Losing a dialect needs ``replace.drop-dialect.allowed``.
    """
    properties = property_texts("property", properties)
    check_no_entry_properties(properties)
    merged = MappingProxyType({**base.properties, **properties})
    _check_lost_dialects(base.current_version, definition.queries, merged)
    schemas, schema_id = _with_schema(base, definition.schema)
    number = max(version.version_id for version in base.versions) + 1
    version = _version(definition, number, schema_id)
    known = next((old for old in base.versions if old.behaves_like(version)), None)
    versions, log = base.versions, base.version_log
    if known is None:
        versions = (*versions, version)
    current = known or version
    if current.version_id != base.current_version_id:
        log = (*log, ViewLogEntry(version.timestamp_ms, current.version_id))
    changed = replace(
        base,
        location=base.location
        if location is None
        else checked_text("location of a view", location).rstrip("/"),
        schemas=schemas,
        current_version_id=current.version_id,
        versions=versions,
        version_log=log,
        properties=merged,
    )
    return _expired(changed, added=known is None)


def with_properties(
    base: ViewMetadata, updates: Mapping[str, str], removals: Iterable[str] = ()
) -> ViewMetadata:
    """Return the view with properties set and removed; ``base`` itself if nothing changes."""
    updates = property_texts("property", updates)
    check_no_entry_properties(updates)
    gone = set(checked_members("properties to remove", removals, str))
    kept = {key: value for key, value in base.properties.items() if key not in gone}
    changed = {**kept, **updates}
    if changed == base.properties:
        return base
    return replace(base, properties=MappingProxyType(changed))


def _version(definition: ViewDefinition, number: int, schema_id: int) -> ViewVersion:
    return ViewVersion(
        version_id=number,
        schema_id=schema_id,
        timestamp_ms=time.time_ns() // 1_000_000,
        summary=MappingProxyType(dict(definition.summary)),
        representations=tuple(
            SQLViewRepresentation(sql, dialect) for dialect, sql in definition.queries.items()
        ),
        default_namespace=definition.default_namespace,
        default_catalog=definition.default_catalog,
    )


def _with_schema(base: ViewMetadata, schema: Schema) -> tuple[tuple[Schema, ...], int]:
    """Return the schemas with this one included, and its id; an equal one is reused."""
    highest = max(known.highest_field_id for known in base.schemas)
    for known in reversed(base.schemas):
        fresh = assign_fresh_schema_ids(schema, known, highest)
        if replace(fresh, schema_id=known.schema_id) == known:
            return base.schemas, known.schema_id
    number = max(known.schema_id for known in base.schemas) + 1
    fresh = assign_fresh_schema_ids(schema, base.schema(), highest)
    return (*base.schemas, replace(fresh, schema_id=number)), number


def _check_lost_dialects(
    old: ViewVersion, queries: Mapping[str, str], properties: Mapping[str, str]
) -> None:
    if VIEW_DROP_DIALECT.of(properties):
        return
    new = {dialect.lower() for dialect in queries}
    if lost := [dialect for dialect in old.queries if dialect.lower() not in new]:
        raise ValidationError(
            f"The view would lose its query in {', '.join(lost)}",
            hint=f"Give a query in that dialect, too, or set {VIEW_DROP_DIALECT.key}=true",
        )


def _expired(metadata: ViewMetadata, *, added: bool) -> ViewMetadata:
    """Drop the oldest versions beyond the history's size, and the log up to a gap."""
    size = VIEW_HISTORY_SIZE.of(metadata.properties)
    if len(metadata.versions) <= max(size, 1 + (not added)):
        return metadata
    newest: Sequence[ViewVersion] = sorted(metadata.versions, key=lambda v: -v.version_id)
    others = [v for v in newest if v.version_id != metadata.current_version_id]
    kept = {metadata.current_version_id, *(v.version_id for v in others[: size - 1])}
    log: list[ViewLogEntry] = []
    for entry in metadata.version_log:
        if entry.version_id in kept:
            log.append(entry)
        else:
            log.clear()
    versions = tuple(v for v in metadata.versions if v.version_id in kept)
    return replace(metadata, versions=versions, version_log=tuple(log))
