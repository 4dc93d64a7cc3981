"""Statistics of Parquet column chunks as internal values of table columns.

Untrusted statistics are not used: INT96 (its order is undefined), unsigned integers, NaN, and the
minimum and maximum of binary decimals by parquet-mr before 1.10, which compared them bytewise.
Statistics in the deprecated fields of string columns are already ignored by pyarrow.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.spec.promotion import units_per_day
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UUIDType,
)

_UNIT_TO_NANOS = {"milliseconds": 1_000_000, "microseconds": 1000, "nanoseconds": 1}
_OLD_PARQUET_MR = re.compile(r"parquet-mr (version )?1\.\d(\.|$|-| )")
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """The footer's statistics of one column in one row group; None where unknown.

    What cannot be is unknown: a number of nulls below zero or above that of the values, a lower
    bound above the upper one. `value_count` includes nulls, and `upper` does not bound NaN.
    """

    value_count: int
    null_count: int | None
    lower: Any = None
    upper: Any = None

    def __post_init__(self) -> None:
        """Drop what cannot be."""
        if self.null_count is not None and not 0 <= self.null_count <= self.value_count:
            object.__setattr__(self, "null_count", None)
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            object.__setattr__(self, "lower", None)
            object.__setattr__(self, "upper", None)

    @property
    def only_nulls(self) -> bool:
        """True if all values are null."""
        return self.null_count == self.value_count


@dataclass(frozen=True, slots=True)
class Leaf:
    """A physical column that belongs to a field.

    Args:
        repeated: Whether it is inside a list or map, so that a row may have many values or none.
    """

    index: int
    field: FileField
    repeated: bool


def leaves(fields: Sequence[FileField]) -> Iterator[Leaf]:
    """Yield the physical columns of a file, in order."""
    for f in fields:
        yield from _leaves(f, repeated=False)


def _leaves(field: FileField, *, repeated: bool) -> Iterator[Leaf]:
    if not field.children:
        yield Leaf(field.leaves[0], field, repeated)
        return
    inner = repeated or not pa.types.is_struct(field.arrow_type)
    for child in field.children:
        yield from _leaves(child, repeated=inner)


def logical_type(column: pq.ColumnSchema) -> dict[str, Any]:
    """Return the logical type of a physical column as JSON values, not to be modified."""
    return _parsed(column.logical_type.to_json())


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def merged(chunks: Sequence[ChunkStatistics]) -> ChunkStatistics:
    """Merge the statistics of a column's parts."""
    nulls = [c.null_count for c in chunks]
    valued = [c for c in chunks if not c.only_nulls]
    lowers, uppers = [c.lower for c in valued], [c.upper for c in valued]
    return ChunkStatistics(
        sum(c.value_count for c in chunks),
        None if None in nulls else sum(n for n in nulls if n is not None),
        None if None in lowers else min(lowers, default=None),
        None if None in uppers else max(uppers, default=None),
    )


def reliable_zeros(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Widen bounds for both zeros, as a zero's sign means nothing there (Parquet, Statistics)."""
    return (
        -0.0 if isinstance(lower, float) and lower == 0 else lower,
        0.0 if isinstance(upper, float) and upper == 0 else upper,
    )


class ColumnStatistics:
    """A reader of the statistics of one physical column of a file."""

    def __init__(self, metadata: pq.FileMetaData, index: int, field_type: IcebergType) -> None:
        column = metadata.schema.column(index)
        self._metadata = metadata
        self._index = index
        self._type = field_type
        self._physical = column.physical_type
        self._logical = logical_type(column)
        self._required = column.max_definition_level == 0
        self._comparable = self._is_comparable()

    def chunk(self, row_group: int) -> ChunkStatistics:
        """Return the statistics of the column in one row group."""
        return self.of(self._metadata.row_group(row_group).column(self._index))

    def of(self, chunk: pq.ColumnChunkMetaData) -> ChunkStatistics:
        """Return the statistics of the column in one of its chunks."""
        found = chunk.statistics if chunk.is_stats_set else None
        nulls = 0 if self._required else None
        if found is None:
            return ChunkStatistics(chunk.num_values, nulls)
        if found.has_null_count:
            nulls = found.null_count
        if not self._comparable or not found.has_min_max:
            return ChunkStatistics(chunk.num_values, nulls)
        lower, upper = reliable_zeros(self._value(found.min_raw), self._value(found.max_raw))
        return ChunkStatistics(chunk.num_values, nulls, lower, upper)

    def _is_comparable(self) -> bool:
        if self._physical == "INT96" or self._logical["Type"] in ("Float16", "Interval"):
            return False
        if self._logical["Type"] == "Int" and not self._logical["isSigned"]:
            return False
        binary = self._physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
        if self._logical["Type"] == "Decimal" and binary:
            return _OLD_PARQUET_MR.match(self._metadata.created_by or "") is None
        return True

    def _value(self, raw: Any) -> Any:
        kind, target = self._logical["Type"], self._type
        if isinstance(target, DecimalType):
            return self._decimal(raw, target) if kind == "Decimal" else None
        if isinstance(raw, bytes):
            return self._bytes(raw)
        if isinstance(raw, bool):
            return raw if isinstance(target, BooleanType) else None
        if isinstance(raw, float):
            usable = isinstance(target, (FloatType, DoubleType)) and not math.isnan(raw)
            return raw if usable else None
        if kind == "Date" and isinstance(target, TIMESTAMP_TYPES):
            return int(raw) * units_per_day(target)
        if isinstance(target, (TimeType, *TIMESTAMP_TYPES)):
            return self._time(int(raw))
        if isinstance(target, (IntegerType, LongType)):
            return int(raw) if kind in ("None", "Int") else None
        if isinstance(target, DateType):
            return int(raw)
        return None

    def _decimal(self, raw: Any, target: DecimalType) -> Decimal | None:
        if self._logical["scale"] != target.scale:
            return None
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        return Decimal(unscaled).scaleb(-target.scale, _EXACT)

    def _bytes(self, raw: bytes) -> Any:
        if isinstance(self._type, StringType):
            try:
                return raw.decode()
            except UnicodeDecodeError:
                return None
        if isinstance(self._type, UUIDType):
            return uuid.UUID(bytes=raw) if len(raw) == 16 else None
        if isinstance(self._type, (BinaryType, FixedType)):
            return raw
        return None

    def _time(self, raw: int) -> int | None:
        """Return a time in the unit of its column's type."""
        fine = isinstance(self._type, NANO_TYPES)
        factor = _UNIT_TO_NANOS.get(
            self._logical.get("timeUnit", "nanoseconds" if fine else "microseconds")
        )
        if factor is None:
            return None
        # Nanoseconds are rounded down when read as microseconds, and so are their bounds.
        return raw * factor if fine else raw * factor // 1000
