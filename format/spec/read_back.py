"""Validation of new metadata by reading it back before others can see it.

Values check themselves when they are created; this is the safety net: the content of a metadata
file is parsed as its readers will parse it, and must equal what was meant. Only what a commit
changed is checked, so that a long history costs nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import MAX_LONG, checked_int, checked_text
from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import (
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from icecomb.format.spec.sort import SortOrder
from icecomb.format.spec.values.json_object import lazily

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_NUMBERS: Final = (
    "format_version",
    "last_updated_ms",
    "last_column_id",
    "current_schema_id",
    "default_spec_id",
    "last_partition_id",
    "default_sort_order_id",
    "last_sequence_number",
    "next_row_id",
)
_SHORT: Final[dict[str, Callable[[Any], Any]]] = {
    "schemas": Schema.from_json,
    "partition_specs": PartitionSpec.from_json,
    "sort_orders": SortOrder.from_json,
}
_LONG: Final[dict[str, Callable[[Any], Any]]] = {
    "snapshots": Snapshot.from_json,
    "snapshot_log": SnapshotLogEntry.from_json,
    "metadata_log": MetadataLogEntry.from_json,
}

_PARTITION_STATISTICS: Final = {
    "snapshot-id": int,
    "statistics-path": str,
    "file-size-in-bytes": int,
}
_STATISTICS: Final[dict[str, dict[str, type]]] = {
    "statistics": {
        **_PARTITION_STATISTICS,
        "file-footer-size-in-bytes": int,
        "blob-metadata": list,
    },
    "partition_statistics": _PARTITION_STATISTICS,
}
_KEY: Final = {"key-id": str, "encrypted-key-metadata": str}
_BLOB: Final = {"type": str, "snapshot-id": int, "sequence-number": int, "fields": list}
_OPERATIONS: Final = frozenset((None, *map(str, Operation)))


def check_table(metadata: TableMetadata, base: TableMetadata | None = None) -> None:
    """Check that metadata can be read, and is read as what it is.

    Parts of `base`, the metadata that was changed, were read before and are not read again.
    """
    _check_members(metadata)
    for name, decode in _SHORT.items():
        known = set(map(id, getattr(base, name, ())))
        for part in getattr(metadata, name):
            if id(part) not in known:
                _check(name, part, part.to_json(), decode)
    for name, decode in _LONG.items():
        before = lazily(getattr(base, name, ()), decode)
        for part in lazily(getattr(metadata, name), decode).added_to(before):
            _check(name, part, part.to_json(), decode)
            if isinstance(part, Snapshot) and part.operation not in _OPERATIONS:
                raise unreadable(name, f"there is no operation {part.operation!r}")
    refs: Mapping[str, SnapshotRef] = {} if base is None else base.refs
    for name, ref in metadata.refs.items():
        if refs.get(name) is not ref:
            checked_text("name of a branch or tag", name)
            ref.check_limits(refs.get(name))
            _check(f"refs: {name!r}", ref, ref.to_json(), SnapshotRef.from_json)
    if base is None or metadata.properties is not base.properties:
        _check_texts("properties", metadata.properties)
    for name, members in _STATISTICS.items():
        known = set(map(id, getattr(base, name, ())))
        for file in getattr(metadata, name):
            if id(file) not in known:
                _check(name, dict(file), dict(file), lambda read: read)
                _check_kinds(name, file, members)
                for blob in file.get("blob-metadata", ()):
                    _check_kinds(f"{name}: blob-metadata", blob, _BLOB)
    for key in metadata.encryption_keys:
        _check_kinds("encryption_keys", key, _KEY)


def unreadable(what: str, why: object) -> ValidationError:
    """Return the error for metadata that must not be written."""
    reason = why.message if isinstance(why, IcecombError) else why
    return ValidationError(
        f"Cannot commit: the new metadata could not be read again: {what}: {reason}",
        hint="Nothing was changed. Check the types of the values that you set.",
    )


def _check_members(metadata: TableMetadata) -> None:
    for name in _NUMBERS:
        if type(value := getattr(metadata, name)) is not int:
            raise unreadable(name, f"{value!r} is not an integer")
    current = metadata.current_snapshot_id
    if current is not None and type(current) is not int:
        raise unreadable("current_snapshot_id", f"{current!r} is not an integer")
    if not isinstance(metadata.table_uuid, (uuid.UUID, type(None))):
        raise unreadable("table_uuid", f"{metadata.table_uuid!r} is not a UUID")
    checked_text("location of a table", metadata.location)


def _check_texts(what: str, texts: Mapping[str, str]) -> None:
    for key, value in texts.items():
        checked_text(f"name in {what}", key)
        checked_text(f"{what}: {key!r}", value)


def _check_kinds(what: str, raw: Any, members: Mapping[str, type]) -> None:
    if not isinstance(raw, Mapping):
        raise unreadable(what, f"{raw!r} is not an object")
    for name, kind in members.items():
        if kind is int:
            checked_int(f"{what}: {name}", raw.get(name), 0, MAX_LONG)
        elif type(raw.get(name)) is not kind:
            found = f"{raw[name]!r}" if name in raw else "missing"
            raise unreadable(what, f"{name} is {found}, not of type {kind.__name__}")


def _check(what: str, part: Any, raw: Any, decode: Callable[[Any], Any]) -> None:
    try:
        text = json.dumps(raw, ensure_ascii=False, allow_nan=False)
        read = decode(json.loads(text.encode()))
    except (IcecombError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise unreadable(what, error) from error
    if read != part or getattr(read, "extra", None) != getattr(part, "extra", None):
        raise unreadable(what, f"{part!r} would be read as {read!r}")
