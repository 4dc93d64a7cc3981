"""Messages about changelogs: rows that a table's commits inserted and deleted."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.spark.planner.protocol.message import Long, Message, Repeatable
from icecomb.spark.planner.protocol.tables import Audit, TableDescription, TableName


@dataclass(frozen=True, slots=True)
class ChangelogRange(Message):
    """A range of commits: by versions, by times (microseconds since 1970 UTC), or all.

    Args:
        start_version: A snapshot id, a branch or a tag.
        end_version: Likewise; None for the current snapshot.
        end_us: A time; None for no end.
    """

    start_version: str | None
    end_version: str | None
    start_us: Long | None
    end_us: Long | None
    start_inclusive: bool
    end_inclusive: bool


@dataclass(frozen=True, slots=True)
class LoadChangelog(Repeatable):
    """Request to load the changes of a table. Answer: `LoadedChangelog`.

    Args:
        table: The table, or a branch below it.
        deduplication: Spark's ``deduplicationMode``.
        compute_updates: Whether to show a deletion and an insertion as an update.
        audit: The session's WAP settings.
    """

    catalog: str
    table: TableName
    range: ChangelogRange
    deduplication: str
    compute_updates: bool
    audit: Audit


@dataclass(frozen=True, slots=True)
class LoadedChangelog(Message):
    """The changes of a table.

    Args:
        table: The description of the changelog as a table.
        identifiers: The columns that identify rows, if updates are computed.
    """

    table: TableDescription
    identifiers: tuple[str, ...]
