"""Options of a Paimon table that are fixed or name columns (Paimon: CoreOptions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icecomb.format.errors import SchemaError

IMMUTABLE: Final = frozenset(
    (
        *("type", "primary-key", "primary-key.nullable", "partition", "bucket-key"),
        *("bucket-function.type", "data-file.path-directory", "merge-engine"),
        *("sequence.snapshot-ordering", "aggregation.remove-record-on-delete"),
        *("partial-update.remove-record-on-delete", "rowkind.field", "force-lookup"),
        *("partial-update.remove-record-on-sequence-group", "dynamic-bucket.initial-buckets"),
        *("row-tracking.enabled", "data-evolution.enabled", "index-file-in-data-file-dir"),
        *("blob-field", "blob-descriptor-field", "blob-view-field", "pk-clustering-override"),
        *("blob-external-storage-field", "blob-external-storage-path"),
    )
)
"""Options fixed once a table has snapshots; `partition` and `primary-key` never are options."""

_KEYS: Final = frozenset(("partition", "primary-key", "type", "path"))
_COLUMNS: Final = ("bucket-key", "sequence.field")
_OF_COLUMN: Final = (
    *("aggregate-function", "ignore-retract", "distinct", "list-agg-delimiter"),
    *("map.storage-layout", "map.shared-shredding.max-columns"),
    "map.shared-shredding.column-placement-policy",
)
_OF_COLUMNS: Final = ("sequence-group", "nested-key")


def switched_on(options: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    """Return whether an option is true."""
    return options.get(key, str(default)).strip().lower() == "true"


def check_option(
    options: Mapping[str, str], key: str, value: str | None, *, has_snapshots: bool
) -> None:
    """Check that Paimon allows a change of an option.

    Args:
        value: The new value; None for the default.
        has_snapshots: Whether the table has data.
    """
    old = options.get(key)
    if value == old or (key == "type" and (value or "table").lower() == (old or "table").lower()):
        return
    if key in _KEYS or (has_snapshots and key in IMMUTABLE):
        raise SchemaError(
            f"Option {key} cannot change: it is fixed when the table is created",
            hint="Create a new table and copy the rows.",
        )
    if not has_snapshots:
        return
    if key == "bucket":
        if value is None or "-1" in {old or "-1", value}:
            raise SchemaError(
                f"Option bucket cannot change from {old or -1} to {value or -1}",
                hint="Create a new table with the other kind of buckets and copy the rows.",
            )
        if not value.lstrip("-").isdigit():
            raise SchemaError(
                f"Option bucket: {value!r} is not a number", hint="Give a whole number."
            )
    if (
        key == "deletion-vectors.enabled"
        and not switched_on(options, "deletion-vectors.modifiable")
        and (value or "false").lower() != (old or "false").lower()
    ):
        raise SchemaError(
            f"Option {key} cannot change: rows would appear twice",
            hint="Create a new table and copy the rows, or set deletion-vectors.modifiable first.",
        )
    if key == "clustering.columns" and "pk-clustering-override" in options:
        raise SchemaError(
            f"Option {key} cannot change: pk-clustering-override is set",
            hint="Create a new table and copy the rows.",
        )
    if key in {"ignore-delete", "ignore-update-before"} and switched_on(options, key):
        raise SchemaError(
            f"Option {key} cannot change from true to false",
            hint="Create a new table and copy the rows.",
        )


def renamed_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return the options after a column was renamed."""

    def names(text: str) -> str:
        return ",".join(new if name.strip() == old else name for name in text.split(","))

    out: dict[str, str] = {}
    for key, value in options.items():
        if key in _COLUMNS:
            out[key] = names(value)
        elif (suffix := _suffix(key, _OF_COLUMNS)) is not None:
            out[f"fields.{names(_between(key, suffix))}.{suffix}"] = names(value)
        elif (single := _suffix(key, _OF_COLUMN)) is not None:
            out[f"fields.{names(_between(key, single))}.{single}"] = value
        else:
            out[key] = value
    return out


def _suffix(key: str, suffixes: tuple[str, ...]) -> str | None:
    if not key.startswith("fields."):
        return None
    return next((s for s in suffixes if key.endswith(f".{s}") and _between(key, s)), None)


def _between(key: str, suffix: str) -> str:
    return key[len("fields.") : -len(suffix) - 1]
