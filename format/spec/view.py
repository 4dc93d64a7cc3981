"""Views, and their JSON: queries with the schemas of results (Iceberg view spec, version 1).

Every change replaces a view's metadata file as a whole, as with tables. A change of the query
creates a new version; ``version.history.num-entries`` limits the number of versions kept.
"""

from __future__ import annotations

import gzip
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import checked_members, checked_text, property_texts
from icecomb.format.errors import (
    CorruptFileError,
    IcecombError,
    UnsupportedError,
    ValidationError,
    reason_of,
)
from icecomb.format.input_limit import TOO_DEEP, bounded_json
from icecomb.format.property.table_property import (
    METADATA_CODEC,
    VIEW_DROP_DIALECT,
    VIEW_HISTORY_SIZE,
    check_no_entry_properties,
)
from icecomb.format.spec.metadata_file import (
    COMPRESSION_MARKERS,
    metadata_folder,
    read_metadata_json,
    unreadable,
)
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.values.json_object import extra_field, optional, required, unknown_members
from icecomb.format.storage.file_system import create_own

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

VIEW_FORMAT_VERSION: Final = 1
_FIRST_VERSION: Final = 1
_METADATA: Final = frozenset(
    (
        "view-uuid",
        "format-version",
        "location",
        "properties",
        "schemas",
        "current-version-id",
        "versions",
        "version-log",
    )
)
_VERSION: Final = frozenset(
    (
        "version-id",
        "schema-id",
        "timestamp-ms",
        "summary",
        "representations",
        "default-catalog",
        "default-namespace",
    )
)
_SQL: Final = frozenset(("type", "sql", "dialect"))


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
    """The metadata of a view; `read_view_metadata` reads and `write_view_metadata` writes it.

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


def read_view_metadata(io: FileIO, location: str) -> ViewMetadata:
    """Read a view's metadata file; its name shows whether it is compressed."""
    with suppress(CorruptFileError):
        return view_from_json(read_metadata_json(io, location), location)
    # a proxy may have answered with a page of its own
    return view_from_json(read_metadata_json(io, location), location)


def write_view_metadata(io: FileIO, metadata: ViewMetadata, location: str) -> None:
    """Create a view's metadata file, compressed if its name says so.

    FileAlreadyExistsError is raised if another writer's file exists there; it was left unchanged.
    """
    data = _checked_bytes(metadata)
    packed = gzip.compress(data, mtime=0) if ".gz.metadata" in location else data
    create_own(io, location, packed)


def new_view_location(metadata: ViewMetadata, version: int) -> str:
    """Return the location of a view's next metadata file; by default it is compressed."""
    codec = METADATA_CODEC.of(metadata.properties, default="gzip")
    name = f"{version:05d}-{uuid.uuid4()}{COMPRESSION_MARKERS[codec]}.metadata.json"
    return f"{metadata_folder(metadata)}/{name}"


