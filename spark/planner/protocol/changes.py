"""Changelogs: what commits of a table inserted and deleted."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.spark.planner.message import Message, Repeatable
from icecomb.spark.planner.protocol.tables import Audit, TableDescription, TableName


@dataclass(frozen=True, slots=True)
class ChangelogRange(Message):
    """Which commits are meant: from a version, from a time, or all.

    Args:
        start_version: A snapshot id, a branch or a tag.
        end_version: The same; None for what the table shows.
        start_us: A time in microseconds since 1970 UTC.
        end_us: The same; None for any later time.
        start_inclusive: Whether the commit at the start is meant, too.
        end_inclusive: The same of the end.
    """

    start_version: str | None
    end_version: str | None
    start_us: int | None
    end_us: int | None
    start_inclusive: bool
    end_inclusive: bool


@dataclass(frozen=True, slots=True)
class LoadChangelog(Repeatable):
    """Asks for the changes of a table. Answer: `LoadedChangelog`.

    Args:
        catalog: The catalog's handle.
        table: The table, or a branch below it.
        range: Which commits.
        deduplication: Spark's ``deduplicationMode``.
        compute_updates: Whether a deletion and an insertion are to be an update.
        audit: Of the session.
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
        table: What they are read as.
        identifiers: The columns that tell rows apart, where updates are to be told.
    """

    table: TableDescription
    identifiers: tuple[str, ...]
