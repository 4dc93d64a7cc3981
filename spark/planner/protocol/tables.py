"""Messages about tables: names, descriptions, creation, changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import Long, Message, Opaque, Repeatable, Unrepeatable


@dataclass(frozen=True, slots=True)
class TableName(Message):
    """A table's name in a catalog."""

    namespace: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Audit(Message):
    """The session's current settings for write-audit-publish (WAP): ``spark.wap.*``."""

    wap_id: str | None
    wap_branch: str | None


@dataclass(frozen=True, slots=True)
class TableReference(Opaque):
    """A reference to the table state pinned by a query; see `TableState`."""

    catalog: str
    identifier: tuple[str, ...]
    metadata_location: str
    uuid: str | None
    travelled_to: int | None
    ref: str | None
    staged: str | None
    branch: str | None
    metadata_table: str | None
    changes_after: int | None
    changes_until: int | None
    moves_rows: bool


@dataclass(frozen=True, slots=True)
class ListTables(Repeatable):
    """Request to list the tables of a namespace. Answer: `TableNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableNames(Message):
    """Names of tables."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class TableExists(Repeatable):
    """Request to check whether a table exists. Answer: `Exists`."""

    catalog: str
    table: TableName


@dataclass(frozen=True, slots=True)
class Exists(Message):
    """The answer whether it exists."""

    exists: bool


@dataclass(frozen=True, slots=True)
class LoadTable(Repeatable):
    """Request to load a current or past state of a table. Answer: `TableDescription`.

    Args:
        table: The name, or one below it, see `selectors`; without a namespace, the location.
        version: A snapshot id, a branch or a tag.
        timestamp_us: A time, in microseconds since 1970 UTC.
        audit: The session's WAP settings.
    """

    catalog: str
    table: TableName
    version: str | None
    timestamp_us: Long | None
    audit: Audit


@dataclass(frozen=True, slots=True)
class TableDescription(Message):
    """The description of a table for the bridge.

    Args:
        schema: Spark's schema, with field ids.
        partitioning: Spark's transforms.
        partition_type: Spark's struct of the metadata column `_partition`; null if none.
        uuid: The table's uuid, whatever part of it is shown.
        identity: The identity of what is shown, to which rows cached by a session belong.
        version: The version of its rows; never null, or Spark would cache an empty table forever.
        has_files: Whether it is read by `PlanScan`; else by `ReadRows`.
        takes_any_rows: Whether the planner, not Spark, checks the columns of written rows.
        evolves: Whether statements with schema evolution may change its columns.
        overwrite_mode: `icecomb.partition-overwrite-mode`, or null.
        has_lineage: Whether its rows have ids, see `icecomb.format.rows.values.metadata_columns`.
        below: Whether the name selected something below the table, see `selectors`.
    """

    reference: TableReference
    schema: Any
    partitioning: tuple[Any, ...]
    partition_type: Any
    properties: Mapping[str, str]
    uuid: str
    identity: str
    version: str
    has_files: bool
    takes_any_rows: bool
    evolves: bool
    overwrite_mode: str | None
    has_lineage: bool
    table: tuple[str, ...]
    below: bool


@dataclass(frozen=True, slots=True)
class NewTable(Message):
    """The definition of a new table."""

    table: TableName
    schema: Any
    partitioning: tuple[Any, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateTable(Unrepeatable):
    """Request to create a table. Answer: `TableDescription`."""

    catalog: str
    definition: NewTable


@dataclass(frozen=True, slots=True)
class CreateTableLike(Unrepeatable):
    """Request to create an empty table like an existing one. Answer: `TableDescription`.

    Args:
        source: The state of the table to copy, of any catalog.
        properties: The statement's properties, which override those of the source.
    """

    catalog: str
    table: TableName
    source: TableReference
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StageTable(Repeatable):
    """Request to stage a table for `CommitStaged`. Answer: `TableDescription`.

    Args:
        operation: ``create``, ``replace`` or ``create_or_replace``.
    """

    catalog: str
    operation: str
    definition: NewTable


@dataclass(frozen=True, slots=True)
class AlterTable(Unrepeatable):
    """Request to apply the changes of one statement. Answer: `TableDescription`."""

    catalog: str
    table: TableName
    changes: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DropTable(Unrepeatable):
    """Request to drop a table. Answer: `Dropped`."""

    catalog: str
    table: TableName
    purge: bool


@dataclass(frozen=True, slots=True)
class RenameTable(Unrepeatable):
    """Request to rename a table. Answer: `Done`."""

    catalog: str
    table: TableName
    target: TableName