def view_to_json(metadata: ViewMetadata) -> str:
    """Return the text of a view's metadata file."""
    return json.dumps(
        {
            "view-uuid": metadata.view_uuid,
            "format-version": VIEW_FORMAT_VERSION,
            "location": metadata.location,
            "properties": dict(metadata.properties),
            "schemas": [schema.to_json() for schema in metadata.schemas],
            "current-version-id": metadata.current_version_id,
            "versions": [_version_to_json(version) for version in metadata.versions],
            "version-log": [
                {"timestamp-ms": entry.timestamp_ms, "version-id": entry.version_id}
                for entry in metadata.version_log
            ],
            **metadata.extra,
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _checked_bytes(metadata: ViewMetadata) -> bytes:
    """Return the file's content, read back before others can see it; see `read_back`."""
    text = view_to_json(metadata)
    try:
        data = text.encode()
        read = view_from_json(text)
    except (IcecombError, ValueError) as error:
        raise unreadable("view metadata", error) from error
    if read != metadata:
        raise unreadable("view metadata", f"{metadata!r} would be read as {read!r}")
    return data


def view_from_json(raw: bytes | str, where: str = "view metadata") -> ViewMetadata:
    """Read the text of a view's metadata file; an error names the invalid field."""
    try:
        metadata = _metadata(bounded_json(raw))
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error.message}", hint=error.hint, path=where) from None
    except (
        IcecombError, ValueError, TypeError, KeyError, AttributeError, OverflowError,
        RecursionError,
    ) as error:  # fmt: skip
        reason = TOO_DEEP if isinstance(error, RecursionError) else reason_of(error)
        raise CorruptFileError(
            f"{where}: not valid view metadata: {reason}",
            hint=(
                "Another version of the file may be intact: see the folder of the view's metadata."
            ),
            path=where,
        ) from error
    return metadata


def _version_to_json(version: ViewVersion) -> dict[str, Any]:
    out: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
    }
    if version.default_catalog is not None:
        out["default-catalog"] = version.default_catalog
    out["default-namespace"] = list(version.default_namespace)
    out["representations"] = [
        {"type": "sql", "sql": one.sql, "dialect": one.dialect, **one.extra}
        if isinstance(one, SQLViewRepresentation)
        else dict(one.raw)
        for one in version.representations
    ]
    return {**out, **version.extra}


def _metadata(raw: Any) -> ViewMetadata:
    number = required(raw, "format-version", int)
    if number != VIEW_FORMAT_VERSION:
        raise UnsupportedError(
            f"view format version {number} is not supported",
            hint=f"icecomb reads version {VIEW_FORMAT_VERSION}.",
        )
    metadata = ViewMetadata(
        view_uuid=required(raw, "view-uuid", str),
        location=required(raw, "location", str).rstrip("/"),
        schemas=tuple(Schema.from_json(item) for item in required(raw, "schemas", list)),
        current_version_id=required(raw, "current-version-id", int),
        versions=tuple(_version_of_json(item) for item in required(raw, "versions", list)),
        version_log=tuple(
            ViewLogEntry(required(item, "timestamp-ms", int), required(item, "version-id", int))
            for item in required(raw, "version-log", list)
        ),
        properties=_texts(raw, "properties"),
        extra=unknown_members(raw, _METADATA),
    )
    known = {version.version_id for version in metadata.versions}
    if metadata.current_version_id not in known:
        raise ValidationError(f"the current version {metadata.current_version_id} does not exist")
    schema_id = metadata.current_version.schema_id
    if all(schema.schema_id != schema_id for schema in metadata.schemas):
        raise ValidationError(f"the schema {schema_id} of the current version does not exist")
    return metadata


def _version_of_json(raw: Any) -> ViewVersion:
    version = ViewVersion(
        version_id=required(raw, "version-id", int),
        schema_id=required(raw, "schema-id", int),
        timestamp_ms=required(raw, "timestamp-ms", int),
        summary=_texts(raw, "summary"),
        representations=tuple(
            _representation(item) for item in required(raw, "representations", list)
        ),
        default_namespace=tuple(map(str, required(raw, "default-namespace", list))),
        default_catalog=optional(raw, "default-catalog", str),
        extra=unknown_members(raw, _VERSION),
    )
    check_dialects(
        one.dialect for one in version.representations if isinstance(one, SQLViewRepresentation)
    )
    return version


def _representation(raw: Any) -> SQLViewRepresentation | UnknownRepresentation:
    if required(raw, "type", str) != "sql":
        return UnknownRepresentation(MappingProxyType(dict(raw)))
    sql, dialect = required(raw, "sql", str), required(raw, "dialect", str)
    return SQLViewRepresentation(sql, dialect, unknown_members(raw, _SQL))


def _texts(raw: Mapping[str, Any], key: str) -> Mapping[str, str]:
    found = optional(raw, key, dict) or {}
    return MappingProxyType({str(name): str(value) for name, value in found.items()})
