"""Metadata files of views: conversion to `ViewMetadata` and back, and names."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import (
    CorruptFileError,
    IcecombError,
    UnsupportedError,
    ValidationError,
    reason_of,
)
from icecomb.format.input_limit import TOO_DEEP
from icecomb.format.property.table_property import METADATA_CODEC, METADATA_PATH
from icecomb.format.spec.metadata_file import COMPRESSION_MARKERS, read_metadata_json
from icecomb.format.spec.read_back import unreadable
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.values.json_object import optional, required, unknown_members
from icecomb.format.spec.view.view import (
    VIEW_FORMAT_VERSION,
    SQLViewRepresentation,
    UnknownRepresentation,
    ViewLogEntry,
    ViewMetadata,
    ViewVersion,
    check_dialects,
)
from icecomb.format.storage.file_io import create_own

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

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
    configured = METADATA_PATH.of(metadata.properties)
    folder = (configured or f"{metadata.location}/metadata").rstrip("/")
    return f"{folder}/{version:05d}-{uuid.uuid4()}{COMPRESSION_MARKERS[codec]}.metadata.json"


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
        metadata = _metadata(json.loads(raw))
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
        versions=tuple(_version(item) for item in required(raw, "versions", list)),
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


def _version(raw: Any) -> ViewVersion:
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
