"""What the tail or the header of a data file says about its columns; no row is read for it.

Each format has its own: `parquet/footer.py`, `orc/file_tail.py`, `avro/header.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.parquet.statistics import ChunkStatistics
from icecomb.format.rows.read.arrow_projection import FileField
from icecomb.format.spec.types import DateType, PrimitiveType, TimestampType, TimestamptzType

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FIRST_GREGORIAN_DAY: Final = -141_427
"""1582-10-15: the days before have other numbers in the calendar of old Java, Hive and Spark 2."""
DAY_MICROS: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What a file says about one of its columns.

    Args:
        kind: The type of the table's column.
        size: Bytes on disk, where known.
        values: Counts and bounds; None where nothing is known, and in lists and maps.
        old: Whether there are dates before 1582-10-15 that are counted in another calendar than
            Iceberg's: all of its readers see other days than the writer meant.
    """

    kind: PrimitiveType
    size: int | None
    values: ChunkStatistics | None
    old: bool = False


def is_old(kind: PrimitiveType, lower: Any) -> bool:
    """Whether the least value of a column is before 1582-10-15.

    Args:
        kind: Its type; others than dates and timestamps are never old.
        lower: Days or microseconds; None is none.
    """
    if lower is None:
        return False
    if isinstance(kind, DateType):
        return bool(lower < FIRST_GREGORIAN_DAY)
    times = isinstance(kind, TimestampType | TimestamptzType)
    return times and bool(lower < FIRST_GREGORIAN_DAY * DAY_MICROS)


class FileTail(ABC):
    """The tail of one file.

    Args:
        schema: The columns, as pyarrow reads them.
        record_count: Rows.
        split_offsets: Where row groups begin, ascending; none where that is not known.

    Attributes:
        file_format: The format.
        parquet_schema: The columns of a Parquet file.
    """

    file_format: FileFormat
    parquet_schema: pq.ParquetSchema | None = None

    def __init__(
        self, schema: pa.Schema, record_count: int, split_offsets: tuple[int, ...] = ()
    ) -> None:
        self.schema = schema
        self.record_count = record_count
        self.split_offsets = split_offsets

    @abstractmethod
    def columns(
        self,
        fields: Sequence[FileField],
        kinds: Mapping[int, PrimitiveType],
        wanted: Container[int],
    ) -> dict[int, ColumnSummary]:
        """What is known about columns, by field id.

        Args:
            fields: The file's fields, with their ids.
            kinds: The types of the table's columns; others are left out.
            wanted: Ids of those whose counts and bounds are asked for, beside their size.
        """

    @property
    def numbered(self) -> bool:
        """Whether its columns have numbers for names (`_col0`), as Hive before version 2 wrote."""
        return False
