"""Snapshots, references to them, and the logs (spec: Snapshots, Snapshot References)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import MAX_INT, MAX_LONG, any_text, checked_int
from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.spec.values.json_object import (
    extra_field,
    lazily,
    optional,
    required,
    unknown_members,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icecomb.format.spec.metadata import TableMetadata


MAIN_BRANCH = "main"
INITIAL_SEQUENCE_NUMBER = 0
_SNAPSHOT_MEMBERS = frozenset(
    (
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "timestamp-ms",
        "manifest-list",
        "manifests",
        "summary",
        "schema-id",
        "first-row-id",
        "added-rows",
        "key-id",
    )
)
_REF = frozenset(
    ("snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
)
_SNAPSHOT_LOG_ENTRY = frozenset(("timestamp-ms", "snapshot-id"))
_LIMITS = {
    "min_snapshots_to_keep": MAX_INT,
    "max_snapshot_age_ms": MAX_LONG,
    "max_ref_age_ms": MAX_LONG,
}
_METADATA_LOG_ENTRY = frozenset(("timestamp-ms", "metadata-file"))


class Operation(str, Enum):
    """The kind of change that a snapshot made to the table."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"

    def __str__(self) -> str:
        return self.value


class SnapshotRefType(str, Enum):
    """The kind of a reference: a branch moves with commits, a tag does not."""

    BRANCH = "branch"
    TAG = "tag"

    def __str__(self) -> str:
        return self.value


