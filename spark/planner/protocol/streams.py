"""Streams: what was appended to a table since a query last looked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable
from icecomb.spark.planner.protocol.scans import PlanScan


@dataclass(frozen=True, slots=True)
class StreamTable(Message):
    """The table of a stream as it was when the query started; needs no file of that time.

    Args:
        catalog: The catalog's handle.
        identifier: Namespace and name.
        uuid: Of the table: another one of its name is not it.
        schema: The columns that are read, as Iceberg has them.
        options: Of the query.
        branch: Which of its branches is followed.
    """

    catalog: str
    identifier: tuple[str, ...]
    uuid: str
    schema: Any
    options: Mapping[str, str]
    branch: str


@dataclass(frozen=True, slots=True)
class OpenStream(Repeatable):
    """Begins a stream, or goes on with it. Answer: `OpenedStream`.

    Args:
        scan: What is read of the table.
        initial: Where the stream began, as the checkpoint has it; None for a new one.
    """

    scan: PlanScan
    initial: str | None


@dataclass(frozen=True, slots=True)
class OpenedStream(Message):
    """A stream.

    Args:
        stream: Names it to the planner.
        initial: Where it began, an offset.
        max_files: How many files a batch has at most; None for no limit.
        max_rows: With how many rows a batch is full; None for no limit.
        vectorized: As in `ScanPlan`.
        batch_rows: The same.
    """

    stream: StreamTable
    initial: str
    max_files: int | None
    max_rows: int | None
    vectorized: bool
    batch_rows: int | None


@dataclass(frozen=True, slots=True)
class LatestOffset(Repeatable):
    """Asks up to where the next batch reads. Answer: `StreamPosition`.

    Args:
        stream: The stream.
        start: Where the batch begins.
        max_files: How many files it has at most; None for no limit.
        max_rows: With how many rows it is full; None for no limit.
        until: The offset that is not passed, see `StreamEnd`; None for none.
    """

    stream: StreamTable
    start: str
    max_files: int | None
    max_rows: int | None
    until: str | None


@dataclass(frozen=True, slots=True)
class StreamEnd(Repeatable):
    """Asks where the table is now. Answer: `StreamPosition`."""

    stream: StreamTable


@dataclass(frozen=True, slots=True)
class StreamPosition(Message):
    """An offset as text, see `StreamOffset`; None if there is nothing to read."""

    offset: str | None


@dataclass(frozen=True, slots=True)
class PlanStream(Repeatable):
    """Asks which ranges of which files a batch reads. Answer: `ScanPlan`.

    Args:
        stream: The stream.
        scan: What is read of the table; its reference and filters are not looked at.
        start: Where the batch begins.
        end: Where it ends.
    """

    stream: StreamTable
    scan: PlanScan
    start: str
    end: str
