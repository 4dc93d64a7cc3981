"""Conversion of metadata files to `TableMetadata` and back (spec: Table Metadata, appendix C).

Version 1 is read leniently, since the specification allows its optional fields to be absent,
later versions strictly. The written form is canonical, and version 1 has the single `schema` and
`partition-spec` that its oldest readers know.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from icecomb.format.argument import MAX_INT, MAX_LONG
from icecomb.format.errors import CorruptFileError, IcecombError, UnsupportedError
from icecomb.format.input_limit import TOO_DEEP
from icecomb.format.spec.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from icecomb.format.spec.partition import (
    PARTITION_FIELD_ID_START,
    PartitionSpec,
    has_several_sources,
)
from icecomb.format.spec.schema import Schema, check_types
from icecomb.format.spec.snapshot import (
    MAIN_BRANCH,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, SortOrder
from icecomb.format.spec.values.json_object import (
    JsonSequence,
    json_text,
    lazily,
    optional,
    required,
)

_T = TypeVar("_T")
_NO_SNAPSHOT: Final = -1
_EDGE: Final = 1024
_CLOCK_SKEW_MS: Final = 60_000
_KNOWN: Final = frozenset(
    {
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schema",
        "schemas",
        "current-schema-id",
        "partition-spec",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "properties",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "sort-orders",
        "default-sort-order-id",
        "refs",
        "statistics",
        "partition-statistics",
        "next-row-id",
        "encryption-keys",
    }
)


def metadata_to_json(metadata: TableMetadata) -> str:
    """Return the text of a metadata file."""
    version = metadata.format_version
    out: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid is not None:
        out["table-uuid"] = str(metadata.table_uuid)
    out["location"] = metadata.location
    if version > 1:
        out["last-sequence-number"] = metadata.last_sequence_number
    out["last-updated-ms"] = metadata.last_updated_ms
    out["last-column-id"] = metadata.last_column_id
    if version == 1:
        out["schema"] = metadata.schema().to_json()
    out["current-schema-id"] = metadata.current_schema_id
    out["schemas"] = [schema.to_json() for schema in metadata.schemas]
    if version == 1:
        out["partition-spec"] = metadata.spec().to_json()["fields"]
    out["default-spec-id"] = metadata.default_spec_id
    out["partition-specs"] = [spec.to_json() for spec in metadata.partition_specs]
    out["last-partition-id"] = metadata.last_partition_id
    out["default-sort-order-id"] = metadata.default_sort_order_id
    out["sort-orders"] = [order.to_json() for order in metadata.sort_orders]
    out["properties"] = dict(metadata.properties)
    current = metadata.current_snapshot_id
    out["current-snapshot-id"] = _NO_SNAPSHOT if current is None and version < 3 else current
    if version > 2:
        out["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys:
        out["encryption-keys"] = [dict(key) for key in metadata.encryption_keys]
    out["refs"] = {name: ref.to_json() for name, ref in metadata.refs.items()}
    out["snapshots"] = lazily(metadata.snapshots, Snapshot.from_json)
    out["statistics"] = [dict(file) for file in metadata.statistics]
    out["partition-statistics"] = [dict(file) for file in metadata.partition_statistics]
    out["snapshot-log"] = lazily(metadata.snapshot_log, SnapshotLogEntry.from_json)
    out["metadata-log"] = lazily(metadata.metadata_log, MetadataLogEntry.from_json)
    out.update(metadata.extra)
    pieces = []
    for key, value in out.items():
        pieces.append(f',"{key}":' if key in _KNOWN else f",{json_text(key)}:")
        # the text of a long list is reused, not encoded again
        lazy = isinstance(value, JsonSequence)
        pieces += ("[", value.to_text(), "]") if lazy else (json_text(value),)
    pieces[0] = "{" + pieces[0][1:]
    return "".join((*pieces, "}"))


def metadata_from_json(raw: bytes | str, location: str | None = None) -> TableMetadata:
    """Read the text of a metadata file; see `TableMetadata.from_json`."""
    where = location or "table metadata"
    document = _document(raw, where)
    try:
        metadata = _parse(document)
        _check(metadata)
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error.message}", hint=error.hint, path=where) from None
    except RecursionError:
        raise CorruptFileError(
            f"{where}: not valid table metadata: {TOO_DEEP}",
            hint="Another version of the file may be intact: see the table's metadata log.",
            path=where,
        ) from None
    except (IcecombError, TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        reason = error.message if isinstance(error, IcecombError) else f"{error!r}"
        raise CorruptFileError(
            f"{where}: not valid table metadata: {reason}",
            hint="Another version of the file may be intact: see the table's metadata log.",
            path=where,
        ) from error
    return metadata


def _document(raw: bytes | str, where: str) -> Mapping[str, Any]:
    problem = _edge_problem(raw)
    document: Any = None
    if problem is None:
        try:
            document = json.loads(raw if isinstance(raw, str) else raw.decode("utf-8"))
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            # as text: the error itself would keep the whole file in memory
            problem = TOO_DEEP if isinstance(error, RecursionError) else str(error)
    if problem is not None:
        raise CorruptFileError(
            f"{where}: not a JSON text of table metadata: {problem}",
            hint="It may be cut off, or compressed under a name without .gz.",
            path=where,
        )
    return cast("Mapping[str, Any]", document)


def _edge_problem(raw: bytes | str) -> str | None:
    """Return why a text cannot be a JSON object, judged by its ends: fast, however long it is."""
    first, last = (
        (raw[:_EDGE].lstrip() or raw.lstrip())[:1],
        (raw[-_EDGE:].rstrip() or raw.rstrip())[-1:],
    )
    if not first:
        return "it is empty"
    if first not in ("{", b"{"):
        return f"it begins with {first!r}, not with an object"
    return None if last in ("}", b"}") else f"it ends with {last!r}, in the middle of the object"


def _parse(raw: Mapping[str, Any]) -> TableMetadata:
    version = required(raw, "format-version", int)
    if version < 1:
        raise CorruptFileError(f"the field 'format-version' is {version}")
    if version not in SUPPORTED_FORMAT_VERSIONS:
        *others, last = map(str, SUPPORTED_FORMAT_VERSIONS)
        known = f"{', '.join(others)} and {last}"
        raise UnsupportedError(
            f"the table is of format version {version} (v{version}), supported are {known}",
            hint="Use an engine that knows this version.",
        )
    strict = version > 1
    schemas, current_schema_id = _schemas(raw, strict=strict)
    for schema in schemas:
        check_types(schema, version)
    specs, default_spec_id = _specs(raw, strict=strict)
    orders, default_order_id = _sort_orders(raw, strict=strict)
    if version < 3:
        _check_sources(version, (*specs, *orders))
    current = optional(raw, "current-snapshot-id", int)
    current = None if current == _NO_SNAPSHOT else current
    # before version 3, it is a member like any other that icecomb does not know
    members = _KNOWN if version > 2 else _KNOWN - {"next-row-id"}
    highest = max((f.field_id for s in specs for f in s.fields), default=_NO_PARTITION_FIELD)
    return TableMetadata(
        format_version=version,
        table_uuid=_table_uuid(raw, strict=strict),
        location=required(raw, "location", str),
        last_updated_ms=_required_long(raw, "last-updated-ms"),
        last_column_id=required(raw, "last-column-id", int),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=required(raw, "last-partition-id", int)
        if strict
        else max(optional(raw, "last-partition-id", int) or highest, highest),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        last_sequence_number=_required_long(raw, "last-sequence-number") if strict else 0,
        properties=MappingProxyType(
            {key: str(value) for key, value in (optional(raw, "properties", dict) or {}).items()}
        ),
        current_snapshot_id=current,
        snapshots=_lazy(raw, "snapshots", Snapshot.from_json, _plain_snapshot),
        snapshot_log=_lazy(raw, "snapshot-log", SnapshotLogEntry.from_json, _plain_log_entry),
        metadata_log=_lazy(raw, "metadata-log", MetadataLogEntry.from_json, _plain_file_entry),
        refs=MappingProxyType(_refs(raw, current)),
        statistics=_objects(raw, "statistics"),
        partition_statistics=_objects(raw, "partition-statistics"),
        next_row_id=_next_row_id(raw) if version > 2 else 0,
        encryption_keys=_encryption_keys(raw),
        extra=MappingProxyType({k: v for k, v in raw.items() if k not in members}),
    )


_NO_PARTITION_FIELD: Final = PARTITION_FIELD_ID_START - 1


def _lazy(
    raw: Mapping[str, Any],
    key: str,
    decode: Callable[[Any], _T],
    is_plain: Callable[[dict[str, Any]], bool],
) -> JsonSequence[_T]:
    """Return a long list whose entries got a quick check; suspicious ones are decoded."""
    items = optional(raw, key, list) or ()
    for item in items:
        if type(item) is not dict or not is_plain(item):
            _named(key, decode, item)
    return JsonSequence(tuple(items), decode)


def _plain_snapshot(item: dict[str, Any]) -> bool:
    return (
        _is_long(item.get("snapshot-id"))
        and _is_long(item.get("timestamp-ms"))
        and type(item.get("manifest-list")) is str
        and _is_long(item.get("sequence-number", 0))
        and _is_int(item.get("schema-id", 0))
        and _is_long(item.get("parent-snapshot-id", 0))
        and _is_row_number(item.get("first-row-id", 0))
        and _is_row_number(item.get("added-rows", 0 if "first-row-id" not in item else None))
        and type(item.get("key-id", "")) is str
        and type(item.get("summary")) is dict
    )


def _plain_log_entry(item: dict[str, Any]) -> bool:
    return _is_long(item.get("snapshot-id")) and _is_long(item.get("timestamp-ms"))


def _plain_file_entry(item: dict[str, Any]) -> bool:
    return type(item.get("metadata-file")) is str and _is_long(item.get("timestamp-ms"))


def _is_int(value: Any) -> bool:
    return type(value) is int and -MAX_INT - 1 <= value <= MAX_INT


def _is_long(value: Any) -> bool:
    return type(value) is int and -MAX_LONG - 1 <= value <= MAX_LONG


def _is_row_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_LONG


def _required_long(raw: Mapping[str, Any], key: str) -> int:
    number = required(raw, key, int)
    if not _is_long(number):
        raise CorruptFileError(f"the field {key!r} is {number}, which is not a 64-bit number")
    return number


def _next_row_id(raw: Mapping[str, Any]) -> int:
    number = _required_long(raw, "next-row-id")
    if number < 0:
        raise CorruptFileError(f"the field 'next-row-id' is {number}")
    return number


def _objects(raw: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], ...]:
    found = tuple(optional(raw, key, list) or ())
    for item in found:
        if not isinstance(item, dict):
            raise CorruptFileError(f"{key}: {item!r} is not an object")
    return found


def _encryption_keys(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    keys = _objects(raw, "encryption-keys")
    for key in keys:
        for name in ("key-id", "encrypted-key-metadata"):
            required(key, name, str, "encryption-keys entry")
    return keys


def _named(key: str, decode: Callable[[Any], _T], item: Any) -> _T:
    """Decode an item; errors name the field of the file."""
    try:
        return decode(item)
    except UnsupportedError:
        raise
    except IcecombError as error:
        raise CorruptFileError(f"{key}: {error.message}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CorruptFileError(f"{key}: {error!r}") from error


def _table_uuid(raw: Mapping[str, Any], *, strict: bool) -> uuid.UUID | None:
    text = required(raw, "table-uuid", str) if strict else optional(raw, "table-uuid", str)
    try:
        return None if text is None else uuid.UUID(text)
    except ValueError as error:
        raise CorruptFileError(f"the field 'table-uuid' is {text!r}, not a UUID") from error


def _schemas(raw: Mapping[str, Any], *, strict: bool) -> tuple[tuple[Schema, ...], int]:
    if strict or raw.get("schemas"):
        items = required(raw, "schemas", list)
        schemas = tuple(_named("schemas", Schema.from_json, item) for item in items)
        return schemas, required(raw, "current-schema-id", int)
    schema = _named("schema", Schema.from_json, required(raw, "schema", dict))
    return (schema,), schema.schema_id


def _specs(raw: Mapping[str, Any], *, strict: bool) -> tuple[tuple[PartitionSpec, ...], int]:
    if strict or raw.get("partition-specs"):
        items = required(raw, "partition-specs", list)
        specs = tuple(_named("partition-specs", PartitionSpec.from_json, item) for item in items)
        return specs, required(raw, "default-spec-id", int)
    fields = required(raw, "partition-spec", list)
    only = _named("partition-spec", PartitionSpec.from_json, {"spec-id": 0, "fields": fields})
    return (only,), 0


def _sort_orders(raw: Mapping[str, Any], *, strict: bool) -> tuple[tuple[SortOrder, ...], int]:
    if strict or raw.get("sort-orders"):
        items = required(raw, "sort-orders", list)
        orders = tuple(_named("sort-orders", SortOrder.from_json, item) for item in items)
        default = required(raw, "default-sort-order-id", int)
        if default == UNSORTED_SORT_ORDER.order_id and all(o.order_id != default for o in orders):
            orders = (UNSORTED_SORT_ORDER, *orders)
        return orders, default
    return (UNSORTED_SORT_ORDER,), UNSORTED_SORT_ORDER.order_id


def _check_sources(version: int, orders: Iterable[PartitionSpec | SortOrder]) -> None:
    if any(has_several_sources(f.extra) for one in orders for f in one.fields):
        raise UnsupportedError(
            "A partition or sort field has several source columns, which belongs to format version "
            f"3 (v3), and the table has version {version}",
            hint="Give every field one source column, or upgrade the table to format version 3.",
        )


def _refs(raw: Mapping[str, Any], current: int | None) -> dict[str, SnapshotRef]:
    refs = {
        name: _named("refs", SnapshotRef.from_json, item)
        for name, item in (optional(raw, "refs", dict) or {}).items()
    }
    if current is not None and MAIN_BRANCH not in refs:
        refs[MAIN_BRANCH] = SnapshotRef(current)
    return refs


def _check(metadata: TableMetadata) -> None:
    """Check that metadata does not contradict itself; the error names the field."""
    _unique("schemas", [s.schema_id for s in metadata.schemas], metadata.current_schema_id)
    specs = [spec.spec_id for spec in metadata.partition_specs]
    _unique("partition-specs", specs, metadata.default_spec_id)
    orders = [order.order_id for order in metadata.sort_orders]
    _unique("sort-orders", orders, metadata.default_sort_order_id)
    for spec in metadata.partition_specs:
        fields = [f.field_id for f in spec.fields]
        _unique(f"partition-specs: fields of spec {spec.spec_id}", fields, None)
    snapshots = lazily(metadata.snapshots, Snapshot.from_json)
    _unique("snapshots", snapshots.members("snapshot-id"), metadata.current_snapshot_id)
    for name, ref in metadata.refs.items():
        if not metadata.has_snapshot(ref.snapshot_id):
            raise CorruptFileError(f"refs: {name!r} points to missing snapshot {ref.snapshot_id}")
    main = metadata.refs.get(MAIN_BRANCH)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        raise CorruptFileError(
            f"current-snapshot-id is {metadata.current_snapshot_id}, "
            f"but the branch main points to {main.snapshot_id}"
        )
    for name, log in (
        ("snapshot-log", lazily(metadata.snapshot_log, SnapshotLogEntry.from_json)),
        ("metadata-log", lazily(metadata.metadata_log, MetadataLogEntry.from_json)),
    ):
        _check_log(name, log.members("timestamp-ms"), metadata.last_updated_ms)
    newest = max(((n or 0) for n in snapshots.members("sequence-number", 0)), default=0)
    if metadata.format_version > 1 and newest > metadata.last_sequence_number:
        raise CorruptFileError(
            f"snapshots: a snapshot has sequence number {newest}, "
            f"after last-sequence-number {metadata.last_sequence_number}"
        )
    first_ids, counts = (snapshots.members(key) for key in ("first-row-id", "added-rows"))
    ends = ((first or 0) + (count or 0) for first, count in zip(first_ids, counts, strict=True))
    if metadata.format_version > 2 and (end := max(ends, default=0)) > metadata.next_row_id:
        raise CorruptFileError(
            f"snapshots: row ids up to {end} are assigned, beyond next-row-id "
            f"{metadata.next_row_id}"
        )


def _check_log(name: str, times: Iterable[int], last_updated_ms: int) -> None:
    """Check that times do not run backwards, except for slight clock skew, as Java does."""
    before = None
    for time_ms in times:
        if before is not None and time_ms < before - _CLOCK_SKEW_MS:
            raise CorruptFileError(f"{name}: the time {time_ms} comes after {before}")
        before = time_ms
    if before is not None and last_updated_ms < before - _CLOCK_SKEW_MS:
        raise CorruptFileError(
            f"the field 'last-updated-ms' is {last_updated_ms}, before the end of {name}: {before}"
        )


def _unique(name: str, ids: Iterable[int], current: int | None) -> None:
    seen: set[int] = set()
    for item in ids:
        if item in seen:
            raise CorruptFileError(f"{name}: the id {item} occurs twice")
        seen.add(item)
    if current is not None and current not in seen:
        raise CorruptFileError(f"{name}: the current id {current} does not exist")
