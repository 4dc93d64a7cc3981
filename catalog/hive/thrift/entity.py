"""The objects of a Hive metastore as immutable values.

Each value read from a server keeps its wire form (``wire``), in which fields unknown to this client
survive: what is written back is the kept form with the known fields replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """A column as Hive sees it: its type is Hive's text, such as ``array<int>``."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class StorageDescriptor:
    """The location and formats of the files of a table or partition.

    Attributes:
        bucket_columns: Columns of ``CLUSTERED BY``; with ``num_buckets`` > 0.
        sort_columns: (column, order) of ``SORTED BY``; order 1 = ascending, 0 = descending.
    """

    columns: tuple[FieldSchema, ...] = ()
    location: str | None = None
    input_format: str | None = None
    output_format: str | None = None
    serde: str | None = None
    serde_name: str | None = None
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    compressed: bool = False
    num_buckets: int = 0
    bucket_columns: tuple[str, ...] = ()
    sort_columns: tuple[tuple[str, int], ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HiveTable:
    """A table or view of the metastore.

    Attributes:
        create_time, last_access_time: Seconds since the epoch.
        table_type: ``MANAGED_TABLE``, ``EXTERNAL_TABLE``, ``VIRTUAL_VIEW``,
            ``MATERIALIZED_VIEW``.
        wire: The serialized Thrift struct it was read from; None for a new one.
    """

    database: str
    name: str
    owner: str | None = None
    create_time: int = 0
    last_access_time: int = 0
    retention: int = 0
    storage: StorageDescriptor = field(default_factory=StorageDescriptor)
    partition_keys: tuple[FieldSchema, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    table_type: str | None = None
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    wire: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def full_name(self) -> str:
        """The name as ``db.table``."""
        return f"{self.database}.{self.name}"

    @property
    def is_iceberg(self) -> bool:
        """Whether its parameters say that it is an Iceberg table (ignoring case)."""
        return self.parameters.get("table_type", "").lower() == "iceberg"

    @property
    def is_view(self) -> bool:
        """Whether Hive treats it as a view."""
        return self.table_type in {"VIRTUAL_VIEW", "MATERIALIZED_VIEW"}

    @property
    def is_iceberg_view(self) -> bool:
        """Whether it is a view defined in Iceberg's format."""
        return self.is_view and self.parameters.get("table_type", "").lower() == "iceberg-view"

    @property
    def kind(self) -> str:
        """The kind of entry, for messages."""
        origin = "an Iceberg" if self.is_iceberg or self.is_iceberg_view else "a Hive"
        return f"{origin} {'view' if self.is_view else 'table'}"

    @property
    def metadata_location(self) -> str | None:
        """The metadata file that the entry points at; None if it has no pointer."""
        return self.parameters.get("metadata_location") or None


@dataclass(frozen=True, slots=True)
class HivePartition:
    """A partition of a Hive table; ``values`` are Hive's texts in the partition keys' order."""

    database: str
    table: str
    values: tuple[str, ...]
    create_time: int = 0
    last_access_time: int = 0
    storage: StorageDescriptor = field(default_factory=StorageDescriptor)
    parameters: Mapping[str, str] = field(default_factory=dict)
    wire: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class HiveDatabase:
    """A database; ``owner_type`` is ``USER``, ``GROUP`` or ``ROLE``."""

    name: str
    description: str | None = None
    location: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    owner_type: str | None = None
    wire: bytes | None = field(default=None, repr=False, compare=False)


class LockState(Enum):
    """The state of a requested lock."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """A lock's number and state."""

    lock_id: int
    state: LockState


@dataclass(frozen=True, slots=True)
class LockRow:
    """One row of the metastore's lock table.

    Attributes:
        last_heartbeat_ms: Time of the last heartbeat, in milliseconds since the epoch.
        acquired_ms: Time when it was granted, likewise; None while it waits.
        agent: The holder's name of itself; icecomb's is ``icecomb-…-pid<n>``.
    """

    lock_id: int
    database: str
    table: str | None
    state: LockState
    exclusive: bool
    user: str
    host: str
    agent: str | None
    last_heartbeat_ms: int | None
    acquired_ms: int | None