def ref_type(given: Any) -> SnapshotRefType:
    """Return a type of reference, given itself or by name, ignoring case."""
    try:
        return SnapshotRefType(given.lower() if isinstance(given, str) else given)
    except ValueError:
        raise ValidationError(
            f"Invalid reference: type is {given!r}", hint="Use branch or tag."
        ) from None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a table at one time.

    Args:
        snapshot_id: A random positive number.
        parent_snapshot_id: The id of the snapshot before, or None.
        sequence_number: The position in the order of commits; 0 in format version 1.
        timestamp_ms: The time of creation, in milliseconds since 1970 UTC.
        manifest_list: The location of the manifest list, or None for early v1 snapshots.
        summary: The `operation` and its counts, all as text.
        schema_id: The id of the schema that was current then, or None if not recorded.
        manifests: Locations of manifests, only for early v1 snapshots without a list.
        first_row_id: The table's `next_row_id` before the commit, or None before format version 3.
        added_rows: The number of row ids that the commit took, or None before format version 3.
        key_id: The id of the encryption key of the manifest list, or None if it is not encrypted.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If a number is not an integer of 64 bits (the schema's id: 32 bits), or
            `added_rows` is missing.
    """

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str | None
    summary: Mapping[str, str] = field(default_factory=dict, hash=False)
    schema_id: int | None = None
    manifests: tuple[str, ...] | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        _check_longs(self, "snapshot_id", "sequence_number", "timestamp_ms")
        if self.parent_snapshot_id is not None:
            _check_longs(self, "parent_snapshot_id")
        if self.schema_id is not None:
            object.__setattr__(self, "schema_id", checked_int("schema_id", self.schema_id))
        for name in ("first_row_id", "added_rows"):
            if (number := getattr(self, name)) is not None:
                object.__setattr__(self, name, checked_int(name, number, 0, MAX_LONG))
        if self.first_row_id is not None and self.added_rows is None:
            raise ValidationError(
                f"Invalid snapshot {self.snapshot_id}: it has a first-row-id, but no added-rows",
                hint="Give both, or none before format version 3.",
            )

    @property
    def operation(self) -> str | None:
        """The summary's operation: append, replace, overwrite or delete."""
        return self.summary.get("operation")

    def __str__(self) -> str:
        parent = "" if self.parent_snapshot_id is None else f", parent={self.parent_snapshot_id}"
        return f"{self.operation or 'unknown'}: id={self.snapshot_id}{parent}"

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot as in metadata files."""
        out: dict[str, Any] = {}
        if self.sequence_number > INITIAL_SEQUENCE_NUMBER:
            out["sequence-number"] = self.sequence_number
        out["snapshot-id"] = self.snapshot_id
        if self.parent_snapshot_id is not None:
            out["parent-snapshot-id"] = self.parent_snapshot_id
        out["timestamp-ms"] = self.timestamp_ms
        if self.summary:
            out["summary"] = {
                **({"operation": self.operation} if "operation" in self.summary else {}),
                **self.summary,
            }
        if self.manifest_list is not None:
            out["manifest-list"] = self.manifest_list
        else:
            out["manifests"] = list(self.manifests or ())
        if self.schema_id is not None:
            out["schema-id"] = self.schema_id
        lineage = {"first-row-id": self.first_row_id, "added-rows": self.added_rows}
        out.update((key, number) for key, number in lineage.items() if number is not None)
        if self.key_id is not None:
            out["key-id"] = self.key_id
        out.update(self.extra)
        return out

    @classmethod
    def from_json(cls, raw: Any) -> Snapshot:
        """Read a snapshot.

        Raises:
            ValidationError: If a required member is missing or has the wrong shape.
        """
        snapshot_id = required(raw, "snapshot-id", int, "snapshot")
        summary = optional(raw, "summary", dict, "snapshot") or {}
        manifest_list = optional(raw, "manifest-list", str, "snapshot")
        manifests = optional(raw, "manifests", list, "snapshot")
        if manifest_list is None and manifests is None:
            raise ValidationError(
                f"Invalid snapshot {snapshot_id}: manifest-list is missing",
                hint="Give the location of its manifest list.",
            )
        parent = optional(raw, "parent-snapshot-id", int, "snapshot")
        return cls(
            snapshot_id,
            None if parent == -1 else parent,
            optional(raw, "sequence-number", int, "snapshot") or INITIAL_SEQUENCE_NUMBER,
            required(raw, "timestamp-ms", int, "snapshot"),
            manifest_list,
            {str(key): str(value) for key, value in summary.items()},
            optional(raw, "schema-id", int, "snapshot"),
            None if manifests is None or manifest_list is not None else tuple(manifests),
            optional(raw, "first-row-id", int, "snapshot"),
            optional(raw, "added-rows", int, "snapshot"),
            optional(raw, "key-id", str, "snapshot"),
            unknown_members(raw, _SNAPSHOT_MEMBERS),
        )


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or tag.

    Args:
        snapshot_id: The id of the snapshot that it points to.
        snapshot_ref_type: Branch or tag.
        min_snapshots_to_keep: The number of a branch's snapshots that expiration keeps at least.
        max_snapshot_age_ms: The age in milliseconds at which a branch's snapshots expire.
        max_ref_age_ms: The age in milliseconds at which the reference expires; never for main.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        ValidationError: If a tag has a branch's limits, or a number is not a positive integer.
    """

    snapshot_id: int
    snapshot_ref_type: SnapshotRefType = SnapshotRefType.BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        _check_longs(self, "snapshot_id")
        object.__setattr__(self, "snapshot_ref_type", ref_type(self.snapshot_ref_type))
        limits = (self.min_snapshots_to_keep, self.max_snapshot_age_ms)
        if self.snapshot_ref_type is SnapshotRefType.TAG and limits != (None, None):
            raise ValidationError(
                "A tag has no min-snapshots-to-keep and no max-snapshot-age-ms",
                hint="Only max-ref-age-ms limits how long a tag lives.",
            )
        for name in _LIMITS:
            if (limit := getattr(self, name)) is not None:
                object.__setattr__(self, name, checked_int(name, limit, 1, None))

    def check_limits(self, before: SnapshotRef | None = None) -> None:
        """Check that new limits fit into the specification's types, which Java reads.

        Args:
            before: The reference before the change, whose limits are not checked again.

        Raises:
            ValidationError: If a count exceeds an int, or an age a long.
        """
        for name, most in _LIMITS.items():
            limit = getattr(self, name)
            if limit is not None and (before is None or getattr(before, name) != limit):
                checked_int(name, limit, 1, most)

    @property
    def is_branch(self) -> bool:
        """True if this is a branch, not a tag."""
        return self.snapshot_ref_type is SnapshotRefType.BRANCH

    def to_json(self) -> dict[str, Any]:
        """Return the reference as in metadata files."""
        out: dict[str, Any] = {
            "snapshot-id": self.snapshot_id,
            "type": self.snapshot_ref_type.value,
        }
        limits = {
            "min-snapshots-to-keep": self.min_snapshots_to_keep,
            "max-snapshot-age-ms": self.max_snapshot_age_ms,
            "max-ref-age-ms": self.max_ref_age_ms,
        }
        set_limits = {key: limit for key, limit in limits.items() if limit is not None}
        return {**out, **set_limits, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> SnapshotRef:
        """Read a reference.

        Raises:
            ValidationError: If a required member is missing or has the wrong shape.
        """
        return cls(
            required(raw, "snapshot-id", int, "reference"),
            ref_type(raw.get("type")),
            optional(raw, "min-snapshots-to-keep", int, "reference"),
            optional(raw, "max-snapshot-age-ms", int, "reference"),
            optional(raw, "max-ref-age-ms", int, "reference"),
            unknown_members(raw, _REF),
        )


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """A change of the current snapshot.

    Args:
        snapshot_id: The id of the snapshot that became current.
        timestamp_ms: The time, in milliseconds since 1970 UTC.
        extra: Members that icecomb does not know; they are written back.
    """

    snapshot_id: int
    timestamp_ms: int
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        _check_longs(self, "snapshot_id", "timestamp_ms")

    def to_json(self) -> dict[str, Any]:
        """Return the entry as in metadata files."""
        return {"timestamp-ms": self.timestamp_ms, "snapshot-id": self.snapshot_id, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> SnapshotLogEntry:
        """Read an entry.

        Raises:
            ValidationError: If a required member is missing or has the wrong shape.
        """
        return cls(
            required(raw, "snapshot-id", int, "snapshot-log entry"),
            required(raw, "timestamp-ms", int, "snapshot-log entry"),
            unknown_members(raw, _SNAPSHOT_LOG_ENTRY),
        )


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A former metadata file of the table.

    Args:
        metadata_file: The location of the file.
        timestamp_ms: The file's time of last update, in milliseconds since 1970 UTC.
        extra: Members that icecomb does not know; they are written back.
    """

    metadata_file: str
    timestamp_ms: int
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        _check_longs(self, "timestamp_ms")
        object.__setattr__(self, "metadata_file", any_text("metadata_file", self.metadata_file))

    def to_json(self) -> dict[str, Any]:
        """Return the entry as in metadata files."""
        out = {"timestamp-ms": self.timestamp_ms, "metadata-file": self.metadata_file}
        return {**out, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> MetadataLogEntry:
        """Read an entry.

        Raises:
            ValidationError: If a required member is missing or has the wrong shape.
        """
        return cls(
            required(raw, "metadata-file", str, "metadata-log entry"),
            required(raw, "timestamp-ms", int, "metadata-log entry"),
            unknown_members(raw, _METADATA_LOG_ENTRY),
        )


def _check_longs(value: Any, *names: str) -> None:
    """Check that members of a value are 64-bit integers, and convert them to Python's."""
    for name in names:
        number = checked_int(name, getattr(value, name), -MAX_LONG - 1, MAX_LONG)
        object.__setattr__(value, name, number)


NO_PARENT: Final = -1
"""The parent id that some writers record where there is no parent."""


def ancestors_of(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot, its parent and so on, newest first, up to one that has expired."""
    at, seen = snapshot_id, set[int]()
    while at is not None and (snapshot := metadata.snapshot_by_id(at)) is not None:
        if at in seen:
            raise CorruptFileError(
                f"The metadata of the table at {metadata.location} is damaged: snapshot {at} is "
                "among its own ancestors",
                hint="Go back to an older metadata file, or set main to a snapshot whose ancestors "
                "are intact.",
                path=metadata.location,
            )
        seen.add(at)
        yield snapshot
        at = snapshot.parent_snapshot_id


def parents_of(metadata: TableMetadata) -> dict[int, int | None]:
    """Return the parents of all snapshots by id; decodes no snapshot, as there may be many."""
    snapshots = lazily(metadata.snapshots, Snapshot.from_json)
    pairs = zip(
        snapshots.members("snapshot-id"), snapshots.members("parent-snapshot-id"), strict=True
    )
    return {number: None if parent == NO_PARENT else parent for number, parent in pairs}


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int | None) -> bool:
    """Return whether a snapshot is ``of`` or one of its ancestors."""
    return any(found.snapshot_id == snapshot_id for found in ancestors_of(metadata, of))


def latest_ancestor_before(
    metadata: TableMetadata, timestamp_ms: int, of: int | None
) -> Snapshot | None:
    """Return a snapshot's newest ancestor, or itself, created strictly before a time.

    The rule of a rollback, as in Iceberg Java (SetSnapshotOperation.rollbackToTime): ancestors, and
    not the log, show what was rolled back since, or came in by a branch. Where an ancestor has
    expired, those before it are unknown.
    """
    older = (s for s in ancestors_of(metadata, of) if s.timestamp_ms < timestamp_ms)
    return max(older, key=lambda snapshot: snapshot.timestamp_ms, default=None)
