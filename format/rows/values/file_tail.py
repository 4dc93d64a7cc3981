"""Column information from the tail or the header of a data file, without reading rows.

Each format has its own class: `parquet/footer.py`, `orc/file_tail.py`, `avro/reader.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.types import DateType, PrimitiveType, TimestampType, TimestamptzType

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FIRST_GREGORIAN_DAY: Final = -141_427
"""1582-10-15 in days; old Java, Hive and Spark 2 number earlier days by another calendar."""
DAY_MICROS: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """A file's information about one of its columns.

    Args:
        size: Bytes on disk; None if unknown.
        values: Counts and bounds; None where nothing is known, and in lists and maps.
        old: Whether there are dates before 1582-10-15 in a calendar other than Iceberg's: all of
            Iceberg's readers see other days than the writer meant.
    """

    kind: PrimitiveType
    size: int | None
    values: ChunkStatistics | None
    old: bool = False


def is_old(kind: PrimitiveType, lower: Any) -> bool:
    """Return whether the least value, in days or microseconds, is before 1582-10-15."""
    if lower is None:
        return False
    if isinstance(kind, DateType):
        return bool(lower < FIRST_GREGORIAN_DAY)
    times = isinstance(kind, TimestampType | TimestamptzType)
    return times and bool(lower < FIRST_GREGORIAN_DAY * DAY_MICROS)


class FileTail(ABC):
    """The tail of one file; `split_offsets` of row groups ascend, and are empty if unknown."""

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
        """Return the known sizes, counts and bounds of columns, by field id.

        Args:
            kinds: The types of the table's columns by field id; other columns are left out.
            wanted: Ids of the columns whose counts and bounds are wanted in addition to their size.
        """

    def text_lengths(self, fields: Sequence[FileField]) -> dict[int, int]:  # noqa: ARG002 - of formats that state none
        """Return the most characters that columns' types allow, by field id."""
        return {}

    @property
    def numbered(self) -> bool:
        """True if the columns are named by number (`_col0`), as Hive before version 2 did."""
        return False
