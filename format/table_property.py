"""Properties of tables that have a meaning: what they may say, checked when they are set.

What a table has already is read as leniently as ever; and properties that are not known here
belong to other programs, which may put into them what they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from icecomb.format.errors import IcecombError, ValidationError

RESERVED_PROPERTIES: Final = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names under which the metastore shows the state of a table: they can be set by changing that."""

ENTRY_PROPERTIES: Final = frozenset(
    {"metadata_location", "previous_metadata_location", "table_type"}
)
"""Names by which a metastore's entry points at a table or view.

Nobody sets them as properties, but what has one from another writer may lose it.
"""

_METRICS_MODE: Final = re.compile(r"none|counts|full|truncate\([1-9]\d*\)", re.IGNORECASE)
_COLUMN_METRICS: Final = "write.metadata.metrics.column."


@dataclass(frozen=True, slots=True)
class _Rule:
    accepted: str
    accepts: Callable[[str], bool]


def _number(least: int | None) -> _Rule:
    def accepts(text: str) -> bool:
        try:
            number = int(text)
        except ValueError:
            return False
        return least is None or number >= least

    return _Rule("a whole number" + ("" if least is None else f" from {least} on"), accepts)


def _one_of(*names: str) -> _Rule:
    return _Rule(f"{', '.join(names[:-1])} or {names[-1]}", lambda text: text.lower() in names)


def _is_name_mapping(text: str) -> bool:
    from icecomb.format.name_mapping import NameMapping

    try:
        NameMapping.from_json(text)
    except IcecombError:
        return False
    return True


_BOOLEAN: Final = _one_of("true", "false")
_FORMAT: Final = _one_of("parquet", "avro", "orc")
_MODE: Final = _one_of("copy-on-write", "merge-on-read")
_ISOLATION: Final = _one_of("serializable", "snapshot")
_DISTRIBUTION: Final = _one_of("none", "hash", "range")
_METRICS: Final = _Rule(
    "none, counts, full or truncate(n)", lambda text: _METRICS_MODE.fullmatch(text) is not None
)
_EXTERNAL: Final = _Rule(
    "TRUE; otherwise Hive's DROP TABLE deletes the files", lambda text: text.lower() == "true"
)
_ANY_NUMBER, _COUNT, _SIZE = _number(None), _number(0), _number(1)
_RULES: Final[dict[str, _Rule]] = {
    **{f"commit.retry.{name}": _COUNT for name in ("num-retries", "min-wait-ms", "max-wait-ms")},
    "commit.retry.total-timeout-ms": _COUNT,
    **{
        f"commit.status-check.{name}": _COUNT
        for name in ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")
    },
    "commit.manifest.target-size-bytes": _SIZE,
    "commit.manifest.min-count-to-merge": _COUNT,
    "commit.manifest-merge.enabled": _BOOLEAN,
    "write.manifest.compression-codec": _one_of(
        "gzip", "deflate", "zstd", "snappy", "uncompressed", "none"
    ),
    "write.manifest.compression-level": _ANY_NUMBER,
    "write.metadata.compression-codec": _one_of("none", "gzip", "uncompressed"),
    "write.metadata.previous-versions-max": _COUNT,
    "write.metadata.delete-after-commit.enabled": _BOOLEAN,
    "write.metadata.metrics.max-inferred-column-defaults": _COUNT,
    "write.metadata.metrics.default": _METRICS,
    "write.summary.partition-limit": _COUNT,
    "write.format.default": _FORMAT,
    "write.delete.format.default": _FORMAT,
    "write.delete.granularity": _one_of("file", "partition"),
    "write.target-file-size-bytes": _SIZE,
    "write.delete.target-file-size-bytes": _SIZE,
    "write.parquet.row-group-size-bytes": _SIZE,
    "write.parquet.page-size-bytes": _SIZE,
    "write.parquet.page-row-limit": _SIZE,
    "write.parquet.dict-size-bytes": _SIZE,
    "write.object-storage.enabled": _BOOLEAN,
    "write.object-storage.partitioned-paths": _BOOLEAN,
    "write.wap.enabled": _BOOLEAN,
    **{f"write.{command}.mode": _MODE for command in ("delete", "update", "merge")},
    **{f"write.{command}.isolation-level": _ISOLATION for command in ("delete", "update", "merge")},
    **{
        f"write.{command}distribution-mode": _DISTRIBUTION
        for command in ("", "delete.", "update.", "merge.")
    },
    "read.split.target-size": _SIZE,
    "read.split.metadata-target-size": _SIZE,
    "read.split.planning-lookback": _SIZE,
    "read.split.open-file-cost": _COUNT,
    "history.expire.max-snapshot-age-ms": _COUNT,
    "history.expire.min-snapshots-to-keep": _SIZE,
    "history.expire.max-ref-age-ms": _SIZE,
    "gc.enabled": _BOOLEAN,
    "engine.hive.enabled": _BOOLEAN,
    "engine.hive.lock-enabled": _BOOLEAN,
    "EXTERNAL": _EXTERNAL,
    "schema.name-mapping.default": _Rule("the JSON of a name mapping", _is_name_mapping),
}


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that cannot be set, or not to these values.

    Raises:
        ValidationError: Names the property, its value, and what it may be.
    """
    check_not_reserved(properties)
    check_no_entry_properties(properties)
    for key, value in properties.items():
        if not isinstance(value, str):
            raise ValidationError(f"Property {key!r} must be text, not {value!r}")
        rule = _METRICS if key.startswith(_COLUMN_METRICS) else _RULES.get(key)
        if rule is not None and not rule.accepts(value.strip()):
            raise ValidationError(
                f"Cannot set property {key} to {value!r}", hint=f"It may be {rule.accepted}."
            )


def check_not_reserved(names: Iterable[str]) -> None:
    """Refuse names of properties that describe a table.

    Raises:
        ValidationError: There are some among these.
    """
    _refuse(
        RESERVED_PROPERTIES.intersection(names),
        "They show a table's state, and follow it when that changes.",
    )


def check_no_entry_properties(names: Iterable[str]) -> None:
    """Refuse to set, on a table or a view, what would point its entry elsewhere.

    Raises:
        ValidationError: There are such names among these.
    """
    _refuse(
        ENTRY_PROPERTIES.intersection(names),
        "They say where a metastore's entry points: register_table makes a table of a file.",
    )


def _refuse(reserved: Collection[str], hint: str) -> None:
    if reserved:
        names = ", ".join(sorted(reserved))
        raise ValidationError(f"Cannot set reserved properties: {names}", hint=hint)
