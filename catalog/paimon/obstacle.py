"""Obstacles to reading a Paimon table's data files directly with the same rows as in Paimon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    AtomicType,
    DataType,
    children,
)
from icecomb.catalog.paimon.table_option import switched_on
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.report.finding import Finding, blocker

NEW_TABLE: Final = "write the rows into a new table"
_ELSEWHERE: Final = (
    *("scan.snapshot-id", "scan.tag-name", "scan.version", "scan.timestamp"),
    *("scan.timestamp-millis", "scan.creation-time-millis", "scan.file-creation-time-millis"),
    *("scan.watermark", "scan.fallback-branch", "scan.primary-branch"),
    *("scan.fallback-snapshot-branch", "scan.fallback-delta-branch", "incremental-between"),
    *("incremental-between-timestamp", "incremental-to-auto-tag"),
)
"""Options under which Paimon reads other rows than those of the latest snapshot of this table."""
_LATEST: Final = frozenset(("default", "latest", "latest-full", "full"))
_NARROW: Final = {"TINYINT": 1, "SMALLINT": 2, "INT": 3}
_TEXT: Final = frozenset(("CHAR", "VARCHAR"))
_BYTES: Final = frozenset(("BINARY", "VARBINARY"))
_TIMESTAMPS: Final = frozenset(("TIMESTAMP", LOCAL_ZONED))
_ZONED_AS_WRITTEN: Final = "orc.timestamp-ltz.legacy.type"


def table_obstacles(schema: TableSchema) -> Iterator[Finding]:
    """Yield the obstacles in the latest schema to reading the files directly."""
    options = schema.options
    if not schema.is_append_table:
        yield blocker(
            "primary-key",
            f"it has a primary key ({', '.join(schema.primary_keys)}): its files hold several "
            "versions of a row, which only Paimon can merge",
            NEW_TABLE,
        )
    for code, reason in _unusual(options):
        yield blocker(code, reason, NEW_TABLE)


def _unusual(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if switched_on(options, "data-evolution.enabled"):
        yield "partial-files", "data-evolution.enabled: its rows are spread over several files"
    if switched_on(options, "chain-table.enabled"):
        yield "other-rows", "chain-table.enabled: it has rows of other branches"
    if options.get("type", "table").lower() != "table":
        yield "no-table", f"it is a Paimon {options['type']}, not a table"
    if options.get("branch", "main") != "main":
        branch = options["branch"]
        yield "other-rows", f"option branch={branch}: its rows are those of that branch"
    mode = options.get("scan.mode", "default")
    if mode not in _LATEST:
        yield "other-rows", f"option scan.mode={mode}: Paimon does not read its latest rows"
    for key in _ELSEWHERE:
        if key in options:
            said = f"option {key}={options[key]}"
            yield "other-rows", f"{said}: Paimon does not read (only) its latest rows"
    for key, value in options.items():
        if key.startswith("fields.") and key.endswith(".default-value"):
            yield "null-values", f"option {key}: Paimon before 1.3 reads its nulls as {value!r}"
        if key.endswith(".map.storage-layout") and value.lower() != "default":
            said = f"option {key}={value}"
            yield "map-layout", f"{said}: its maps are stored in a form of Paimon's own"


def file_obstacle(written: TableSchema, name: str) -> str | None:
    """Return the obstacle to reading a data file by the schema it was written with, or None."""
    if name.endswith(".orc") and switched_on(written.options, _ZONED_AS_WRITTEN, default=True):
        for field in written.all_fields():
            if any(kind.root == LOCAL_ZONED for kind in _atoms(field.field_type)):
                return (
                    f"in ORC with {field.name} {field.field_type}, whose instants Paimon moves by "
                    f"the zone of the process that writes (option {_ZONED_AS_WRITTEN})"
                )
    return None


def value_change(old: TableSchema, new: TableSchema) -> str | None:
    """Return a column with values in older files that Paimon changes when reading, or None.

    Iceberg has neither lengths, nor times coarser than microseconds, nor numbers under 32 bits: it
    reads such values unchanged, where Paimon truncates, pads or wraps them.
    """
    before = {field.field_id: field for field in old.all_fields()}
    for field in new.all_fields():
        known = before.get(field.field_id)
        if known is not None and not _kept(known.field_type, field.field_type):
            was, is_ = known.field_type, field.field_type
            return f"{field.name} changed from {was} to {is_}, for which Paimon changes the values"
    return None


def _kept(old: DataType, new: DataType) -> bool:
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        # Other shapes are compared as Iceberg types, fields of ROWs separately.
        inner = zip(children(old), children(new), strict=False)
        same = type(old) is type(new)
        return not same or all(_kept(was, is_) for was, is_ in inner)
    if (old.root, old.parameters) == (new.root, new.parameters):
        return True
    if old.root in _NARROW and new.root in _NARROW:
        return _NARROW[old.root] < _NARROW[new.root]
    if {old.root, new.root} <= _TEXT or {old.root, new.root} <= _BYTES:
        return new.root.startswith("VAR") and old.parameters[0] <= new.parameters[0]
    if old.root == new.root and old.root in _TIMESTAMPS:
        return old.parameters[0] <= new.parameters[0]
    return True


def _atoms(kind: DataType) -> Iterator[AtomicType]:
    if isinstance(kind, AtomicType):
        yield kind
    for child in children(kind):
        yield from _atoms(child)
