"""Metrics of data files, kept for each column in manifests (spec: Manifests, data_file).

Table properties set how much is kept, as in Iceberg Java: `write.metadata.metrics.default`,
`write.metadata.metrics.column.<name>` and `write.metadata.metrics.max-inferred-column-defaults`,
with the modes `none`, `counts`, `truncate(n)` and `full`.
Columns inside lists and maps have only a size: they have no counts and bounds by row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.property.table_property import (
    METRICS_DEFAULT,
    METRICS_MAX_INFERRED,
    METRICS_OF_COLUMN,
)
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail
from icecomb.format.spec import single_value
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import SortOrder
from icecomb.format.spec.types import (
    BinaryType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES = 0xD7FF, 0xE000
_LAST_CODE_POINT = 0x10FFFF


class MetricsKind(Enum):
    """A level of detail of a column's metrics."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """A kind of metrics; `truncate` keeps `length` code points of text or bytes of binary."""

    kind: MetricsKind
    length: int = 0

    def __str__(self) -> str:
        """Return the mode in the form that `parse` reads."""
        bounded = self.kind is MetricsKind.TRUNCATE
        return f"truncate({self.length})" if bounded else self.kind.value

    @classmethod
    def parse(cls, text: str) -> MetricsMode:
        """Parse `none`, `counts`, `truncate(n)` or `full`, in upper or lower case."""
        lowered = text.strip().lower()
        if match := _TRUNCATE.fullmatch(lowered):
            length = int(match[1])
            if length > 0:
                return cls(MetricsKind.TRUNCATE, length)
        elif lowered in ("none", "counts", "full"):
            return cls(MetricsKind(lowered))
        raise ConfigurationError(
            f"Invalid metrics mode {text!r}", hint="Use none, counts, truncate(16) or full."
        )


_NONE = MetricsMode(MetricsKind.NONE)
_DEFAULT = MetricsMode(MetricsKind.TRUNCATE, 16)


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """The metrics mode of each column: `modes` by field id, `default` for others."""

    default: MetricsMode = _DEFAULT
    modes: Mapping[int, MetricsMode] = field(default_factory=dict)

    def mode(self, field_id: int) -> MetricsMode:
        """Return the mode of a column."""
        return self.modes.get(field_id, self.default)

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        schema: Schema,
        sort_order: SortOrder | None = None,
    ) -> MetricsConfig:
        """Return the modes set by a table's properties.

        Columns by which the table is sorted keep bounds even if the default would not. Without an
        explicit default, only the first hundred columns of a wide table have metrics.
        """
        modes: dict[int, MetricsMode] = {}
        default = _DEFAULT
        if mode := METRICS_DEFAULT.of(properties):
            default = MetricsMode.parse(mode)
        else:
            limit = METRICS_MAX_INFERRED.of(properties)
            ids = ids_of_values(schema)
            if len(ids) > limit:
                modes = dict.fromkeys(ids[:limit], default)
                default = _NONE
        for f in () if sort_order is None else sort_order.fields:
            if modes.get(f.source_id, default).kind in (MetricsKind.NONE, MetricsKind.COUNTS):
                modes[f.source_id] = _DEFAULT
        for name, mode in METRICS_OF_COLUMN.of_each(properties).items():
            if mode and schema.contains(name):
                modes[schema.find_field(name).field_id] = MetricsMode.parse(mode)
        return cls(default, modes)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one data file, by field id; counts of values include nulls.

    Sizes and the ascending `split_offsets` of row groups are in bytes on disk.
    """

    record_count: int
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    nan_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]
    split_offsets: tuple[int, ...]


def new_data_file(
    location: str,
    size: int,
    metrics: Metrics,
    spec: PartitionSpec,
    partition: tuple[Any, ...],
    *,
    file_format: FileFormat = FileFormat.PARQUET,
) -> DataFile:
    """Return a data file with its metrics."""
    return DataFile(
        file_path=location,
        file_format=file_format,
        partition=partition,
        record_count=metrics.record_count,
        file_size_in_bytes=size,
        column_sizes=metrics.column_sizes or None,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=metrics.split_offsets or None,
        spec_id=spec.spec_id,
    )


def column_types(schema: Schema) -> dict[int, PrimitiveType]:
    """Return the types of a schema's primitive columns, by field id."""
    kinds = ((i, schema.find_type(i)) for i in schema.field_ids)
    return {i: kind for i, kind in kinds if isinstance(kind, PrimitiveType)}


def summarised(
    tail: FileTail,
    columns: Mapping[int, ColumnSummary],
    config: MetricsConfig,
    nan_counts: Mapping[int, int] | None = None,
) -> Metrics:
    """Return the metrics of a file from its tail's summary of each column, by field id."""
    result = Metrics(tail.record_count, {}, {}, {}, {}, {}, {}, tail.split_offsets)
    for number, column in columns.items():
        if column.size is not None:
            result.column_sizes[number] = column.size
        mode, values = config.mode(number), column.values
        if values is None or mode.kind is MetricsKind.NONE:
            continue
        result.value_counts[number] = values.value_count
        if values.null_count is not None:
            result.null_value_counts[number] = values.null_count
        if nan_counts is not None and number in nan_counts:
            result.nan_value_counts[number] = nan_counts[number]
        if mode.kind is MetricsKind.COUNTS:
            continue
        lower, upper = bounds(column.kind, values.lower, values.upper, mode)
        if lower is not None:
            result.lower_bounds[number] = lower
        if upper is not None:
            result.upper_bounds[number] = upper
    return result


def truncated_lower(value: Any, length: int) -> Any:
    """Truncate text to code points or binary to bytes: the result never exceeds the value."""
    return value[:length] if isinstance(value, (str, bytes)) else value


def truncated_upper(value: Any, length: int) -> Any:
    """Return the shortest successor of a value's prefix: an upper bound of all values with it.

    Return the value itself if it is short enough; None if there are no successors.
    """
    if not isinstance(value, (str, bytes)) or len(value) <= length:
        return value
    if isinstance(value, str):
        return _next_text(value[:length])
    return _next_bytes(value[:length])


def bounds(
    kind: PrimitiveType, lower: Any, upper: Any, mode: MetricsMode
) -> tuple[bytes | None, bytes | None]:
    """Return a column's serialized bounds, truncated as its mode demands; None if unknown."""
    if mode.kind is MetricsKind.TRUNCATE and isinstance(kind, (StringType, BinaryType)):
        lower = None if lower is None else truncated_lower(lower, mode.length)
        upper = None if upper is None else truncated_upper(upper, mode.length)
    return (
        None if lower is None else single_value.to_bytes(kind, lower),
        None if upper is None else single_value.to_bytes(kind, upper),
    )


def _next_text(text: str) -> str | None:
    for at in range(len(text) - 1, -1, -1):
        point = ord(text[at])
        if point < _LAST_CODE_POINT:
            # Surrogates are not characters: the one after U+D7FF is U+E000.
            after = _FIRST_AFTER_SURROGATES if point == _LAST_BEFORE_SURROGATES else point + 1
            return text[:at] + chr(after)
    return None


def _next_bytes(data: bytes) -> bytes | None:
    stripped = data.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def ids_of_values(schema: Schema) -> list[int]:
    """Return the ids of all primitive columns outside lists and maps, outer levels first."""
    ids: list[int] = []
    level: list[NestedField] = list(schema.fields)
    while level:
        ids += [f.field_id for f in level if f.field_type.is_primitive]
        level = [
            inner
            for f in level
            if isinstance(f.field_type, StructType)
            for inner in f.field_type.fields
        ]
    return ids
