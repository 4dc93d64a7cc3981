"""Tables: named, described, made, changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable, Unrepeatable


@dataclass(frozen=True, slots=True)
class TableName(Message):
    """A table's name in a catalog."""

    namespace: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Audit(Message):
    """The session's settings of write-audit-publish, as they are now.

    Args:
        wap_id: ``spark.wap.id``.
        wap_branch: ``spark.wap.branch``.
    """

    wap_id: str | None
    wap_branch: str | None


@dataclass(frozen=True, slots=True)
class Reference(Message):
    """A table in the state that a query holds on to; see `TableState`."""

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


@dataclass(frozen=True, slots=True)
class ListTables(Repeatable):
    """Names the tables of a namespace. Answer: `TableNames`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableNames(Message):
    """Names of tables."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class TableExists(Repeatable):
    """Asks whether there is a table. Answer: `Exists`."""

    catalog: str
    table: TableName


@dataclass(frozen=True, slots=True)
class Exists(Message):
    """Whether there is one."""

    exists: bool


@dataclass(frozen=True, slots=True)
class LoadTable(Repeatable):
    """Asks for a table as it is, or was. Answer: `TableDescription`.

    Args:
        catalog: The catalog's handle.
        table: Its name, or one below it, see `selectors`; without a namespace, its place.
        version: A snapshot id, a branch or a tag.
        timestamp_us: A time, in microseconds since 1970 UTC.
        audit: The session's settings.
    """

    catalog: str
    table: TableName
    version: str | None
    timestamp_us: int | None
    audit: Audit


@dataclass(frozen=True, slots=True)
class TableDescription(Message):
    """What the bridge learns about a table.

    Args:
        reference: Names its state in further requests.
        schema: Spark's schema, with field ids.
        partitioning: Spark's transforms.
        partition_type: Of the metadata column `_partition`, as Spark's struct; null for none.
        properties: As users see them.
        uuid: The table's, whatever is shown of it.
        identity: Of what is shown: rows that a session has cached of it are of this only.
        version: Of its rows; never null, Spark would read an empty table as empty for ever.
        has_files: Whether `PlanScan` plans what is read; else `ReadRows` gives the rows.
        takes_any_rows: Whether the planner looks at the columns of rows that are written, and Spark
            does not.
        evolves: Whether statements that say so may change its columns.
        table: The name of the table itself.
        below: Whether it was named as something below the table, see `selectors`.
    """

    reference: Reference
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
    table: tuple[str, ...]
    below: bool


@dataclass(frozen=True, slots=True)
class TableDefinition(Message):
    """What a new table is to be."""

    table: TableName
    schema: Any
    partitioning: tuple[Any, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateTable(Unrepeatable):
    """Makes a table. Answer: `TableDescription`."""

    catalog: str
    definition: TableDefinition


@dataclass(frozen=True, slots=True)
class CreateTableLike(Unrepeatable):
    """Makes an empty table like one that there is. Answer: `TableDescription`.

    Args:
        catalog: The new table's catalog.
        table: Its name.
        source: The state of the table that it is to be like, of any catalog.
        properties: What the statement says, over those of the source.
    """

    catalog: str
    table: TableName
    source: Reference
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StageTable(Repeatable):
    """Begins a table that `CommitStaged` makes or replaces. Answer: `TableDescription`.

    Args:
        catalog: The catalog's handle.
        operation: ``create``, ``replace`` or ``create_or_replace``.
        definition: What it is to be.
    """

    catalog: str
    operation: str
    definition: TableDefinition


@dataclass(frozen=True, slots=True)
class AlterTable(Unrepeatable):
    """Makes the changes of one statement. Answer: `TableDescription`."""

    catalog: str
    table: TableName
    changes: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DropTable(Unrepeatable):
    """Drops a table. Answer: `Dropped`."""

    catalog: str
    table: TableName
    purge: bool


@dataclass(frozen=True, slots=True)
class RenameTable(Unrepeatable):
    """Gives a table another name. Answer: `Done`."""

    catalog: str
    table: TableName
    target: TableName
