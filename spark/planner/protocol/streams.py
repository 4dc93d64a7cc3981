"""Messages about streams: rows appended to a table since a query's last batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import Long, Message, Opaque, Repeatable
from icecomb.spark.planner.protocol.scans import PlanScan


@dataclass(frozen=True, slots=True)
class StreamTable(Opaque):
    """The table of a stream when the query started; requires no file of that time.

    Args:
        uuid: The table's uuid, which a re-created table does not share.
        schema: Iceberg's schema of the columns that are read.
        branch: The branch that is followed.
    """

    catalog: str
    identifier: tuple[str, ...]
    uuid: str
    schema: Any
    options: Mapping[str, str]
    branch: str


@dataclass(frozen=True, slots=True)
class OpenStream(Repeatable):
    """Request to begin or continue a stream. Answer: `OpenedStream`.

    Args:
        initial: The stream's initial offset from the checkpoint; None for a new stream.
    """

    scan: PlanScan
    initial: str | None


@dataclass(frozen=True, slots=True)
class OpenedStream(Message):
    """A stream.

    Args:
        stream: The stream's table, for further requests.
        max_files: The most files of a batch; None for no limit.
        max_rows: The number of rows with which a batch is full; None for no limit.
        vectorized: As in `ScanPlan`, like `batch_rows`.
    """

    stream: StreamTable
    initial: str
    max_files: int | None
    max_rows: Long | None
    vectorized: bool
    batch_rows: int | None


@dataclass(frozen=True, slots=True)
class LatestOffset(Repeatable):
    """Request for the end offset of the next batch. Answer: `StreamPosition`.

    Args:
        max_files: The most files of the batch; None for no limit.
        max_rows: The number of rows with which it is full; None for no limit.
        until: The last offset of the query, see `StreamEnd`; None for no limit.
    """

    stream: StreamTable
    start: str
    max_files: int | None
    max_rows: Long | None
    until: str | None


@dataclass(frozen=True, slots=True)
class StreamEnd(Repeatable):
    """Request for the current end of the table's branch. Answer: `StreamPosition`."""

    stream: StreamTable


@dataclass(frozen=True, slots=True)
class StreamPosition(Message):
    """An offset as text, see `StreamOffset`; None if there is nothing to read."""

    offset: str | None


@dataclass(frozen=True, slots=True)
class PlanStream(Repeatable):
    """Request to plan the file ranges of a batch. Answer: `ScanPlan`.

    Args:
        scan: The scan of the table; its reference and filters are ignored.
    """

    stream: StreamTable
    scan: PlanScan
    start: str
    end: str
